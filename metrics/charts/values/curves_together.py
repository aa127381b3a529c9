"""One measure of several runs at every rank, with the ideal that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, named_colours, named_dashes, with_legend
from metrics.charts.values.curves import (
    mean_words,
    rank_axis,
    ranks_shown,
    tooltip_layer,
    value_axis,
)
from metrics.engine.arrays import Floats
from metrics.models import Evaluation
from metrics.services.boards.curves_together import CurvesTogether
from metrics.services.comparisons.shown_pairs import names_of
from runs.models import Collection, Qrels


def curves_together_figure(together: CurvesTogether, runs: int | None = None) -> Figure:
    """Draw the mean curve of each run.

    There are no intervals: those of single means do not show which differences are significant.
    `runs` is the number of all runs if not all of them are drawn.
    """
    names = list(names_of([evaluation.run for evaluation in together.evaluations]).values())
    lines = dict(zip(names, (curve.mean for curve in together.curves), strict=True))

    first = together.curves[0]
    ideal: Floats | None = first.ideal_mean
    # Runs that know other documents have other ideals, and then none is drawn.
    for curve in together.curves:
        if not np.array_equal(first.ideal_mean, curve.ideal_mean):
            ideal = None

    ends = ", ".join(f"{name} {values[-1]:.4f}" for name, values in lines.items())
    measure, depth = together.measure.name, first.depth
    caption = f"{measure} at ranks 1 to {depth}, {mean_words(first)}. At rank {depth}: {ends}."
    if ideal is not None:
        caption += f" Dashed: the ideal rankings, {ideal[-1]:.4f} there."

    vectors = dict(lines)
    if ideal is not None:
        vectors["ideal"] = ideal

    rows = [
        [str(rank), *(f"{vector[rank - 1]:.4f}" for vector in vectors.values())]
        for rank in ranks_shown(depth)
    ]
    subtitle = mean_words(first)
    if ideal is not None:
        subtitle += "; dashed: the ideal rankings"

    figure = Figure(
        name="curves",
        caption=caption,
        columns=["Rank", *vectors],
        rows=rows,
        drawing=lambda look: _draw(lines, ideal, measure, subtitle, look),
        height=with_legend(list(vectors)),
    )

    return figure.of_topics(together.selection).drawn_from(
        *source_together(together.evaluations),
        measure=measure,
        runs=(len(lines), runs or len(lines)),
    )


def source_together(evaluations: list[Evaluation]) -> tuple[Collection, Qrels]:
    """Return the collection of evaluations, and the version of the judgements."""
    return evaluations[0].run.collection, evaluations[0].qrels


def _draw(
    lines: dict[str, Floats], ideal: Floats | None, measure: str, subtitle: str, look: Look
) -> Any:
    colours = dict(zip(lines, look.palette.systems, strict=False))
    points_of_runs = [point for name, values in lines.items() for point in _points(name, values)]
    dashed = {} if ideal is None else {"ideal": ideal}
    if dashed:
        colours["ideal"] = look.palette.ideal

    names, depth = list(colours), len(next(iter(lines.values())))
    # The first line is drawn below the others.
    points = [
        *(point for name, values in dashed.items() for point in _points(name, values)),
        *points_of_runs,
    ]
    line = marks(points).mark_line(point=depth == 1)
    encoded = line.encode(
        x=rank_axis(depth, look),
        y=value_axis(points, measure, look),
        color=named_colours(names, list(colours.values()), look),
        strokeDash=named_dashes(names, list(dashed), look),
    )

    layers = [encoded, tooltip_layer(points_of_runs, depth)]
    return layered_chart(layers, look, f"{measure} by rank cutoff", subtitle)


def _points(name: str, values: Floats) -> list[dict[str, Any]]:
    return [
        {"line": name, "rank": rank, "value": value}
        for rank, value in enumerate(values.tolist(), 1)
    ]
