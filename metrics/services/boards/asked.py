"""What is asked of a leaderboard, and what it is read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from metrics.engine.grammar import Measure
from metrics.engine.ranking import Floats, Ints
from metrics.models import Evaluation, MetricVector
from metrics.services.boards.columns import Arrangement, ShownColumn
from metrics.services.boards.fair_order import FairOrder, order_fairly
from metrics.services.boards.filter import Term, asks_for, filtered
from metrics.services.boards.roster import ORDERS, Roster, read_roster
from metrics.services.boards.states import NOT_CURRENT, runs_with_states
from metrics.services.boards.versions import ALL, BEST, LATEST, Lineup, Place, read_versions
from metrics.services.snapshots import once_in_snapshot
from metrics.services.values.judged_views import covered_topics, means_of, stored_means
from metrics.services.values.selection import own_measures
from runs.errors import NotFound
from runs.models import Collection, Qrels

# The code and reason of a run that stands beside others without a rank.
BESIDE = ("not_competing", "it does not compete")
# Evaluations of others among those of a leaderboard, as a multiple of its own, that are read with them.
_DENSE = 2


@dataclass(frozen=True)
class Among:
    """The `runs` that a leaderboard is of, as if the collection had no others.

    Those of them that are `beside` stand at their place by value without a rank; others are ranked, and compared in
    statistics, as if they were not there, except the one that is `against`, with which others are compared. Only those
    that are `shown` have rows, which changes no rank.
    """

    runs: frozenset[UUID]
    beside: frozenset[UUID] = frozenset()
    shown: frozenset[UUID] | None = None
    against: UUID | None = None

    def ranked_anew(self, places: Iterable[Place], runs: dict[int, UUID]) -> list[Place]:
        """Return the places with the ranks that those have who are ranked."""
        if self.beside.isdisjoint(runs.values()):
            return list(places)
        found, first, counted = list[Place](), dict[int, int](), 0
        for place in places:
            if runs[place.pk] in self.beside:
                found.append(Place(place.pk, None, *BESIDE))
                continue
            counted += place.rank is not None
            rank = None if place.rank is None else first.setdefault(place.rank, counted)
            found.append(place._replace(rank=rank))
        return found

    def compared(
        self, ranked: list[tuple[int, float]], runs: dict[int, UUID]
    ) -> list[tuple[int, float]]:
        return [
            pair
            for pair in ranked
            if runs[pair[0]] not in self.beside or runs[pair[0]] == self.against
        ]


@dataclass(frozen=True)
class BoardQuery:
    """The parameters of a leaderboard; `reader` is the user who requests it, for a filter by own runs, and `hold` a
    ranked run whose row is read whatever page is shown.

    With `among` it is of some of the collection's runs."""

    measures: list[Measure]
    sort: Measure
    descending: bool = True
    scores: str | None = None
    offset: int = 0
    limit: int = 50
    filter: Term | None = None
    reader: Any = None
    columns: tuple[ShownColumn, ...] = ()
    arrange: Arrangement | None = None
    hold: UUID | None = None
    versions: str = ALL
    among: Among | None = None

    @property
    def all_shown(self) -> bool:
        """Return whether every run of the leaderboard has a row."""
        return (
            not self.filter
            and self.versions == ALL
            and not (self.among and self.among.shown is not None)
        )


def active_qrels(collection: Collection) -> Qrels:
    """Return the active judgements; NotFound if none are active."""
    qrels = collection.active_qrels
    if qrels is None:
        raise NotFound(
            f"collection {collection.slug} has no active judgements yet", code="no_active_qrels"
        )
    return qrels


@dataclass(frozen=True)
class AskedBoard:
    """The inputs of a leaderboard."""

    collection: Collection
    qrels: Qrels
    query: BoardQuery

    @property
    def scores(self) -> str:
        return self.query.scores or self.collection.scores

    @cached_property
    def roster(self) -> Roster:
        """Return the evaluations under these judgements, of the runs among which it is."""
        found = read_roster(self.collection, self.qrels, self.scores)
        return found.among(self.query.among.runs) if self.query.among else found

    @property
    def runs(self) -> dict[int, UUID]:
        """Return the run of each evaluation under these judgements, in the order of submission."""
        return self.roster.runs

    @cached_property
    def order(self) -> FairOrder:
        """Return every run that is evaluated under these judgements, in the order of the measure."""
        query, seen = self.query, self.roster.seen
        if seen is None:
            return self._read_order()
        key = (
            seen,
            query.sort.name,
            query.descending,
            query.versions == LATEST,
            self.collection.documents,
        )
        found: FairOrder = ORDERS.of(
            key, self._read_order, lambda order: len(order.keys) + len(order.below)
        )
        return found

    def _read_order(self) -> FairOrder:
        sort, keys = self.query.sort, self.roster.keys
        if self.query.versions == LATEST:
            keys = np.array(
                [pk for pk, run in self.runs.items() if self.lineup.keeps(run)], np.int64
            )
        means, topics = self._means(keys)
        lower = not self.query.descending
        return order_fairly(
            keys,
            means,
            topics,
            self.qrels.topics,
            lambda asked: covered_topics(asked, sort),
            lower_first=lower,
        )

    def _means(self, keys: Ints) -> tuple[Floats, Ints]:
        """Return the mean of each evaluation, NaN where there is none, and the number of its topics."""
        sort, means, topics = (
            self.query.sort,
            np.full(len(keys), np.nan),
            np.zeros(len(keys), np.int64),
        )
        current = Evaluation.objects.counting(Q(qrels=self.qrels), self.scores).evaluated()
        rows = MetricVector.objects.filter(evaluation__in=current, measure=sort.name)
        if len(keys) and keys.max() - keys.min() < _DENSE * len(keys):
            # Nearly all between them are theirs: one piece of the index is read faster than one key after another.
            low, high = int(keys.min()), int(keys.max())
            rows = MetricVector.objects.filter(
                evaluation__gte=low, evaluation__lte=high, measure=sort.name
            )
        known, stored, covered = stored_means(rows, sort.name, self.qrels.pk)
        sorter = np.argsort(known)
        place = np.searchsorted(known, keys, sorter=sorter)
        there = np.zeros(len(keys), np.bool_)
        inside = np.flatnonzero(place < len(known))
        from_row = sorter[place[inside]]
        there[inside] = known[from_row] == keys[inside]
        from_row = from_row[there[inside]]
        means[there], topics[there] = stored[from_row], covered[from_row]
        if missing := keys[~there].tolist():
            computed = means_of(missing, [sort], own_measures(self.collection), self.qrels.pk)
            found = [computed.get((pk, sort.name), (None, 0)) for pk in missing]
            means[~there] = [np.nan if mean is None else mean for mean, _ in found]
            topics[~there] = [count for _, count in found]
        return means, topics

    @cached_property
    def lineup(self) -> Lineup:
        """Return which version stands for each system; of a leaderboard of all versions, nothing."""
        which = self.query.versions
        if which == ALL:
            return Lineup({}, [], which)
        order = (
            [pk for pk, _ in (*self.order.ranked, *self.order.below)]
            if which == BEST
            else self.runs
        )
        return Lineup(read_versions(self.collection), [(pk, self.runs[pk]) for pk in order], which)

    @property
    def shown(self) -> QuerySet[Any]:
        """Return the runs with their states, without those that the filter hides or for which another version
        stands."""
        term = self.query.filter
        below = [pk for pk, _ in self.order.below] if term and asks_for(term, "status") else []
        runs = runs_with_states(self.collection, self.qrels, self.scores, below)
        if among := self.query.among:
            runs = runs.filter(pk__in=among.runs if among.shown is None else among.shown)
        if self.query.versions != ALL:
            runs = runs.filter(Q(system__isnull=True) | Q(pk__in=self.lineup.shown))
        means = Evaluation.objects.current(self.qrels, self.scores).evaluated()
        return filtered(runs, term, self.query.reader, means) if term else runs

    @property
    def shown_without_values(self) -> QuerySet[Any]:
        """Return those of these runs that have no values under these judgements: few, and looked at one by one for
        their states."""
        valued = Evaluation.objects.counting(Q(qrels=self.qrels), self.scores).evaluated()
        return self.shown.exclude(pk__in=valued.values("run")).filter(board_state__in=NOT_CURRENT)

    @property
    def shown_names(self) -> list[str]:
        """Return the keys of these runs in their order, as the database writes them: those of one snapshot are read
        once."""
        query = self.query
        reader, sort = getattr(query.reader, "pk", None), (query.sort.name, query.descending)
        key = (
            self.collection.pk,
            self.qrels.pk,
            self.scores,
            repr(query.filter),
            reader,
            query.versions,
            sort,
            query.among,
        )
        return once_in_snapshot(("shown", *key), self._read_shown_names)

    def _read_shown_names(self) -> list[str]:
        names = (
            self.shown.order_by()
            .annotate(name=Cast("pk", TextField()))
            .values_list("name", flat=True)
        )
        # A database takes longer to put ten thousand of them in order.
        return sorted(names)
