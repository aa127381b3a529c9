"""Every run against every other: which differences are significant, and in which direction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, row_axis
from metrics.charts.text import width_of
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.families import Family
from metrics.engine.significance.verdicts import MIN_TOPICS, REASONS
from metrics.exports.comparisons.words import how_tested, too_few, withheld_pairs
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, runs_by_row
from metrics.services.comparisons.stored import Answer
from metrics.tables import probability

# More rows than this fit into no picture of a page.
MAX_DRAWN = 50
# The least height of a row, the least width of a column whose name can be read, and everything
# around the cells but their names.
_ROW, _COLUMN, _AROUND = 13, 11, 140
_LETTERS, _LETTERS_MANY = 12, 10
# Cells of fewer runs are large enough for a sign.
_SIGNED = 20
_NONE = "not significant"
# Significant at the level, at a fifth and at a fiftieth of it: for 0.05 these are 0.01 and 0.001.
_STEPS = (1.0, 1 / 5, 1 / 50)


@dataclass(frozen=True)
class _Cell:
    """The row's run against the column's; `p_value` is corrected.

    `better` is 1 if the row's run is significantly better, -1 if it is worse, 0 without a verdict,
    and `withheld` says whether there can be none. `ahead` is above 0 if the row's run has the
    better mean. `pair` are the ids of both.
    """

    row: str
    column: str
    difference: float
    ahead: float
    better: int
    p_value: float
    withheld: bool
    pair: str

    def kind(self, alpha: float) -> str:
        if not self.better:
            return _NONE
        bounds = [step * alpha for step in _STEPS if self.p_value < step * alpha]
        return f"{'better' if self.better > 0 else 'worse'}, p < {bounds[-1]:g}"


def significance_figure(
    answer: Answer, compared: Compared, family: Family, *, address: str
) -> Figure:
    """Draw a cell for each two runs, best first; `address` and both ids is where a cell leads.

    Raise StatisticsError for a comparison with a baseline, which has no such matrix, and for more
    than MAX_DRAWN runs.
    """
    runs = list(runs_by_row(answer, compared).values())
    if compared.pairs.baselines or not 2 <= len(runs) <= MAX_DRAWN:
        message = f"the chart of all pairs needs 2 to {MAX_DRAWN} runs and no baseline"
        raise StatisticsError(message, code="nothing_to_draw", pointer="runs")

    names = names_of(runs)
    cells = list(_cells(answer, compared, family))
    alpha, order = answer.query.rule.alpha, list(names.values())
    significant = sum(cell.kind(alpha) != _NONE for cell in cells) // 2
    reasons = [REASONS[reason] for reason in family.verdicts.withheld.tolist()]
    sentences = [
        f"{significant:,} of {len(cells) // 2:,} pairs differ significantly.",
        *withheld_pairs(reasons),
    ]
    if compared.topics < MIN_TOPICS:
        sentences = [too_few(compared.topics)]

    caption = (
        f"{compared.measure.name}: the row's run against the column's, best first. "
        f"{' '.join(sentences)} Test: {how_tested(answer, family)}."
    )
    title = f"{compared.measure.name}: significant differences"
    columns, table = _table(order, cells)
    figure = Figure(
        name="significance",
        caption=caption,
        columns=columns,
        rows=table,
        drawing=lambda look: _draw(cells, order, alpha, title, address, look),
        height=lambda look: max(
            look.height, int(_AROUND + _labels_room(order, look) + _ROW * len(order))
        ),
    )

    qrels = answer.entrants.qrels
    return figure.drawn_from(
        qrels.collection,
        qrels,
        measure=compared.measure.name,
        runs=(len(order), compared.pairs.runs),
    )


def _cells(answer: Answer, compared: Compared, family: Family) -> Iterator[_Cell]:
    runs = runs_by_row(answer, compared)
    names = names_of(list(runs.values()))
    lower, verdicts = compared.measure.definition.lower_is_better, family.verdicts
    first, second = (side.tolist() for side in compared.pairs.indices())
    differences = family.result.difference.tolist()

    betters = verdicts.better(lower).tolist()
    withheld = (verdicts.withheld > 0).tolist()
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        if i not in runs or j not in runs:
            continue

        # Each pair has two cells, one on either side of the diagonal.
        for a, b, sign in ((i, j, 1), (j, i, -1)):
            difference = sign * differences[pair]
            yield _Cell(
                row=names[runs[a]],
                column=names[runs[b]],
                difference=difference,
                ahead=-difference if lower else difference,
                better=sign * betters[pair],
                p_value=float(family.adjusted[pair]),
                withheld=withheld[pair],
                pair=f"{runs[a].pk},{runs[b].pk}",
            )


def _table(order: list[str], cells: list[_Cell]) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of the corrected p values, with a sign for the direction."""
    texts = {
        (cell.row, cell.column): f"{_sign(cell)} {probability(cell.p_value)}".strip()
        for cell in cells
    }
    rows = [[row, *(texts.get((row, column), "") for column in order)] for row in order]
    return ["Run", *order], rows


def _sign(cell: _Cell) -> str:
    if cell.ahead == 0 or cell.withheld:
        return ""
    return "\N{PLUS SIGN}" if cell.ahead > 0 else "\N{MINUS SIGN}"


def _draw(
    cells: list[_Cell], order: list[str], alpha: float, title: str, address: str, look: Look
) -> Any:
    palette = look.palette
    colours = [*reversed(palette.levels[:3]), palette.grid, *palette.losses]
    points = sorted(_points(cells, order, alpha), key=itemgetter("row", "column"))
    axes = _axes(order, look)
    # From significantly better to significantly worse.
    bounds = [f"p < {step * alpha:g}" for step in _STEPS]
    kinds = [
        *(f"better, {bound}" for bound in reversed(bounds)),
        _NONE,
        *(f"worse, {bound}" for bound in bounds),
    ]
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=2 if look.narrow else 4,
        symbolType="square",
        columnPadding=26,
    )

    encodings: dict[str, Any] = {
        "color": alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=colours), legend=legend),
    }
    squares = marks(points)
    # On a phone a finger touches several of many cells: the table of pairs has what they say.
    if not look.narrow or len(order) <= _SIGNED:
        difference = alt.Tooltip("difference:Q", format="+.4f")
        encodings |= {"tooltip": ["run:N", "against:N", difference, "p:N"], **look.link}
        if look.linked:
            # The address names all runs of the family: it is there once, not in thousands of cells.
            squares = squares.transform_calculate(address=f"{json.dumps(address)} + datum.pair")

    layers = [squares.mark_rect().encode(**axes, **encodings)]

    if len(order) <= _SIGNED:
        # The direction as a sign, for readers who cannot tell the colours apart.
        ink = alt.condition("datum.sure", alt.value(palette.ground), alt.value(palette.text))
        signs = marks(points).mark_text(fontSize=13, fontWeight="bold")
        layers.append(signs.encode(**axes, text="sign:N", color=ink))

    order_words = "" if _columns_named(order, look) else "; columns are in the order of the rows"
    return layered_chart(
        layers, look, title, f"the row against the column, best first{order_words}"
    )


def _points(cells: list[_Cell], order: list[str], alpha: float) -> Iterator[dict[str, Any]]:
    places = {name: place for place, name in enumerate(order)}
    for cell in cells:
        kind = cell.kind(alpha)
        yield {
            "row": places[cell.row],
            "column": places[cell.column],
            "run": cell.row,
            "against": cell.column,
            "difference": cell.difference,
            "kind": kind,
            "p": probability(cell.p_value),
            "sign": "" if kind == _NONE else _sign(cell),
            "sure": kind != _NONE and cell.p_value < alpha * _STEPS[1],
            "pair": cell.pair,
        }


def _axes(order: list[str], look: Look) -> dict[str, Any]:
    many = len(order) > _SIGNED
    size = _LETTERS_MANY if many or look.narrow else _LETTERS
    axis = row_axis(order, size, _labels_room(order, look))
    scale = alt.Scale(paddingInner=0.0 if many else 0.06)
    across = alt.Axis(**axis, orient="top", labelAngle=-90) if _columns_named(order, look) else None

    return {
        "x": alt.X("column:O", title=None, axis=across, scale=scale),
        "y": alt.Y("row:O", title=None, axis=alt.Axis(**axis), scale=scale),
    }


def _labels_room(order: list[str], look: Look) -> float:
    return min(0.24 * look.room, max(width_of(name, _LETTERS) for name in order))


def _columns_named(order: list[str], look: Look) -> bool:
    """Return whether the names of columns have room."""
    return (look.room - _labels_room(order, look)) / len(order) >= _COLUMN
