"""One measure of several runs at every rank, beside the ideal that they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks, named_colours, named_dashes, with_legend
from metrics.charts.values.curves import RANKS_SHOWN, across, askable, mean_words, upwards
from metrics.engine.arrays import Floats
from metrics.models import Evaluation
from metrics.services.boards.curves_together import CurvesTogether
from metrics.services.comparisons.shown_pairs import names_of
from runs.models import Collection

# A point for every rank, that a pointer may ask it, is too much for many long curves.
_MOST_POINTS = 1_000


def curves_together_figure(together: CurvesTogether, runs: int | None = None) -> Figure:
    """Draw the mean curve of each run, without intervals: those of single means say nothing of a difference.

    `runs` is how many there are, where not all of them are drawn.
    """
    names = list(names_of([evaluation.run for evaluation in together.evaluations]).values())
    lines = dict(zip(names, (curve.mean for curve in together.curves), strict=True))
    first = together.curves[0]
    ideal = (
        first.ideal_mean
        if all(np.array_equal(first.ideal_mean, c.ideal_mean) for c in together.curves)
        else None
    )
    ends = ", ".join(f"{name} {values[-1]:.4f}" for name, values in lines.items())
    measure, depth = together.measure.name, first.depth
    caption = f"{measure} at ranks 1 to {depth}, {mean_words(first)}. At rank {depth}: {ends}."
    if ideal is not None:
        caption += f" Dashed: the ideal rankings, {ideal[-1]:.4f} there."
    vectors = {**lines, **({"ideal": ideal} if ideal is not None else {})}
    ranks = sorted({rank for rank in RANKS_SHOWN if rank <= depth} | {depth})
    rows = [
        [str(rank), *(f"{vector[rank - 1]:.4f}" for vector in vectors.values())] for rank in ranks
    ]
    subtitle = f"{mean_words(first)}{'; dashed: the ideal rankings' if ideal is not None else ''}"
    return Figure(
        "curves",
        caption,
        ["Rank", *vectors],
        rows,
        lambda look: _draw(lines, ideal, measure, subtitle, look),
        with_legend(list(vectors)),
    ).drawn_from(
        *drawn_together(together.evaluations),
        measure=measure,
        shown=(len(lines), runs or len(lines)),
    )


def drawn_together(evaluations: list[Evaluation]) -> tuple[Collection, int]:
    """Return the collection of runs that are drawn together, and the version of the judgements."""
    return evaluations[0].run.collection, evaluations[0].qrels.version


def _draw(
    lines: dict[str, Floats], ideal: Floats | None, measure: str, subtitle: str, look: Look
) -> Any:
    colours = dict(zip(lines, look.palette.systems, strict=False))
    drawn = [point for name, values in lines.items() for point in _points(name, values)]
    dashed = {} if ideal is None else {"ideal": ideal}
    if dashed:
        colours["ideal"] = look.palette.ideal
    names, depth = list(colours), len(next(iter(lines.values())))
    # What is first is drawn below the others.
    points = [
        *(point for name, values in dashed.items() for point in _points(name, values)),
        *drawn,
    ]
    line = marks(points).mark_line(point=depth == 1)
    colour = named_colours(names, list(colours.values()), look)
    encoded = line.encode(
        x=across(depth, look), y=upwards(points, measure, look), color=colour,
        strokeDash=named_dashes(names, list(dashed), look),
    )  # fmt: skip
    layers = [encoded]
    if look.live and len(drawn) <= _MOST_POINTS:
        layers.append(askable(drawn))
    return dressed(layers, look, f"{measure} by rank cutoff", subtitle)


def _points(name: str, values: Floats) -> list[dict[str, Any]]:
    return [
        {"line": name, "rank": rank, "value": value}
        for rank, value in enumerate(values.tolist(), 1)
    ]
