"""The gains of one topic's ranking as they add up, against those of the ideal ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, named_dashes, with_legend
from metrics.charts.text import NO_TITLES, with_title
from metrics.charts.values.curves import rank_axis
from metrics.services.values.rankings import RankedDocument, Ranking


def ranking_figure(ranking: Ranking, *, run: str, titles: Mapping[str, str] = NO_TITLES) -> Figure:
    """Draw the cumulated gain of a topic's ranking with its relevant documents, and the ideal's.

    The sums of a long ranking end before its documents do: those below are not drawn.
    """
    depth = len(ranking.cumulated)
    relevant = [document for document in ranking.documents[:depth] if document.gain > 0]
    caption = (
        f"Topic {ranking.topic_id}, ranks 1 to {depth} of {run}: {len(relevant)} documents "
        f"with a gain add up to {ranking.cumulated[-1]:g}; "
        f"the ideal ranking has {ranking.ideal[-1]:g} there."
    )
    rows = [
        [
            str(document.rank),
            document.doc_id,
            str(document.level),
            f"{document.gain:g}",
            f"{ranking.cumulated[document.rank - 1]:g}",
        ]
        for document in relevant
    ]

    return Figure(
        name="ranking",
        caption=caption,
        columns=["Rank", "Document", "Level", "Gain", "Sum"],
        rows=rows,
        drawing=lambda look: _draw(ranking, relevant, titles, run, look),
        height=with_legend([run, "ideal"]),
    )


def _draw(
    ranking: Ranking,
    relevant: list[RankedDocument],
    titles: Mapping[str, str],
    run: str,
    look: Look,
) -> Any:
    lines = [
        {"line": name, "rank": rank, "sum": total}
        for name, sums in ((run, ranking.cumulated), ("ideal", ranking.ideal))
        for rank, total in enumerate(sums, 1)
    ]
    dots = [
        {
            "rank": document.rank,
            "sum": ranking.cumulated[document.rank - 1],
            "level": document.level,
            "document": with_title(document.doc_id, titles),
        }
        for document in relevant
    ]

    subtitle = "cumulated gain at each rank; a point is a relevant document"
    layers = [_steps(lines, run, look), _dots(dots, look)]

    return layered_chart(layers, look, f"Topic {ranking.topic_id} of run {run}", subtitle)


def _steps(lines: list[dict[str, Any]], run: str, look: Look) -> Any:
    keys, palette = [run, "ideal"], look.palette
    depth = max(line["rank"] for line in lines)
    lines_of_both = marks(lines).mark_line(interpolate="step-after")

    return lines_of_both.encode(
        x=rank_axis(depth, look),
        y=alt.Y("sum:Q", title="cumulated gain", axis=alt.Axis(tickCount=5)),
        color=named_colours(keys, [palette.run, palette.ideal], look),
        strokeDash=named_dashes(keys, ["ideal"], look),
    )


def _dots(dots: list[dict[str, Any]], look: Look) -> Any:
    tooltip = ["document:N", "rank:Q", "level:Q", "sum:Q"]
    return (
        marks(dots)
        .mark_point(filled=True, size=55, opacity=1, color=look.palette.run)
        .encode(x="rank:Q", y="sum:Q", tooltip=tooltip)
    )
