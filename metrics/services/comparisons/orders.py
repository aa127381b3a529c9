"""Measure the agreement of orders of the same runs, by measures or by judgements."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from django.db.models import Q

from metrics.engine.agreement.intervals import Agreements, order_agreements
from metrics.engine.agreement.standings import has_ties, standings
from metrics.engine.arrays import Flags
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import Caution, Matrix, Options
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels, collection_entries
from metrics.services.boards.entries import OFFICIAL
from metrics.services.boards.selection import tested_measures, too_many_runs
from metrics.services.boards.topic_selection import (
    TopicFilter,
    Topics,
    TopicSelection,
    flags_of,
    select_topics,
)
from metrics.services.question import (
    MAX_VERSION,
    RANK_RESAMPLES,
    SCORES,
    SEED,
    Integer,
    Measures,
    Question,
    RunIds,
    Several,
    Share,
    parameter,
)
from metrics.services.queue.damage import check_files
from metrics.services.values.common_values import (
    CommonValues,
    cautions_of,
    common_values,
    qrels_cautions,
    refuse_pooled,
)
from metrics.services.values.effort import check_values, seconds_of_orders
from metrics.services.values.judged_views import vectors_of
from metrics.services.work import begin
from runs.models import Collection, Qrels, Run

MAX_RUNS = 200
MAX_ORDERS = 20
QRELS_VERSIONS = Several(
    "versions separated by commas; default: the active one",
    name="qrels",
    of=Integer("a version", low=1, high=MAX_VERSION),
)
_LONG = ("warnings", "known_warnings", "metadata", "ir_metadata", "description")


@dataclass(frozen=True)
class OrdersQuery(Question):
    """The parameters of orders.

    No versions means the active one, no runs means all that are evaluated under every version.
    """

    measures: list[Measure] = parameter(
        Measures(
            "measure names separated by commas; default: the collection's own",
            names=tested_measures,
        )
    )
    versions: list[int] = parameter(QRELS_VERSIONS)
    runs: list[str] = parameter(RunIds())
    confidence: float = parameter(Share("of the intervals", default=0.95))
    resamples: int = parameter(
        Integer("B of the intervals", default=1_000, low=RANK_RESAMPLES[0], high=RANK_RESAMPLES[1])
    )
    seed: int = parameter(SEED)
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True)
class Order:
    """The runs by one measure under one version.

    `ranks` and `means` are in the order of the answer's runs.
    """

    measure: Measure
    qrels: Qrels
    ties: bool
    ranks: list[int]
    means: list[float]


@dataclass(frozen=True)
class OrderPair:
    """The agreement of two orders, and the change of each run's rank from a to b.

    `a` and `b` are their places in the answer.
    """

    a: int
    b: int
    agreements: Agreements
    changes: list[int]


@dataclass(frozen=True)
class Orders:
    """All orders, and the pairs that differ in one respect only: the measure or the version."""

    query: OrdersQuery
    scores: str
    runs: list[Run]
    topics: int
    orders: list[Order]
    pairs: list[OrderPair]
    cautions: list[Caution]
    selection: TopicSelection | None = None


def compare_orders(*, collection: Collection, query: OrdersQuery) -> Orders:
    """Return the orders of the runs by their means on common topics.

    These are the topics that all versions judge, that are selected, and on which all runs have a
    value.

    Stale evaluations are left out: each version has its own. Raise StatisticsError for fewer than
    two orders, runs or topics, an unknown version or run, and requests that would take too long.
    """
    refuse_pooled(query.measures)
    scores = query.scores or collection.scores
    versions = _versions(collection, query)
    selection = _select_topics(versions, query.topics, scores)
    conditions = [(measure, qrels) for qrels in versions for measure in query.measures]
    _check_orders(len(conditions))
    runs, ids = evaluated_runs(collection, versions, scores, query)

    # Only pairs that differ in the measure or in the version, not in both.
    pairs = [
        (a, b)
        for a, b in combinations(range(len(conditions)), 2)
        if (conditions[a][0] == conditions[b][0]) != (conditions[a][1] == conditions[b][1])
    ]
    topics = selection.topics if selection else max(qrels.topics for qrels in versions)
    check_values(len(runs), topics, len(conditions))
    seconds = seconds_of_orders(len(conditions), len(pairs), len(runs), topics, query.resamples)
    subject = f"{len(pairs)} pairs of orders of {len(runs)} runs, B = {query.resamples:,},"
    begin(seconds, subject, "use fewer measures, runs (runs=) or resamples", "measures")

    values, common = values_of_orders(versions, ids, query.measures, flags_of(selection))
    lower = np.array([measure.definition.lower_is_better for measure, _ in conditions])
    means = np.array([order_values.mean(axis=1) for order_values in values])
    ranks = standings(means, lower)
    options = Options(confidence=query.confidence, resamples=query.resamples, seed=query.seed)
    agreements = order_agreements(ranks, values, pairs, lower, options)

    orders = [
        Order(measure, qrels, tied, places, means_of_runs)
        for (measure, qrels), tied, places, means_of_runs in zip(
            conditions, has_ties(ranks).tolist(), ranks.tolist(), means.tolist(), strict=True
        )
    ]

    selected = selection.cautions if selection else []
    unsuited = [
        caution for measure, qrels in conditions for caution in qrels_cautions([measure], qrels)
    ]
    return Orders(
        query=query,
        scores=scores,
        runs=runs,
        topics=common.topics,
        orders=orders,
        pairs=[
            OrderPair(a, b, agreement, (ranks[b] - ranks[a]).tolist())
            for (a, b), agreement in zip(pairs, agreements, strict=True)
        ],
        cautions=[
            *dict.fromkeys(unsuited),
            *cautions_of(query.measures, common.left_out),
            *(selected or few_topics(common.topics)),
        ],
        selection=selection,
    )


def _select_topics(
    versions: list[Qrels], topics: TopicFilter | None, scores: str
) -> TopicSelection | None:
    """Return the topics of the first version that are selected under every version, None for all."""
    if topics is None:
        return None

    # How many relevant documents a topic has depends on the version.
    by_version = [
        selection.among(qrels.topic_ids)
        for qrels in versions
        if (selection := select_topics(qrels, topics, scores))
    ]
    everywhere = set.intersection(*map(set, by_version))
    first: list[str] = versions[0].topic_ids
    return TopicSelection(topics.text, np.array([topic in everywhere for topic in first]))


def _versions(collection: Collection, query: OrdersQuery) -> list[Qrels]:
    """Return the versions in the order of the request, without repetitions."""
    if not query.versions:
        return [active_qrels(collection)]

    versions = list(dict.fromkeys(query.versions))
    by_version = {
        qrels.version: qrels
        for qrels in Qrels.objects.filter(collection=collection, version__in=versions)
    }

    for version in versions:
        if version not in by_version:
            message = f"collection {collection.slug} has no version {version} of the judgements"
            raise StatisticsError(message, code="unknown_qrels", pointer="qrels")

    return [by_version[version] for version in versions]


def _check_orders(number: int) -> None:
    if number < 2:
        message = (
            "agreement needs two orderings: name several measures=, or several versions with qrels="
        )
        raise StatisticsError(message, code="too_few_orders", pointer="measures")
    if number > MAX_ORDERS:
        message = (
            f"{number} orders (measures times versions of the judgements), at most {MAX_ORDERS} "
            "at once"
        )
        raise StatisticsError(message, code="too_many_orders", pointer="measures")


def evaluated_runs(
    collection: Collection, versions: list[Qrels], scores: str, query: OrdersQuery
) -> tuple[list[Run], list[list[int]]]:
    """Return the runs that are evaluated under every version, and their evaluations by version.

    Runs are as named, or in the order of submission.
    """
    evaluations = Evaluation.objects.live().evaluated().counting(Q(qrels__in=versions), scores)
    if query.runs:
        evaluations = evaluations.filter(run__in=query.runs)
    elif entries := collection_entries(collection, collection.active_qrels or versions[0]):
        evaluations = evaluations.filter(run__in=entries.with_status(OFFICIAL))
    if not query.runs:
        evaluations = evaluations.with_values_of(query.measures)

    by_run: dict[object, dict[int, int]] = {}
    rows = list(
        evaluations.with_files()
        .order_by("run__created_at", "run")
        .values_list("run_id", "qrels_id", "pk", "same_files")
    )

    check_files(Evaluation, (row[2:] for row in rows))
    for run, qrels, pk, _ in rows:
        by_run.setdefault(run, {})[qrels] = pk

    complete = {
        str(run): by_qrels for run, by_qrels in by_run.items() if len(by_qrels) == len(versions)
    }
    chosen = list(dict.fromkeys(query.runs)) or list(complete)
    _check_runs(collection, chosen, complete)
    rows_of = Run.objects.select_related("team").defer(*_LONG).in_bulk(chosen)
    runs = {str(pk): run for pk, run in rows_of.items()}

    return [runs[run] for run in chosen], [
        [complete[run][qrels.pk] for run in chosen] for qrels in versions
    ]


def _check_runs(
    collection: Collection, chosen: list[str], complete: dict[str, dict[int, int]]
) -> None:
    missing = [run for run in chosen if run not in complete]
    if missing:
        message = (
            f"run {missing[0]} is not evaluated against all of these judgements of "
            f"{collection.slug}"
        )
        raise StatisticsError(message, code="unknown_run", pointer="runs")
    if len(chosen) > MAX_RUNS:
        raise too_many_runs(MAX_RUNS)
    if len(chosen) < 2:
        message = (
            "an ordering needs at least two runs evaluated against all of these judgements; found "
            f"{len(chosen)}. Organisers have all runs evaluated against a version by POST "
            f"collections/{collection.slug}/evaluations/ with its number as qrels"
        )
        raise StatisticsError(message, code="too_few_runs")


def values_of_orders(
    versions: list[Qrels],
    ids: list[list[int]],
    measures: list[Measure],
    selected: Flags | None = None,
) -> tuple[list[Matrix], CommonValues]:
    """Return the values of each order, on the topics on which all runs always have a value.

    `selected` is a flag for each topic of the first version that counts, None for all.
    """
    shared = set(versions[0].topic_ids).intersection(*(qrels.topic_ids for qrels in versions[1:]))
    topics = [
        topic
        for place, topic in enumerate(versions[0].topic_ids)
        if topic in shared and (selected is None or selected[place])
    ]
    vectors = vectors_of([pk for evaluations in ids for pk in evaluations], measures)

    orders = []
    for qrels, evaluations in zip(versions, ids, strict=True):
        places = {topic: place for place, topic in enumerate(qrels.topic_ids)}
        columns = np.array([places[topic] for topic in topics], np.int64)
        orders += [
            np.vstack([vectors[pk, measure.name].values[columns] for pk in evaluations])
            for measure in measures
        ]

    stacked = common_values(np.vstack(orders))
    if selected is None:
        everywhere = len({topic for qrels in versions for topic in qrels.topic_ids})
    else:
        everywhere = int(selected.sum())

    left_out = everywhere - stacked.topics
    return np.split(stacked.values, len(orders)), CommonValues(
        stacked.values, left_out, stacked.common
    )
