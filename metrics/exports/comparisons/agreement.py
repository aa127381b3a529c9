"""The agreement of two versions of the judgements as tables, and in three sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from metrics.engine.agreement.assessors import Estimate
from metrics.exports.table import Column, Row, Table
from metrics.services.comparisons.agreement import RunEffects, VersionAgreement, share
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, probability, signed, with_minus
from runs.models import Collection

COEFFICIENTS, TOPICS, RUNS = AGREEMENT_TABLES = ("coefficients", "topics", "runs")
# The names of coefficients for readers.
TITLES = {
    "agreement": "Same level",
    "kappa": "Cohen’s kappa",
    "linear_kappa": "Kappa, linear weights",
    "quadratic_kappa": "Kappa, quadratic weights",
    "fleiss_kappa": "Fleiss’ kappa",
    "alpha_nominal": "Krippendorff’s alpha, nominal",
    "alpha_ordinal": "Krippendorff’s alpha, ordinal",
    "alpha_interval": "Krippendorff’s alpha, interval",
}
REASONS = {
    "": "",
    "no_documents": "no document is judged in both",
    "one_level": "all judgements have the same level",
}
# Runs that a sentence names.
_NAMED = 3


def agreement_table(collection: Collection, answer: VersionAgreement, which: str) -> Table:
    """Build the table of coefficients, of topics, or of the runs; its notes are the sentences."""
    if which == TOPICS:
        return topics_table(collection, answer)
    return runs_table(collection, answer) if which == RUNS else estimates_table(collection, answer)


def estimates_table(collection: Collection, answer: VersionAgreement) -> Table:
    """Build the table of the coefficients with their intervals."""
    columns = [
        Column("coefficient", format=None),
        Column("level", format=None),
        Column("", "Agreement", head=True),
        Column("value", "Value", format=_figure),
        Column("low", format=None),
        Column("high", format=None),
        Column("", f"{100 * answer.query.confidence:g}% interval"),
        Column("reason", "", format=None),
        *(Column(name, format=None) for name in _inputs(collection, answer)),
    ]
    rows = [
        Row(
            [
                name,
                level,
                title,
                _data(estimate.value),
                _data(estimate.low),
                _data(estimate.high),
                REASONS[estimate.reason] or _interval(estimate),
                estimate.reason,
                *_inputs(collection, answer).values(),
            ]
        )
        for name, level, title, estimate in _estimates(answer)
    ]
    return Table(
        _name(collection, answer),
        columns,
        rows,
        sentences(answer),
        title="Coefficients of agreement",
    )


def topics_table(collection: Collection, answer: VersionAgreement) -> Table:
    """Build the table of the topics that both versions judge."""
    agreement = answer.agreement
    for_readers = ("agreement", "quadratic_kappa", "alpha_ordinal")
    columns = [
        Column("topic", "Topic", head=True),
        Column("documents", "Judged in both", format="{:,}".format),
        *(
            Column(name, TITLES[name], format=_figure if name in for_readers else None)
            for name in agreement.estimates
        ),
        *(
            Column(f"{name}_{threshold.level}", f"{name.title()} at {threshold.level}", format=None)
            for threshold in agreement.thresholds
            for name in ("overlap", "kappa")
        ),
        *(Column(name, format=None) for name in _inputs(collection, answer)),
    ]
    columns_of_values = [estimate.topics for estimate in agreement.estimates.values()]
    for threshold in agreement.thresholds:
        columns_of_values += [threshold.overlap.topics, threshold.kappa.topics]

    rows = [
        Row(
            [
                topic_id,
                int(agreement.documents[place]),
                *(_data(float(values[place])) for values in columns_of_values),
                *_inputs(collection, answer).values(),
            ]
        )
        for place, topic_id in enumerate(answer.topic_ids)
        if agreement.documents[place]
    ]
    name = f"{_name(collection, answer)}-topics"
    return Table(name, columns, rows, sentences(answer)[:1], title="Agreement by topic")


def runs_table(collection: Collection, answer: VersionAgreement) -> Table:
    """Build the table of the runs under both versions, the most favoured ones first."""
    effects, depth = answer.effects, answer.query.depth
    measure = answer.query.measure.name
    versions = f"v{answer.reference.version}", f"v{answer.qrels.version}"
    grouped = bool(effects and effects.group)
    columns = [
        Column("run", format=None),
        Column("", "Run", head=True),
        Column("team", format=None),
        Column("tag", format=None),
        Column("reference", f"{measure}, {versions[0]}", format=_mean),
        Column("mean", f"{measure}, {versions[1]}", format=_mean),
        Column("difference", "Difference", format=_signed),
        Column("residual", "Residual", format=_residual),
        Column("judged_reference", f"Judged@{depth}, {versions[0]}", format=_mean),
        Column("judged", f"Judged@{depth}, {versions[1]}", format=_mean),
        *([Column("uses_model", "Family", format=_yes)] if grouped else []),
        *(Column(name, format=None) for name in _inputs(collection, answer)),
    ]
    judged_runs = sorted(effects.runs, key=lambda judged: -judged.difference) if effects else []
    names = names_of([judged.run for judged in judged_runs])
    rows = [
        Row(
            [
                str(judged.run.pk),
                names[judged.run],
                judged.run.team.slug,
                judged.run.tag,
                judged.reference,
                judged.mean,
                judged.difference,
                _data(judged.residual),
                judged.judged_reference,
                judged.judged,
                *([judged.uses_model] if grouped else []),
                *_inputs(collection, answer).values(),
            ]
        )
        for judged in judged_runs
    ]
    name = f"{_name(collection, answer)}-runs"
    return Table(name, columns, rows, sentences(answer)[1:], title="Runs under both versions")


def sentences(answer: VersionAgreement) -> list[str]:
    """Return the agreement, its effect on the order of runs, and on single runs in words."""
    return [_of_judgements(answer), *(_of_runs(answer, answer.effects) if answer.effects else [])]


def _of_judgements(answer: VersionAgreement) -> str:
    versions = f"{_capital(answer.qrels.full_name)} and {answer.reference.full_name}"
    if not answer.documents:
        return f"{versions} judge no document in common."

    alpha = answer.agreement.estimates["alpha_ordinal"]
    agreement = answer.agreement.estimates["agreement"]
    text = (
        f"{versions} have the same level for {agreement.value:.0%} of the {answer.documents:,} "
        f"documents that both judge, on {answer.topics:,} topic{'s' * (answer.topics != 1)}"
    )
    if math.isnan(alpha.value):
        return f"{text}; Krippendorff’s alpha is undefined: {REASONS[alpha.reason]}."
    text += f"; Krippendorff’s alpha is {_figure(alpha.value)}{_in_brackets(alpha.low, alpha.high)}"

    if answer.agreement.thresholds:
        threshold = answer.agreement.thresholds[0]
        if not math.isnan(threshold.overlap.value):
            text += (
                f", and {threshold.overlap.value:.0%} of the documents relevant in either (level "
                f"{threshold.level} or above) are relevant in both"
            )
    return f"{text}."


def _of_runs(answer: VersionAgreement, effects: RunEffects) -> Iterator[str]:
    tau, changes = effects.tau, effects.verdicts
    text = (
        f"By {answer.query.measure.name} on {effects.topics:,} topics, Kendall’s tau between the "
        f"orders of {len(effects.runs):,} runs is {_figure(tau.value)}"
        f"{_in_brackets(tau.low, tau.high)}"
    )
    if changes.significant:
        same, lost, other = (
            f"{share(count, changes.significant):.0%}"
            for count in (changes.same, changes.lost, changes.reversed)
        )
        text += (
            f"; of {changes.significant:,} pairs that differ significantly under "
            f"v{answer.reference.version}, {same} do so under v{answer.qrels.version}, {lost} do "
            f"not, and {other} differ in the other direction"
        )
    yield f"{text}."

    names = names_of([judged.run for judged in effects.runs])
    parts = []
    for words, chosen in (
        ("higher", [judged for judged in effects.outlying if judged.residual > 0]),
        ("lower", [judged for judged in effects.outlying if judged.residual < 0]),
    ):
        if chosen:
            listed = ", ".join(names[judged.run] for judged in chosen[:_NAMED])
            more = f" and {len(chosen) - _NAMED} more" if len(chosen) > _NAMED else ""
            parts.append(f"{words} than that of the others predicts for {listed}{more}")

    differences = " and ".join(parts) or "as that of the others predicts for every run"
    before, after = (
        sum(values) / len(effects.runs)
        for values in (
            [judged.judged_reference for judged in effects.runs],
            [judged.judged for judged in effects.runs],
        )
    )
    depth = answer.query.depth
    text = (
        f"The change of the mean is {differences}; mean Judged@{depth} is {before:.2f} under "
        f"v{answer.reference.version} and {after:.2f} under v{answer.qrels.version}"
    )
    if effects.group and not math.isnan(effects.group.p_value):
        group = effects.group
        text += (
            f"; the means of the {group.runs} runs of the judge’s family change by "
            f"{signed(group.difference)} more than those of the other {group.others} (permutation "
            f"test, p = {probability(group.p_value)})"
        )
    yield f"{text}."


def _estimates(answer: VersionAgreement) -> Iterator[tuple[str, int | None, str, Estimate]]:
    for name, estimate in answer.agreement.estimates.items():
        yield name, None, TITLES[name], estimate
    for threshold in answer.agreement.thresholds:
        level = threshold.level
        yield "overlap", level, f"Overlap of level {level} and above", threshold.overlap
        yield "kappa", level, f"Kappa of level {level} and above", threshold.kappa


def _inputs(collection: Collection, answer: VersionAgreement) -> dict[str, Any]:
    return {
        "collection": collection.slug,
        "qrels": answer.qrels.version,
        "judged_by": answer.qrels.authors,
        "with": answer.reference.version,
        "with_judged_by": answer.reference.authors,
        "measure": answer.query.measure.name,
        "confidence": answer.query.confidence,
        "resamples": answer.query.resamples,
        "seed": answer.query.seed,
    }


def _name(collection: Collection, answer: VersionAgreement) -> str:
    return f"{collection.slug}-agreement-v{answer.qrels.version}-v{answer.reference.version}"


def _data(value: float) -> float | None:
    return None if math.isnan(value) else value


def _figure(value: float | None) -> str:
    return NOTHING if value is None or math.isnan(value) else with_minus(f"{value:.3f}")


def _mean(value: float) -> str:
    return with_minus(f"{value:.4f}")


def _signed(value: float) -> str:
    return signed(value)


def _residual(value: float | None) -> str:
    return NOTHING if value is None else with_minus(f"{value:.2f}")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _interval(estimate: Estimate) -> str:
    return _in_brackets(estimate.low, estimate.high).strip() or NOTHING


def _in_brackets(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" [{_figure(low)}, {_figure(high)}]"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
