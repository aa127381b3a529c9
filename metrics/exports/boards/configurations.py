"""Configurations as CSV: a row for each run, a column for each parameter that is set in any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metrics.services.boards.configurations import Configurations, RunMeans, best_first
from runs.formats.comma_separated import neutral, written


def render(found: Configurations, means: RunMeans | None) -> Iterator[str]:
    """Yield a line of names, then the runs, the baseline first and then the best.

    Parameters that differ come before those that are the same, and last those that do not say how a run was made.
    `means` adds the mean of each run; a parameter that is not set is an empty cell.
    """
    parameters = [*found.differ, *found.same, *found.ignored]

    def row(place: int) -> dict[str, Any]:
        run = found.runs[place]
        cells: dict[str, Any] = {"run": str(run.pk), "team": run.team.slug, "tag": run.tag}
        if found.baseline:
            cells["changes"] = len(found.changes(place))
        if means:
            cells[means.measure.name] = means.means.get(run.pk, (None, 0))[0]
        for one in parameters:
            value = one.values[place]
            # False and true as JSON has them.
            cells[neutral(f"param:{one.name}")] = (
                str(value).lower() if isinstance(value, bool) else value
            )
        return cells

    return written(row(place) for place in best_first(found, means))
