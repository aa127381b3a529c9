"""Rate limits per minute, counted across processes without a shared cache.

Every process counts in memory and adds a fiftieth of the limit at a time to a shared row. A limit
below a hundred is exact, a larger one is exceeded by at most a fiftieth per process, and reading
needs hardly any writes.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from django.db import Error
from django.db.models import F

from runs.models import RateCounter

logger = logging.getLogger(__name__)

MINUTE = 60
_SHARES = 50
_KEPT_MINUTES = 10


@dataclass(slots=True)
class _Counter:
    """The requests of all processes in the shared row, and those not yet added to it."""

    total: int = 0
    pending: int = 0


@dataclass
class Rates:
    """The counts of one process in the current minute."""

    _minute: int = 0
    _counts: dict[str, _Counter] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, limit: int) -> float:
        """Count one request. Return 0 if it is allowed, else the seconds until the next minute.

        A limit of 0 means no limit.
        """
        now = time.time()
        minute = int(now // MINUTE)
        wait = (minute + 1) * MINUTE - now
        if limit <= 0:
            return 0.0

        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}

            count = self._counts.setdefault(key, _Counter())
            if count.total + count.pending >= limit:
                return wait

            count.pending += 1
            if count.pending < max(1, limit // _SHARES):
                return 0.0

            batch, count.pending = count.pending, 0

        total = _add_to_row(key, minute, batch)
        with self._lock:
            count.total = max(count.total, total)

        return wait if total > limit else 0.0

    def forget(self) -> None:
        with self._lock:
            self._counts.clear()


RATES = Rates()


def _add_to_row(key: str, minute: int, requests: int) -> int:
    """Add to the shared row, and return the sum of all processes.

    Return 0 if the database does not respond: then requests are not limited.
    """
    try:
        row = RateCounter.objects.filter(key=key, minute=minute)
        if not row.update(used=F("used") + requests):
            RateCounter.objects.filter(minute__lt=minute - _KEPT_MINUTES).delete()
            RateCounter.objects.bulk_create(
                [RateCounter(key=key, minute=minute)], ignore_conflicts=True
            )
            row.update(used=F("used") + requests)

        return row.values_list("used", flat=True).first() or 0
    except Error as error:
        logger.warning("rates are not counted: %s", error)
        return 0
