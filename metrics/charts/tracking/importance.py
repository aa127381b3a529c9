"""Which parameters go with a measure: a dot for each, with its interval."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, row_axis
from metrics.engine.errors import StatisticsError
from metrics.engine.explanation.explaining import ALPHA
from metrics.services.tracking.importance import Importance
from metrics.tables import probability, with_minus

MOST_PARAMETERS = 20
# The height of a row and of everything around the rows, and the size of letters, in pixels.
_ROW, _AROUND, _LETTERS = 22, 130, 12


def importance_figure(importance: Importance) -> Figure:
    """Draw the 20 strongest parameters; raise StatisticsError if none goes with the measure."""
    if not importance.associated:
        raise StatisticsError(importance.message, code="nothing_to_draw", pointer="measure")

    measure, runs = importance.query.measure.name, importance.explanation.runs
    rows: list[dict[str, Any]] = [
        {
            "parameter": association.setting.name,
            "effect": association.effect,
            "low": association.low,
            "high": association.high,
            "p": association.p_value,
        }
        for association in importance.associated[:MOST_PARAMETERS]
    ]

    total = len(importance.associated)
    counted_words = f"{len(rows)} of {total} parameter{'s' * (total != 1)}"
    caption = (
        f"Share of the variance of mean {measure} that goes with each parameter "
        f"(epsilon squared): {counted_words}, {runs} runs on {importance.topics} topics, "
        "95% intervals over the topics. "
        f"Filled dots: p below {ALPHA:g}, corrected for all parameters."
    )

    texts = [
        [
            row["parameter"],
            *(with_minus(f"{row[key]:.3f}") for key in ("effect", "low", "high")),
            probability(row["p"]),
        ]
        for row in rows
    ]

    return Figure(
        "importance",
        caption,
        ["Parameter", "Epsilon squared", "Low", "High", "p"],
        texts,
        lambda look: _draw(
            rows, f"What goes with {measure}", f"{counted_words}, {runs} runs", look
        ),
        lambda _look: _AROUND + _ROW * max(len(rows), 3),
    ).drawn_from(
        importance.qrels.collection,
        importance.qrels,
        measure=measure,
        runs=(runs, importance.chosen),
    )


def _draw(rows: list[dict[str, Any]], title: str, subtitle: str, look: Look) -> Any:
    palette = look.palette
    points = [{"row": place, "certain": row["p"] < ALPHA, **row} for place, row in enumerate(rows)]
    axis = row_axis([row["parameter"] for row in rows], _LETTERS, 0.4 * look.room)
    names = alt.Y("row:O", title=None, axis=alt.Axis(grid=True, **axis))
    lowest = min(0.0, *(row["low"] for row in rows))
    scale = alt.Scale(domain=[lowest, 1], nice=False)
    x = alt.X("low:Q", title="epsilon squared", scale=scale, axis=alt.Axis(tickCount=5))
    tooltip = [
        "parameter:N",
        *(alt.Tooltip(f"{key}:Q", format=".3f") for key in ("effect", "low", "high")),
        alt.Tooltip("p:Q", format=".4f"),
    ]
    base = marks(points)
    fill = alt.condition("datum.certain", alt.value(palette.run), alt.value("transparent"))
    layers = [
        marks([{"low": 0}]).mark_rule(strokeDash=[4, 3], color=palette.faint).encode(x=x),
        base.mark_rule(strokeWidth=2, color=palette.faint).encode(
            x=x, x2="high:Q", y=names, tooltip=tooltip
        ),
        base.mark_point(size=70, opacity=1, stroke=palette.run).encode(
            x="effect:Q", y=names, fill=fill, tooltip=tooltip
        ),
    ]

    return layered_chart(layers, look, title, subtitle)
