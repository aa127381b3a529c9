"""Precision over recall: a curve for each level of relevance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, named_series, with_legend
from metrics.engine.curve.precision_recall import PrecisionRecall, recall_points
from metrics.services.values.curves import RecallQuery


def precision_recall_figure(
    curves: list[PrecisionRecall], *, run: str, query: RecallQuery
) -> Figure:
    """Draw interpolated precision at points of recall, averaged over topics, for each level."""
    recall, confidence = recall_points(len(curves[0].mean)).tolist(), query.confidence
    names = [line_name(curve) for curve in curves]
    means = [curve.mean.tolist() for curve in curves]
    rows = [
        [f"{point:.2f}", *(f"{mean[index]:.4f}" for mean in means)]
        for index, point in enumerate(recall)
    ]
    caption = (
        f"Interpolated precision of {run} at {len(recall)} points of recall, "
        f"the mean of {len(curves[0].topics)} topics: {interpolation_words(query)}; "
        f"{counting_words(curves)}."
    )

    if len(curves) == 1 and curves[0].band(confidence):
        caption += (
            f" The shaded area is the {100 * confidence:g}% interval of the mean, "
            "as far as it lies between 0 and 1."
        )

    return Figure(
        name="precision-recall",
        caption=caption,
        columns=["Recall", *names],
        rows=rows,
        drawing=lambda look: _draw(curves, run, query, look),
        height=with_legend(names),
    )


def interpolation_words(query: RecallQuery) -> str:
    """Return which precision belongs to a point of recall, in words."""
    if query.interp == "interval":
        return "the highest from each point of recall to the next"
    rounded = {"10": ", rounded as by trec_eval", "9": ", rounded as by trec_eval 9"}
    return f"the highest at that recall or more{rounded.get(query.rounding_of_recall or '', '')}"


def counting_words(curves: list[PrecisionRecall]) -> str:
    """Return which documents count as relevant, or how much each counts, in words."""
    if len(curves) == 1:
        (curve,) = curves
        if curve.gains:
            return f"precision and recall are generalised by gains {curve.gains}"
        return f"documents of {line_name(curve)} count as relevant"

    levels = {curve.alone for curve in curves if not curve.gains}
    kinds = []
    if False in levels:
        kinds.append("lowest level")

    if True in levels:
        kinds.append("single level")

    words = []
    if kinds:
        words.append(f"one curve for each {' and each '.join(kinds)} that counts as relevant")

    if any(curve.gains for curve in curves):
        words.append(
            "one curve for each map of gains, by which precision and recall are generalised"
        )

    return "; ".join(words)


def line_name(curve: PrecisionRecall) -> str:
    if curve.gains:
        return f"gains {curve.gains}"
    return f"level {curve.rel} alone" if curve.alone else f"level {curve.rel} and above"


def _draw(curves: list[PrecisionRecall], run: str, query: RecallQuery, look: Look) -> Any:
    recall = recall_points(len(curves[0].mean)).tolist()
    points = [
        {"line": line_name(curve), "recall": at, "precision": value}
        for curve in curves
        for at, value in zip(recall, curve.mean.tolist(), strict=True)
    ]
    names, palette = [line_name(curve) for curve in curves], look.palette
    colours = [palette.run] if len(names) == 1 else list(palette.levels[: len(names)])
    if len(names) > len(palette.levels):
        lines = named_series(names, look)
    else:
        lines = {"color": named_colours(names, colours, look)}

    layers = [recall_lines(points, lines, look)]

    band = curves[0].band(query.confidence) if len(curves) == 1 else None
    if band:
        low, high = (end.tolist() for end in band)
        ends = [
            {"recall": at, "low": a, "high": b} for at, a, b in zip(recall, low, high, strict=True)
        ]
        shade = marks(ends).mark_area(opacity=0.16, color=look.palette.run, clip=True)
        layers.insert(0, shade.encode(x="recall:Q", y="low:Q", y2="high:Q"))

    subtitle = f"interpolated: {interpolation_words(query)}; mean of {len(curves[0].topics)} topics"
    return layered_chart(layers, look, f"Precision-recall curve of run {run}", subtitle)


def recall_lines(points: list[dict[str, Any]], lines: Mapping[str, Any], look: Look) -> Any:
    """Return a line with a point at each point of recall; `lines` are its channels by name."""
    scale = alt.Scale(domain=[0, 1])
    tooltip = [
        "line:N",
        alt.Tooltip("recall:Q", format=".2f"),
        alt.Tooltip("precision:Q", format=".4f"),
    ]

    return (
        marks(points)
        .mark_line(point=alt.OverlayMarkDef(size=40))
        .encode(
            x=alt.X(
                "recall:Q",
                title="recall",
                scale=scale,
                axis=alt.Axis(grid=False, tickCount=5 if look.narrow else 10, format=".1f"),
            ),
            y=alt.Y("precision:Q", title="precision", scale=scale, axis=alt.Axis(tickCount=5)),
            tooltip=tooltip,
            **lines,
        )
    )
