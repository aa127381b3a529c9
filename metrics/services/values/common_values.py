"""The values of several runs on the topics on which all of them have one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.arrays import Flags
from metrics.engine.errors import StatisticsError
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.subtopics import OF_SUBTOPICS
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import USUAL_TEST, check_known
from metrics.engine.significance.pairs import Caution, Matrix
from metrics.services.values.examples import zero_without_relevant
from metrics.services.values.judged_views import matrices_of
from runs.models import Qrels


@dataclass(frozen=True)
class CommonValues:
    """Values of shape (runs, topics).

    `left_out` counts the topics on which a run has no value, and `common` says of each topic of
    the judgements whether every run has one.
    """

    values: Matrix
    left_out: int
    common: Flags

    @property
    def topics(self) -> int:
        return int(self.values.shape[1])


def read_common_values(
    evaluation_ids: list[int],
    measures: list[Measure],
    qrels: Qrels,
    selected: Flags | None = None,
) -> list[CommonValues]:
    """Return for each measure the values of these evaluations by these judgements.

    `selected` is a flag for each topic that counts, None for all.
    """
    matrices = [values for values, _ in matrices_of(evaluation_ids, measures, qrels)]
    if selected is None:
        return [common_values(values) for values in matrices]

    results = []
    for values in matrices:
        result = common_values(values[:, selected])
        common = selected.copy()
        common[selected] = result.common
        results.append(replace(result, common=common))

    return results


def common_values(values: Matrix) -> CommonValues:
    """Return the values without the topics on which a run has no value (NaN).

    Raise StatisticsError if fewer than two are left.
    """
    common: Flags = np.logical_not(np.isnan(values).any(axis=0))
    topics = int(common.sum())
    if topics < 2:
        message = f"needs at least 2 topics on which every run has a value; found {topics}"
        raise StatisticsError(message, code="too_few_topics")
    return CommonValues(values[:, common], len(common) - topics, common)


def qrels_cautions(measures: Iterable[Measure], qrels: Qrels) -> list[Caution]:
    """Return a caution for judgements that are not those of persons alone, and for each measure
    that does not suit them.

    Its gains have levels that do not occur, subtopics are missing, or every run has 0 on a topic
    without a relevant document.
    """
    named, levels = list(measures), [int(level) for level in qrels.levels]
    cautions = [caution for measure in named for caution in measure.cautions(levels)]
    if qrels.authors:
        cautions.insert(
            0, Caution("judged_by", f"{qrels.name}: not the judgements of persons alone")
        )

    cautions += _sampling_cautions(named, qrels)
    of_subtopics = ", ".join(
        measure.name for measure in named if measure.definition.name in OF_SUBTOPICS
    )
    if of_subtopics and not qrels.has_subtopics:
        message = (
            f"{of_subtopics}: {qrels.name} have no subtopics, so each topic counts as one subtopic"
        )
        cautions.append(Caution("no_subtopics", message))

    number = qrels.nothing_relevant
    zero = [measure.name for measure in named if number and zero_without_relevant(measure)]
    if zero:
        singular, plural = (
            ("query", "queries") if qrels.keyed_by == "query" else ("topic", "topics")
        )
        have = f"1 {singular} has" if number == 1 else f"{number:,} {plural} have"
        verb = "is" if len(zero) == 1 else "are"
        message = f"{have} nothing relevant: {', '.join(zero)} {verb} 0 there for every run"
        cautions.append(Caution("nothing_relevant", message))

    return cautions


def _sampling_cautions(measures: list[Measure], qrels: Qrels) -> list[Caution]:
    if qrels.sampling == Qrels.Sampling.NONE:
        return []

    if qrels.ignore_sampling:
        message = f"{qrels.name}: documents outside the sample count as not relevant"
        return [Caution("sampling_ignored", message)]

    errors = {measure.name: measure.error.name for measure in measures if measure.error}
    if not errors:
        return []

    message = (
        f"estimates from sampled judgements ({', '.join(errors)}): intervals and p values are of the "
        f"topics alone, the error of the sampling is {', '.join(errors.values())}"
    )
    return [Caution("sampled", message)]


def refuse_pooled(measures: Iterable[Measure]) -> None:
    """Raise StatisticsError for a ratio of averaged vectors, which has no values of topics."""
    for measure in measures:
        if measure.pools:
            raise StatisticsError(pooled_words(measure), code="pooled_measure", pointer="measures")


def pooled_words(measure: Measure) -> str:
    """Return why a ratio of averaged vectors cannot be compared, and what to compare instead.

    Under one ideal for all runs it is mean (D)CG divided by one number: what is found of that holds
    for the ratio.
    """
    parameters = {**measure.parameters, "norm": "topic"}
    advice = replace(
        measure, values=tuple((name, parameters[name]) for name, _ in measure.values)
    ).name
    raw = MEASURES.get(measure.definition.name.removeprefix("n"))
    if raw and raw is not measure.definition and parameters["ideal"] == "recall_base":
        values = tuple((parameter.name, parameters[parameter.name]) for parameter in raw.parameters)
        name = replace(measure, definition=raw, values=values).name
        advice = (
            f"{name}, whose means it divides by the same average ideal for every run, or {advice}"
        )

    return (
        f"{measure.name}: a ratio of averaged vectors has no value for a topic that could be "
        f"tested: use {advice}"
    )


def cautions_of(measures: list[Measure], left_out: int) -> list[Caution]:
    """Return the cautions about the values themselves, whatever is computed from them."""
    cautions = []
    geometric = [m.name for m in measures if m.definition.aggregate is Aggregate.GEOMETRIC]
    if geometric:
        message = (
            f"{', '.join(geometric)}: the leaderboard shows a geometric mean; the comparison "
            "uses arithmetic means"
        )
        cautions.append(Caution("geometric_mean", message))

    if left_out:
        cautions.append(
            Caution(
                "topics_left_out", f"{left_out} topics excluded, because a run has no value there"
            )
        )

    return cautions


def check_names(test: str, correction: str = "none") -> None:
    """Raise StatisticsError for an unknown test or correction."""
    check_known([test], correction)


def not_corrected_again(test: str, correction: str) -> list[Caution]:
    # `t_and_tukey` has Holm's correction in it.
    applied = ("none", "holm") if test == USUAL_TEST else ("none",)
    if not TESTS[test].simultaneous or correction in applied:
        return []

    return [
        Caution(
            "not_corrected_again",
            f"p of {test} already accounts for all pairs and is not corrected again",
        )
    ]
