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
class _Count:
    told: int = 0
    untold: int = 0


@dataclass
class Rates:
    """The counts of one process in the current minute."""

    _minute: int = 0
    _counts: dict[str, _Count] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str, limit: int) -> float:
        """Count one request. Return 0 if it is allowed, else the seconds until the next minute. A limit of 0 means no
        limit."""
        now = time.time()
        minute = int(now // MINUTE)
        wait = (minute + 1) * MINUTE - now
        if limit <= 0:
            return 0.0
        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}
            count = self._counts.setdefault(key, _Count())
            if count.told + count.untold >= limit:
                return wait
            count.untold += 1
            if count.untold < max(1, limit // _SHARES):
                return 0.0
            telling, count.untold = count.untold, 0
        told = _tell(key, minute, telling)
        with self._lock:
            count.told = max(count.told, told)
        return wait if told > limit else 0.0

    def forget(self) -> None:
        with self._lock:
            self._counts.clear()


RATES = Rates()


def _tell(key: str, minute: int, more: int) -> int:
    """Add to the shared row, and return the sum of all processes. If the database does not respond, no request is
    limited."""
    try:
        row = RateCounter.objects.filter(key=key, minute=minute)
        if not row.update(used=F("used") + more):
            RateCounter.objects.filter(minute__lt=minute - _KEPT_MINUTES).delete()
            RateCounter.objects.bulk_create(
                [RateCounter(key=key, minute=minute)], ignore_conflicts=True
            )
            row.update(used=F("used") + more)
        return row.values_list("used", flat=True).first() or 0
    except Error as error:
        logger.warning("rates are not counted: %s", error)
        return 0
