"""Two runs' rankings for one topic, with a line that joins the ranks of each document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks
from metrics.charts.text import NO_TITLES, shortened, width_of, with_title
from metrics.engine.errors import StatisticsError
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.values.two_rankings import Placed, RankingSide, TwoRankings

# The height of a rank, and of everything around the ranks, in pixels.
_ROW, _AROUND = 15, 100


def two_rankings_figure(rankings: TwoRankings, titles: Mapping[str, str] = NO_TITLES) -> Figure:
    """Draw the first documents of both runs; raise StatisticsError if neither answers the topic."""
    sides = (rankings.a, rankings.b)
    if not any(side.documents for side in sides):
        message = f"neither run has a document for topic {rankings.topic_id}"
        raise StatisticsError(message, code="nothing_to_draw", pointer="topic")

    names = list(names_of([side.run for side in sides]).values())
    ranks = max(len(side.documents) for side in sides)
    common = f"{rankings.common} of the first {ranks} are in the other's first {ranks}"
    if rankings.further_down:
        common += f"; {rankings.further_down} further down"

    caption = (
        f"Topic {rankings.topic_id}, ranks 1 to {ranks} of {names[0]} and {names[1]}: "
        f"{common}. A line joins a document's two ranks; filled points are relevant documents."
    )

    return Figure(
        name="rankings",
        caption=caption,
        columns=["Document", "Level", names[0], names[1]],
        rows=list(_rows(rankings)),
        drawing=lambda look: _draw(rankings, titles, names, look),
        height=lambda look: max(look.height, _AROUND + _ROW * ranks),
    )


def _rows(rankings: TwoRankings) -> Iterator[list[str]]:
    """Yield every document of either side once, with its rank in both."""
    documents_of_first = set()
    for placed in rankings.a.documents:
        documents_of_first.add(placed.document.doc_id)
        yield [*_document_cells(placed), str(placed.document.rank), _rank(placed.elsewhere)]

    for placed in rankings.b.documents:
        if placed.document.doc_id not in documents_of_first:
            yield [*_document_cells(placed), _rank(placed.elsewhere), str(placed.document.rank)]


def _document_cells(placed: Placed) -> list[str]:
    return [
        placed.document.doc_id,
        "unjudged" if placed.document.level is None else str(placed.document.level),
    ]


def _rank(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _draw(rankings: TwoRankings, titles: Mapping[str, str], names: list[str], look: Look) -> Any:
    sides = ["left", "right"]
    points = [
        *_points(rankings.a, titles, "left"),
        *_points(rankings.b, titles, "right"),
    ]
    # Only documents of both runs have lines.
    left_documents, right_documents = (
        {point["document"] for point in points if point["side"] == side} for side in sides
    )
    common = left_documents & right_documents
    lines = [point for point in points if point["document"] in common]
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
        tooltip = [alt.Tooltip("titled:N", title="document"), "rank:Q", "level:N"]
        layers.append(dots.encode(**axes, color=colour, tooltip=tooltip))

    layers += (_labels(points, side, look) for side in sides)
    subtitle = (
        f"left {names[0]}, right {names[1]}; "
        "filled: relevant, hollow: judged non-relevant or unjudged"
    )

    return layered_chart(layers, look, f"Topic {rankings.topic_id} in both rankings", subtitle)


def _points(side: RankingSide, titles: Mapping[str, str], name: str) -> Iterator[dict[str, Any]]:
    for placed in side.documents:
        level = placed.document.level
        yield {
            "side": name,
            "document": placed.document.doc_id,
            "titled": with_title(placed.document.doc_id, titles),
            "rank": placed.document.rank,
            "level": "unjudged" if level is None else str(level),
            "relevant": level is not None and level > 0,
        }


def _axes(sides: list[str]) -> dict[str, Any]:
    x = alt.X("side:N", sort=sides, title=None, axis=None, scale=alt.Scale(padding=0.8))
    return {"x": x, "y": alt.Y("rank:Q", axis=None, scale=alt.Scale(reverse=True, zero=False))}


def _labels(points: list[dict[str, Any]], side: str, look: Look) -> Any:
    """Return rank, document and level as texts outside of the lines."""
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
    """Return rank, document and level; the document's id is shortened to the room that is left."""
    level = "" if point["level"] == "unjudged" else f"  ({point['level']})"
    rank = str(point["rank"])
    document = shortened(point["document"], room - width_of(f"{level}  {rank}", size), size) + level
    return f"{document}  {rank}" if left else f"{rank}  {document}"
