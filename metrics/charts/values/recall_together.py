"""Precision over recall of several runs."""

from __future__ import annotations

from typing import Any

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, named_series, with_legend
from metrics.charts.values.curves_together import source_together
from metrics.charts.values.precision_recall import (
    counting_words,
    interpolation_words,
    line_name,
    recall_lines,
)
from metrics.engine.curve.precision_recall import recall_points
from metrics.services.boards.curves_together import RecallTogether
from metrics.services.comparisons.shown_pairs import names_of


def recall_together_figure(together: RecallTogether, runs: int | None = None) -> Figure:
    """Draw interpolated precision at even points of recall, averaged over topics, for each run.

    Each level has its own curve. `runs` is the number of all runs if not all of them are drawn.
    """
    tags = list(names_of([evaluation.run for evaluation in together.evaluations]).values())

    first = together.curves[0]
    lines = {}
    for tag, curves in zip(tags, together.curves, strict=True):
        for curve in curves:
            lines[tag if len(first) == 1 else f"{tag}, {line_name(curve)}"] = curve.mean.tolist()

    recall = recall_points(together.query.points).tolist()
    topics, how = len(first[0].topics), interpolation_words(together.query)
    level = line_name(first[0]) if len(first) == 1 else ""
    counting = counting_words(first)
    relevant = f"{counting[0].upper()}{counting[1:]}" if level else "A line for each run and level"
    middle = len(recall) // 2
    values_there = ", ".join(f"{name} {mean[middle]:.4f}" for name, mean in lines.items())
    caption = (
        f"Interpolated precision at {len(recall)} points of recall, the mean of {topics} topics: "
        f"{how}. {relevant}. At recall {recall[middle]:.2g}: {values_there}."
    )
    rows = [
        [f"{at:.2f}", *(f"{mean[index]:.4f}" for mean in lines.values())]
        for index, at in enumerate(recall)
    ]

    subtitle = f"interpolated: {how}; {level or 'several levels'}; mean of {topics} topics"

    def draw(look: Look) -> Any:
        points = [
            {"line": name, "recall": at, "precision": value}
            for name, mean in lines.items()
            for at, value in zip(recall, mean, strict=True)
        ]
        recall_layer = recall_lines(points, named_series(list(lines), look), look)
        return layered_chart([recall_layer], look, "Precision-recall curves", subtitle)

    figure = Figure(
        "precision-recall", caption, ["Recall", *lines], rows, draw, with_legend(list(lines))
    )
    return figure.of_topics(together.selection).drawn_from(
        *source_together(together.evaluations), runs=(len(tags), runs or len(tags))
    )
