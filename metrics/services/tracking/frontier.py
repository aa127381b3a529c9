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
        _Cost("a cost, such as latency_ms; default: the one that most runs have", name="x")
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
        return [] if self.query.across else sorted({one.hardware for one in self.runs})

    @property
    def steps(self) -> list[list[Priced]]:
        """Return the runs on the frontier, for each kind of hardware that is compared apart."""
        on = [one for one in self.runs if one.status == engine.ON_FRONTIER]
        return [[one for one in on if one.hardware == kind] for kind in self.hardware] or [on]


def read_frontier(*, collection: Collection, query: FrontierQuery) -> Frontier:
    """Return the frontier of the chosen runs that have the cost.

    Raise InvalidInput for a cost that no visible run has; StatisticsError for an unknown run, more
    than MAX_RUNS, fewer than two topics that all runs have, a measure without values of topics, and
    what would take too long.
    """
    refuse_pooled([query.measure])
    qrels, scores = active_qrels(collection), query.chosen.scores or collection.scores
    evaluations = chosen_evaluations(collection=collection, query=query.chosen, most=MAX_RUNS)
    said = _said(evaluations)
    key = _key(collection, query, said)
    priced = [evaluation for evaluation in evaluations if key.name in said[evaluation.run_id].costs]
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
    own = [said[evaluation.run_id] for evaluation in priced]
    runs, pairs = _priced(
        query, key.name, [evaluation.run for evaluation in priced], own, common.values
    )

    cautions = [
        *qrels_cautions([query.measure], qrels),
        *cautions_of([query.measure], common.left_out),
        *few_topics(common.topics),
        *_of_runs(query, total - len(priced), [one.hardware for one in own], common.topics),
    ]

    return Frontier(query, qrels, scores, key, total, common.topics, pairs, runs, cautions)


def _priced(
    query: FrontierQuery, name: str, runs: Sequence[Run], said: Sequence[_Said], values: Matrix
) -> tuple[list[Priced], int]:
    """Return the runs with their statuses, the cheapest first, and the number of tested pairs."""
    lower = query.measure.definition.lower_is_better
    costs, hardware = [one.costs[name] for one in said], [one.hardware for one in said]
    _, groups = np.unique([""] * len(runs) if query.across else hardware, return_inverse=True)
    parts = (
        np.array([cost[part] for cost in costs], np.float64) for part in ("value", "low", "high")
    )
    found = engine.frontier(values, engine.Costs(*parts), groups, lower_is_better=lower)
    ends = row_intervals(values, CONFIDENCE, query.measure.definition.bounds)

    columns = (
        values.mean(axis=1).tolist(),
        costs,
        hardware,
        found.status,
        found.by.tolist(),
        found.p_adjusted.tolist(),
        zip(*(end.tolist() for end in ends), strict=True),
    )

    made = [
        Priced(
            run=run,
            mean=mean,
            cost=cost["value"],
            low=cost["low"],
            high=cost["high"],
            measured=cost["n"],
            hardware=kind,
            status=status,
            by=runs[by] if by >= 0 else None,
            p_adjusted=None if math.isnan(p) else p,
            ends=interval,
        )
        for run, mean, cost, kind, status, by, p, interval in zip(runs, *columns, strict=True)
    ]

    return sorted(made, key=lambda one: (one.cost, one.mean if lower else -one.mean)), found.pairs


@dataclass(frozen=True)
class _Said:
    """What a run says: its costs by name, each with value, low, high and n, and its hardware."""

    costs: Mapping[str, Mapping[str, Any]]
    hardware: str


_PARTS = ("value", "low", "high", "n")


def _said(evaluations: Sequence[Evaluation]) -> dict[UUID, _Said]:
    found = {}
    runs = Run.objects.filter(pk__in=[evaluation.run_id for evaluation in evaluations]).order_by()
    for pk, metadata, costs in runs.values_list("pk", "metadata", "costs"):
        given = {
            name: cost if isinstance(cost, dict) else {"value": cost}
            for name, cost in (costs or {}).items()
        }

        # Few runs say anything of their platform, and to flatten the metadata of a thousand takes a
        # tenth of a second.
        described = given and any(name.startswith(_PLATFORM) for name in metadata)
        leaves = {leaf.name: leaf.value for leaf in flatten(metadata).leaves} if described else {}
        hardware = ", ".join(str(leaves[name]) for name in _HARDWARE if name in leaves)
        parts = {name: {part: cost.get(part) for part in _PARTS} for name, cost in given.items()}
        found[pk] = _Said(parts, hardware or UNKNOWN)

    return found


def _key(collection: Collection, query: FrontierQuery, said: Mapping[UUID, _Said]) -> ParameterKey:
    """Return the cost that is asked for, or the one that most of the runs have."""
    if query.cost:
        board = visible_board(collection, query.reader)
        try:
            return find_key(board, COST, query.cost, "x: ")
        except InvalidInput as error:
            raise InvalidInput(error.message, code="bad_columns", pointer="x") from error

    counts: dict[str, int] = {}
    for run in said.values():
        for name in run.costs:
            counts[name] = counts.get(name, 0) + 1

    names = sorted(counts, key=lambda name: (-counts[name], name not in _USUAL, name))
    key = (
        ParameterKey.objects.filter(collection=collection, space=COST, name=names[0]).first()
        if names
        else None
    )

    return key or ParameterKey(collection=collection, space=COST, name=names[0] if names else "")


def _of_runs(
    query: FrontierQuery, without: int, hardware: Sequence[str], topics: int
) -> list[Caution]:
    """Return what a reader needs to know about the runs."""
    found = []
    unknown, kinds = hardware.count(UNKNOWN), sorted({*hardware} - {UNKNOWN})
    if topics < MIN_TOPICS:
        message = (
            f"{topics} topics are too few to tell a difference from chance: no run is surely "
            "dominated"
        )
        found.append(Caution("no_verdict", message))

    if without:
        message = f"{without} run{'s' * (without > 1)} without this cost left out"
        found.append(Caution("runs_without_cost", message))

    if query.across and len(kinds) + bool(unknown) > 1:
        message = (
            "costs were measured on different hardware: a difference may be due to the machine"
        )
        found.append(Caution("different_hardware", message))
    elif unknown and kinds:
        message = (
            f"{unknown} run{'s do' if unknown > 1 else ' does'} not say on what hardware the "
            "cost was measured"
        )
        found.append(Caution("unknown_hardware", f"{message}: compared with each other alone"))
    elif unknown:
        message = (
            "the runs do not say on what hardware the cost was measured: a difference may be "
            "due to the machine"
        )
        found.append(Caution("unknown_hardware", message))

    return found
