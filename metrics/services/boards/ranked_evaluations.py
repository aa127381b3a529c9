"""Read the evaluations that a leaderboard ranks, and their order by a measure.

Reading ten thousand of them takes longer than all else of a page. Both are therefore remembered by
each process, under what revision of the collection: another page, measure or filter then reads only
what is new.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

import numpy as np
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Ints
from metrics.models import Evaluation
from metrics.services.queue.damage import check_files
from metrics.services.snapshots import is_isolated, once_in_snapshot, revision_in_snapshot
from runs.models import Collection, Qrels, Run

# Runs in all that is remembered: 100 bytes each of a roster, 24 of an order.
_MOST_RUNS, _MOST_ORDERED = 100_000, 400_000

T = TypeVar("T")


@dataclass(frozen=True)
class Roster:
    """The evaluations of live runs under one version of judgements.

    `keys` are those of evaluations with values, `names` those of their runs as the database writes
    them, `states` counts the runs by state, and `identity` is what it was read under.
    """

    keys: Ints
    names: tuple[str, ...]
    states: dict[str, int]
    identity: Hashable

    @cached_property
    def runs(self) -> dict[int, UUID]:
        """Return the run of each evaluation, in the order of submission."""
        return {pk: UUID(name) for pk, name in zip(self.keys.tolist(), self.names, strict=True)}

    def among(self, runs: frozenset[UUID]) -> Roster:
        """Return those of some runs alone; their states are not counted."""
        places = [place for place, run in enumerate(self.runs.values()) if run in runs]
        return Roster(self.keys[places], tuple(self.names[place] for place in places), {}, None)


NOBODY = Roster(np.zeros(0, np.int64), (), {}, None)


class Recent(Generic[T]):
    """Remember what was read last, by what it depends on, up to a number of runs in all."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._results: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, read: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return what is remembered, or what `read` returns.

        It is remembered only if it is of one committed moment.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key][0]

        result = read()
        if is_isolated():
            with self._lock:
                if key not in self._results:
                    runs = size(result)
                    self._results[key] = result, runs
                    self._size += runs

                while self._size > self._most and len(self._results) > 1:
                    self._size -= self._results.popitem(last=False)[1][1]

        return result


_ROSTERS, ORDERS = Recent[Roster](_MOST_RUNS), Recent[Any](_MOST_ORDERED)


def read_roster(collection: Collection, qrels: Qrels, scores: str) -> Roster:
    """Return the evaluations of a collection's live runs under these judgements.

    Replicates are left out: their run has the means over them.

    Raise StoredValueCorrupt, and have them made again, if some were made from other files than
    their runs name.
    """
    revision = revision_in_snapshot(collection.pk)
    identity = collection.pk, qrels.pk, scores, ENGINE_VERSION, revision.changes

    def read() -> Roster:
        rows = list(_current(qrels, scores))
        evaluated = [row for row in rows if row[1] == Evaluation.State.EVALUATED]
        check_files(Evaluation, ((pk, bool(same)) for pk, _, same, _ in evaluated))

        states: dict[str, int] = {}
        for _, state, _, _ in rows:
            states[state] = states.get(state, 0) + 1

        live = Run.objects.filter(collection=collection, deleted_at=None).in_rows().count()
        if (without_evaluation := live - len(rows)) > 0:
            # A run without a requested evaluation counts as queued.
            states[Evaluation.State.QUEUED] = (
                states.get(Evaluation.State.QUEUED, 0) + without_evaluation
            )

        keys = np.array([row[0] for row in evaluated], np.int64)
        return Roster(keys, tuple(row[3] for row in evaluated), states, identity)

    return once_in_snapshot(
        identity, lambda: _ROSTERS.of(identity, read, lambda roster: len(roster.keys))
    )


def _current(qrels: Qrels, scores: str) -> QuerySet[Any, Any]:
    """Return the current evaluations under a version of judgements, in the order of submission."""
    current = Evaluation.objects.filter(
        qrels=qrels, scores=scores, engine_version=ENGINE_VERSION, run__replicate_of=None
    ).live()
    named: QuerySet[Any, Any] = current.with_files().annotate(name=Cast("run_id", TextField()))

    return named.order_by("run__created_at", "run").values_list("pk", "state", "same_files", "name")
