"""A chart of the differences of a run from the median of its reference set, topic by topic."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from evalhub.campaigns.services.reference_runs import TopicComparison
from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.charts.text import shortened_names

_LETTERS, _LETTER_ROW, _ID_ROOM = 9, 10.5, 60
_MOST_ROWS = 1000


def median_difference_figure(
    topics: Sequence[TopicComparison], *, measure: str, run: str, reference: str
) -> Figure:
    """Draw a bar for each topic: the value minus the median, largest difference first.

    A line behind it is the range of the reference set. Topics without a value or a median are left
    out.
    """
    complete = [
        topic for topic in topics if math.isfinite(topic.value) and math.isfinite(topic.median)
    ]
    ordered = sorted(complete, key=lambda topic: topic.median - topic.value)
    above = sum(topic.value > topic.median for topic in ordered)
    below = sum(topic.value < topic.median for topic in ordered)
    caption = (
        f"{measure} of {run} minus the median of {reference} on each of {len(ordered)} topics: "
        f"higher on {above}, lower on {below}, equal on {len(ordered) - above - below}. "
        "Lines go from the lowest to the highest value."
    )
    rows = [[topic.topic, f"{topic.value - topic.median:+.4f}"] for topic in ordered[:_MOST_ROWS]]
    title = f"{measure} of {run} minus the median"
    subtitle = f"{reference}; lines: lowest to highest value"

    return Figure(
        "difference",
        caption,
        ["Topic", "Difference"],
        rows,
        lambda look: layered_chart(_layers(ordered, look), look, title, subtitle),
    )


def _layers(ordered: list[TopicComparison], look: Look) -> list[Any]:
    rows: list[dict[str, Any]] = [
        {"place": place, "topic": topic.topic, "value": topic.value - topic.median,
         "low": topic.low - topic.median, "high": topic.high - topic.median}
        for place, topic in enumerate(ordered, 1)
    ]  # fmt: skip
    axis = alt.Axis(labels=False, ticks=False)

    if rows and look.plot[0] / len(rows) >= _LETTER_ROW:
        names = json.dumps(shortened_names([row["topic"] for row in rows], _ID_ROOM, _LETTERS))
        axis = alt.Axis(
            ticks=False,
            labelExpr=f"{names}[datum.value - 1]",
            labelAngle=-90,
            labelFontSize=_LETTERS,
            labelLimit=0,
            labelOverlap=False,
        )

    x = alt.X("place:O", title="topics", axis=axis, scale=alt.Scale(padding=0.3))
    y = alt.Y(
        "value:Q", title=axis_title("difference", 0.5 * look.height), axis=alt.Axis(tickCount=5)
    )
    palette = look.palette
    colour = alt.condition("datum.value < 0", alt.value(palette.other), alt.value(palette.run))
    ranges = marks(rows).mark_rule(color=palette.faint, strokeWidth=1.5, opacity=0.7)
    zero = marks([{"at": 0}]).mark_rule(color=palette.text, strokeWidth=1)

    return [
        ranges.encode(
            x=x, y=alt.Y("low:Q", title=axis_title("difference", 0.5 * look.height)), y2="high:Q"
        ),
        marks(rows).mark_bar().encode(x=x, y=y, color=colour, tooltip=["topic:N", "value:Q"]),
        zero.encode(y="at:Q"),
    ]
