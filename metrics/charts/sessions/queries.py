"""Single queries as curves: the means of the last query of each session, the best, and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, named_dashes, with_legend
from metrics.charts.sessions.lines import (
    MOST_PLACES,
    MOST_ROWS,
    colours_of,
    place_axis,
    points,
    tooltip_layer,
    value_axis,
)
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import Which
from metrics.services.sessions.analyses import QueryCurves, system_label
from metrics.services.sessions.values import ChosenSessions
from runs.errors import InvalidInput

# Each has three lines.
MOST_SYSTEMS = 4
_KINDS: dict[Which, str] = {"last": "last query", "best": "best query", "others": "other queries"}


@dataclass(frozen=True)
class _Line:
    """The mean of some queries of one system's sessions, and the number of queries."""

    system: str
    kind: Which
    queries: int
    values: Floats

    @property
    def name(self) -> str:
        return f"{self.system}, {_KINDS[self.kind]}"


def query_curves_figure(
    chosen: ChosenSessions, curves: QueryCurves, places: Mapping[str, int], *, measure: Measure
) -> Figure:
    """Draw the gain of single queries by rank, for the first four systems.

    Raise InvalidInput if no session is judged.

    Source: Järvelin, Price, Delcambre and Nielsen, ECIR 2008, figure 1, which has the last and the
    other queries.
    """
    names = [
        system_label(chosen.evaluation.session_set, name.decode()) for name in chosen.judged.systems
    ]
    order = sorted(range(len(names)), key=lambda index: places[names[index]])

    with_queries = [index for index in order if curves.curves["all"].count[index]]
    if not with_queries:
        raise InvalidInput(
            "no session here has a value, so there is nothing to draw", code="nothing_to_draw"
        )

    lines = []
    for index in with_queries[:MOST_SYSTEMS]:
        for kind in _KINDS:
            mean = curves.curves[kind]
            if mean.count[index]:
                values = mean.values[index][:MOST_PLACES]
                lines.append(_Line(names[index], kind, int(mean.count[index]), values))

    length, words = len(lines[0].values), chosen.selection.words
    ends = ", ".join(f"{line.name} at {line.values[-1]:.4f} ({line.queries:,})" for line in lines)
    caption = (
        f"Gain of single queries with the parameters of {measure.name}, discounted by rank "
        f"and by position in the session, cumulated.{f' Only {words}.' if words else ''} "
        f"At rank {length:,}: {ends}. In brackets: number of queries."
    )
    if len(with_queries) > MOST_SYSTEMS:
        caption += f" The first {MOST_SYSTEMS} of {len(with_queries)} systems."

    step = -(-length // MOST_ROWS)
    ranks = sorted({1, *range(step, length + 1, step), length})
    rows = [[str(rank), *(f"{line.values[rank - 1]:.4f}" for line in lines)] for rank in ranks]
    subtitle = "; ".join(filter(None, [measure.name, words]))

    names_of_lines = [line.name for line in lines]
    return Figure(
        name="queries",
        caption=caption,
        columns=["Rank", *names_of_lines],
        rows=rows,
        drawing=lambda look: _draw(lines, places, ranks, subtitle, look),
        height=with_legend(names_of_lines),
    )


def _draw(
    lines: list[_Line], places: Mapping[str, int], ranks: list[int], subtitle: str, look: Look
) -> Any:
    systems = dict.fromkeys(line.system for line in lines)
    colours = colours_of(((name, places[name]) for name in systems), look.palette.systems)
    points_of_lines = [point for line in lines for point in points(line.name, line.values)]
    names = [line.name for line in lines]
    kinds = {kind: [line.name for line in lines if line.kind == kind] for kind in _KINDS}
    encoded = {
        "x": place_axis(len(lines[0].values), None, look, "rank"),
        "y": value_axis(points_of_lines, "gain of the query"),
        "color": named_colours(names, [colours[line.system] for line in lines], look),
        "strokeDash": named_dashes(names, kinds["others"], look, kinds["best"]),
    }

    layers = [marks(points_of_lines).mark_line(point=len(lines[0].values) == 1).encode(**encoded)]
    layers.append(tooltip_layer(points_of_lines, ranks))
    return layered_chart(layers, look, "Last, best and other queries", subtitle)
