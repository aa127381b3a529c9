"""Follow a system over its versions: means, the best so far, and what chance would reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metrics.engine.analysis.best_of import best_so_far, expected_best, reach_of_equals
from metrics.engine.curve.intervals import row_intervals
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.pairs import Caution
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.queue.damage import check_files
from metrics.services.values.common_values import cautions_of, read_common_values, refuse_pooled
from metrics.services.values.effort import check_values
from runs.models import Collection, Qrels, Run, System
from runs.services.tracking.systems import MAX_VERSIONS

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Step:
    """One evaluated version.

    It has its mean with both ends of its interval, the best mean up to it, and the end of the band:
    the best mean that as many versions equal to the first one reach by chance.
    """

    run: Run
    mean: float
    low: float
    high: float
    best: float
    reach: float


@dataclass(frozen=True)
class Progress:
    """The evaluated versions of a system in a collection under one measure, the first one first.

    `expected` is what the best one is expected to have on other topics; None for a single
    version.
    """

    collection: Collection
    system: System
    qrels: Qrels
    measure: Measure
    scores: str
    topics: int
    steps: list[Step]
    expected: float | None
    cautions: list[Caution]

    @property
    def beyond(self) -> bool:
        """Return whether the best so far lies beyond the band: more than chance explains."""
        if len(self.steps) < 2:
            return False

        last = self.steps[-1]
        return (
            last.best < last.reach
            if self.measure.definition.lower_is_better
            else last.best > last.reach
        )


def read_progress_of(
    *,
    system: System,
    collection: Collection,
    measure: Measure,
    reader: Any,
    scores: str | None = None,
) -> Progress | None:
    """Return the progress of a system over visible versions, None where none is evaluated.

    The caller has checked that the reader may see the scores of the collection. Raise NotFound
    without active judgements, StatisticsError for a measure without values of topics, and for too
    many values.
    """
    refuse_pooled([measure])
    qrels, scores = active_qrels(collection), scores or collection.scores
    versions = (
        Run.objects.visible_to(reader)
        .filter(system=system, collection=collection)
        .order_by("-version")
    )

    runs = list(versions.values_list("pk", flat=True)[:MAX_VERSIONS])
    current = (
        Evaluation.objects.current(qrels, scores).evaluated().filter(run__in=runs).with_files()
    )

    evaluations = list(current.select_related("run").order_by("run__version"))
    if not evaluations:
        return None

    check_files(Evaluation, ((evaluation.pk, evaluation.same_files) for evaluation in evaluations))
    check_values(len(evaluations), qrels.topics, 1)
    try:
        (common,) = read_common_values(
            [evaluation.pk for evaluation in evaluations], [measure], qrels
        )
    except StatisticsError as error:
        if error.code == "too_few_topics":
            return None
        raise

    values, lower = common.values, measure.definition.lower_is_better
    low, high = row_intervals(values, CONFIDENCE, measure.definition.bounds)
    means = values.mean(axis=1)
    best = best_so_far(means, lower_is_better=lower)
    reach = reach_of_equals(values, lower_is_better=lower)

    steps = [
        Step(evaluation.run, *figures)
        for evaluation, figures in zip(
            evaluations, np.column_stack([means, low, high, best, reach]).tolist(), strict=True
        )
    ]

    expected = expected_best(values, lower_is_better=lower) if len(evaluations) > 1 else None
    cautions = cautions_of([measure], common.left_out)
    return Progress(
        collection, system, qrels, measure, scores, common.topics, steps, expected, cautions
    )
