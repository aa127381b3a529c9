"""Topics against runs as a table: a row for each topic, the hardest first, and a column for each
run, the best first."""

from __future__ import annotations

from collections import Counter

from metrics.exports.table import Table
from metrics.services.boards.heat_map import HeatMap

_OWN = ("topic", "runs", "mean", "spread", "disagreement")


def heat_map_table(found: HeatMap) -> Table:
    """Build the table; with a baseline the cells of runs are differences from it."""
    taken = Counter([*_OWN, *(run.tag for run in found.runs)])
    names = [
        run.tag if taken[run.tag] == 1 else f"{run.team}/{run.tag} {run.id}" for run in found.runs
    ]
    table, shares = found.values.table, found.values.disagreement(found.topics).tolist()
    records = (
        {
            "topic": name,
            "runs": int(table.runs[topic]),
            "mean": float(table.mean[topic]),
            "spread": float(table.spread[topic]),
            "disagreement": share,
            **dict(zip(names, column, strict=True)),
        }
        for name, topic, share, column in zip(
            found.topic_ids, found.topics, shares, found.cells.T.tolist(), strict=True
        )
    )
    return Table.of_records("heat-map", records)
