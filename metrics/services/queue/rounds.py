"""The record that dispatchers share: whether any of them still goes round."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from django.db.models import Q
from django.db.models.functions import Now

from metrics.models import DispatcherRound

NOTE_SECONDS = 5.0
# Without a round for so long, nothing is evaluated any more.
ALIVE_SECONDS = 30.0
_FORGET_AFTER = timedelta(hours=1)


def worker_name() -> str:
    """This process on this host."""
    return f"{socket.gethostname()}-{os.getpid()}"


class RoundNotes:
    """One dispatcher's own row: written by no other, at most every 5 s."""

    def __init__(self) -> None:
        self.failed = 0
        self._worker = worker_name()
        self._next = 0.0

    def note(self) -> None:
        """Write down that this dispatcher goes round and how many of its rounds failed."""
        if time.monotonic() < self._next:
            return
        row = {"at": Now(), "failed": self.failed}
        if not DispatcherRound.objects.filter(pk=self._worker).update(**row):
            DispatcherRound.objects.create(pk=self._worker, **row)
            # One of the future was written before the clock was set back; who is alive writes it anew.
            gone = Q(at__lt=Now() - _FORGET_AFTER) | Q(at__gt=Now() + _FORGET_AFTER)
            DispatcherRound.objects.filter(gone).delete()
        self._next = time.monotonic() + NOTE_SECONDS


@dataclass(frozen=True, slots=True)
class LastRound:
    """A worker's last noted round: how many seconds ago, infinite for one in the future, and how many rounds failed
    before it."""

    worker: str
    age: float
    failed: int

    @property
    def alive(self) -> bool:
        return self.age < ALIVE_SECONDS


def last_rounds() -> list[LastRound]:
    """The last round of every worker of the last hour, the newest first; ages by the database's clock."""
    rows = DispatcherRound.objects.order_by("-at").annotate(now=Now()).values_list("worker", "at", "failed", "now")
    return [LastRound(worker, _age((now - at).total_seconds()), failed) for worker, at, failed, now in rows]


def _age(seconds: float) -> float:
    """Nobody goes round in the future; a moment of it passes between two statements of PostgreSQL."""
    return max(0.0, seconds) if seconds > -NOTE_SECONDS else inf
