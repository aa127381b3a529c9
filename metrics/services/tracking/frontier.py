"""Effectiveness against cost: which runs no other one beats at the same cost or a lower one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np

from metrics.engine.analysis import frontier as engine
from metrics.engine.curve.intervals import row_intervals
from metrics.engine.errors import MeasureError
from metrics.engine.measures.external import ExternalDefinition, is_external
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import Caution, Matrix
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.conditions import find_key, visible_board
from metrics.services.boards.curves_together import TogetherQuery, chosen_evaluations
from metrics.services.boards.selection import tested_measures
from metrics.services.question import (
    Context,
    Flag,
    OneMeasure,
    Parameter,
    Question,
    nested,
    parameter,
)
from metrics.services.values.common_values import (
    cautions_of,
    qrels_cautions,
    read_common_values,
    refuse_pooled,
)
from metrics.services.values.effort import check_values, seconds_of_frontier
from metrics.services.values.judged_views import means_of
from metrics.services.work import begin
from runs.errors import InvalidInput
from runs.formats.parameters import flatten
from runs.models import Collection, ParameterKey, Qrels, Run
from runs.services.tracking.parameters import COST

MAX_RUNS = 1_000
# Of the intervals of the means.
CONFIDENCE = 0.95
# Of the description of the platform in an ir_metadata header, as tirex-tracker writes it, too.
_PLATFORM = "platform"
_HARDWARE = (f"{_PLATFORM}.hardware.cpu.model", f"{_PLATFORM}.hardware.gpu.model")
UNKNOWN = "hardware not given"
# Of costs that equally many runs have, times come first.
_USUAL = ("latency_ms", "latency_p95_ms", "wallclock_ms")


@dataclass(frozen=True)
class _Cost(Parameter):
    """The name of a cost, with or without the space before it."""

    default: Any = ""

    def read(self, text: str, name: str, context: Context) -> str:
        return text.removeprefix(f"{COST}:").strip('"')


@dataclass(frozen=True)
class FrontierQuery(Question):
    """The parameters of a frontier.

    They are the measure, the name of a cost or an empty text for the one that most runs have,
    whether runs on different hardware are compared, the runs, and the reader.
    """

    measure: Measure = parameter(
        OneMeasure(
            "one measure; default: the collection's first with values of topics",
            name="y",
            names=tested_measures,
        )
    )
    cost: str = parameter(
        _Cost(
            "a cost, such as latency_ms, or a measure of value tables, such as x:latency_ms; "
            "default: the cost that most runs have",
            name="x",
        )
    )
    across: bool = parameter(Flag("true: compare runs on different hardware, too"))
    chosen: TogetherQuery = nested(TogetherQuery)
    reader: Any = None

    @classmethod
    def read(
        cls, parameters: Mapping[str, str], collection: Any = None, reader: Any = None
    ) -> FrontierQuery:
        return replace(super().read(parameters, collection, reader), reader=reader)


@dataclass(frozen=True)
class Priced:
    """A run with its mean and its cost.

    The ends of its interval and the number of measurements are None where they are not given.
    `by` is the run that beats it, if any, and `p_adjusted` None where that was not tested.
    `ends` are those of the interval of the mean, NaN where it has none.
    """

    run: Run
    mean: float
    cost: float
    low: float | None
    high: float | None
    measured: int | None
    hardware: str
    status: str
    by: Run | None
    p_adjusted: float | None
    ends: tuple[float, float]


@dataclass(frozen=True)
class Frontier:
    """Runs with a cost, the cheapest first; `total` counts those without one, too.

    `pairs` are those for which p values count, and `topics` those on which all runs have a
    value.
    """

    query: FrontierQuery
    qrels: Qrels
    scores: str
    key: ParameterKey
    total: int
    topics: int
    pairs: int
    runs: list[Priced]
    cautions: list[Caution] = field(default_factory=list)

    @property
    def hardware(self) -> list[str]:
        """Return the kinds of hardware that are compared apart.

        An empty list if all runs are compared.
        """
        return [] if self.query.across else sorted({run.hardware for run in self.runs})

    @property
    def steps(self) -> list[list[Priced]]:
        """Return the runs on the frontier, for each kind of hardware that is compared apart."""
        on_frontier = [run for run in self.runs if run.status == engine.ON_FRONTIER]
        return [[run for run in on_frontier if run.hardware == kind] for kind in self.hardware] or [
            on_frontier
        ]


def read_frontier(*, collection: Collection, query: FrontierQuery) -> Frontier:
    """Return the frontier of the chosen runs that have the cost.

    Raise InvalidInput for a cost that no visible run has; StatisticsError for an unknown run, more
    than MAX_RUNS, fewer than two topics that all runs have, a measure without values of topics, and
    what would take too long.
    """
    refuse_pooled([query.measure])
    qrels, scores = active_qrels(collection), query.chosen.scores or collection.scores
    evaluations = chosen_evaluations(collection=collection, query=query.chosen, most=MAX_RUNS)
    costs_of_runs = _read_costs(evaluations)
    if is_external(query.cost):
        key = _add_costs_of_tables(collection, query.cost, qrels, evaluations, costs_of_runs)
    else:
        key = _key(collection, query, costs_of_runs)
    priced = [
        evaluation
        for evaluation in evaluations
        if key.name in costs_of_runs[evaluation.run_id].costs
    ]
    total = len(evaluations)

    if not priced:
        return Frontier(query, qrels, scores, key, total, 0, 0, [])

    check_values(len(priced), qrels.topics, 1)
    begin(
        seconds_of_frontier(len(priced), qrels.topics),
        f"a frontier of {len(priced)} runs",
        "name fewer runs",
        "filter",
    )

    (common,) = read_common_values([evaluation.pk for evaluation in priced], [query.measure], qrels)
    run_costs = [costs_of_runs[evaluation.run_id] for evaluation in priced]
    runs, pairs = _compare_costs(
        query, key.name, [evaluation.run for evaluation in priced], run_costs, common.values
    )

    cautions = [
        *qrels_cautions([query.measure], qrels),
        *cautions_of([query.measure], common.left_out),
        *few_topics(common.topics),
        *_cautions_of_runs(
            query, total - len(priced), [costs.hardware for costs in run_costs], common.topics
        ),
    ]

    return Frontier(query, qrels, scores, key, total, common.topics, pairs, runs, cautions)


def _compare_costs(
    query: FrontierQuery,
    name: str,
    runs: Sequence[Run],
    run_costs: Sequence[_RunCosts],
    values: Matrix,
) -> tuple[list[Priced], int]:
    """Return the runs with their statuses, the cheapest first, and the number of tested pairs."""
    lower = query.measure.definition.lower_is_better
    costs = [costs.costs[name] for costs in run_costs]
    hardware = [costs.hardware for costs in run_costs]
    _, groups = np.unique([""] * len(runs) if query.across else hardware, return_inverse=True)
    parts = (
        np.array([cost[part] for cost in costs], np.float64) for part in ("value", "low", "high")
    )

    frontier = engine.frontier(values, engine.Costs(*parts), groups, lower_is_better=lower)
    low, high = row_intervals(values, CONFIDENCE, query.measure.definition.bounds)
    means = values.mean(axis=1)

    priced = []
    for i, run in enumerate(runs):
        by, p_adjusted = int(frontier.by[i]), float(frontier.p_adjusted[i])
        priced.append(
            Priced(
                run=run,
                mean=float(means[i]),
                cost=costs[i]["value"],
                low=costs[i]["low"],
                high=costs[i]["high"],
                measured=costs[i]["n"],
                hardware=hardware[i],
                status=frontier.status[i],
                by=runs[by] if by >= 0 else None,
                p_adjusted=None if math.isnan(p_adjusted) else p_adjusted,
                ends=(float(low[i]), float(high[i])),
            )
        )

    priced.sort(key=lambda run: (run.cost, run.mean if lower else -run.mean))
    return priced, frontier.pairs


@dataclass(frozen=True)
class _RunCosts:
    """What a run says: its costs by name, each with value, low, high and n, and its hardware."""

    costs: Mapping[str, Mapping[str, Any]]
    hardware: str


_PARTS = ("value", "low", "high", "n")


def _read_costs(evaluations: Sequence[Evaluation]) -> dict[UUID, _RunCosts]:
    costs_of_runs = {}
    runs = Run.objects.filter(pk__in=[evaluation.run_id for evaluation in evaluations]).order_by()
    for pk, metadata, costs in runs.values_list("pk", "metadata", "costs"):
        costs_by_name = {
            name: cost if isinstance(cost, dict) else {"value": cost}
            for name, cost in (costs or {}).items()
        }

        # Few runs say anything of their platform, and to flatten the metadata of a thousand takes a
        # tenth of a second.
        described = costs_by_name and any(name.startswith(_PLATFORM) for name in metadata)
        leaves = {leaf.name: leaf.value for leaf in flatten(metadata).leaves} if described else {}
        hardware = ", ".join(str(leaves[name]) for name in _HARDWARE if name in leaves)
        parts = {
            name: {part: cost.get(part) for part in _PARTS} for name, cost in costs_by_name.items()
        }
        costs_of_runs[pk] = _RunCosts(parts, hardware or UNKNOWN)

    return costs_of_runs


def _add_costs_of_tables(
    collection: Collection,
    name: str,
    qrels: Qrels,
    evaluations: Sequence[Evaluation],
    costs_of_runs: dict[UUID, _RunCosts],
) -> ParameterKey:
    """Add the means of a measure of value tables to the costs of runs. Return what stands for it.

    Raise InvalidInput for a measure that is not declared, or of which higher values are better.
    """
    try:
        measure = collection.measure(name)
    except MeasureError as error:
        raise InvalidInput(f"x: {error.message}", code="bad_columns", pointer="x") from error

    definition = measure.definition
    if not isinstance(definition, ExternalDefinition) or not definition.lower_is_better:
        message = f"x: of a cost lower values are better, and of {measure.name} higher ones"
        raise InvalidInput(message, code="bad_columns", pointer="x")

    means = means_of([evaluation.pk for evaluation in evaluations], [measure], qrels.pk)
    for evaluation in evaluations:
        mean, topics = means[evaluation.pk, measure.name]
        costs = costs_of_runs[evaluation.run_id]
        if mean is not None:
            cost = {"value": mean, "low": None, "high": None, "n": topics}
            costs_of_runs[evaluation.run_id] = replace(
                costs, costs={**costs.costs, measure.name: cost}
            )

    return ParameterKey(collection=collection, space=COST, name=measure.name, unit=definition.unit)


def _key(
    collection: Collection, query: FrontierQuery, costs_of_runs: Mapping[UUID, _RunCosts]
) -> ParameterKey:
    """Return the cost that is asked for, or the one that most of the runs have."""
    if query.cost:
        board = visible_board(collection, query.reader)
        try:
            return find_key(board, COST, query.cost, "x: ")
        except InvalidInput as error:
            raise InvalidInput(error.message, code="bad_columns", pointer="x") from error

    counts: dict[str, int] = {}
    for run in costs_of_runs.values():
        for name in run.costs:
            counts[name] = counts.get(name, 0) + 1

    names = sorted(counts, key=lambda name: (-counts[name], name not in _USUAL, name))
    key = (
        ParameterKey.objects.filter(collection=collection, space=COST, name=names[0]).first()
        if names
        else None
    )

    return key or ParameterKey(collection=collection, space=COST, name=names[0] if names else "")


def _cautions_of_runs(
    query: FrontierQuery, unpriced: int, hardware: Sequence[str], topics: int
) -> list[Caution]:
    """Return what a reader needs to know about the runs."""
    cautions = []
    unknown, kinds = hardware.count(UNKNOWN), sorted({*hardware} - {UNKNOWN})
    if topics < MIN_TOPICS:
        message = (
            f"{topics} topics are too few to tell a difference from chance: no dominance is "
            "significant"
        )
        cautions.append(Caution("no_verdict", message))

    if unpriced:
        message = f"{unpriced} run{'s' * (unpriced > 1)} without this cost left out"
        cautions.append(Caution("runs_without_cost", message))

    if query.across and len(kinds) + bool(unknown) > 1:
        message = (
            "costs were measured on different hardware: a difference may be due to the machine"
        )
        cautions.append(Caution("different_hardware", message))
    elif unknown and kinds:
        message = (
            f"{unknown} run{'s do' if unknown > 1 else ' does'} not say on what hardware the "
            "cost was measured"
        )
        cautions.append(Caution("unknown_hardware", f"{message}: compared with each other alone"))
    elif unknown:
        message = (
            "the runs do not say on what hardware the cost was measured: a difference may be "
            "due to the machine"
        )
        cautions.append(Caution("unknown_hardware", message))

    return cautions
