"""One topic's rankings of two runs, with a line from each document to where the other run has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks
from metrics.charts.text import shortened, width_of
from metrics.engine.errors import StatisticsError
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.values.two_rankings import Placed, RankingSide, TwoRankings

# What a rank and everything around the ranks takes, in pixels.
_ROW, _AROUND = 15, 100


def two_rankings_figure(rankings: TwoRankings) -> Figure:
    """Draw the first documents of both runs; StatisticsError where neither run answers the topic."""
    sides = (rankings.a, rankings.b)
    if not any(side.documents for side in sides):
        message = f"neither run has a document for topic {rankings.topic_id}"
        raise StatisticsError(message, code="nothing_to_draw", pointer="topic")
    names = list(names_of([side.run for side in sides]).values())
    ranks = max(len(side.documents) for side in sides)
    caption = (
        f"Topic {rankings.topic_id}, ranks 1 to {ranks} of {names[0]} and {names[1]}: {rankings.common} documents are "
        "in both. A line joins a document's two ranks; filled points are relevant documents."
    )
    columns = ["Document", "Level", names[0], names[1]]
    return Figure(
        "rankings", caption, columns, list(_rows(rankings)), lambda look: _draw(rankings, names, look),
        lambda look: max(look.height, _AROUND + _ROW * ranks),
    )  # fmt: skip


def _rows(rankings: TwoRankings) -> Iterator[list[str]]:
    """Yield every document of either side once, with its rank in both."""
    seen = set()
    for one in rankings.a.documents:
        seen.add(one.document.doc_id)
        yield [*_told(one), str(one.document.rank), _rank(one.elsewhere)]
    for one in rankings.b.documents:
        if one.document.doc_id not in seen:
            yield [*_told(one), _rank(one.elsewhere), str(one.document.rank)]


def _told(one: Placed) -> list[str]:
    return [
        one.document.doc_id,
        "unjudged" if one.document.level is None else str(one.document.level),
    ]


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _draw(rankings: TwoRankings, names: list[str], look: Look) -> Any:
    sides = ["left", "right"]
    points = [*_points(rankings.a, "left"), *_points(rankings.b, "right")]
    shown = {point["document"] for point in points if point["side"] == "left"}
    both = [point for point in points if point["document"] in shown]
    twice = {point["document"] for point in both if point["side"] == "right"}
    lines = [point for point in both if point["document"] in twice]
    axes = _axes(sides)
    colour = alt.condition(
        "datum.relevant", alt.value(look.palette.run), alt.value(look.palette.faint)
    )
    width = alt.condition("datum.relevant", alt.value(2.5), alt.value(1))
    line = marks(lines).mark_line()
    layers = [line.encode(**axes, detail="document:N", color=colour, strokeWidth=width)]
    for relevant in (True, False):
        dots = marks([point for point in points if point["relevant"] == relevant])
        dots = dots.mark_point(filled=relevant, size=60, opacity=1)
        layers.append(
            dots.encode(**axes, color=colour, tooltip=["document:N", "rank:Q", "level:N"])
        )
    layers += (_labels(points, side, look) for side in sides)
    subtitle = f"left {names[0]}, right {names[1]}; filled: relevant, hollow: judged non-relevant or unjudged"
    return dressed(layers, look, f"Topic {rankings.topic_id} in both rankings", subtitle)


def _points(side: RankingSide, name: str) -> Iterator[dict[str, Any]]:
    for one in side.documents:
        level = one.document.level
        yield {
            "side": name,
            "document": one.document.doc_id,
            "rank": one.document.rank,
            "level": "unjudged" if level is None else str(level),
            "relevant": level is not None and level > 0,
        }


def _axes(sides: list[str]) -> dict[str, Any]:
    x = alt.X("side:N", sort=sides, title=None, axis=None, scale=alt.Scale(padding=0.8))
    return {"x": x, "y": alt.Y("rank:Q", axis=None, scale=alt.Scale(reverse=True, zero=False))}


def _labels(points: list[dict[str, Any]], side: str, look: Look) -> Any:
    """Rank, document and level outside of the lines."""
    left, size = side == "left", 9 if look.narrow else 11
    room = 0.27 * look.room
    own = [
        {**point, "label": _label(point, left, room, size)}
        for point in points
        if point["side"] == side
    ]
    mark: dict[str, Any] = {
        "align": "right" if left else "left",
        "dx": -10 if left else 10,
        "baseline": "middle",
    }
    chart = marks(own).mark_text(**mark, fontSize=size, limit=0)
    colour = alt.condition(
        "datum.relevant", alt.value(look.palette.text), alt.value(look.palette.faint)
    )
    return chart.encode(**_axes(["left", "right"]), text="label:N", color=colour)


def _label(point: dict[str, Any], left: bool, room: float, size: int) -> str:
    """The document's id has the room that rank and level leave."""
    level, rank = (
        "" if point["level"] == "unjudged" else f"  ({point['level']})",
        str(point["rank"]),
    )
    document = shortened(point["document"], room - width_of(f"{level}  {rank}", size), size) + level
    return f"{document}  {rank}" if left else f"{rank}  {document}"
