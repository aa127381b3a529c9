"""The gains of one topic's ranking as they add up, against those of the ideal ranking."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks, named_colours, named_dashes, with_legend
from metrics.charts.values.curves import across
from metrics.services.values.rankings import RankedDocument, Ranking


def ranking_figure(ranking: Ranking, *, run: str) -> Figure:
    """Draw the cumulated gain of a topic's ranking, with a point for every relevant document, and the ideal's.

    The sums of a long ranking end before its documents do: what comes below is not drawn.
    """
    depth = len(ranking.cumulated)
    found = [document for document in ranking.documents[:depth] if document.gain > 0]
    caption = (
        f"Topic {ranking.topic_id}, ranks 1 to {depth} of {run}: {len(found)} documents with a gain add up to "
        f"{ranking.cumulated[-1]:g}; the ideal ranking has {ranking.ideal[-1]:g} there."
    )
    rows = [
        [str(d.rank), d.doc_id, str(d.level), f"{d.gain:g}", f"{ranking.cumulated[d.rank - 1]:g}"]
        for d in found
    ]
    columns = ["Rank", "Document", "Level", "Gain", "Sum"]
    legend = with_legend([run, "ideal"])
    return Figure(
        "ranking", caption, columns, rows, lambda look: _draw(ranking, found, run, look), legend
    )


def _draw(ranking: Ranking, found: list[RankedDocument], run: str, look: Look) -> Any:
    lines = [
        {"line": name, "rank": rank, "sum": total}
        for name, sums in ((run, ranking.cumulated), ("ideal", ranking.ideal))
        for rank, total in enumerate(sums, 1)
    ]
    dots = [
        {
            "rank": d.rank,
            "sum": ranking.cumulated[d.rank - 1],
            "level": d.level,
            "document": d.doc_id,
        }
        for d in found
    ]
    subtitle = "cumulated gain at each rank; a point is a relevant document"
    layers = [_steps(lines, run, look), _dots(dots, look)]
    return dressed(layers, look, f"Topic {ranking.topic_id} of run {run}", subtitle)


def _steps(lines: list[dict[str, Any]], run: str, look: Look) -> Any:
    keys, palette = [run, "ideal"], look.palette
    depth = max(line["rank"] for line in lines)
    return (
        marks(lines)
        .mark_line(interpolate="step-after")
        .encode(
            x=across(depth, look), y=alt.Y("sum:Q", title="cumulated gain", axis=alt.Axis(tickCount=5)),
            color=named_colours(keys, [palette.run, palette.ideal], look),
            strokeDash=named_dashes(keys, ["ideal"], look),
        )
    )  # fmt: skip


def _dots(dots: list[dict[str, Any]], look: Look) -> Any:
    told = ["document:N", "rank:Q", "level:Q", "sum:Q"]
    return (
        marks(dots)
        .mark_point(filled=True, size=55, opacity=1, color=look.palette.run)
        .encode(x="rank:Q", y="sum:Q", tooltip=told)
    )
