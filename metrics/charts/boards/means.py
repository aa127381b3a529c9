"""The means of a leaderboard with their intervals, one run below the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, data, dressed
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.mean_intervals import Ends

MOST_RUNS = 30
# What a row and everything around the rows takes, in pixels.
_ROW, _AROUND = 14, 110


def means_figure(board: Leaderboard, intervals: Mapping[tuple[int, str], Ends], confidence: float) -> Figure:
    """A point and a bar for each ranked run of the page of the board, 30 at most, in its order."""
    measure = board.sort.name
    rows = [_drawn(row, measure, intervals) for row in board.rows if row.rank is not None]
    rows = [row for row in rows if math.isfinite(row["low"])][:MOST_RUNS]
    interval = f"{100 * confidence:g} % interval"
    caption = (
        f"Mean {measure} of {len(rows)} of {board.ranked} ranked runs with the {interval} of each over the topics."
    )
    figures = [[row["run"], *(f"{row[key]:.4f}" for key in ("mean", "low", "high"))] for row in rows]
    return Figure(
        "means", caption, ["Run", measure, "Low", "High"], figures,
        lambda look: _draw(rows, f"Mean {measure}", f"with its {interval}", look),
    )  # fmt: skip


def _drawn(row: Row, measure: str, intervals: Mapping[tuple[int, str], Ends]) -> dict[str, Any]:
    low, high = intervals.get((row.evaluation.pk, measure), (math.nan, math.nan))
    name = f"{row.rank}. {row.run.tag} ({row.run.team.slug})"
    return {"run": name, "mean": row.values[measure][0], "low": low, "high": high}


def _draw(rows: list[dict[str, Any]], title: str, subtitle: str, look: Look) -> Any:
    most = (look.height - _AROUND) // _ROW
    shown = rows[:most]
    said = subtitle if len(shown) == len(rows) else f"the first {len(shown)} runs, {subtitle}"
    return dressed([_intervals(shown, look), _points(shown, look)], look, title, said)


def _intervals(rows: list[dict[str, Any]], look: Look) -> Any:
    scale = alt.Scale(zero=False, nice=True)
    x = alt.X("low:Q", title=None, scale=scale, axis=alt.Axis(tickCount=5))
    rule = alt.Chart(data(rows)).mark_rule(strokeWidth=2, color=look.palette.faint)
    return rule.encode(x=x, x2="high:Q", y=_names(look), tooltip=_tooltip())


def _points(rows: list[dict[str, Any]], look: Look) -> Any:
    point = alt.Chart(data(rows)).mark_point(filled=True, size=50, opacity=1, color=look.palette.run)
    return point.encode(x="mean:Q", y=_names(look), tooltip=_tooltip())


def _names(look: Look) -> Any:
    """In the order of the board; a line for the eye leads from each name."""
    axis = alt.Axis(grid=True, ticks=False, domain=False, labelLimit=110 if look.narrow else 260, labelFontSize=11)
    return alt.Y("run:N", sort=None, title=None, axis=axis)


def _tooltip() -> list[Any]:
    return ["run:N", *(alt.Tooltip(f"{key}:Q", format=".4f") for key in ("mean", "low", "high"))]
