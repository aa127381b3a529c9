"""The difference of two runs in each group of topics: a dot, and a line for its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, row_axis
from metrics.engine.errors import StatisticsError
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import names_of, run_of
from metrics.services.comparisons.stored import Answer
from metrics.services.comparisons.topic_groups import TopicGroups
from metrics.tables import NOTHING, signed

# The height of a row and of everything around the rows, in pixels.
_ROW, _AROUND, _LETTERS = 18, 110, 12


def groups_figure(answer: Answer, compared: Compared, groups: TopicGroups | None) -> Figure:
    """Draw a row for each group; raise StatisticsError without groups."""
    if groups is None or not groups.names:
        message = "name the key of an attribute that these topics have: by=type"
        raise StatisticsError(message, code="nothing_to_draw", pointer="by")

    first, second = (run_of(answer, compared, int(side[0])) for side in compared.pairs.indices())
    names = names_of([first, second])
    differences = groups.differences
    rows = [
        {
            "group": f"{name} ({differences.topics[place]:,})",
            "difference": float(differences.difference[place]),
            "low": float(differences.low[place]),
            "high": float(differences.high[place]),
        }
        for place, name in enumerate(groups.names)
    ]

    interval = f"{100 * answer.query.options.confidence:g}% interval"
    measure = compared.measure.name
    caption = (
        f"Difference of mean {measure} by {groups.key}, {names[first]} minus {names[second]}, with "
        f"the {interval} of each group and its number of topics. {groups.sentence}"
    )
    figure = Figure(
        name="groups",
        caption=caption,
        columns=[groups.key, "Difference", "low", "high"],
        rows=[[str(row["group"]), *_texts(row)] for row in rows],
        drawing=lambda look: _draw(rows, measure, interval, look),
        height=lambda _look: _AROUND + _ROW * len(rows),
    )

    qrels = answer.entrants.qrels
    return figure.drawn_from(qrels.collection, qrels, measure=measure)


def _texts(row: dict[str, Any]) -> Iterator[str]:
    for key in ("difference", "low", "high"):
        yield NOTHING if math.isnan(row[key]) else signed(row[key])


def _draw(rows: list[dict[str, Any]], measure: str, interval: str, look: Look) -> Any:
    palette = look.palette
    axis = row_axis([row["group"] for row in rows], _LETTERS, 0.4 * look.room)
    y = alt.Y("row:O", title=None, axis=alt.Axis(**axis))
    x = alt.X("difference:Q", title=f"difference of mean {measure}", scale=alt.Scale(zero=True))
    tooltip = [
        "group:N",
        *(alt.Tooltip(f"{key}:Q", format="+.4f") for key in ("difference", "low", "high")),
    ]

    points = [{"row": place, **row} for place, row in enumerate(rows)]
    spread = [point for point in points if not math.isnan(point["low"])]
    zero = marks([{"zero": 0.0}]).mark_rule(color=palette.faint).encode(x="zero:Q")
    rules = marks(spread).mark_rule(strokeWidth=3, opacity=0.45, color=palette.run)
    dots = marks(
        {name: point[name] for name in ("row", "group", "difference")} for point in points
    ).mark_point(filled=True, opacity=1, size=70, color=palette.run)
    layers = [
        zero,
        rules.encode(x=alt.X("low:Q"), x2="high:Q", y=y, tooltip=tooltip),
        dots.encode(x=x, y=y, tooltip=tooltip[:2]),
    ]

    return layered_chart(layers, look, f"{measure} by group", f"with the {interval} of each")
