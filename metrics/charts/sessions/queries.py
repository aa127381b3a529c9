"""Single queries as curves: the mean of the last query of each session, of the best one, and of all but the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks, named_colours, named_dashes, with_legend
from metrics.charts.sessions.lines import (
    MOST_PLACES,
    MOST_ROWS,
    askable,
    colours_of,
    points,
    positions,
    upward,
)
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import Which
from metrics.services.sessions.analyses import QueryCurves, system_label
from metrics.services.sessions.values import ChosenSessions
from runs.errors import InvalidInput

# Three lines for each.
MOST_SYSTEMS = 4
_KINDS: dict[Which, str] = {"last": "last query", "best": "best query", "others": "other queries"}


@dataclass(frozen=True)
class _Line:
    """The mean of some queries of one system's sessions, and of how many."""

    system: str
    kind: Which
    queries: int
    values: Floats

    @property
    def name(self) -> str:
        return f"{self.system}, {_KINDS[self.kind]}"


def query_curves_figure(
    chosen: ChosenSessions, drawn: QueryCurves, places: Mapping[str, int], *, measure: Measure
) -> Figure:
    """Draw the gain of single queries by rank, of the first four systems. Raise InvalidInput if no session
    is judged.

    Source: Järvelin, Price, Delcambre and Nielsen, ECIR 2008, figure 1, which has the last and the
    other queries.
    """
    names = [
        system_label(chosen.evaluation.session_set, name.decode()) for name in chosen.judged.systems
    ]
    order = sorted(range(len(names)), key=lambda index: places[names[index]])
    with_queries = [index for index in order if drawn.curves["all"].count[index]]
    if not with_queries:
        raise InvalidInput(
            "no session here has a value, so there is nothing to draw", code="nothing_to_draw"
        )
    lines = [
        _Line(names[index], kind, int(curves.count[index]), curves.values[index][:MOST_PLACES])
        for index in with_queries[:MOST_SYSTEMS]
        for kind, curves in ((kind, drawn.curves[kind]) for kind in _KINDS)
        if curves.count[index]
    ]
    length, words = len(lines[0].values), chosen.selection.words
    ends = ", ".join(f"{line.name} at {line.values[-1]:.4f} ({line.queries:,})" for line in lines)
    caption = (
        f"Gain of single queries with the parameters of {measure.name}, discounted by rank and by position in the "
        f"session, cumulated.{f' Only {words}.' if words else ''} At rank {length:,}: {ends}. In brackets: number of "
        "queries."
    )
    if len(with_queries) > MOST_SYSTEMS:
        caption += f" The first {MOST_SYSTEMS} of {len(with_queries)} systems."
    step = -(-length // MOST_ROWS)
    ranks = sorted({1, *range(step, length + 1, step), length})
    rows = [[str(rank), *(f"{line.values[rank - 1]:.4f}" for line in lines)] for rank in ranks]
    subtitle = "; ".join(filter(None, [measure.name, words]))
    return Figure(
        "queries", caption, ["Rank", *(line.name for line in lines)], rows,
        lambda look: _draw(lines, places, subtitle, look), with_legend([line.name for line in lines]),
    )  # fmt: skip


def _draw(lines: list[_Line], places: Mapping[str, int], subtitle: str, look: Look) -> Any:
    systems = dict.fromkeys(line.system for line in lines)
    colours = colours_of(((name, places[name]) for name in systems), look.palette.systems)
    drawn = [point for line in lines for point in points(line.name, line.values)]
    names = [line.name for line in lines]
    kinds = {kind: [line.name for line in lines if line.kind == kind] for kind in _KINDS}
    encoded = {
        "x": positions(len(lines[0].values), None, look, "rank"),
        "y": upward(drawn, "gain of the query"),
        "color": named_colours(names, [colours[line.system] for line in lines], look),
        "strokeDash": named_dashes(names, kinds["others"], look, kinds["best"]),
    }
    layers = [marks(drawn).mark_line(point=len(lines[0].values) == 1).encode(**encoded)]
    if look.live:
        layers.append(askable(drawn))
    return dressed(layers, look, "Last, best and other queries", subtitle)
