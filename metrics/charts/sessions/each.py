"""Sessions of one system, each as a line of its own, with their mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, with_legend
from metrics.charts.sessions.lines import MOST_ROWS, colours_of, place_axis, value_axis
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.analyses import have_vectors
from metrics.engine.sessions.cautions import counted
from metrics.engine.sessions.grammar import setting_of
from metrics.services.sessions.analyses import system_label
from metrics.services.sessions.curves import SessionCurves
from metrics.services.sessions.values import ChosenSessions
from runs.errors import InvalidInput

# The most lines, and the most positions of each.
MOST_SESSIONS, MOST_PLACES = 40, 200
_EACH, _MEAN = "each session", "mean"


def each_session_figure(
    chosen: ChosenSessions, curves: SessionCurves, places: Mapping[str, int], *, measure: Measure
) -> Figure:
    """Draw the vector of every chosen session, all of one system, and their mean.

    After its last query a session keeps its value. Raise InvalidInput if no session has a value.

    Source: Järvelin, Price, Delcambre and Nielsen, ECIR 2008, figure 4.
    """
    vectors, (setting, normalised) = curves.vectors, setting_of(measure)
    view = chosen.judged.view
    sessions = np.flatnonzero(
        have_vectors(view, setting, normalised=normalised is not None)
    ).tolist()

    if vectors is None or not sessions or not curves.curves.values.shape[1]:
        raise InvalidInput(
            "no session here has a value, so there is nothing to draw", code="nothing_to_draw"
        )

    mean, drawn_sessions = curves.curves.values[0], sessions[:MOST_SESSIONS]
    length = len(mean)
    matrix = vectors.matrix(length)[drawn_sessions]
    names = [
        f"session {chosen.judged.sessions[index].session_id.decode()}" for index in drawn_sessions
    ]
    system = system_label(chosen.evaluation.session_set, chosen.judged.systems[0].decode())
    words = chosen.selection.words
    low, high = float(matrix[:, -1].min()), float(matrix[:, -1].max())
    caption = (
        f"{measure.name} of {counted(len(sessions), 'session')} with {system}, "
        f"each at every position, {setting.depth:,} for each query."
        f"{f' Only {words}.' if words else ''} After its last query a session keeps its value. "
        f"At position {length:,}: {low:.4f} to {high:.4f}, mean {mean[-1]:.4f}."
    )

    if len(sessions) > len(drawn_sessions):
        caption += f" The mean is of all of them; the first {len(drawn_sessions):,} are drawn."

    ends = sorted({1, *range(setting.depth, length + 1, setting.depth), length})[:MOST_ROWS]
    rows = [
        [name, *(f"{line[end - 1]:.4f}" for end in ends)]
        for name, line in zip(["mean", *names], [mean, *matrix], strict=True)
    ]
    subtitle = "; ".join(filter(None, [measure.name, words]))

    lines = dict(zip(names, matrix, strict=True))
    return Figure(
        name="sessions",
        caption=caption,
        columns=["Session", *(f"position {end:,}" for end in ends)],
        rows=rows,
        drawing=lambda look: _draw(lines, mean, ends, (system, places[system]), subtitle, look),
        height=with_legend([_EACH, _MEAN]),
    )


def _draw(
    lines: dict[str, Floats],
    mean: Floats,
    ends: list[int],
    system: tuple[str, int],
    subtitle: str,
    look: Look,
) -> Any:
    (colour,) = colours_of([system], look.palette.systems).values()
    points = [
        {
            "line": _MEAN if values is mean else _EACH,
            "session": name,
            "place": place,
            "value": value,
        }
        for name, values in [*lines.items(), (_MEAN, mean)]
        for place, value in enumerate(values.tolist(), 1)
    ]

    # Rules at the ends of queries are left out: so many lines are grid enough.
    encoded = {
        "x": place_axis(len(mean), None, look),
        "y": value_axis(points, "cumulated gain"),
        "color": named_colours([_EACH, _MEAN], [colour, look.palette.text], look),
    }
    tooltip = ["session:N", "place:Q", alt.Tooltip("value:Q", format=".4f")]
    each, thick = ([point for point in points if point["line"] == kind] for kind in (_EACH, _MEAN))
    single = len(mean) == 1
    layers = [
        marks(each)
        .mark_line(strokeWidth=1.5, opacity=0.45, point=single)
        .encode(**encoded, detail="session:N"),
        marks(thick).mark_line(strokeWidth=3.5, point=single).encode(**encoded),
    ]

    invisible = marks(point for point in points if point["place"] in ends)
    invisible = invisible.mark_point(size=60, opacity=0)
    layers.append(invisible.encode(x="place:Q", y="value:Q", tooltip=tooltip))

    return layered_chart(layers, look, f"Sessions with {system[0]}", subtitle)
