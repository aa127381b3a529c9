"""A measure at every rank: the run's mean with its interval, and the ideal's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import (
    Look,
    axis_title,
    layered_chart,
    marks,
    named_colours,
    named_dashes,
    whole_ticks,
    with_legend,
)
from metrics.engine.curve.curves import Curve
from metrics.engine.curve.intervals import Band, within
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.mean_intervals import cut_words
from metrics.tables import with_minus

_RANKS_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def curve_figure(curve: Curve, *, measure: Measure, run: str, confidence: float = 0.95) -> Figure:
    """Draw the mean curve of a run with its interval, and the curve of the ideal rankings."""
    whole = curve.band(confidence)
    band = within(whole, measure.definition.bounds) if whole else None
    caption = (
        f"{measure} of {run} at ranks 1 to {curve.depth}, {mean_words(curve)}, against the ideal "
        f"rankings. It ends at {curve.mean[-1]:.4f}, the ideal at {curve.ideal_mean[-1]:.4f}."
    )

    if band:
        cut = "" if np.array_equal(band, whole or ()) else cut_words(measure)
        level = f"{100 * confidence:g}%"
        caption += (
            f" The shaded area is the {level} confidence interval of the mean over topics{cut}."
        )

    columns = ["Rank", run, "low", "high", "ideal"] if band else ["Rank", run, "ideal"]
    ranks = ranks_shown(curve.depth)
    vectors = [curve.mean, *(band or ()), curve.ideal_mean]
    rows = [
        [str(rank), *(with_minus(f"{vector[rank - 1]:.4f}") for vector in vectors)]
        for rank in ranks
    ]

    return Figure(
        name="curve",
        caption=caption,
        columns=columns,
        rows=rows,
        drawing=lambda look: _draw(curve, band, measure.name, run, look),
        height=with_legend([run, "ideal"]),
    )


def ranks_shown(depth: int) -> list[int]:
    """Return the ranks in the table of a chart, which are also points that answer the pointer."""
    return sorted({rank for rank in _RANKS_SHOWN if rank <= depth} | {depth})


def mean_words(curve: Curve) -> str:
    """Return how the topics' curves became one, in words."""
    if curve.pooled:
        return f"the ratio of the averaged vectors of {curve.n_topics} topics"
    return f"the mean of {curve.n_topics} topics"


def _draw(curve: Curve, band: Band | None, measure: str, run: str, look: Look) -> Any:
    points = list(_points(curve, band, run))
    subtitle = f"{mean_words(curve)} at ranks 1 to {curve.depth}; dashed: the ideal rankings"
    layers = [_lines(points, measure, run, look, curve.depth)]
    if band:
        layers.insert(0, _shade(points, look))

    layers.append(tooltip_layer(points, curve.depth))
    return layered_chart(layers, look, f"{measure} of run {run}", subtitle)


def _points(curve: Curve, band: Band | None, run: str) -> Iterator[dict[str, Any]]:
    low, high = (end.tolist() for end in band) if band else (None, None)
    for index, value in enumerate(curve.mean.tolist()):
        ends = {"low": low[index], "high": high[index]} if low and high else {}
        yield {"line": run, "rank": index + 1, "value": value, **ends}

    for rank, value in enumerate(curve.ideal_mean.tolist(), 1):
        yield {"line": "ideal", "rank": rank, "value": value}


def rank_axis(depth: int, look: Look) -> Any:
    ranks = alt.Scale(domain=[1, max(2, depth)], nice=False)
    axis = alt.Axis(grid=False, values=whole_ticks(1, depth, look), format="d")
    return alt.X("rank:Q", title="rank", scale=ranks, axis=axis)


def value_axis(points: list[dict[str, Any]], measure: str, look: Look) -> Any:
    title = axis_title(measure, 0.5 * look.height)
    top = max(max(point["value"], point.get("high", 0.0)) for point in points)
    highest = max(point["value"] for point in points)
    domain = [0, 1] if highest <= 1 else [0, top]
    values = alt.Scale(domain=domain, nice=top > 1)
    return alt.Y("value:Q", title=title, scale=values, axis=alt.Axis(tickCount=5))


def _lines(points: list[dict[str, Any]], measure: str, run: str, look: Look, depth: int) -> Any:
    keys, palette = [run, "ideal"], look.palette
    return (
        marks(points)
        .mark_line(point=depth == 1)
        .encode(
            x=rank_axis(depth, look),
            y=value_axis(points, measure, look),
            color=named_colours(keys, [palette.run, palette.ideal], look),
            strokeDash=named_dashes(keys, ["ideal"], look),
        )
    )


def _shade(points: list[dict[str, Any]], look: Look) -> Any:
    own = [point for point in points if "low" in point]
    return (
        marks(own)
        .mark_area(opacity=0.16, color=look.palette.run, clip=True)
        .encode(x="rank:Q", y="low:Q", y2="high:Q")
    )


def tooltip_layer(points: list[dict[str, Any]], depth: int) -> Any:
    """Return an invisible layer that answers the pointer at the ranks of the table."""
    ranks = set(ranks_shown(depth))
    tooltip = ["line:N", "rank:Q", alt.Tooltip("value:Q", format=".4f")]
    return (
        marks(point for point in points if point["rank"] in ranks)
        .mark_point(size=120, opacity=0)
        .encode(x="rank:Q", y="value:Q", tooltip=tooltip)
    )
