"""Search sessions as curves: the mean of each system with its ideal, and one session by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, named_dashes, with_legend
from metrics.charts.sessions.lines import (
    MOST_PLACES,
    MOST_ROWS,
    MOST_SYSTEMS,
    TICKS,
    TICKS_NARROW,
    colours_of,
    place_axis,
    points,
    tooltip_layer,
    value_axis,
)
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.cautions import counted
from metrics.engine.sessions.grammar import setting_of
from metrics.services.sessions.analyses import system_label
from metrics.services.sessions.curves import SessionCurves
from metrics.services.sessions.one_session import ShownSession
from metrics.services.sessions.values import ChosenSessions
from runs.errors import InvalidInput


@dataclass(frozen=True)
class _Line:
    """The mean curve of one system, and that of its ideal sessions.

    Its colour depends on its place among the systems of the collection; it is dotted if it has
    fewer sessions than another curve of the system.
    """

    name: str
    system: str
    place: int
    dotted: bool
    sessions: int
    values: Floats
    ideal: Floats


def session_curves_figure(
    chosen: ChosenSessions,
    curves: Mapping[int, SessionCurves],
    places: Mapping[str, int],
    *,
    measure: Measure,
    ideal: bool = True,
) -> Figure:
    """Draw the mean curves of the first six systems, with their ideals if `ideal`.

    `curves` has those of the sessions of at least so many queries, the smallest number first, all
    of the same length; `places` choose the colours. Raise InvalidInput if no session has a value.
    """
    lines = sorted(_lines(chosen, curves, places), key=lambda line: (line.place, line.dotted))
    if not lines:
        raise InvalidInput(
            "no session here has a value, so there is nothing to draw", code="nothing_to_draw"
        )

    depth = setting_of(measure)[0].depth
    systems = list(dict.fromkeys(line.system for line in lines))
    drawn_lines = [line for line in lines if line.system in systems[:MOST_SYSTEMS]]
    ends = ", ".join(
        f"{line.name} at {line.values[-1]:.4f} ({counted(line.sessions, 'session')})"
        for line in drawn_lines
    )
    restriction = f" Only {chosen.selection.words}." if chosen.selection.words else ""
    caption = (
        f"{measure.name} at each position of a session, {depth:,} for each query, "
        f"the mean of each system's sessions.{restriction} "
        f"At position {len(drawn_lines[0].values):,}: {ends}."
    )
    if ideal:
        caption += " Dashed: the ideal."

    if len(systems) > MOST_SYSTEMS:
        caption += f" The first {MOST_SYSTEMS} of {len(systems)} systems."

    ideals = _ideals(drawn_lines) if ideal else {}
    columns = ["Place", *(line.name for line in drawn_lines), *ideals]
    length = len(drawn_lines[0].values)
    vectors = [*(line.values for line in drawn_lines), *ideals.values()]
    # The table has the first place and the end of each query.
    ends_of_queries = sorted({1, *range(depth, length + 1, depth), length})[:MOST_ROWS]
    rows = [
        [str(place), *(f"{vector[place - 1]:.4f}" for vector in vectors)]
        for place in ends_of_queries
    ]
    dashed = "dashed: the ideal" if ideal else ""
    subtitle = "; ".join(filter(None, [measure.name, chosen.selection.words, dashed]))
    named = [*(line.name for line in drawn_lines), *(ideals if len(ideals) == 1 else ())]

    return Figure(
        name="curves",
        caption=caption,
        columns=columns,
        rows=rows,
        drawing=lambda look: _draw_curves(
            drawn_lines, ideals, depth, ends_of_queries, measure, subtitle, look
        ),
        height=with_legend(named),
    )


def _lines(
    chosen: ChosenSessions, curves: Mapping[int, SessionCurves], places: Mapping[str, int]
) -> Iterator[_Line]:
    for number, (least, session_curves) in enumerate(curves.items()):
        for index, name in enumerate(chosen.judged.systems):
            sessions = int(session_curves.curves.count[index])
            if sessions and session_curves.curves.values.shape[1]:
                label = system_label(chosen.evaluation.session_set, name.decode())
                yield _Line(
                    name=f"{label}, at least {least:,} queries" if number else label,
                    system=label,
                    place=places[label],
                    dotted=number > 0,
                    sessions=sessions,
                    values=session_curves.curves.values[index],
                    ideal=session_curves.ideal[index],
                )


def _ideals(lines: list[_Line]) -> dict[str, Floats]:
    """Return the ideal that all lines share, or one for each."""
    if all(np.array_equal(line.ideal, lines[0].ideal) for line in lines):
        return {"ideal": lines[0].ideal}
    return {f"ideal of {line.name}": line.ideal for line in lines}


def _draw_curves(
    lines: list[_Line],
    ideals: dict[str, Floats],
    depth: int,
    ends: list[int],
    measure: Measure,
    subtitle: str,
    look: Look,
) -> Any:
    length = len(lines[0].values)
    systems = dict.fromkeys((line.system, line.place) for line in lines)
    colour_of = colours_of(systems, look.palette.systems)
    colours = {line.name: colour_of[line.system] for line in lines}
    if len(ideals) == 1:
        colours["ideal"] = look.palette.ideal

    points_of_lines = [point for line in lines for point in points(line.name, line.values)]
    points_of_ideals = [
        point
        for name, values in ideals.items()
        for point in points(name if len(ideals) == 1 else name.removeprefix("ideal of "), values)
    ]
    encoded = {
        "x": place_axis(length, depth, look),
        "y": value_axis([*points_of_lines, *points_of_ideals], measure.definition.name),
    }
    encoded["color"] = named_colours(list(colours), list(colours.values()), look)
    dotted = [line.name for line in lines if line.dotted]
    dashes = named_dashes(list(colours), ["ideal"], look, dotted)
    with_dashes = {**encoded, "strokeDash": dashes} if dotted or len(ideals) == 1 else encoded
    layers = [marks(points_of_lines).mark_line().encode(**with_dashes)]

    if points_of_ideals:
        # The ideal of a single system has the colour and the name of its line, which is not dashed.
        of_ideals = with_dashes if len(ideals) == 1 else encoded
        line = marks(points_of_ideals).mark_line(strokeDash=[6, 4], strokeWidth=2)
        layers.insert(0, line.encode(**of_ideals))

    layers.append(tooltip_layer(points_of_lines, ends))
    return layered_chart(layers, look, "Mean curves of the systems", subtitle)


def one_session_figure(session: ShownSession, *, measure: Measure) -> Figure:
    """Draw a session's cumulated gain and its ideal's, with a line where each query begins.

    Raise InvalidInput if no position counts.
    """
    length, name = min(len(session.vector), MOST_PLACES), session.session.session_id.decode()
    queries = len(session.queries)

    if not length:
        raise InvalidInput(
            "no position of this session counts, so there is nothing to draw",
            code="nothing_to_draw",
        )

    caption = (
        f"Session {name}, {queries:,} {'query' if queries == 1 else 'queries'}: "
        f"discounted gain adds up to {session.vector[-1]:.4f}, "
        f"the ideal session's to {session.ideal[-1]:.4f}."
    )
    if queries > 1:
        caption += " A vertical line marks the start of a query."

    if len(session.vector) > length:
        caption += f" Showing the first {length:,} of {len(session.vector):,} positions."

    columns = ["Query", "Position", "Cumulated gain", "Ideal", "Gain / ideal"]
    return Figure(
        "session",
        caption,
        columns,
        _ends(session),
        lambda look: _draw_session(session, length, measure, look),
    )


def _ends(session: ShownSession) -> list[list[str]]:
    """Return the figures at the end of each query; one without a place ends where it begins."""
    vectors = (session.vector, session.ideal, session.normalised)
    ends = session.starts[1:].tolist()[:MOST_ROWS]
    return [
        [str(number), str(end), *(f"{vector[end - 1]:.4f}" if end else "–" for vector in vectors)]
        for number, end in enumerate(ends, 1)
    ]


def _draw_session(session: ShownSession, length: int, measure: Measure, look: Look) -> Any:
    points_of_lines = [
        *points("session", session.vector[:length]),
        *points("ideal", session.ideal[:length]),
    ]
    names, palette = ["session", "ideal"], look.palette
    starts = [start for start in session.starts[:-1].tolist() if start < length]
    across = place_axis(length, None, look)
    line = (
        marks(points_of_lines)
        .mark_line(point=length == 1)
        .encode(
            x=across,
            # Not normalised, whatever the measure.
            y=value_axis(points_of_lines, "discounted cumulated gain"),
            color=named_colours(names, [palette.run, palette.ideal], look),
            strokeDash=named_dashes(names, ["ideal"], look),
        )
    )

    ends = {1, length, *(start for start in starts if start)}
    layers = [
        *_boundaries(starts, across, look),
        line,
        tooltip_layer(points_of_lines, ends),
    ]
    setting = setting_of(measure)[0]
    origin = ", ".join(
        f"{noun} {name.decode()}"
        for noun, name in (
            ("topic", session.session.topic_id),
            ("searcher", session.session.searcher),
            ("system", session.session.system),
        )
        if name
    )

    subtitle = (
        f"{origin}; {measure.name}: discounted cumulated gain "
        f"over {setting.depth:,} positions of each query"
    )
    title = f"Session {session.session.session_id.decode()}"

    return layered_chart(layers, look, title, subtitle)


def _boundaries(starts: list[int], across: Any, look: Look) -> list[Any]:
    """Return a line where each later query begins, and the numbers of queries that have room."""
    rules = [{"place": start + 0.5} for start in starts[1:]]
    room = 1 + len(starts) // (TICKS_NARROW if look.narrow else TICKS)
    labels = [
        {
            "place": start + 1,
            "text": str(number) if look.narrow or len(starts) > 10 else f"query {number}",
        }
        for number, start in enumerate(starts, 1)
        if number % room == 0 or room == 1
    ]

    palette = look.palette
    rule = marks(rules).mark_rule(color=palette.faint, opacity=0.6, strokeWidth=1).encode(x=across)
    mark: dict[str, Any] = {"align": "left", "baseline": "top", "dx": 3, "fontSize": 11}
    text = marks(labels).mark_text(**mark, color=palette.faint)

    return [rule, text.encode(x=across, y=alt.value(2), text="text:N")] if rules else []
