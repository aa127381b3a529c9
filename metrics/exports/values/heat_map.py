"""Topics against runs as CSV: a row for each topic, the hardest first, and a column for each run, the best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from metrics.services.values.heat_map import HeatMap
from runs.formats.comma_separated import neutral, written

_OWN = ("topic", "runs", "mean", "spread", "disagreement")


def render(found: HeatMap) -> Iterator[str]:
    """Yield a line of names, then the rows; with a baseline the cells of runs are differences from it."""
    taken = Counter([*_OWN, *(run.tag for run in found.runs)])
    names = [
        neutral(run.tag if taken[run.tag] == 1 else f"{run.team}/{run.tag} {run.id}")
        for run in found.runs
    ]
    table, shares = found.values.table, found.values.disagreement(found.topics).tolist()
    return written(
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
