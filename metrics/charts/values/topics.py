"""A measure topic by topic: the values of a run, or its differences from another run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any
from urllib.parse import quote

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.charts.text import NO_TITLES, shortened_names, with_title

# More bars than this are drawn as one outline: a page has no room for each.
_MOST_BARS = 400
# The letters of a topic's id below its bar, the width that a row of them needs, and the most height
# that an id takes.
_LETTERS, _LETTER_ROW, _ID_ROOM = 9, 10.5, 60
_MOST_ROWS = 1000

Topics = list[tuple[str, float]]


def topics_figure(
    topics: Topics,
    *,
    measure: str,
    run: str,
    ranking: str,
    titles: Mapping[str, str] = NO_TITLES,
) -> Figure:
    """Draw a bar for each topic that has a value, highest first; `ranking` begins its address."""
    ordered = _ordered(topics)
    caption = f"{measure} of {run} on each of {len(ordered)} topics, highest first."

    if ordered:
        (best, top), (worst, bottom) = ordered[0], ordered[-1]
        caption += (
            f" The highest is topic {best} with {top:.4f}, "
            f"the lowest topic {worst} with {bottom:.4f}."
        )

    title = f"{measure} of run {run}"
    subtitle = f"{len(ordered)} topics, highest first{_thinned(ordered)}"

    return Figure(
        name="topics",
        caption=caption,
        columns=["Topic", measure],
        rows=_rows(ordered, "{:.4f}"),
        drawing=lambda look: _draw(
            _bars(ordered, titles, ranking, measure, look), title, subtitle, look
        ),
    )


def paired_topics_figure(
    topics: Topics,
    *,
    measure: str,
    run: str,
    other: str,
    ranking: str,
    titles: Mapping[str, str] = NO_TITLES,
) -> Figure:
    """Draw the difference of the run from the other for each topic, largest first.

    `ranking` begins the address of the rankings of both in a page of the two runs.
    """
    ordered = _ordered(topics)
    above = sum(value > 0 for _, value in ordered)
    below = sum(value < 0 for _, value in ordered)
    caption = (
        f"{measure} of {run} minus that of {other} on each of {len(ordered)} topics: "
        f"higher on {above}, lower on {below}, equal on {len(ordered) - above - below}."
    )
    title = f"{measure} of {run} minus {other}"
    subtitle = f"{len(ordered)} topics, largest difference first{_thinned(ordered)}"

    return Figure(
        name="topics",
        caption=caption,
        columns=["Topic", "Difference"],
        rows=_rows(ordered, "{:+.4f}"),
        drawing=lambda look: _draw(
            _bars(ordered, titles, ranking, "difference", look, "#rankings"), title, subtitle, look
        ),
    )


def _ordered(topics: Topics) -> Topics:
    finite = [pair for pair in topics if math.isfinite(pair[1])]
    return sorted(finite, key=itemgetter(1), reverse=True)


def _thinned(ordered: Topics) -> str:
    """Return which topics an outline shows, in words; empty if it shows all."""
    step = -(-len(ordered) // _MOST_BARS)
    if step <= 1:
        return ""
    ending = {2: "nd", 3: "rd"}.get(step, "th")
    return f"; the outline has every {step}{ending}"


def _rows(ordered: Topics, pattern: str) -> list[list[str]]:
    return [[topic, pattern.format(value)] for topic, value in ordered[:_MOST_ROWS]]


def _draw(bars: list[Any], title: str, subtitle: str, look: Look) -> Any:
    zero = marks([{"at": 0}]).mark_rule(color=look.palette.faint, strokeWidth=1).encode(y="at:Q")
    return layered_chart([*bars, zero], look, title, subtitle)


def _bars(
    ordered: Topics,
    titles: Mapping[str, str],
    ranking: str,
    axis: str,
    look: Look,
    place_in_page: str = "",
) -> list[Any]:
    rows: list[dict[str, Any]] = [
        {"place": place, "topic": topic, "titled": with_title(topic, titles), "value": value}
        for place, (topic, value) in enumerate(ordered, 1)
    ]
    within = bool(ordered) and all(0 <= value <= 1 for _, value in ordered)
    scale = alt.Scale(domain=[0, 1]) if within else alt.Scale(zero=True)
    encodings: dict[str, Any] = {
        "y": alt.Y(
            "value:Q",
            title=axis_title(axis, 0.5 * look.height),
            axis=alt.Axis(tickCount=5),
            scale=scale,
        ),
        "tooltip": [
            alt.Tooltip("titled:N", title="topic"),
            alt.Tooltip("value:Q", format=".4f", title=axis),
        ],
    }

    hidden: dict[str, Any] = {"labels": False, "ticks": False}
    palette = look.palette

    if len(rows) > _MOST_BARS:
        # As many points as there would be bars show the shape of thousands; values below 0 have
        # another colour.
        rows = rows[:: -(-len(rows) // _MOST_BARS)]

        x = alt.X("place:Q", title="topics", axis=alt.Axis(grid=False, **hidden))
        areas = []
        for ink, sign in ((palette.run, 1), (palette.other, -1)):
            part = [{**row, "value": max(row["value"] * sign, 0.0) * sign} for row in rows]
            if any(row["value"] for row in part) or sign > 0:
                area = marks(part).mark_area(interpolate="step-after", opacity=0.8, color=ink)
                areas.append(area.encode(x=x, **encodings))

        return areas

    rows = [
        {**row, "address": f"{ranking}{quote(str(row['topic']), safe='')}{place_in_page}"}
        for row in rows
    ]

    axis_of_topics = alt.Axis(**hidden)

    if rows and look.plot[0] / len(rows) >= _LETTER_ROW:
        texts = json.dumps(shortened_names([row["topic"] for row in rows], _ID_ROOM, _LETTERS))
        axis_of_topics = alt.Axis(
            ticks=False,
            labelExpr=f"{texts}[datum.value - 1]",
            labelAngle=-90,
            labelFontSize=_LETTERS,
            labelLimit=0,
            labelOverlap=False,
        )

    x = alt.X("place:O", title="topics", axis=axis_of_topics, scale=alt.Scale(padding=0.15))
    colour = alt.condition("datum.value < 0", alt.value(palette.other), alt.value(palette.run))

    return [marks(rows).mark_bar().encode(x=x, color=colour, **encodings, **look.link)]
