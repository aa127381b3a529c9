"""What is asked of a leaderboard, and what it is read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast

from metrics.engine.arrays import Floats, Ints
from metrics.engine.measures.external import computed_names
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, EvaluationQuerySet, MetricVector, VectorUpdate
from metrics.services.boards.columns import (
    Arrangement,
    ShownColumn,
    read_arrangement,
    read_columns,
)
from metrics.services.boards.conditions import visible_board
from metrics.services.boards.entries import (
    BARRED,
    OFFICIAL,
    SHOWN_ENTRIES,
    CollectionEntries,
    read_entries,
)
from metrics.services.boards.fair_order import FairOrder, fair_order, order_fairly
from metrics.services.boards.filter import Term, asks_for, filtered, with_keys
from metrics.services.boards.filter_grammar import parse_filter
from metrics.services.boards.ranked_evaluations import ORDERS, Recent, Roster, read_roster
from metrics.services.boards.states import NOT_CURRENT, runs_with_states
from metrics.services.boards.topic_selection import (
    TopicFilter,
    TopicKey,
    Topics,
    TopicSelection,
    select_topics,
)
from metrics.services.boards.versions import (
    ALL,
    BEST,
    LATEST,
    VERSIONS,
    Lineup,
    Place,
    read_versions,
)
from metrics.services.question import (
    COMPUTED,
    MAX_LIMIT,
    SCORES,
    Choice,
    Context,
    Descending,
    Integer,
    Measures,
    Parameter,
    Question,
    measure_in,
    parameter,
)
from metrics.services.queue.vectors import JUDGED
from metrics.services.snapshots import once_in_snapshot, revision_in_snapshot
from metrics.services.values.common_values import refuse_pooled
from metrics.services.values.judged_views import covered_topics, means_of, stored_means
from metrics.services.values.own_measures import own_measures
from metrics.services.values.sampled import check_suits
from runs.errors import NotFound
from runs.models import Collection, Phase, Qrels

# The code and reason of a run that is shown among others without a rank.
NOT_COMPETING = ("not_competing", "it does not compete")
# Of means in tables for readers.
DECIMALS = 4
# Evaluations of others among those of a leaderboard, as a multiple of its own, that are read with
# them.
_DENSE = 2
# Entries in all that is remembered.
_MOST_ENTRIES = 20_000
_ENTRIES = Recent["CollectionEntries | None"](_MOST_ENTRIES)


@dataclass(frozen=True)
class Among:
    """The `runs` of a leaderboard, as if the collection had no others; None for all.

    Runs that are `unranked` are at their place by value without a rank. The others are ranked, and
    compared in statistics, as if these were not there, except the `baselines`, with which others
    are compared. Only those that are `shown` have rows, which changes no rank.
    """

    runs: frozenset[UUID] | None = None
    unranked: frozenset[UUID] = frozenset()
    shown: frozenset[UUID] | None = None
    baselines: frozenset[UUID] = frozenset()

    def ranked_anew(self, places: Iterable[Place], runs: dict[int, UUID]) -> list[Place]:
        """Return the places with the ranks among the runs that are ranked."""
        if self.unranked.isdisjoint(runs.values()):
            return list(places)

        new_places, new_ranks, ranked = list[Place](), dict[int, int](), 0
        for place in places:
            if runs[place.pk] in self.unranked:
                new_places.append(Place(place.pk, None, *NOT_COMPETING))
                continue
            ranked += place.rank is not None
            rank = None if place.rank is None else new_ranks.setdefault(place.rank, ranked)
            new_places.append(place._replace(rank=rank))

        return new_places

    def compared(
        self, ranked: list[tuple[int, float]], runs: dict[int, UUID]
    ) -> list[tuple[int, float]]:
        return [
            pair
            for pair in ranked
            if runs[pair[0]] not in self.unranked or runs[pair[0]] in self.baselines
        ]


@dataclass(frozen=True)
class _Sort(Parameter):
    """The measure to rank by."""

    default: Any = COMPUTED

    def value(self, context: Context) -> Measure:
        first = context.values["measures"][0].name
        return measure_in(context.parameters, self.name, first, context.collection)

    def write(self, value: Any) -> str:
        return str(value.name)


@dataclass(frozen=True)
class _Filter(Parameter):
    """A filter whose keys are those of the runs that the reader sees."""

    def read(self, text: str, name: str, context: Context) -> Term | None:
        term = parse_filter(text)
        return term and with_keys(term, visible_board(context.collection, context.reader))


@dataclass(frozen=True)
class _Columns(Parameter):
    """Columns of the runs that the reader sees."""

    default: Any = ()

    def value(self, context: Context) -> tuple[ShownColumn, ...]:
        return tuple(super().value(context))

    def read(self, text: str, name: str, context: Context) -> tuple[ShownColumn, ...]:
        return read_columns(text, visible_board(context.collection, context.reader))

    def write(self, value: Any) -> str:
        return ",".join(column.name for column in value)


@dataclass(frozen=True)
class _Arrange(Parameter):
    """A column by which rows are arranged."""

    def read(self, text: str, name: str, context: Context) -> Arrangement | None:
        return read_arrangement(text, visible_board(context.collection, context.reader))

    def write(self, value: Any) -> str:
        return value.name if value else ""


@dataclass(frozen=True)
class BoardQuery(Question):
    """The parameters of a leaderboard.

    `reader` is the user who requests it, for a filter by own runs, and `pinned` a ranked run
    whose row is read whatever page is shown.

    `entries` decides whether the official entries of the collection's phases are shown and ranked
    alone; with `among` it is of some of the collection's runs, whatever their entries are.
    """

    measures: list[Measure] = parameter(
        Measures("measure names separated by commas; default: the collection's own")
    )
    sort: Measure = parameter(_Sort("the measure to rank by; default: the first"))
    descending: bool = parameter(
        Descending(
            "default: best first",
            usually_descending=lambda context: (
                not context.values["sort"].definition.lower_is_better
            ),
        )
    )
    limit: int = parameter(
        Integer(f"rows of a page, at most {MAX_LIMIT}", default=50, low=1, high=MAX_LIMIT)
    )
    offset: int = parameter(Integer("rows to pass over", default=0))
    filter: Term | None = parameter(
        _Filter(
            "which rows to show: words, fields such as team:a,b, conditions such as "
            "param:k1>0.9; docs/api.md"
        )
    )
    columns: tuple[ShownColumn, ...] = parameter(
        _Columns("beside the measures, as param:k1,cost:latency_ms,submitted; at most 12")
    )
    arrange: Arrangement | None = parameter(
        _Arrange("a column, such as param:k1, by which rows are arranged; -param:k1 downwards")
    )
    versions: str = parameter(
        Choice(
            "all runs, or of each system the latest or the best version",
            default=ALL,
            choices=VERSIONS,
        )
    )
    entries: str = parameter(
        Choice(
            "on a collection with a phase: the official entries, or all runs",
            default=OFFICIAL,
            choices=SHOWN_ENTRIES,
        )
    )
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())
    by: str | None = parameter(
        TopicKey(
            "the key of an attribute of topics: a column of the ranking measure for each group, "
            "at most 12"
        )
    )
    reader: Any = None
    pinned: UUID | None = None
    among: Among | None = None

    @classmethod
    def read(
        cls, parameters: Mapping[str, str], collection: Any = None, reader: Any = None
    ) -> BoardQuery:
        """Return the query of a leaderboard.

        The keys of filter, columns and order are those of runs that the reader sees; in one
        snapshot they are read once.
        """
        key = (collection.pk, getattr(reader, "pk", None), tuple(sorted(parameters.items())))
        return once_in_snapshot(
            ("board_query", *key),
            lambda: replace(
                super(BoardQuery, cls).read(parameters, collection, reader), reader=reader
            ),
        )

    @property
    def all_shown(self) -> bool:
        """Return whether every run of the leaderboard has a row."""
        return (
            not self.filter
            and self.versions == ALL
            and not (self.among and self.among.shown is not None)
        )


@dataclass(frozen=True)
class FileQuery(Question):
    """How a leaderboard is written to a file."""

    decimals: int = parameter(
        Integer(f"of means, in md and tex; default: {DECIMALS}", default=DECIMALS, low=1, high=6)
    )


def qrels_version(collection: Collection, version: int) -> Qrels:
    """Return one version of the judgements, active or not; NotFound if it does not exist."""
    qrels: Qrels | None = collection.qrels.filter(version=version).first()
    if qrels is None:
        raise NotFound(
            f"collection {collection.slug} has no qrels version {version}", code="unknown_qrels"
        )

    qrels.collection = collection
    return qrels


def active_qrels(collection: Collection) -> Qrels:
    """Return the active judgements; NotFound if none are active."""
    qrels = collection.active_qrels
    if qrels is None:
        raise NotFound(
            f"collection {collection.slug} has no active judgements yet", code="no_active_qrels"
        )
    return qrels


def computing_measures(collection: Collection, qrels: Qrels) -> frozenset[str]:
    """Return the collection's measures if workers still compute some for evaluated runs."""
    under_way = (VectorUpdate.State.QUEUED, VectorUpdate.State.COMPUTING)
    if not VectorUpdate.objects.filter(qrels=qrels, state__in=under_way).exists():
        return frozenset()
    return frozenset((*computed_names(own_measures(collection)), JUDGED.name))


def count_lacking(evaluations: EvaluationQuerySet, measures: Set[str]) -> dict[str, int]:
    """Return how many of these evaluations lack each measure, for those that any lacks."""
    if not measures:
        return {}

    vectors = MetricVector.objects.filter(evaluation__in=evaluations, measure__in=measures)
    stored = dict(vectors.order_by().values_list("measure").annotate(Count("pk")))
    total = evaluations.count()
    lacking = {name: total - stored.get(name, 0) for name in sorted(measures)}

    return {name: count for name, count in lacking.items() if count}


@dataclass(frozen=True)
class BoardQuestion:
    """The inputs of a leaderboard."""

    collection: Collection
    qrels: Qrels
    query: BoardQuery

    def __post_init__(self) -> None:
        check_suits((*self.query.measures, self.query.sort), self.qrels)

    @property
    def scores(self) -> str:
        return self.query.scores or self.collection.scores

    @cached_property
    def selection(self) -> TopicSelection | None:
        """Return the topics that count, None for all."""
        return select_topics(self.qrels, self.query.topics, self.scores)

    @cached_property
    def entries(self) -> CollectionEntries | None:
        """Return the entries that decide which runs are ranked.

        It is None where there are none, or where the query names the runs.
        """
        return None if self.query.among else collection_entries(self.collection, self.qrels)

    @cached_property
    def among(self) -> Among | None:
        """Return the runs of the leaderboard: those of the query, or the official ones.

        Of all runs those that were withdrawn from a phase or disqualified are never ranked.
        """
        if self.entries is None:
            return self.query.among
        if self.query.entries == OFFICIAL:
            return Among(self.entries.with_status(OFFICIAL))
        return Among(unranked=self.entries.with_status(*BARRED))

    @cached_property
    def roster(self) -> Roster:
        """Return the evaluations under these judgements, of the runs among which it is."""
        roster = read_roster(self.collection, self.qrels, self.scores)
        return (
            roster
            if self.among is None or self.among.runs is None
            else roster.among(self.among.runs)
        )

    @property
    def runs(self) -> dict[int, UUID]:
        """Return the run of each evaluation under these judgements, in the order of submission."""
        return self.roster.runs

    @cached_property
    def computing(self) -> frozenset[str]:
        """Return the measures that workers are to compute for runs that were evaluated before.

        No reader computes them meanwhile. A board of named runs, such as a phase's, waits for
        nothing.
        """
        return frozenset() if self.query.among else computing_measures(self.collection, self.qrels)

    def count_lacking(self) -> dict[str, int]:
        """Return how many evaluated runs still lack each measure that is being computed."""
        measures = self.computing & {m.name for m in (*self.query.measures, self.query.sort)}
        runs = Evaluation.objects.current(self.qrels, self.scores).evaluated()
        runs = runs.filter(run__replicate_of=None)
        if self.among and self.among.runs is not None:
            runs = runs.filter(run__in=self.among.runs)
        return count_lacking(runs, measures)

    @cached_property
    def order(self) -> FairOrder:
        """Return every evaluated run under these judgements, in the order of the measure."""
        query, identity = self.query, self.roster.identity
        if identity is None:
            return self._read_order()

        key = (
            identity,
            query.sort.name,
            query.descending,
            query.versions == LATEST,
            self.collection.documents,
            self.selection.identity if self.selection else None,
        )
        order: FairOrder = ORDERS.of(
            key, self._read_order, lambda result: len(result.keys) + len(result.below)
        )
        return order

    def _read_order(self) -> FairOrder:
        sort, keys = self.query.sort, self.roster.keys
        if self.query.versions == LATEST:
            keys = np.array(
                [pk for pk, run in self.runs.items() if self.lineup.keeps(run)], np.int64
            )

        selection, lower = self.selection, not self.query.descending
        if selection:
            refuse_pooled([sort])
            results = selection.means_of(keys.tolist(), [sort], self.qrels, self.computing)
            means = {pk: results[pk, sort.name] for pk in keys.tolist()}
            return fair_order(
                means,
                selection.topics,
                lambda evaluations: selection.covered_topics(
                    evaluations, sort, self.qrels, self.computing
                ),
                lower_first=lower,
            )

        stored, topics = self._means(keys)
        return order_fairly(
            keys,
            stored,
            topics,
            self.qrels.topics,
            lambda evaluations: covered_topics(evaluations, sort),
            lower_first=lower,
        )

    def _means(self, keys: Ints) -> tuple[Floats, Ints]:
        """Return the mean of each evaluation, NaN where it has none, and its number of topics."""
        sort = self.query.sort
        current = Evaluation.objects.counting(Q(qrels=self.qrels), self.scores).evaluated()
        rows = MetricVector.objects.filter(evaluation__in=current, measure=sort.name)
        if len(keys) and keys.max() - keys.min() < _DENSE * len(keys):
            # Nearly all between them are theirs: one piece of the index is read faster than one key
            # after another.
            low, high = int(keys.min()), int(keys.max())
            rows = MetricVector.objects.filter(
                evaluation__gte=low, evaluation__lte=high, measure=sort.name
            )

        # Find the row of each key among the stored ones, which may have others.
        row_keys, row_means, row_topics = stored_means(rows, sort.name, self.qrels.pk)
        sorter = np.argsort(row_keys)
        position = np.searchsorted(row_keys, keys, sorter=sorter)
        inside = np.flatnonzero(position < len(row_keys))
        row_of_key = sorter[position[inside]]

        is_stored = np.zeros(len(keys), np.bool_)
        is_stored[inside] = row_keys[row_of_key] == keys[inside]
        row_of_key = row_of_key[is_stored[inside]]

        means, topics = np.full(len(keys), np.nan), np.zeros(len(keys), np.int64)
        means[is_stored], topics[is_stored] = row_means[row_of_key], row_topics[row_of_key]

        if missing := keys[~is_stored].tolist():
            computed = means_of(missing, [sort], self.qrels.pk, self.computing)
            results = [computed.get((pk, sort.name), (None, 0)) for pk in missing]
            means[~is_stored] = [np.nan if mean is None else mean for mean, _ in results]
            topics[~is_stored] = [count for _, count in results]

        return means, topics

    @cached_property
    def lineup(self) -> Lineup:
        """Return which version represents each system; none on a leaderboard of all versions."""
        versions = self.query.versions
        if versions == ALL:
            return Lineup({}, [], versions)

        order = (
            [pk for pk, _ in (*self.order.ranked, *self.order.below)]
            if versions == BEST
            else self.runs
        )

        unranked = self.among.unranked if self.among else frozenset()
        places = [(pk, self.runs[pk]) for pk in order if self.runs[pk] not in unranked]
        return Lineup(read_versions(self.collection), places, versions)

    @property
    def shown(self) -> QuerySet[Any]:
        """Return the runs with their states.

        Runs that the filter hides, and versions that another one represents, are left out.
        """
        term = self.query.filter
        below = [pk for pk, _ in self.order.below] if term and asks_for(term, "status") else []
        runs = runs_with_states(self.collection, self.qrels, self.scores, below)

        among = self.among
        if among and (among.shown is not None or among.runs is not None):
            runs = runs.filter(pk__in=among.runs if among.shown is None else among.shown)

        if self.query.versions != ALL:
            runs = runs.filter(Q(system__isnull=True) | Q(pk__in=self.lineup.shown))

        means = Evaluation.objects.current(self.qrels, self.scores).evaluated()
        return filtered(runs, term, self.query.reader, means) if term else runs

    @property
    def shown_without_values(self) -> QuerySet[Any]:
        """Return those of these runs that have no values under these judgements.

        They are few, and looked at one by one for their states.
        """
        valued = Evaluation.objects.counting(Q(qrels=self.qrels), self.scores).evaluated()
        return self.shown.exclude(pk__in=valued.values("run")).filter(board_state__in=NOT_CURRENT)

    @property
    def shown_names(self) -> list[str]:
        """Return the keys of these runs in their order, as the database writes them.

        In one snapshot they are read once.
        """
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
            query.entries,
            query.topics,
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


def primary_means(qrels: Qrels, phase: Phase, runs: list[UUID]) -> Mapping[UUID, float]:
    """Return the mean of the phase's primary measure of each of these runs.

    It is greater for better runs. Runs without a mean under these judgements, and those that cannot
    be ranked, are left out.
    """
    collection = phase.collection
    measure = collection.measure(phase.measure_names[0])
    lower = measure.definition.lower_is_better
    query = BoardQuery(
        measures=[measure], sort=measure, descending=not lower, among=Among(frozenset(runs))
    )
    board = BoardQuestion(collection, qrels, query)

    return {board.runs[pk]: -mean if lower else mean for pk, mean in board.order.ranked}


def collection_entries(collection: Collection, qrels: Qrels) -> CollectionEntries | None:
    """Return the entries of a collection, None where no phase makes one official."""

    def read() -> CollectionEntries | None:
        return read_entries(collection, partial(primary_means, qrels))

    key = collection.pk, qrels.pk, revision_in_snapshot(collection.pk)
    return _ENTRIES.of(key, read, lambda entries: 1 + len(entries.by_run) if entries else 1)


def ranked_evaluations(collection: Collection, qrels: Qrels, scores: str) -> EvaluationQuerySet:
    """Return the evaluations that the collection's leaderboard ranks.

    They are those of official entries where a phase makes entries official, otherwise those of all
    runs except replicates.
    """
    current = Evaluation.objects.current(qrels, scores).evaluated().filter(run__replicate_of=None)
    entries = collection_entries(collection, qrels)
    return current if entries is None else current.filter(run__in=entries.with_status(OFFICIAL))
