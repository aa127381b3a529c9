"""The record of dispatchers' rounds: it shows whether any dispatcher is alive."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from metrics.models import DispatcherRound

NOTE_SECONDS = 5.0
# Without a round for this many seconds, runs are no longer evaluated.
ALIVE_SECONDS = 30.0
_FORGET_AFTER = timedelta(hours=1)
# Why a dispatcher cannot send.
BROKER_AWAY, BROKER_FULL = "broker_unavailable", "broker_full"


def worker_name() -> str:
    """Return the name of this process on this host."""
    return f"{socket.gethostname()}-{os.getpid()}"


class RoundNotes:
    """The row of one dispatcher, which only it writes.

    It does so every 5 s, and where its `trouble` with the broker changes.
    """

    def __init__(self) -> None:
        self.failed = 0
        self.trouble = ""
        self._noted = ""
        self._worker = worker_name()
        self._next = 0.0

    def note(self) -> None:
        """Record a round of this dispatcher, how many failed, and whether it can send."""
        if time.monotonic() < self._next and self.trouble == self._noted:
            return

        row: dict[str, Any] = {"at": Now(), "failed": self.failed, "trouble": self.trouble}
        if not DispatcherRound.objects.filter(pk=self._worker).update(**row):
            DispatcherRound.objects.create(pk=self._worker, **row)
            # A row in the future was written before the clock was set back; a live dispatcher
            # writes it again.
            gone = Q(at__lt=Now() - _FORGET_AFTER) | Q(at__gt=Now() + _FORGET_AFTER)
            DispatcherRound.objects.filter(gone).delete()

        self._next, self._noted = time.monotonic() + NOTE_SECONDS, row["trouble"]


@dataclass(frozen=True, slots=True)
class LastRound:
    """A worker's last recorded round.

    It has its age in seconds, infinite for one in the future, how many rounds had failed, and why
    the worker cannot send, empty where it can.
    """

    worker: str
    age: float
    failed: int
    trouble: str = ""

    @property
    def alive(self) -> bool:
        return self.age < ALIVE_SECONDS


def last_rounds() -> list[LastRound]:
    """Return the last round of every worker of the last hour, newest first.

    Ages use the database's clock.
    """
    rows = DispatcherRound.objects.order_by("-at").annotate(now=Now())
    return [
        LastRound(row.worker, _age((row.now - row.at).total_seconds()), row.failed, row.trouble)
        for row in rows
    ]


def _age(seconds: float) -> float:
    """Return the age of a round.

    A round in the future is from a wrong clock, except for the moment between two statements of
    PostgreSQL.
    """
    return max(0.0, seconds) if seconds > -NOTE_SECONDS else inf
