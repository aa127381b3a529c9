"""The leaderboard with other gains, discounts and depths than the collection's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from metrics.engine.agreement.kendall import rank_correlations
from metrics.engine.analysis.what_if import (
    FAMILIES,
    MAX_COMBINATIONS,
    PRESETS,
    USERS,
    Grid,
    too_many_combinations,
)
from metrics.engine.cautions import Caution
from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.definition import BASE, DISCOUNT, MAX_CUTOFF, read_choice, read_integer
from metrics.engine.measures.external import FROM_TABLES
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.fair_order import FairOrder, fair_order
from metrics.services.boards.selection import select_evaluations
from metrics.services.question import (
    SCORES,
    Context,
    Gains,
    Measures,
    Question,
    RunIds,
    Several,
    Word,
    parameter,
)
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.judged_views import Mean, computed_means, covered_topics, means_of
from metrics.services.values.own_measures import own_measures
from runs.models import Collection, Qrels, Run

# The limit of runs times combinations: each is a measure computed for all topics, about half a
# millisecond for a large collection.
MAX_FIGURES = 5000


def _words(text: str, name: str, reads: Callable[[str, str], Any]) -> Several:
    """Return a parameter of several values, each of which is read as a parameter of a measure."""
    return Several(text, name=name, of=Word(text, reads=reads))


@dataclass(frozen=True)
class _Depth(Word):
    """A rank, or None for the whole ranking."""

    def read(self, text: str, name: str, context: Context) -> int | None:
        return None if text == "all" else super().read(text, name, context)

    def write(self, value: Any) -> str:
        return "all" if value is None else super().write(value)


@dataclass(frozen=True)
class WhatIfQuery(Question):
    """The requested combinations.

    They are `measures`, those of `preset`, and the product of the other parameters, by default the
    two user presets. No runs means all.
    """

    families: list[str] = parameter(
        _words(
            f"of {', '.join(FAMILIES)}, separated by commas; default: nDCG",
            "family",
            read_choice(*FAMILIES),
        )
    )
    gains: list[GainMap] = parameter(
        Several(
            "gain maps separated by semicolons: 0-1-10-100;tenfold;exp;binary;1:1,2:5; "
            "default: linear",
            of=Gains("a gain map"),
            separator=";",
        )
    )
    discounts: list[str] = parameter(
        _words(
            "log2, jk, session, separated by commas; default: log2, jk where b is given",
            "dis",
            DISCOUNT.read,
        )
    )
    bases: list[float] = parameter(
        _words(
            "bases of the logarithms of jk and session, separated by commas; default: 2",
            "b",
            BASE.read,
        )
    )
    depths: list[int | None] = parameter(
        Several(
            "ranks separated by commas, all for the whole ranking; default: 10",
            of=_Depth("a rank", reads=read_integer(1, MAX_CUTOFF)),
        )
    )
    named_presets: list[str] = parameter(
        _words(f"of {', '.join(PRESETS)}, separated by commas", "preset", read_choice(*PRESETS))
    )
    measures: list[Measure] = parameter(
        Measures(
            f"measure names separated by commas; {MAX_COMBINATIONS} combinations in total",
            names=lambda _: [],
            default=(),
        )
    )
    runs: list[str] = parameter(RunIds())
    scores: str | None = parameter(SCORES)

    def __post_init__(self) -> None:
        if external := [measure.name for measure in self.measures if measure.is_external]:
            message = f"{', '.join(external)}: {FROM_TABLES}"
            raise MeasureError(message, code="no_curve", pointer="measures")

        if self.bases and set(self.discounts) == {"log2"}:
            message = "b needs dis=jk or dis=session: log2(i + 1) has its base"
            raise MeasureError(message, code="bad_parameter", pointer="b")
        if len(self.combinations) > MAX_COMBINATIONS:
            raise too_many_combinations()

    @cached_property
    def combinations(self) -> list[Measure]:
        """Return the measures, each of which makes a leaderboard."""
        grid: dict[str, list[Any]] = {
            "families": self.families,
            "gains": self.gains,
            "discounts": self.discounts or (["jk"] if self.bases else []),
            "bases": self.bases,
            "depths": self.depths,
        }

        dimensions = {name: tuple(values) for name, values in grid.items() if values}
        product = Grid(**dimensions).measures() if dimensions else []
        return list(dict.fromkeys([*self.measures, *self.presets, *product]))

    @cached_property
    def presets(self) -> dict[Measure, str]:
        """Return the names of the presets by their measures."""
        product = self.families or self.gains or self.discounts or self.bases or self.depths
        names = self.named_presets or ([] if product or self.measures else USERS)
        return {parse_measure(PRESETS[name]): name for name in names}


@dataclass(frozen=True)
class Place:
    """A run on the leaderboard of one combination; if `rank` is None, `reason` says why."""

    rank: int | None
    run: Run
    mean: float | None
    topics: int
    reason: str = ""


@dataclass(frozen=True)
class Combination:
    """The leaderboard of one combination, best run first.

    `tau` is its agreement with the collection's first measure.
    """

    measure: Measure
    ties: bool
    tau: float | None
    places: list[Place]


@dataclass(frozen=True)
class WhatIf:
    """The leaderboards of all combinations, and Kendall's tau of every pair of them.

    It is over the runs that both rank, NaN where one of them does not order these runs.
    """

    query: WhatIfQuery
    qrels: Qrels
    scores: str
    runs: list[Run]
    official: Combination
    combinations: list[Combination]
    tau: Matrix

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measures under these judgements."""
        return qrels_cautions(
            [self.official.measure, *(combination.measure for combination in self.combinations)],
            self.qrels,
        )


def ask_what_if(*, collection: Collection, query: WhatIfQuery) -> WhatIf:
    """Return the leaderboard of every combination, together with the official one.

    Stale runs are left out.

    Raise StatisticsError for an unknown run, or for more runs times combinations than MAX_FIGURES.
    """
    qrels, scores = active_qrels(collection), query.scores or collection.scores
    measures = [collection.measure(collection.measures[0]), *query.combinations]
    evaluations = _evaluations(collection, qrels, scores, query)
    ids = [evaluation.pk for evaluation in evaluations]
    columns, orders = _orders(collection, qrels, ids, measures)
    ranked = [order.rank_of for order in orders]
    ranks = np.array([[of.get(pk, np.nan) for pk in ids] for of in ranked]).reshape(
        len(orders), len(ids)
    )
    tau = rank_correlations(ranks)
    runs = {evaluation.pk: evaluation.run for evaluation in evaluations}

    boards = []
    for measure, t, column, order in zip(measures, tau[0].tolist(), columns, orders, strict=True):
        # Best first; runs of one rank by submission, then those without a rank.
        places = [
            Place(rank, runs[pk], *column[pk])
            for (pk, _), rank in zip(order.ranked, order.ranks, strict=True)
        ]

        places += [
            Place(None, runs[pk], *column[pk], order.why_below(topics)[1])
            for pk, topics in order.below
        ]
        ties = len(set(order.ranks)) < len(order.ranks)
        boards.append(Combination(measure, ties, None if np.isnan(t) else t, places))

    return WhatIf(query, qrels, scores, list(runs.values()), boards[0], boards[1:], tau[1:, 1:])


def _evaluations(
    collection: Collection, qrels: Qrels, scores: str, query: WhatIfQuery
) -> list[Evaluation]:
    number = len(query.combinations)
    most = MAX_FIGURES // number
    try:
        return select_evaluations(
            collection=collection,
            qrels=qrels,
            scores=scores,
            runs=query.runs,
            most=most,
            ranked=True,
        )
    except StatisticsError as error:
        if error.code != "too_many_runs":
            raise

        message = (
            f"{number} combinations can be computed for at most {most:,} runs at once: name fewer "
            "runs with runs=, or request fewer combinations"
        )
        raise StatisticsError(message, code="too_many_figures", pointer="runs") from error


def _orders(
    collection: Collection, qrels: Qrels, evaluation_ids: list[int], measures: list[Measure]
) -> tuple[list[dict[int, Mean]], list[FairOrder]]:
    """Return the means of every measure, and the evaluations ordered by them.

    Means are in the order of the evaluations.

    The means of the collection's own measures are stored; computing the others takes most of the
    time.
    """
    stored_names = own_measures(collection)
    stored = means_of(
        evaluation_ids, [measure for measure in measures if measure.name in stored_names], qrels.pk
    )
    others = [measure for measure in measures if measure.name not in stored_names]
    computed = computed_means(evaluation_ids, others) if others else {}
    means = stored | {key: mean for key, (mean, _) in computed.items()}

    def covered(evaluations: list[int], measure: Measure) -> Mapping[int, bytes]:
        if measure.name in stored_names:
            return covered_topics(evaluations, measure)
        return {pk: computed[pk, measure.name][1] for pk in evaluations}

    columns = [
        {pk: means.get((pk, measure.name), (None, 0)) for pk in evaluation_ids}
        for measure in measures
    ]

    orders = [
        fair_order(
            column,
            qrels.topics,
            partial(covered, measure=measure),
            lower_first=measure.definition.lower_is_better,
        )
        for measure, column in zip(measures, columns, strict=True)
    ]

    return columns, orders
