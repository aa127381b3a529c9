"""Importance of parameters, and effectiveness against cost, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from metrics.charts.tracking.frontier import STATUS_NAMES, cost_text
from metrics.exports.table import Column, Row, Table
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.frontier import Frontier
from metrics.services.tracking.importance import (
    CHOSEN,
    Associated,
    Importance,
    words_of,
    words_of_level,
)
from metrics.tables import NOTHING, probability, signed, with_minus
from runs.models import Collection

MATCHED, ASSOCIATED = "matched", "associated"
TABLES = (MATCHED, ASSOCIATED)
# The formats of a file. Only csv is data; the others are for readers and have fewer columns.
KINDS = ("csv", "md", "tex")


def importance_table(
    collection: Collection, importance: Importance, table: str, kind: str
) -> Table:
    """Build one of TABLES. A file of data has the levels of each associated parameter."""
    name = f"{collection.slug}-importance-{table}"
    if table == MATCHED:
        return _matched_table(name, collection, importance)

    build = _levels_table if kind == "csv" else _associated_table
    return build(name, collection, importance)


def _matched_table(name: str, collection: Collection, importance: Importance) -> Table:
    settings, inputs = importance.explanation.settings, _inputs(collection, importance)
    columns = [
        Column("parameter", "Parameter", head=True),
        Column("from", "From"),
        Column("to", "To"),
        Column("pairs", "Pairs"),
        Column("difference", "Difference", format=_signed),
        Column("low", "Low", format=_signed),
        Column("high", "High", format=_signed),
        Column("p", format=None),
        Column("p_adjusted", "p", format=probability),
        *(Column(column, format=None) for column in inputs),
    ]
    rows = [
        Row(
            [
                settings[change.setting].name,
                words_of(settings[change.setting].values[change.before]),
                words_of(settings[change.setting].values[change.after]),
                change.pairs,
                change.difference,
                change.low,
                change.high,
                change.p_value,
                change.p_adjusted,
                *inputs.values(),
            ]
        )
        for change in importance.explanation.changes
    ]
    notes = [
        _source(collection, importance),
        "Each row: pairs of runs that differ in nothing else; the mean difference over them, with "
        "its 95% interval and p for other topics and other runs (min F'); p is corrected by Holm "
        "over all rows that have one.",
    ]

    return Table(name, columns, rows, notes)


def _levels_table(name: str, collection: Collection, importance: Importance) -> Table:
    inputs = _inputs(collection, importance)
    own = ("parameter", "epsilon_squared", "low", "high", "p", "level", "runs", "mean")
    records = (
        {**level, **inputs} for parameter in importance.associated for level in _levels(parameter)
    )

    return Table.of_records(name, records, (*own, *inputs))


def _levels(parameter: Associated) -> Iterator[dict[str, Any]]:
    for level in parameter.levels:
        yield {
            "parameter": parameter.setting.name,
            "epsilon_squared": parameter.effect,
            "low": parameter.low,
            "high": parameter.high,
            "p": parameter.p_value,
            "level": words_of_level(level.level),
            "runs": level.runs,
            "mean": level.mean,
        }


def _associated_table(name: str, collection: Collection, importance: Importance) -> Table:
    columns = [
        Column("parameter", "Parameter", head=True),
        Column("levels", "Levels"),
        Column("epsilon_squared", "Epsilon squared", format="{:.3f}".format),
        Column("low", "Low", format="{:.3f}".format),
        Column("high", "High", format="{:.3f}".format),
        Column("p", format=probability),
    ]
    rows = [
        Row(
            [
                parameter.setting.name,
                len(parameter.levels),
                parameter.effect,
                parameter.low,
                parameter.high,
                parameter.p_value,
            ]
        )
        for parameter in importance.associated
    ]
    explanation = (
        "Epsilon squared of the run means, its 95% interval over the topics, and p against the "
        f"largest of all parameters over permutations. {CHOSEN}"
    )
    notes = [
        _source(collection, importance),
        explanation if importance.associated else importance.message,
    ]

    return Table(name, columns, rows, notes)


def _inputs(collection: Collection, importance: Importance) -> dict[str, Any]:
    return {
        "collection": collection.slug,
        "measure": importance.query.measure.name,
        "qrels": importance.qrels.version,
        **({"judged_by": importance.qrels.authors} if importance.qrels.authors else {}),
        "scores": importance.scores,
        "runs_examined": importance.explanation.runs,
        "topics": importance.topics,
        "seed": importance.query.seed,
    }


def _source(collection: Collection, importance: Importance) -> str:
    runs, topics = importance.explanation.runs, importance.topics
    source = f"{collection.name} ({importance.qrels.full_name})"
    return f"{importance.query.measure.name} of {runs} runs of {source} on {topics} topics."


def _signed(number: float) -> str:
    return NOTHING if math.isnan(number) else signed(number)


def frontier_table(collection: Collection, frontier: Frontier) -> Table:
    """Build the table of the runs with a cost, the cheapest first."""
    inputs = {
        "collection": collection.slug,
        "measure": frontier.query.measure.name,
        "cost_name": frontier.key.name,
        "unit": frontier.key.unit,
        "across": frontier.query.across,
        "qrels": frontier.qrels.version,
        **({"judged_by": frontier.qrels.authors} if frontier.qrels.authors else {}),
        "scores": frontier.scores,
        "topics": frontier.topics,
    }
    # Readers see the name of a run, and a cost with its interval.
    columns = [
        Column("run", format=None),
        Column("", "Run", head=True),
        Column("team", format=None),
        Column("tag", format=None),
        Column("mean", frontier.query.measure.name, format=_mean),
        Column("cost", format=None),
        Column("", frontier.key.name, frontier.key.unit),
        Column("low", format=None),
        Column("high", format=None),
        Column("n", format=None),
        Column("hardware", format=None),
        Column("status", "Status", format=STATUS_NAMES.__getitem__),
        Column("by", format=None),
        Column("", "Beaten by"),
        Column("p_adjusted", "p", format=_probability),
        *(Column(column, format=None) for column in inputs),
    ]
    names = names_of([priced.run for priced in frontier.runs])
    rows = [
        Row(
            [
                str(priced.run.pk),
                names[priced.run],
                priced.run.team.slug,
                priced.run.tag,
                priced.mean,
                priced.cost,
                cost_text(priced),
                priced.low,
                priced.high,
                priced.measured,
                priced.hardware,
                priced.status,
                str(priced.by.pk) if priced.by else None,
                names[priced.by] if priced.by else NOTHING,
                priced.p_adjusted,
                *inputs.values(),
            ]
        )
        for priced in frontier.runs
    ]
    source = f"{collection.name} ({frontier.qrels.full_name})"
    apart = "" if frontier.query.across else " Runs on different hardware are compared apart."
    notes = [
        f"{len(frontier.runs)} of {frontier.total} runs of {source} on {frontier.topics} topics.",
        "Dominated (significant): another run is better at no higher cost, by a one-sided paired t test, "
        f"corrected by Holm over {frontier.pairs:,} pairs.{apart}",
    ]

    return Table(f"{collection.slug}-frontier", columns, rows, notes)


def _mean(mean: float) -> str:
    return with_minus(f"{mean:.4f}")


def _probability(value: float | None) -> str:
    return NOTHING if value is None else probability(value)
