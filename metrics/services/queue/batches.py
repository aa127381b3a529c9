"""Batches: evaluations that one worker takes with one message and stores in groups.

Each keeps its own lease, attempts and end. Only what was never tried is in a batch, so that one
that kills its worker is alone the next time, as are those that it took with it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Generic, TypeVar

from django.conf import settings
from django.dispatch import Signal

from metrics.models import Evaluation, SubmissionEvaluation
from metrics.services.queue.leases import closing, drop_withdrawn, heartbeat, patiently
from metrics.services.queue.lifecycle import Lease, LeaseLost, claim_together, give_back
from runs.formats.scanning.ahead import CORES, few_threads

logger = logging.getLogger(__name__)
T = TypeVar("T")
E = TypeVar("E", bound=SubmissionEvaluation)

# The most evaluations of a batch, and the most lines of their runs together, which take about
# 0.1 s to judge.
TOGETHER, LINES = 20, 1_000_000
# What was not begun by then goes back to the queue, where other workers may be free.
BATCH_SECONDS = 1.0
# Finished evaluations are stored when there are this many, or after this many seconds.
GROUP, GROUP_SECONDS = 10, 0.2

# Sent before the work on each evaluation of a batch begins.
begun = Signal()


def in_batches(due: list[int]) -> list[list[int]]:
    """Split due evaluations into what a worker gets with one message, in the same order.

    They are shared among the processes of a worker. Evaluations that were tried before and large
    runs are alone.
    """
    if len(due) == 1:
        return [due]

    evaluations = Evaluation.objects.filter(pk__in=due).values_list("pk", "attempts", "run__lines")
    rows = {pk: (attempts, lines) for pk, attempts, lines in evaluations}
    most = min(TOGETHER, ceil(len(due) / max(1, settings.EVALHUB_WORKER_PROCESSES)))

    batches: list[list[int]] = []
    room = lines_left = 0
    for pk in due:
        attempts, lines = rows.get(pk, (0, 0))
        if attempts or room < 1 or lines > lines_left:
            batches.append([])
            room, lines_left = (0, 0) if attempts else (most, LINES)

        batches[-1].append(pk)
        room, lines_left = room - 1, lines_left - lines

    return batches


class Batch(Generic[E, T]):
    """The work on a batch.

    `compute` gives the outcome of one evaluation, and `store` saves several in one transaction and
    returns the leases of those that were saved, where they were not lost.
    """

    def __init__(
        self,
        kind: type[E],
        related: tuple[str, ...],
        compute: Callable[[E, threading.Event], T],
        store: Callable[[list[tuple[Lease, T]]], list[Lease]],
        unread: tuple[str, ...] = (),
    ) -> None:
        self._kind, self._related, self._unread = kind, related, unread
        self._compute, self._store_all = compute, store
        self._ready: list[tuple[Lease, T]] = []
        self._done = 0

    def work(self, pks: list[int]) -> int:
        """Evaluate those of these queued evaluations that this call could claim.

        Return how many it finished.
        """
        leases = patiently(lambda: claim_together(pks, self._kind))
        remaining = deque(leases)
        if not leases:
            return 0

        try:
            # All processes of the worker have batches, and share the cores.
            with (
                heartbeat(*leases) as lost,
                few_threads(max(1, CORES // settings.EVALHUB_WORKER_PROCESSES)),
            ):
                self._work_through(remaining, lost)
        except SystemExit:
            # The worker stops: what is finished is stored, and other workers take the
            # rest.
            with contextlib.suppress(Exception):
                self._store_all(self._ready)

            give_back(leases, begun=False)
            raise
        except Exception:
            # Not of any one of them: each is tried again alone.
            logger.exception("a batch of %d was not finished", len(leases))
            patiently(lambda: give_back(leases, begun=True))
        else:
            if remaining:
                patiently(lambda: give_back(list(remaining), begun=False))

        return self._done

    def _work_through(self, remaining: deque[Lease], lost: threading.Event) -> None:
        pks = [lease.pk for lease in remaining]
        evaluations = self._kind._default_manager.select_related(*self._related).defer(
            *self._unread
        )
        rows: dict[int, E] = patiently(lambda: evaluations.in_bulk(pks))

        deadline, stored = time.monotonic() + BATCH_SECONDS, time.monotonic()
        while remaining and not lost.is_set() and time.monotonic() < deadline:
            lease = remaining.popleft()
            begun.send(self._kind, pk=lease.pk)
            with closing(lease):
                evaluation = rows.pop(lease.pk, None)
                if evaluation is None:
                    raise LeaseLost
                if not drop_withdrawn(lease, evaluation):
                    self._ready.append((lease, self._compute(evaluation, lost)))

            if len(self._ready) >= GROUP or time.monotonic() > stored + GROUP_SECONDS:
                self._store()
                stored = time.monotonic()

        self._store()

    def _store(self) -> None:
        """Store what is ready; if this fails, store each alone, so that only some fail."""
        ready, self._ready = self._ready, []
        if not ready:
            return

        try:
            self._save(ready)
        except SystemExit:
            self._ready = ready
            raise
        except Exception as error:
            logger.warning("%d evaluations are stored one by one: %s", len(ready), error)
            for outcome in ready:
                with closing(outcome[0]):
                    self._save([outcome])

    def _save(self, ready: list[tuple[Lease, T]]) -> None:
        saved = patiently(lambda: self._store_all(ready))
        self._done += len(saved)
        for lease, _ in ready:
            if lease not in saved:
                logger.warning("%s: lease_lost, its results are dropped", lease)
