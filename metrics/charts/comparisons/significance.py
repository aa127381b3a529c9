"""Every run against every other: which differences are significant, how surely, and which way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, data, dressed, row_axis
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.families import Family
from metrics.exports.comparisons.words import how_tested
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, rows_of, run_of
from metrics.services.comparisons.stored import Answer
from metrics.tables import probability

# More rows than this have no room for their names.
MAX_DRAWN = 50
# Cells of fewer runs are large enough for a sign; a table of more is not read.
_SIGNED, _MOST_COLUMNS = 20, 25
_NONE = "not significant"
# Significant, and at a fifth and a fiftieth of the level: for 0.05 these are 0.01 and 0.001.
_STEPS = (1.0, 1 / 5, 1 / 50)


@dataclass(frozen=True)
class _Cell:
    """The row's run against the column's; `better` says which way, `p_value` is corrected."""

    row: str
    column: str
    difference: float
    better: bool
    p_value: float
    address: str

    def kind(self, alpha: float) -> str:
        bounds = [step * alpha for step in _STEPS if self.p_value < step * alpha]
        return f"{'better' if self.better else 'worse'}, p < {bounds[-1]:g}" if bounds else _NONE


def significance_figure(answer: Answer, compared: Compared, family: Family, *, address: str) -> Figure:
    """A cell for each two runs, best first; `address` and both ids is where they are compared alone.

    StatisticsError for a comparison with a baseline, which has no such matrix, and for more than MAX_DRAWN runs.
    """
    rows = rows_of(answer, compared)
    if compared.pairs.baseline is not None or not 2 <= len(rows) <= MAX_DRAWN:
        message = f"every run against every other is drawn for 2 to {MAX_DRAWN} runs, and without a baseline"
        raise StatisticsError(message, code="nothing_to_draw", pointer="runs")
    names = names_of([run_of(answer, compared, row) for row in rows])
    cells = list(_cells(answer, compared, family, address))
    alpha, order = answer.query.rule.alpha, list(names.values())
    found = sum(cell.kind(alpha) != _NONE for cell in cells) // 2
    caption = (
        f"{compared.measure.name}: the row's run against the column's, best first. {found:,} of {len(cells) // 2:,} "
        f"pairs differ significantly. Test: {how_tested(answer, family)}."
    )
    title = f"{compared.measure.name}: which runs differ"
    return Figure(
        "significance", caption, *_table(order, cells), lambda look: _draw(cells, order, alpha, title, look)
    )  # fmt: skip


def _cells(answer: Answer, compared: Compared, family: Family, address: str) -> Iterator[_Cell]:
    rows = rows_of(answer, compared)
    runs = {row: run_of(answer, compared, row) for row in rows}
    names = names_of(list(runs.values()))
    lower = compared.measure.definition.lower_is_better
    first, second = (side.tolist() for side in compared.pairs.indices())
    figures = (family.result.difference.tolist(), family.adjusted.tolist())
    for i, j, difference, p_value in zip(first, second, *figures, strict=True):
        if i in runs and j in runs:
            for a, b, signed in ((i, j, difference), (j, i, -difference)):
                ids = f"{address}{runs[a].pk},{runs[b].pk}"
                yield _Cell(names[runs[a]], names[runs[b]], signed, (signed > 0) != lower, p_value, ids)


def _table(order: list[str], cells: list[_Cell]) -> tuple[list[str], list[list[str]]]:
    """Corrected p values with a sign for the direction; nothing for more runs than a table can have side by side."""
    if len(order) > _MOST_COLUMNS:
        return [], []
    texts = {(cell.row, cell.column): f"{_sign(cell)} {probability(cell.p_value)}".strip() for cell in cells}
    return ["Run", *order], [[row, *(texts.get((row, column), "") for column in order)] for row in order]


def _sign(cell: _Cell) -> str:
    if cell.difference == 0:
        return ""
    return "\N{PLUS SIGN}" if cell.better else "\N{MINUS SIGN}"


def _kinds(alpha: float) -> list[str]:
    """From surely better to surely worse."""
    bounds = [f"p < {step * alpha:g}" for step in _STEPS]
    return [*(f"better, {bound}" for bound in reversed(bounds)), _NONE, *(f"worse, {bound}" for bound in bounds)]


def _draw(cells: list[_Cell], order: list[str], alpha: float, title: str, look: Look) -> Any:
    palette = look.palette
    colours = [*reversed(palette.levels[:3]), palette.grid, *palette.losses]
    points = list(_points(cells, alpha, look))
    axes = _axes(order, look)
    legend = alt.Legend(
        title=None, orient="bottom", columns=2 if look.narrow else 4, symbolType="square", columnPadding=26
    )
    encodings: dict[str, Any] = {
        "color": alt.Color("kind:N", scale=alt.Scale(domain=_kinds(alpha), range=colours), legend=legend),
        "tooltip": ["run:N", "against:N", alt.Tooltip("difference:Q", format="+.4f"), "p:N"],
    }
    if look.live:
        encodings["href"] = "address:N"
    layers = [alt.Chart(data(points)).mark_rect().encode(**axes, **encodings)]
    if len(order) <= _SIGNED:
        layers.append(_signs(points, axes, look))
    return dressed(layers, look, title, "the row against the column, best first")


def _points(cells: list[_Cell], alpha: float, look: Look) -> Iterator[dict[str, Any]]:
    for cell in cells:
        kind = cell.kind(alpha)
        point = {
            "run": cell.row, "against": cell.column, "difference": cell.difference, "kind": kind,
            "p": probability(cell.p_value), "sign": "" if kind == _NONE else _sign(cell),
            "sure": cell.p_value < alpha * _STEPS[1],
        }  # fmt: skip
        yield {**point, "address": cell.address} if look.live else point


def _axes(order: list[str], look: Look) -> dict[str, Any]:
    many = len(order) > _SIGNED
    size = max(6, min(12, int(0.6 * look.height / len(order))))
    axis = row_axis(order, size, look)
    scale = alt.Scale(paddingInner=0.0 if many else 0.06)
    across = alt.Axis(**axis, orient="top", labelAngle=-90 if many or look.narrow else -40)
    return {
        "x": alt.X("against:N", sort=order, title=None, axis=across, scale=scale),
        "y": alt.Y("run:N", sort=order, title=None, axis=alt.Axis(**axis), scale=scale),
    }


def _signs(points: list[dict[str, Any]], axes: dict[str, Any], look: Look) -> Any:
    """Which way, for whoever does not tell the colours apart."""
    light = "#ffffff" if look.theme == "light" else "#12161c"
    ink = alt.condition("datum.sure", alt.value(light), alt.value(look.palette.text))
    return alt.Chart(data(points)).mark_text(fontSize=13, fontWeight="bold").encode(**axes, text="sign:N", color=ink)
