"""Configurations as a table: a row for each run, a column for each parameter."""

from __future__ import annotations

from typing import Any

from metrics.exports.table import Table
from metrics.services.tracking.configurations import Configurations, RunMeans, best_first
from runs.models import Collection


def configurations_table(
    collection: Collection, configurations: Configurations, means: RunMeans | None
) -> Table:
    """Build the table of the runs, the baseline first and then the best.

    Parameters that differ come before those that are the same, and last those that do not say how a
    run was made. `means` adds the mean of each run; a parameter that is not set is an empty cell.
    """
    parameters = [*configurations.differ, *configurations.same, *configurations.ignored]

    def record(place: int) -> dict[str, Any]:
        run = configurations.runs[place]
        cells: dict[str, Any] = {"run": str(run.pk), "team": run.team.slug, "tag": run.tag}
        if configurations.baseline:
            cells["changes"] = len(configurations.changes(place))

        if means:
            cells[means.measure.name] = means.means.get(run.pk, (None, 0))[0]

        for parameter in parameters:
            cells[f"param:{parameter.name}"] = parameter.values[place]

        return cells

    return Table.of_records(collection.slug, map(record, best_first(configurations, means)))
