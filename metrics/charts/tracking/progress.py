"""The versions of a system over time: a point for each, the best so far, and equal versions."""

from __future__ import annotations

from typing import Any

import altair as alt

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
from metrics.questions.addresses import run_page
from metrics.services.tracking.progress import CONFIDENCE, Progress
from metrics.tables import with_minus

NAME = "best-so-far"
_BEST, _EQUAL = "best so far", "equal versions"


def progress_figure(progress: Progress) -> Figure:
    """Draw the mean of each version with its interval, the best so far, and the equal versions."""
    measure, steps = progress.measure.name, progress.steps
    last = steps[-1]
    caption = (
        f"{measure} of {len(steps)} version{'s' * (len(steps) > 1)} of {progress.system.slug}, "
        f"means of {progress.topics} topics with {100 * CONFIDENCE:g}% intervals."
    )

    if len(steps) > 1:
        side = "beyond" if progress.beyond else "within"
        caption += (
            f" The best so far, {last.best:.4f}, is {side} the grey band: "
            "what as many equal versions would reach in 95% of samples of the topics."
        )

    if progress.expected is not None:
        caption += (
            " On topics on which it was not chosen, the best is expected to have "
            f"{progress.expected:.4f}."
        )

    rows = []
    for step in steps:
        figures = (step.mean, step.low, step.high, step.best, step.reach)
        rows.append(
            [
                f"v{step.run.version}",
                step.run.tag,
                f"{step.run.created_at:%Y-%m-%d}",
                *(with_minus(f"{figure:.4f}") for figure in figures),
            ]
        )

    columns = [
        "Version",
        "Tag",
        "Submitted",
        measure,
        "Low",
        "High",
        "Best so far",
        "End of the band",
    ]

    subtitle = (
        f"{len(steps)} versions with {100 * CONFIDENCE:g}% intervals; "
        "grey: what as many equal ones would reach"
    )
    title = f"{measure} of the versions of {progress.system.slug}"

    return Figure(
        NAME, caption, columns, rows, lambda look: _draw(progress, title, subtitle, look)
    ).drawn_from(progress.collection, progress.qrels, measure=measure)


def _draw(progress: Progress, title: str, subtitle: str, look: Look) -> Any:
    first = progress.steps[0].mean
    points = [
        {
            "version": step.run.version,
            "tag": step.run.tag,
            "mean": step.mean,
            "low": step.low,
            "high": step.high,
            "best": step.best,
            "reach": step.reach,
            "first": first,
            "line": _BEST,
            "submitted": f"{step.run.created_at:%Y-%m-%d}",
            "address": run_page(step.run),
        }
        for step in progress.steps
    ]

    numbers = [step.run.version or 0 for step in progress.steps]
    ticks = whole_ticks(min(numbers), max(numbers), look)
    domain = alt.Scale(domain=[min(numbers) - 0.5, max(numbers) + 0.5], nice=False)
    x = alt.X(
        "version:Q",
        title="version",
        scale=domain,
        axis=alt.Axis(grid=False, values=ticks, format="d"),
    )

    upwards = axis_title(f"mean {progress.measure.name}", 0.5 * look.height)
    y = alt.Y(
        "low:Q", title=upwards, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5)
    )
    palette, keys = look.palette, [_BEST, _EQUAL]
    line = {
        "color": named_colours(keys, [palette.run, palette.faint], look),
        "strokeDash": named_dashes(keys, [_EQUAL], look),
    }
    tooltip = [
        "tag:N",
        "version:Q",
        "submitted:N",
        *(alt.Tooltip(f"{key}:Q", format=".4f") for key in ("mean", "low", "high", "best")),
    ]

    equal, own = marks({**point, "line": _EQUAL} for point in points), marks(points)
    layers = [
        equal.mark_area(opacity=0.2, color=palette.faint).encode(x=x, y="first:Q", y2="reach:Q"),
        equal.mark_line(strokeWidth=1).encode(x=x, y="reach:Q", **line),
        own.mark_rule(strokeWidth=1.5, color=palette.faint).encode(
            x=x, y=y, y2="high:Q", tooltip=tooltip
        ),
        own.mark_line(interpolate="step-after").encode(x=x, y="best:Q", **line),
        own.mark_point(filled=True, size=60, opacity=1, color=palette.run).encode(
            x=x, y="mean:Q", tooltip=tooltip, **look.link
        ),
    ]

    return layered_chart(layers, look, title, subtitle)
