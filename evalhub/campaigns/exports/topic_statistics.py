"""The statistics of a phase's topics as a table."""

from __future__ import annotations

import math

from evalhub.campaigns.services.topic_statistics import TopicStatistics
from metrics.exports.table import Column, Row, Table
from metrics.tables import NOTHING


def topic_table(statistics: TopicStatistics) -> Table:
    """Return a row for each type of run, measure and topic, with figures of its runs."""
    read = statistics.read
    with_types = bool(read.phase.run_types)
    columns = [
        *([Column("run_type", "Type", style="")] if with_types else []),
        Column("measure", "Measure", style=""),
        Column("topic", "Topic", head=True, style=""),
        Column("n", "Runs"),
        *(Column(name, title, format=_figure) for name, title in _FIGURES),
    ]
    rows = []

    for reference_set, means in zip(statistics.sets, statistics.means, strict=True):
        for measure in read.by_topic:
            figures = reference_set.by_topic[measure.name]
            parts = (
                figures.low,
                figures.median,
                figures.median_upper,
                figures.high,
                means[measure.name],
            )
            for topic, n, *values in zip(
                read.qrels.topic_ids,
                figures.n.tolist(),
                *(part.tolist() for part in parts),
                strict=True,
            ):
                kind = [reference_set.run_type] if with_types else []
                rows.append(Row([*kind, measure.name, topic, n, *values]))

    return Table(
        f"{read.phase.campaign.slug}-{read.phase.slug}-topics", columns, rows, _notes(statistics)
    )


_FIGURES = (
    ("min", "Lowest"),
    ("median", "Median"),
    ("median_upper", "Upper median"),
    ("max", "Highest"),
    ("mean", "Mean"),
)


def _figure(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.4f}"


def _notes(statistics: TopicStatistics) -> list[str]:
    phase, qrels = statistics.read.phase, statistics.read.qrels
    runs = sum(len(reference_set.rows) for reference_set in statistics.sets)
    which = "all" if statistics.reference == "all" else "the best of each team of the"

    return [
        f"{phase.campaign.name}, {phase.name}: {which} {runs} runs that compete and were on time, "
        f"by version {qrels.version} of the judgements.",
        "The median is the mean of the two middle values where their number is even; the upper "
        "median is the higher one of them.",
    ]
