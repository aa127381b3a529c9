"""How far the judgements of a collection reach: runs without what their own team brought."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evalhub.pools.models import Pool, PoolRun
from evalhub.pools.services.pool_file import read_topics
from evalhub.pools.services.pooling import EXTRA
from evalhub.pools.services.recipes import recipe_of
from metrics.engine.analysis.reusability import (
    NOT_POOLED,
    BiasCorrection,
    LeftOut,
    LeftOutOrder,
    correct_bias,
    leave_out,
    order_without,
    pool_depth,
    relative_changes,
)
from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.judgement.depth import judged_depth, judged_ranks
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements
from metrics.engine.measures.external import FROM_TABLES, computed_names
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.selection import select_evaluations
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.question import (
    SCORES,
    Integer,
    Measures,
    Parameter,
    Question,
    RunIds,
    parameter,
)
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.effort import begin_values
from metrics.services.values.judged_views import views_of
from metrics.services.values.sampled import check_suits
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.formats.parameters import flatten
from runs.models import DEFAULT_MEASURES, Collection, Qrels, Run
from runs.services.collections.qrels import load_judgements

MAX_RUNS = 1_000
# Runs with a shallower judged depth are not taken for pooled ones.
LEAST_DEPTH = 5
BY_TEAM, BY_RUN = "team", "run"
RECORDED, NAMED, INFERRED = "recorded", "named", "inferred"
_RELEVANT = 1


@dataclass(frozen=True)
class ReusabilityQuery(Question):
    """What is left out, and the measures of the runs without it.

    The pooled runs and their depths are by default those of the frozen pools that the reader sees,
    else they are inferred from the depth to which runs are judged.
    """

    measures: list[Measure] = parameter(
        Measures(
            "separated by commas; default: the collection's that are computed from rankings",
            names=lambda collection: computed_names(collection.measures) or [DEFAULT_MEASURES[0]],
            most=10,
        )
    )
    by: str = parameter(
        Parameter(
            "leave out the judgements of one team, of one run, or of runs with the same value of "
            "a parameter, which is named here; default: team, or run where all runs are of one "
            "team",
            default="",
        )
    )
    pooled: list[str] = parameter(
        RunIds(
            "ids of the pooled runs, separated by commas; default: those of the recorded pools, "
            "else runs that are judged to the depth of the pool"
        )
    )
    depth: int | None = parameter(
        Integer(
            "ranks of a pooled run that were judged; default: as recorded, else the most frequent "
            f"judged depth of {LEAST_DEPTH} or more",
            low=1,
            high=10_000,
            default=None,
        )
    )
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True)
class PooledRuns:
    """The depth to which each run was pooled, 0 where it was not, and what organisers added.

    `depth` is that of all pooled runs, None where they differ; `pools` are numbers of recorded
    pools.
    """

    source: str
    depths: Ints
    added: Flags
    pools: list[int] = field(default_factory=list)

    @property
    def depth(self) -> int | None:
        depths = {*self.depths.tolist()} - {0}
        return depths.pop() if len(depths) == 1 else None


@dataclass(frozen=True)
class Group:
    """A group of runs, and the judgements that its pooled runs alone brought, by level."""

    name: str
    runs: int
    pooled: int
    judgements: int
    relevant: int
    levels: dict[int, int]


@dataclass(frozen=True)
class RunReach:
    """A run: how deep it is judged on every topic and at the median of topics, and its group."""

    run: Run
    judged_depth: int
    median_depth: float
    pooled: bool
    group: str


@dataclass(frozen=True)
class MeasureReach:
    """One measure over all runs; arrays have shape (runs,), NaN where a run has no value.

    `left_out` is the mean without the judgements that the group of the run alone brought, NaN where
    it brought none. Means over fewer topics than those of other runs take no part in ranks.
    """

    measure: Measure
    means: Floats
    left_out: Floats
    order: LeftOutOrder
    correction: BiasCorrection

    @property
    def changes(self) -> Floats:
        """Return the changes as shares of the means."""
        changes: Floats = relative_changes(self.means, self.left_out)
        return changes

    @property
    def mean_change(self) -> float:
        return _mean(self.changes)

    @property
    def largest_change(self) -> float:
        sizes = np.abs(self.changes[np.isfinite(self.changes)])
        return float(sizes.max()) if len(sizes) else math.nan

    @property
    def largest_drop(self) -> int:
        """Return the most ranks that a run loses."""
        return int((self.order.left_out_ranks - self.order.ranks).max(initial=0))

    def corrected(self, place: int, run: RunReach) -> float:
        """Return the mean of a run that was not pooled, with the correction; NaN of others."""
        return math.nan if run.pooled else float(self.means[place]) + self.correction.bias


@dataclass(frozen=True)
class Reusability:
    """The runs of a collection with and without what their groups brought to the pool."""

    by: str
    qrels: Qrels
    scores: str
    pooled: PooledRuns
    groups: list[Group]
    runs: list[RunReach]
    measures: list[MeasureReach]

    @property
    def cautions(self) -> list[Caution]:
        return qrels_cautions([reach.measure for reach in self.measures], self.qrels)

    @property
    def pooled_runs(self) -> int:
        return sum(run.pooled for run in self.runs)


def read_reusability(
    *, collection: Collection, reader: Any, query: ReusabilityQuery
) -> Reusability:
    """Return the runs of the leaderboard with and without what their groups brought.

    Raise NotFound without active judgements, InvalidInput for judgements of single queries or an
    unknown parameter of runs, StatisticsError for an unknown run, for more than MAX_RUNS, and where
    no pooled run is known.
    """
    if external := [measure.name for measure in query.measures if measure.is_external]:
        message = f"{', '.join(external)}: {FROM_TABLES}"
        raise MeasureError(message, code="no_curve", pointer="measures")

    qrels, scores = active_qrels(collection), query.scores or collection.scores
    if qrels.keyed_by != Qrels.KeyedBy.TOPIC:
        message = "judgements of single queries were not pooled from runs"
        raise InvalidInput(message, code="unknown_qrels")

    check_suits(query.measures, qrels)
    evaluations = select_evaluations(
        collection=collection, qrels=qrels, scores=scores, runs=[], most=MAX_RUNS, ranked=True
    )
    # Means over replicates have no rankings.
    evaluations = [row for row in evaluations if not row.run.has_replicates]
    ids = [evaluation.pk for evaluation in evaluations]
    runs = [evaluation.run for evaluation in evaluations]
    # Views are read twice: for what each run brought, and for its values.
    begin_values({pk: [*query.measures, *query.measures] for pk in ids})
    judgements = load_judgements(qrels)

    judged_runs = {pk: _judged_documents(view) for pk, _, view in views_of(ids)}
    documents = [judged_runs[pk] for pk in ids]
    pooled = _pooled_runs(collection, reader, query, judgements, runs, documents)
    by = query.by or _usual_groups(runs)
    names = _group_names(runs, by)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    groups = np.array([numbers[name] for name in names], np.int64)

    own_judgements = leave_out(
        judgements,
        [
            of_run.contributed(depth, len(judgements.levels))
            for of_run, depth in zip(documents, pooled.depths.tolist(), strict=True)
        ],
        np.where(pooled.depths > 0, groups, NOT_POOLED),
        pooled.added,
    )
    return Reusability(
        by=by,
        qrels=qrels,
        scores=scores,
        pooled=pooled,
        groups=[
            _describe_group(name, groups == number, pooled, own_judgements[number], judgements)
            for name, number in numbers.items()
            if number in own_judgements
        ],
        runs=[
            RunReach(
                run=run,
                judged_depth=of_run.depth,
                median_depth=of_run.median,
                pooled=depth > 0,
                group=name,
            )
            for run, of_run, depth, name in zip(
                runs, documents, pooled.depths.tolist(), names, strict=True
            )
        ],
        measures=_read_measures(query.measures, ids, groups, pooled, own_judgements),
    )


@dataclass(frozen=True)
class _JudgedDocuments:
    """The judged documents of a run: their rows in the qrels and their ranks, and the depths to
    which the run is judged on every topic and at the median of topics."""

    judgement: Ints
    rank: Ints
    depth: int
    median: float

    def contributed(self, depth: int, judgements: int) -> Flags:
        """Return which judgements are of documents at ranks 1 to `depth`; shape (judgements,)."""
        flags = np.zeros(judgements, np.bool_)
        flags[self.judgement[self.rank <= depth]] = True
        return flags


def _judged_documents(view: JudgedRun) -> _JudgedDocuments:
    keep_going()
    judged, answered = view.level >= 0, view.num_ret > 0
    return _JudgedDocuments(
        judgement=view.judgement[judged],
        rank=view.rank[judged],
        depth=judged_depth(view),
        median=float(np.median(judged_ranks(view)[answered])) if answered.any() else 0.0,
    )


def _pooled_runs(
    collection: Collection,
    reader: Any,
    query: ReusabilityQuery,
    judgements: Judgements,
    runs: Sequence[Run],
    documents: Sequence[_JudgedDocuments],
) -> PooledRuns:
    """Return the runs that the request names, else those of recorded pools, else inferred ones."""
    none = np.zeros(len(judgements.levels), np.bool_)
    if not query.pooled and query.depth is None:
        pools = list(
            Pool.objects.visible_to(reader)
            .filter(collection=collection, state=Pool.State.FROZEN)
            .order_by("number")
        )
        depths = _recorded_depths(pools, runs)
        if depths.any():
            added = _added_documents(pools, judgements)
            return PooledRuns(RECORDED, depths, added, [pool.number for pool in pools])

    judged = np.array([of_run.depth for of_run in documents], np.int64)
    depth = query.depth or pool_depth(judged.tolist(), LEAST_DEPTH)
    if depth is None:
        message = (
            f"no run is judged to depth {LEAST_DEPTH} on every topic, and no pool is recorded; "
            "name the pooled runs (pooled=) and their depth (depth=)"
        )
        raise StatisticsError(message, code="no_pooled_runs", pointer="pooled")

    if query.pooled:
        return PooledRuns(NAMED, _named_depths(query.pooled, runs, depth), none)

    return PooledRuns(INFERRED, np.where(judged >= depth, depth, 0), none)


def _named_depths(named: Sequence[str], runs: Sequence[Run], depth: int) -> Ints:
    ids = [str(run.pk) for run in runs]
    for run_id in named:
        if run_id not in ids:
            message = f"run {run_id} is not on the leaderboard"
            raise StatisticsError(message, code="unknown_run", pointer="pooled")
    return np.array([depth if run_id in named else 0 for run_id in ids], np.int64)


def _recorded_depths(pools: Sequence[Pool], runs: Sequence[Run]) -> Ints:
    """Return the depth to which each run is in one of the pools, 0 where it is in none."""
    depths: dict[Any, int] = {}
    for run_id, depth in PoolRun.objects.filter(pool__in=pools).values_list("run_id", "depth"):
        depths[run_id] = max(depth or 0, depths.get(run_id, 0))
    return np.array([depths.get(run.pk, 0) for run in runs], np.int64)


def _added_documents(pools: Sequence[Pool], judgements: Judgements) -> Flags:
    """Return which judgements are of documents that organisers added to a pool."""
    added = np.zeros(len(judgements.levels), np.bool_)
    for pool in pools:
        if not recipe_of(pool.recipe).extra:
            continue
        for topic_id, documents in read_topics(pool):
            topic = judgements.topic_index.get(topic_id.encode(), -1)
            rows = (
                judgements.places.get((topic, document.doc_id.encode()))
                for document in documents
                if document.stratum == EXTRA
            )
            added[[row for row in rows if row is not None]] = True
    return added


def _usual_groups(runs: Sequence[Run]) -> str:
    """Return by what runs are left out: without a single team's runs, nothing would be judged."""
    return BY_TEAM if len({run.team_id for run in runs}) > 1 else BY_RUN


def _group_names(runs: Sequence[Run], by: str) -> list[str]:
    """Return the group of each run: its team, itself, or its value of a parameter.

    Raise InvalidInput for a parameter that no run has.
    """
    if by == BY_TEAM:
        return [run.team.slug for run in runs]
    if by == BY_RUN:
        names = names_of(list(runs))
        return [names[run] for run in runs]

    metadata = dict(
        Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("pk", "metadata")
    )
    values = []
    for run in runs:
        leaves = {leaf.name: leaf.value for leaf in flatten(metadata[run.pk]).leaves}
        values.append(str(leaves.get(by, "")))

    if not any(values):
        message = f"by is team, run, or a parameter of runs; no run has {by[:100]!r}"
        raise InvalidInput(message, code="bad_columns", pointer="by")
    return values


def _describe_group(
    name: str, members: Flags, pooled: PooledRuns, own: LeftOut, judgements: Judgements
) -> Group:
    levels, counts = np.unique(judgements.levels[own.judgements], return_counts=True)
    by_level = dict(zip(levels.tolist(), counts.tolist(), strict=True))
    return Group(
        name=name,
        runs=int(members.sum()),
        pooled=int((members & (pooled.depths > 0)).sum()),
        judgements=int(own.judgements.sum()),
        relevant=sum(count for level, count in by_level.items() if level >= _RELEVANT),
        levels=by_level,
    )


def _read_measures(
    measures: Sequence[Measure],
    ids: Sequence[int],
    groups: Ints,
    pooled: PooledRuns,
    own_judgements: dict[int, LeftOut],
) -> list[MeasureReach]:
    """Return the means of every measure, with and without what the group of each run brought."""
    places = {pk: place for place, pk in enumerate(ids)}
    means, left_out = np.full((2, len(measures), len(ids)), np.nan)
    topics = np.zeros((len(measures), len(ids)), np.int64)

    for pk, _, view in views_of(ids):
        keep_going()
        place = places[pk]
        part = own_judgements.get(int(groups[place]))
        without = part and view.without(part.judgements, part.base)
        for row, measure in enumerate(measures):
            means[row, place], topics[row, place] = _mean_of(measure, view)
            if without:
                left_out[row, place], _ = _mean_of(measure, without)

    return [
        _measure_reach(measure, means[row], left_out[row], topics[row], pooled.depths > 0)
        for row, measure in enumerate(measures)
    ]


def _mean_of(measure: Measure, view: JudgedRun) -> tuple[float, int]:
    mean, topics = measure.aggregate(measure.compute(view), view)
    return (math.nan, 0) if mean is None else (mean, topics)


def _measure_reach(
    measure: Measure, means: Floats, left_out: Floats, topics: Ints, pooled: Flags
) -> MeasureReach:
    # Means over fewer topics cannot be compared with the others.
    ranked = np.where(topics == topics.max(initial=0), means, np.nan)
    own = np.where(np.isnan(left_out) | np.isnan(ranked), ranked, left_out)
    return MeasureReach(
        measure=measure,
        means=means,
        left_out=left_out,
        order=order_without(ranked, own, lower_is_better=measure.lower_is_better),
        correction=correct_bias(means[pooled], left_out[pooled]),
    )


def _mean(values: Floats) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else math.nan
