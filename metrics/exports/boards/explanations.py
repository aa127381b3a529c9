"""What explains values, and effectiveness against cost, as files: CSV at full precision, and tables for papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from metrics.charts.boards.frontier import STATUS_NAMES, cost_name, cost_text
from metrics.engine.explanation.matched import Change
from metrics.exports.comparisons import latex, markdown
from metrics.exports.comparisons.table import MeanLine, MeanTable
from metrics.services.boards.frontier import Frontier, Priced
from metrics.services.boards.importance import (
    CHOSEN,
    Associated,
    Importance,
    words_of,
    words_of_level,
)
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, probability, signed, with_minus
from runs.formats.comma_separated import written
from runs.models import Collection

MATCHED, ASSOCIATED = "matched", "associated"
TABLES = (MATCHED, ASSOCIATED)


@dataclass(frozen=True)
class Sheet:
    """One table: the columns and rows of its CSV, and the same for a paper."""

    columns: list[str]
    rows: list[dict[str, Any]]
    paper: MeanTable


def _comma_separated(sheet: Sheet, label: str) -> Iterator[str]:
    return written(iter(sheet.rows)) if sheet.rows else iter([f"{','.join(sheet.columns)}\r\n"])


def _markdown(sheet: Sheet, label: str) -> Iterator[str]:
    return iter([markdown.written(sheet.paper)])


def _latex(sheet: Sheet, label: str) -> Iterator[str]:
    return iter([latex.written(sheet.paper, label)])


# By format: the renderer and the content type.
SHEET_EXPORTS: dict[str, tuple[Callable[[Sheet, str], Iterator[str]], str]] = {
    "csv": (_comma_separated, "text/csv; charset=utf-8"),
    "md": (_markdown, "text/markdown; charset=utf-8"),
    "tex": (_latex, "application/x-tex; charset=utf-8"),
}
# What pages call them.
FILE_NAMES = {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}
_MATCHED = ["parameter", "from", "to", "pairs", "difference", "low", "high", "p", "p_adjusted"]
_ASSOCIATED = ["parameter", "epsilon_squared", "low", "high", "p", "level", "runs", "mean"]
_OF_ALL = ["collection", "measure", "qrels", "scores", "runs_examined", "topics", "seed"]


def importance_sheet(collection: Collection, found: Importance, table: str) -> Sheet:
    """Return one of TABLES."""
    made = {
        "collection": collection.slug,
        "measure": found.query.measure.name,
        "qrels": found.qrels.version,
        "scores": found.scores,
        "runs_examined": found.explanation.runs,
        "topics": found.topics,
        "seed": found.query.seed,
    }
    if table == MATCHED:
        rows = [{**_change(found, change), **made} for change in found.explanation.changes]
        return Sheet([*_MATCHED, *_OF_ALL], rows, _paper_of_changes(collection, found))
    rows = [{**row, **made} for one in found.associated for row in _levels(one)]
    return Sheet([*_ASSOCIATED, *_OF_ALL], rows, _paper_of_associated(collection, found))


def _change(found: Importance, change: Change) -> dict[str, Any]:
    setting = found.explanation.settings[change.setting]
    ends = (words_of(setting.values[place]) for place in (change.before, change.after))
    numbers = (
        change.pairs,
        change.difference,
        change.low,
        change.high,
        change.p_value,
        change.p_adjusted,
    )
    return dict(zip(_MATCHED, (setting.name, *ends, *numbers), strict=True))


def _levels(one: Associated) -> Iterator[dict[str, Any]]:
    own = (one.setting.name, one.effect, one.low, one.high, one.p_value)
    for level in one.levels:
        yield dict(
            zip(
                _ASSOCIATED,
                (*own, words_of_level(level.level), level.runs, level.mean),
                strict=True,
            )
        )


def _paper_of_changes(collection: Collection, found: Importance) -> MeanTable:
    lines = []
    for change in found.explanation.changes:
        name, before, after, pairs, *numbers = _change(found, change).values()
        shown = (
            before,
            after,
            f"{pairs}",
            *map(_four, numbers[:3]),
            probability(change.p_adjusted),
        )
        lines.append(MeanLine(name, False, after=shown))
    caption = [
        _source(collection, found),
        "Each row: pairs of runs that differ in nothing else; the mean difference over them, with its 95% interval and p "
        "for other topics and other runs (min F'); p is corrected by Holm over all rows that have one.",
    ]
    columns = ("From", "To", "Pairs", "Difference", "Low", "High", "p")
    return MeanTable([], lines, caption, with_baseline=False, after=columns, subject="Parameter")


def _paper_of_associated(collection: Collection, found: Importance) -> MeanTable:
    lines = [
        MeanLine(
            one.setting.name,
            False,
            after=(
                f"{len(one.levels)}",
                *(f"{number:.3f}" for number in (one.effect, one.low, one.high)),
                probability(one.p_value),
            ),
        )
        for one in found.associated
    ]
    said = (
        "Epsilon squared of the run means, its 95% interval over the topics, and p against the largest of all "
        f"parameters over permutations. {CHOSEN}"
    )
    caption = [_source(collection, found), said if found.associated else found.message]
    columns = ("Levels", "Epsilon squared", "Low", "High", "p")
    return MeanTable([], lines, caption, with_baseline=False, after=columns, subject="Parameter")


def _source(collection: Collection, found: Importance) -> str:
    runs, topics = found.explanation.runs, found.topics
    source = f"{collection.name} (qrels version {found.qrels.version})"
    return f"{found.query.measure.name} of {runs} runs of {source} on {topics} topics."


def _four(number: float) -> str:
    return NOTHING if math.isnan(number) else signed(number)


_FRONTIER = [
    "run",
    "team",
    "tag",
    "mean",
    "cost",
    "low",
    "high",
    "n",
    "hardware",
    "status",
    "by",
    "p_adjusted",
]


def frontier_sheet(collection: Collection, found: Frontier) -> Sheet:
    """Return the runs with a cost, the cheapest first."""
    made = {
        "collection": collection.slug,
        "measure": found.query.measure.name,
        "cost_name": found.key.name,
        "unit": found.key.unit,
        "across": str(found.query.across).lower(),
        "qrels": found.qrels.version,
        "scores": found.scores,
        "topics": found.topics,
    }
    rows = [{**dict(zip(_FRONTIER, _priced(one), strict=True)), **made} for one in found.runs]
    names = names_of([one.run for one in found.runs])
    lines = [
        MeanLine(
            names[one.run],
            False,
            after=(
                with_minus(f"{one.mean:.4f}"),
                cost_text(one),
                STATUS_NAMES[one.status],
                names[one.by] if one.by else NOTHING,
                NOTHING if one.p_adjusted is None else probability(one.p_adjusted),
            ),
        )
        for one in found.runs
    ]
    source = f"{collection.name} (qrels version {found.qrels.version})"
    apart = "" if found.query.across else " Runs on different hardware are compared apart."
    caption = [
        f"{len(found.runs)} of {found.total} runs of {source} on {found.topics} topics.",
        "Surely dominated: another run is better at no higher cost, by a one-sided paired t test, corrected by Holm "
        f"over {found.pairs:,} pairs.{apart}",
    ]
    columns = (found.query.measure.name, cost_name(found), "Status", "Beaten by", "p")
    return Sheet(
        [*_FRONTIER, *made], rows, MeanTable([], lines, caption, with_baseline=False, after=columns)
    )


def _priced(one: Priced) -> tuple[Any, ...]:
    beaten = str(one.by.pk) if one.by else None
    cost = (one.cost, one.low, one.high, one.measured)
    named = (str(one.run.pk), one.run.team.slug, one.run.tag)
    return (*named, one.mean, *cost, one.hardware, one.status, beaten, one.p_adjusted)
