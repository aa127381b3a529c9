"""The curve of achieved significance levels: how many pairs of runs a measure separates."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_series, with_legend
from metrics.exports.comparisons.words import TEST_NAMES
from metrics.services.comparisons.design import Design

# A curve of more pairs is drawn at this many of them.
_POINTS = 400


def power_figure(design: Design) -> Figure:
    """Draw the p values of all pairs in descending order; lower curves separate more pairs."""
    pairs = len(design.measures[0].power.curve)
    shares = ", ".join(
        f"{measure_power.measure.name} {measure_power.power.share:.1%}"
        for measure_power in design.measures
    )
    caption = (
        f"p values of {pairs:,} pairs of {len(design.runs)} runs in descending order "
        f"({TEST_NAMES[design.query.test]}, uncorrected). "
        f"Below {design.query.alpha:g}: {shares}."
    )
    figures = [
        [
            measure_power.measure.name,
            f"{measure_power.power.share:.1%}",
            f"{measure_power.power.needed:.4f}",
            f"{measure_power.power.typical:.4f}",
        ]
        for measure_power in design.measures
    ]

    columns = [
        "Measure",
        "Pairs separated",
        "Difference that every pair needs",
        "That half of them need",
    ]

    names = [measure_power.measure.name for measure_power in design.measures]
    figure = Figure(
        name="power",
        caption=caption,
        columns=columns,
        rows=figures,
        drawing=lambda look: _draw(design, pairs, look),
        height=with_legend(names),
    )

    return figure.of_topics(design.selection).drawn_from(
        design.qrels.collection,
        design.qrels,
        measure=names[0] if len(names) == 1 else "",
        runs=(len(design.runs), len(design.runs)),
    )


def _draw(design: Design, pairs: int, look: Look) -> Any:
    places = np.unique(np.linspace(0, pairs - 1, min(pairs, _POINTS)).astype(np.int64))
    rows = [
        {
            "line": measure_power.measure.name,
            "pair": int(place) + 1,
            "p": float(measure_power.power.curve[place]),
        }
        for measure_power in design.measures
        for place in places
    ]

    names = [measure_power.measure.name for measure_power in design.measures]
    x = alt.X(
        "pair:Q", title="pairs of runs, by descending p", axis=alt.Axis(format="d", tickMinStep=1)
    )
    y = alt.Y("p:Q", title="p", scale=alt.Scale(domain=[0, 1]))
    curves = marks(rows).mark_line(strokeWidth=2)
    level = marks([{"p": design.query.alpha}]).mark_rule(
        strokeDash=[4, 3], color=look.palette.faint
    )
    layers = [
        level.encode(y="p:Q"),
        curves.encode(
            x=x,
            y=y,
            **named_series(names, look),
            tooltip=["line:N", "pair:Q", alt.Tooltip("p:Q", format=".4f")],
        ),
    ]

    subtitle = f"pairs below the dashed line have p under {design.query.alpha:g}"
    return layered_chart(layers, look, "Which pairs of runs the measures separate", subtitle)
