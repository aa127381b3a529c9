"""The board under other gains, discounts and depths than the collection's."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metrics.engine.agreement.kendall import rank_correlations
from metrics.engine.agreement.standings import has_ties, standings
from metrics.engine.cautions import Caution
from metrics.engine.errors import StatisticsError
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.steps import Matrix
from metrics.models import Evaluation
from metrics.services.boards.leaderboard import active_qrels
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.judged_views import Mean, computed_means, means_of
from metrics.services.values.selection import select_evaluations
from runs.models import Collection, Qrels, Run

# Runs times combinations: each is a measure computed for all topics, about half a millisecond for a large collection.
MAX_FIGURES = 5000


@dataclass(frozen=True)
class WhatIfQuery:
    """What is asked: no runs means all. `presets` names the combinations that are one."""

    combinations: list[Measure]
    presets: dict[Measure, str] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    scores: str | None = None


@dataclass(frozen=True)
class Place:
    """A run on the board of one combination; `rank` is None where it has no mean."""

    rank: int | None
    run: Run
    mean: float | None
    topics: int


@dataclass(frozen=True)
class Combination:
    """The board of one combination, best run first; `tau` is its agreement with the collection's first measure."""

    measure: Measure
    ties: bool
    tau: float | None
    places: list[Place]


@dataclass(frozen=True)
class WhatIf:
    """The boards of all combinations, and Kendall's tau of every pair of them, NaN where a board has no order."""

    query: WhatIfQuery
    qrels: Qrels
    scores: str
    runs: list[Run]
    official: Combination
    combinations: list[Combination]
    tau: Matrix

    @property
    def cautions(self) -> list[Caution]:
        """What is to be known of the measures under these judgements."""
        return qrels_cautions([self.official.measure, *(one.measure for one in self.combinations)], self.qrels)


def ask_what_if(*, collection: Collection, query: WhatIfQuery) -> WhatIf:
    """Every combination's board, and the official one beside them. Stale runs take no part.

    StatisticsError for an unknown run, or for more runs times combinations than MAX_FIGURES.
    """
    qrels, scores = active_qrels(collection), query.scores or collection.scores
    measures = [parse_measure(collection.measures[0], collection.documents), *query.combinations]
    evaluations = _evaluations(collection, qrels, scores, query)
    columns = _means(collection, [evaluation.pk for evaluation in evaluations], measures)
    ranks = standings(
        np.array([[np.nan if mean is None else mean for mean, _ in column] for column in columns]),
        np.array([measure.definition.lower_is_better for measure in measures]),
    )
    tau = rank_correlations(ranks)
    runs = [evaluation.run for evaluation in evaluations]
    boards = [
        Combination(measure, tied, None if np.isnan(t) else t, _places(runs, column, places))
        for measure, tied, t, column, places in zip(
            measures, has_ties(ranks).tolist(), tau[0].tolist(), columns, ranks.tolist(), strict=True
        )
    ]
    return WhatIf(query, qrels, scores, runs, boards[0], boards[1:], tau[1:, 1:])


def _evaluations(collection: Collection, qrels: Qrels, scores: str, query: WhatIfQuery) -> list[Evaluation]:
    number = len(query.combinations)
    most = MAX_FIGURES // number
    try:
        return select_evaluations(collection=collection, qrels=qrels, scores=scores, runs=query.runs, most=most)
    except StatisticsError as error:
        if error.code != "too_many_runs":
            raise
        message = (
            f"{number} combinations are computed for at most {most:,} runs at once, and more take part: name some "
            "with runs=, or ask for fewer combinations"
        )
        raise StatisticsError(message, code="too_many_figures", pointer="runs") from error


def _means(collection: Collection, evaluation_ids: list[int], measures: list[Measure]) -> list[list[Mean]]:
    """Of every measure its means in the order of the evaluations. Those of the collection's own measures are stored;
    to compute the others is what takes the time."""
    own = set(collection.measures)
    stored = means_of(evaluation_ids, [measure for measure in measures if measure.name in own], own)
    others = [measure for measure in measures if measure.name not in own]
    computed = computed_means(evaluation_ids, others) if others else {}
    found = stored | {
        (pk, m.name): mean for pk, means in computed.items() for m, mean in zip(others, means, strict=True)
    }
    return [[found[pk, measure.name] for pk in evaluation_ids] for measure in measures]


def _places(runs: list[Run], column: list[Mean], ranks: list[int]) -> list[Place]:
    """Best first; runs of one rank in the order of submission."""
    rows = sorted(zip(ranks, runs, column, strict=True), key=lambda row: row[0])
    return [Place(None if mean is None else rank, run, mean, topics) for rank, run, (mean, topics) in rows]
