"""The means of a leaderboard with their intervals, one run below the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks, row_axis
from metrics.questions.addresses import run_page
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import Ends, cut_note, within_range
from metrics.tables import with_minus

MOST_RUNS = 200
# The height of a row and of everything around the rows, in pixels.
_ROW, _AROUND, _LETTERS = 14, 150, 11


def means_figure(
    board: Leaderboard, intervals: Mapping[tuple[int, str], Ends], confidence: float
) -> Figure:
    """Draw a point and a bar for each ranked run of the page of the board, in its order."""
    measure = board.sort.name
    ends = within_range(intervals, board.sort)
    rows: list[dict[str, Any]] = []

    board_rows = [row for row in board.rows if row.evaluation.pk in ends][:MOST_RUNS]
    tags = Counter(row.run.tag for row in board_rows)
    for row in board_rows:
        low, high = ends[row.evaluation.pk]
        # Tags are unique in a team: a name has its team only where two teams have its tag, as a
        # narrow chart has little room.
        team = f" ({row.run.team.slug})" if tags[row.run.tag] > 1 else ""
        name = f"{row.rank}. {row.run.tag}{team}"
        rows.append(
            {
                "run": name,
                "mean": row.values[measure][0],
                "low": low,
                "high": high,
                "address": run_page(row.run),
            }
        )

    interval = f"{100 * confidence:g}% confidence interval"
    caption = (
        f"Mean {measure} of {len(rows)} of {board.ranked} ranked runs with the {interval} of each "
        f"over the topics{cut_note(intervals, board.sort)}."
    )
    figures = [
        [row["run"], *(with_minus(f"{row[key]:.4f}") for key in ("mean", "low", "high"))]
        for row in rows
    ]
    part = "" if len(rows) == board.ranked else f"{len(rows)} of {board.ranked:,} ranked runs, "
    subtitle = f"{part}each with its {interval}"
    figure = Figure(
        name="means",
        caption=caption,
        columns=["Run", measure, "Low", "High"],
        rows=figures,
        drawing=lambda look: _draw(rows, measure, subtitle, look),
        height=lambda look: max(look.height, _AROUND + _ROW * len(rows)),
    )

    return figure.drawn_from(board.qrels.collection, board.qrels, measure=measure)


def _draw(rows: list[dict[str, Any]], measure: str, subtitle: str, look: Look) -> Any:
    points = [{"row": place, **row} for place, row in enumerate(rows)]
    # In the order of the board, with a line from each name to its point.
    axis = row_axis([row["run"] for row in rows], _LETTERS, 0.4 * look.room)
    names = alt.Y("row:O", title=None, axis=alt.Axis(grid=True, **axis))
    mean = axis_title(f"mean {measure}", 0.5 * look.room)
    x = alt.X(
        "low:Q", title=mean, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5)
    )
    rule = marks(points).mark_rule(strokeWidth=2, color=look.palette.faint)
    interval = rule.encode(x=x, x2="high:Q", y=names, tooltip=_tooltip(), **look.link)
    point = marks(points).mark_point(filled=True, size=50, opacity=1, color=look.palette.run)
    means = point.encode(x="mean:Q", y=names, tooltip=_tooltip(), **look.link)

    return layered_chart([interval, means], look, f"Mean {measure}", subtitle)


def _tooltip() -> list[Any]:
    return ["run:N", *(alt.Tooltip(f"{key}:Q", format=".4f") for key in ("mean", "low", "high"))]
