"""Read the values of one run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

import numpy as np

from metrics.engine.arrays import Flags, Floats
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, EvaluationQuerySet
from metrics.services.question import (
    SCORES,
    VERSION,
    Measures,
    Question,
    nested,
    parameter,
)
from metrics.services.queue.damage import check_files
from metrics.services.values.judged_views import Mean, load_view, vectors_of, views_of
from metrics.services.values.replicates import of_replicates
from metrics.services.values.sampled import check_suits
from runs.errors import NotFound
from runs.models import Run

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class EvaluationQuery(Question):
    """Which evaluation of a run is read."""

    scores: str | None = parameter(SCORES)
    version: int | None = parameter(VERSION)


@dataclass(frozen=True)
class RunValuesQuery(Question):
    """The measures of the values of a run, and of which evaluation."""

    measures: list[Measure] = parameter(
        Measures("measure names separated by commas; default: the collection's own")
    )
    evaluation: EvaluationQuery = nested(EvaluationQuery)


@dataclass(frozen=True)
class StandardErrors:
    """The standard errors of an estimate, of each topic and of the mean."""

    values: Floats
    mean: float | None


@dataclass(frozen=True)
class RunValues:
    """One evaluated run, with its values and means by measure.

    Values are in the order of the topics, NaN where there is none. `errors` has the standard errors
    of estimates from sampled judgements, which are those of the sampling alone, by measure.
    `selected` is a flag for each topic of the judgements that counts, None for all.
    """

    evaluation: Evaluation
    measures: list[Measure]
    vectors: dict[str, Floats]
    means: dict[str, Mean]
    errors: dict[str, StandardErrors] = field(default_factory=dict)
    selected: Flags | None = None

    @property
    def topic_ids(self) -> list[str]:
        return self.among(self.evaluation.qrels.topic_ids)

    def among(self, items: list[_Item]) -> list[_Item]:
        """Return the items of the topics that count, of one for each topic of the judgements."""
        if self.selected is None:
            return items
        return [items[place] for place in np.flatnonzero(self.selected).tolist()]


def find_evaluation(*, run: Run, query: EvaluationQuery = EvaluationQuery()) -> Evaluation:
    """Return the evaluation of a run to read.

    It is the one under the named qrels version, the active one, or else the newest one that exists.

    Raise NotFound with the reason if there is no evaluation.
    """
    evaluations = Evaluation.objects.evaluated().filter(
        run=run, scores=query.scores or run.collection.scores
    )
    if query.version:
        evaluations = evaluations.filter(qrels__version=query.version)

    order = ("-qrels__active", "-qrels__version", "-engine_version")
    newest: Evaluation | None = (
        evaluations.with_files().order_by(*order).select_related("qrels").first()
    )
    if newest is None:
        raise NotFound(_why_not(run, query), code="not_evaluated")

    check_files(Evaluation, [(newest.pk, newest.same_files)])
    newest.run = run
    return newest


def read_values(
    *, evaluation: Evaluation, measures: list[Measure], selected: Flags | None = None
) -> RunValues:
    """Return the values of a run, and their means over the topics that count.

    `selected` is a flag for each topic of the judgements, None for all. A ratio of averaged
    vectors, which has no values of topics, has no mean on some of them.
    """
    check_suits(measures, evaluation.qrels)
    # That of a mean over replicates is not known: all are judged by the same sample.
    errors = {
        measure.name: measure.error
        for measure in measures
        if measure.error and not evaluation.run.has_replicates
    }
    needed = list(dict.fromkeys([*measures, *errors.values()]))
    rows = vectors_of([evaluation.pk], needed)
    vectors = {measure.name: rows[evaluation.pk, measure.name].values for measure in needed}
    means: dict[str, Mean] = {row.measure: (row.mean, row.topics) for row in rows.values()}

    if selected is not None:
        vectors = {name: vector[selected] for name, vector in vectors.items()}
        means = {
            measure.name: (None, 0) if measure.pools else measure.aggregate(vectors[measure.name])
            for measure in needed
        }

    return RunValues(
        evaluation=evaluation,
        measures=measures,
        vectors={measure.name: vectors[measure.name] for measure in measures},
        means={measure.name: means[measure.name] for measure in measures},
        errors={
            name: StandardErrors(vectors[error.name], means[error.name][0])
            for name, error in errors.items()
        },
        selected=selected,
    )


def read_reasons(values: RunValues) -> dict[str, list[str | None]]:
    """Return why topics have no value, for each measure with such a topic.

    A reason is a key of REASONS, and None for a topic with a value.
    """
    lacking = [
        measure for measure in values.measures if np.isnan(values.vectors[measure.name]).any()
    ]
    if not lacking:
        return {}

    keys = of_replicates([values.evaluation.pk]).get(values.evaluation.pk)
    if keys is None:
        view = load_view(values.evaluation)
        reasons: dict[str, list[str | None]] = {
            measure.name: measure.why_undefined(view, _of_all_topics(values, measure))
            for measure in lacking
        }
        return {name: values.among(why) for name, why in reasons.items()}

    # A mean over replicates lacks what one of them lacks, for the reason of the first such one.
    vectors = vectors_of(keys, lacking)
    reasons = {}
    for pk, _, view in views_of(keys):
        for measure in lacking:
            why = measure.why_undefined(view, vectors[pk, measure.name].values)
            first = reasons.get(measure.name, [None] * len(why))
            reasons[measure.name] = [old or new for old, new in zip(first, why, strict=True)]

    return {name: values.among(why) for name, why in reasons.items()}


def _of_all_topics(values: RunValues, measure: Measure) -> Floats:
    """Return a value for each topic of the judgements, 0 for those that do not count."""
    vector = values.vectors[measure.name]
    if values.selected is None:
        return vector

    spread = np.zeros(len(values.selected))
    spread[values.selected] = vector
    return spread


def comparable_runs(
    evaluation: Evaluation, most: int, chosen: str = ""
) -> list[tuple[str, str, str]]:
    """Return id, tag and team of other runs that are evaluated in the same way, by tag.

    They are the first `most` and the chosen one. A stale run has none.
    """
    if evaluation.is_stale:
        return []

    rows = _comparable(evaluation).order_by("run__tag", "run__team__slug")
    columns = rows.values_list("run_id", "run__tag", "run__team__slug")
    runs = {str(run): (str(run), tag, team) for run, tag, team in columns[:most]}
    if chosen and chosen not in runs and len(runs) == most:
        # The chart refuses a text that is not an id.
        with suppress(ValueError):
            runs |= {
                str(run): (str(run), tag, team)
                for run, tag, team in columns.filter(run=UUID(chosen))
            }

    return list(runs.values())


def is_comparable(evaluation: Evaluation, run: UUID) -> bool:
    """Return whether another run is evaluated in the same way; none is as a stale run."""
    return not evaluation.is_stale and _comparable(evaluation).filter(run=run).exists()


def _comparable(evaluation: Evaluation) -> EvaluationQuerySet:
    current = Evaluation.objects.current(evaluation.qrels, evaluation.scores).evaluated()
    return current.exclude(run=evaluation.run_id)


def _why_not(run: Run, query: EvaluationQuery) -> str:
    latest = run.evaluations.order_by("-created_at").first()
    if latest is None:
        return "the run is not evaluated: the collection has no active judgements yet"
    if query.version:
        return f"the run is not evaluated against version {query.version} of the judgements"
    if query.scores and not run.evaluations.filter(scores=query.scores).exists():
        return (
            f"the run has not been evaluated with {query.scores} scores; POST to its evaluations/ to "
            "evaluate it"
        )

    reason = f": {latest.error_message}" if latest.error_message else ""
    return f"the run is not evaluated: its evaluation is {latest.state}{reason}"
