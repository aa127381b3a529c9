"""The lowest, middle, mean and highest values of a phase's entries on each topic, for organisers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalhub.campaigns.services.reference_sets import (
    ALL,
    EntryValues,
    ReferenceSet,
    read_entry_values,
    reference_sets,
)
from evalhub.campaigns.services.results import phase_measures
from metrics.engine.analysis.reference import TopicFigures
from metrics.engine.arrays import Floats
from runs.models import Phase, Qrels


@dataclass(frozen=True)
class TopicStatistics:
    """The figures of each reference set of a phase, and `means[set][measure]` of shape (topics,).

    A mean is that of the runs with a value on the topic, NaN where none has one.
    """

    read: EntryValues
    reference: str
    sets: list[ReferenceSet]
    means: list[dict[str, Floats]]


def read_topic_statistics(*, phase: Phase, qrels: Qrels, reference: str = ALL) -> TopicStatistics:
    """Return the statistics of the evaluated entries that compete and were on time.

    There is a set for each type of run. Only readers who may see all values get them.
    """
    read = read_entry_values(phase=phase, qrels=qrels, measures=phase_measures(phase))
    sets = reference_sets(read, reference=reference, sees_all=True)
    means = [
        {
            name: _mean(read.values[name][reference_set.rows], figures)
            for name, figures in reference_set.by_topic.items()
        }
        for reference_set in sets
    ]

    return TopicStatistics(read, reference, sets, means)


def _mean(values: Floats, figures: TopicFigures) -> Floats:
    """Return the mean of each column of (runs, topics), without undefined values."""
    sums = np.where(np.isfinite(values), values, 0.0).sum(axis=0)
    means: Floats = np.full(len(sums), np.nan)
    np.divide(sums, figures.n, out=means, where=figures.n > 0)

    return means
