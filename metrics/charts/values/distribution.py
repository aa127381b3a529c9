"""The distribution of a measure's values over the topics."""

from __future__ import annotations

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
)
from metrics.engine.arrays import Floats

_BINS = 20
# A value that is off the edge of a bin only by rounding lies on the edge.
_ROUNDING = 1e-9


def distribution_figure(values: Floats, *, measure: str, run: str) -> Figure:
    """Draw a histogram of the values of the topics, with mean and median; NaN is no value."""
    finite = values[np.isfinite(values)]

    # Even bins, from 0 to 1 if all values lie there. A value on an edge is in the bin that begins
    # there, and the largest one in the last bin.
    bottom, highest = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    top = highest if bottom < 0 or highest > 1 else 1.0
    edges = (bottom + (top - bottom) * np.arange(_BINS + 1) / _BINS).tolist()
    bins = np.floor((finite - bottom) / (top - bottom) * _BINS + _ROUNDING)
    counts = np.bincount(np.clip(bins, 0, _BINS - 1).astype(int), minlength=_BINS).tolist()

    low, median, high = np.quantile(finite, [0.25, 0.5, 0.75]) if len(finite) else (np.nan,) * 3
    mean = float(finite.mean()) if len(finite) else np.nan
    zeros = int((finite == 0).sum())
    zeros_words = "none is 0" if zeros == 0 else f"{zeros} {'is' if zeros == 1 else 'are'} 0"
    caption = (
        f"{measure} of {run} on {len(finite)} topics: mean {mean:.4f}, median {median:.4f}; "
        f"half of the topics lie between {low:.4f} and {high:.4f}, and {zeros_words}."
    )
    rows = [
        [f"{a:.2f} to {b:.2f}", str(n)] for a, b, n in zip(edges, edges[1:], counts, strict=False)
    ]
    averages = {"mean": mean, "median": float(median)}

    return Figure(
        name="distribution",
        caption=caption,
        columns=[measure, "Topics"],
        rows=rows,
        drawing=lambda look: _draw(edges, counts, averages, measure, run, look),
    )


def _draw(
    edges: list[float],
    counts: list[int],
    averages: dict[str, float],
    measure: str,
    run: str,
    look: Look,
) -> Any:
    bars = [
        {"from": a, "to": b, "topics": n} for a, b, n in zip(edges, edges[1:], counts, strict=False)
    ]
    subtitle = f"values of {sum(counts)} topics, with mean and median"

    return layered_chart(
        [_bars(bars, measure, look), *_rules(averages, look)],
        look,
        f"Distribution of {measure} of run {run}",
        subtitle,
    )


def _bars(bars: list[dict[str, Any]], measure: str, look: Look) -> Any:
    ends = [bars[0]["from"], bars[-1]["to"]]
    bars = [bar for bar in bars if bar["topics"]]
    most = max((bar["topics"] for bar in bars), default=1)
    tooltip = [alt.Tooltip("from:Q", format=".2f"), alt.Tooltip("to:Q", format=".2f"), "topics:Q"]

    return (
        marks(bars)
        .mark_bar(color=look.palette.run, opacity=0.75)
        .encode(
            x=alt.X(
                "from:Q",
                bin="binned",
                title=axis_title(measure, 0.8 * look.room),
                scale=alt.Scale(domain=ends),
                axis=alt.Axis(grid=False, tickCount=5 if look.narrow else 10, format="~g"),
            ),
            x2="to:Q",
            y=alt.Y(
                "topics:Q",
                title="topics",
                axis=alt.Axis(values=whole_ticks(0, most, look, 6), format="d"),
            ),
            tooltip=tooltip,
        )
    )


def _rules(averages: dict[str, float], look: Look) -> list[Any]:
    rows = [{"line": name, "at": value} for name, value in averages.items() if np.isfinite(value)]
    names = ["mean", "median"]
    colours = named_colours(names, [look.palette.ideal, look.palette.text], look)

    return [
        marks(rows)
        .mark_rule(strokeWidth=2)
        .encode(x="at:Q", color=colours, strokeDash=named_dashes(names, ["median"], look))
    ]
