"""What explains values, and effectiveness against cost, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from metrics.charts.boards.frontier import STATUS_NAMES, cost_text
from metrics.exports.table import Column, Row, Table
from metrics.services.boards.frontier import Frontier
from metrics.services.boards.importance import (
    CHOSEN,
    Associated,
    Importance,
    words_of,
    words_of_level,
)
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, probability, signed, with_minus
from runs.models import Collection

MATCHED, ASSOCIATED = "matched", "associated"
TABLES = (MATCHED, ASSOCIATED)
# The formats of a table for readers, whose columns are fewer.
KINDS = ("csv", "md", "tex")


def importance_table(collection: Collection, found: Importance, table: str, kind: str) -> Table:
    """Build one of TABLES; of what is associated a file of data has the levels of each parameter."""
    name = f"{collection.slug}-importance-{table}"
    if table == MATCHED:
        return _matched_table(name, collection, found)
    build = _levels_table if kind == "csv" else _associated_table
    return build(name, collection, found)


def _matched_table(name: str, collection: Collection, found: Importance) -> Table:
    settings, inputs = found.explanation.settings, _inputs(collection, found)
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
        for change in found.explanation.changes
    ]
    notes = [
        _source(collection, found),
        "Each row: pairs of runs that differ in nothing else; the mean difference over them, with its 95% interval and p "
        "for other topics and other runs (min F'); p is corrected by Holm over all rows that have one.",
    ]
    return Table(name, columns, rows, notes)


def _levels_table(name: str, collection: Collection, found: Importance) -> Table:
    inputs = _inputs(collection, found)
    own = ("parameter", "epsilon_squared", "low", "high", "p", "level", "runs", "mean")
    records = ({**level, **inputs} for one in found.associated for level in _levels(one))
    return Table.of_records(name, records, (*own, *inputs))


def _levels(one: Associated) -> Iterator[dict[str, Any]]:
    for level in one.levels:
        yield {
            "parameter": one.setting.name,
            "epsilon_squared": one.effect,
            "low": one.low,
            "high": one.high,
            "p": one.p_value,
            "level": words_of_level(level.level),
            "runs": level.runs,
            "mean": level.mean,
        }


def _associated_table(name: str, collection: Collection, found: Importance) -> Table:
    columns = [
        Column("parameter", "Parameter", head=True),
        Column("levels", "Levels"),
        Column("epsilon_squared", "Epsilon squared", format="{:.3f}".format),
        Column("low", "Low", format="{:.3f}".format),
        Column("high", "High", format="{:.3f}".format),
        Column("p", format=probability),
    ]
    rows = [
        Row([one.setting.name, len(one.levels), one.effect, one.low, one.high, one.p_value])
        for one in found.associated
    ]
    explained = (
        "Epsilon squared of the run means, its 95% interval over the topics, and p against the largest of all "
        f"parameters over permutations. {CHOSEN}"
    )
    notes = [_source(collection, found), explained if found.associated else found.message]
    return Table(name, columns, rows, notes)


def _inputs(collection: Collection, found: Importance) -> dict[str, Any]:
    return {
        "collection": collection.slug,
        "measure": found.query.measure.name,
        "qrels": found.qrels.version,
        "scores": found.scores,
        "runs_examined": found.explanation.runs,
        "topics": found.topics,
        "seed": found.query.seed,
    }


def _source(collection: Collection, found: Importance) -> str:
    runs, topics = found.explanation.runs, found.topics
    source = f"{collection.name} (qrels version {found.qrels.version})"
    return f"{found.query.measure.name} of {runs} runs of {source} on {topics} topics."


def _signed(number: float) -> str:
    return NOTHING if math.isnan(number) else signed(number)


def frontier_table(collection: Collection, found: Frontier) -> Table:
    """Build the table of the runs with a cost, the cheapest first."""
    inputs = {
        "collection": collection.slug,
        "measure": found.query.measure.name,
        "cost_name": found.key.name,
        "unit": found.key.unit,
        "across": found.query.across,
        "qrels": found.qrels.version,
        "scores": found.scores,
        "topics": found.topics,
    }
    # For readers a run has its name, and a cost its interval.
    columns = [
        Column("run", format=None),
        Column("", "Run", head=True),
        Column("team", format=None),
        Column("tag", format=None),
        Column("mean", found.query.measure.name, format=_mean),
        Column("cost", format=None),
        Column("", found.key.name, found.key.unit),
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
    names = names_of([one.run for one in found.runs])
    rows = [
        Row(
            [
                str(one.run.pk),
                names[one.run],
                one.run.team.slug,
                one.run.tag,
                one.mean,
                one.cost,
                cost_text(one),
                one.low,
                one.high,
                one.measured,
                one.hardware,
                one.status,
                str(one.by.pk) if one.by else None,
                names[one.by] if one.by else NOTHING,
                one.p_adjusted,
                *inputs.values(),
            ]
        )
        for one in found.runs
    ]
    source = f"{collection.name} (qrels version {found.qrels.version})"
    apart = "" if found.query.across else " Runs on different hardware are compared apart."
    notes = [
        f"{len(found.runs)} of {found.total} runs of {source} on {found.topics} topics.",
        "Surely dominated: another run is better at no higher cost, by a one-sided paired t test, corrected by Holm "
        f"over {found.pairs:,} pairs.{apart}",
    ]
    return Table(f"{collection.slug}-frontier", columns, rows, notes)


def _mean(mean: float) -> str:
    return with_minus(f"{mean:.4f}")


def _probability(value: float | None) -> str:
    return NOTHING if value is None else probability(value)
