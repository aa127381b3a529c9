"""How often something may be done in a minute, counted across processes without a cache between them.

Every process counts by itself and adds to the row that all share once it has a fiftieth of the limit: a limit below a
hundred is exact, a larger one is passed by at most a fiftieth for each process, and reading costs hardly any writes.
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
        """Count once; returns 0 where that is allowed, else the seconds until the next minute. No limit is 0."""
        now = time.time()
        minute = int(now // MINUTE)
        wait = (minute + 1) * MINUTE - now
        if limit <= 0:
            return 0.0
        with self._lock:
            count = self._count(key, minute)
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

    def _count(self, key: str, minute: int) -> _Count:
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        return self._counts.setdefault(key, _Count())


RATES = Rates()


def _tell(key: str, minute: int, more: int) -> int:
    """Add to the shared row; returns what all processes have told. A silent database limits nobody."""
    try:
        row = RateCounter.objects.filter(key=key, minute=minute)
        if not row.update(used=F("used") + more):
            RateCounter.objects.filter(minute__lt=minute - _KEPT_MINUTES).delete()
            RateCounter.objects.bulk_create([RateCounter(key=key, minute=minute)], ignore_conflicts=True)
            row.update(used=F("used") + more)
        return row.values_list("used", flat=True).first() or 0
    except Error as error:
        logger.warning("rates are not counted: %s", error)
        return 0
