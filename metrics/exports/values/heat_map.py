"""Topics against runs as a table, the hardest topic and the best run first."""

from __future__ import annotations

from collections import Counter

from metrics.exports.table import Table
from metrics.services.boards.heat_map import HeatMap

# Names of columns that no run can have.
_OWN = ("topic", "runs", "mean", "spread", "disagreement")


def heat_map_table(heat_map: HeatMap) -> Table:
    """Build the table; with a baseline the cells of runs are differences from it."""
    tags = Counter([*_OWN, *(run.tag for run in heat_map.runs)])
    names = [
        run.tag if tags[run.tag] == 1 else f"{run.team}/{run.tag} {run.id}" for run in heat_map.runs
    ]

    table = heat_map.values.table
    shares = heat_map.values.disagreement(heat_map.topics).tolist()
    cells = heat_map.cells.T.tolist()
    records = (
        {
            "topic": heat_map.topic_ids[row],
            "runs": int(table.runs[topic]),
            "mean": float(table.mean[topic]),
            "spread": float(table.spread[topic]),
            "disagreement": shares[row],
            **dict(zip(names, cells[row], strict=True)),
        }
        for row, topic in enumerate(heat_map.topics)
    )

    return Table.of_records("heat-map", records)
