"""One measure of several runs at every rank, beside the ideal that they share."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, data, dressed, named_colours
from metrics.charts.values.curves import RANKS_SHOWN, across, askable, upwards
from metrics.engine.ranking import Floats
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.values.curves_together import CurvesTogether

# A point for every rank, that a pointer may ask it, is too much for many long curves.
_MOST_POINTS = 1_000


def curves_together_figure(together: CurvesTogether) -> Figure:
    """The mean curve of each run, without intervals: those of single means say nothing of a difference."""
    names = list(names_of([evaluation.run for evaluation in together.evaluations]).values())
    lines = dict(zip(names, (curve.mean for curve in together.curves), strict=True))
    first = together.curves[0]
    ideal = first.ideal_mean if all(np.array_equal(first.ideal_mean, c.ideal_mean) for c in together.curves) else None
    ends = ", ".join(f"{name} {values[-1]:.4f}" for name, values in lines.items())
    measure, depth = together.measure.name, first.depth
    caption = f"{measure} at ranks 1 to {depth}, means of {first.n_topics} topics. At rank {depth}: {ends}."
    if ideal is not None:
        caption += f" Dashed: the ideal rankings, {ideal[-1]:.4f} there."
    vectors = {**lines, **({"ideal": ideal} if ideal is not None else {})}
    ranks = sorted({rank for rank in RANKS_SHOWN if rank <= depth} | {depth})
    rows = [[str(rank), *(f"{vector[rank - 1]:.4f}" for vector in vectors.values())] for rank in ranks]
    return Figure("curves", caption, ["Rank", *vectors], rows, lambda look: _draw(lines, ideal, measure, look))


def _draw(lines: dict[str, Floats], ideal: Floats | None, measure: str, look: Look) -> Any:
    colours = dict(zip(lines, look.palette.systems, strict=False))
    drawn = [point for name, values in lines.items() for point in _points(name, values)]
    dashed = [] if ideal is None else _points("ideal", ideal)
    if dashed:
        colours["ideal"] = look.palette.ideal
    depth = len(next(iter(lines.values())))
    axes = {"x": across(depth), "y": upwards([*drawn, *dashed])}
    colour = named_colours(list(colours), list(colours.values()), columns=2 if look.narrow else None)
    layers = [alt.Chart(data(drawn)).mark_line(point=depth == 1).encode(**axes, color=colour)]
    if dashed:
        layers.insert(
            0, alt.Chart(data(dashed)).mark_line(strokeDash=[6, 4], strokeWidth=2).encode(**axes, color=colour)
        )
    if look.live and len(drawn) <= _MOST_POINTS:
        layers.append(askable(drawn))
    return dressed(layers, look, f"{measure} down the ranking", "means of all topics; dashed: the ideal rankings")


def _points(name: str, values: Floats) -> list[dict[str, Any]]:
    return [{"line": name, "rank": rank, "value": value} for rank, value in enumerate(values.tolist(), 1)]
