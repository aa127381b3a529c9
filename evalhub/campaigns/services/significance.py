"""Tests of a team's runs against the median of their reference set and against baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evalhub.campaigns.services.results import OwnEntry, OwnResults
from metrics.engine.arrays import Floats
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.families import USUAL_RULE, Pairs, compare_family
from runs.models import Entry

TEST = "paired_t"
MEDIAN = "median"


@dataclass(frozen=True)
class Tested:
    """A test of a run against the median run or a baseline, over the `topics` that both have.

    It has the mean difference with its 95 % interval, the p value, and the p value corrected over
    the team's runs in the same family; NaN where differences have no spread.
    """

    measure: Measure
    own: OwnEntry
    against: str
    topics: int
    difference: float
    low: float
    high: float
    p: float
    corrected: float
    significant: bool


def tested_entries(results: OwnResults) -> Iterator[Tested]:
    """Yield Student's paired t tests of the team's runs, for every measure with values of topics.

    Each run is tested against the medians of its set and against each baseline, if they have at
    least two topics in common. P values are corrected by Holm over the team's runs.
    """
    baselines = [
        row for row, entry in enumerate(results.read.entries) if entry.role == Entry.Role.BASELINE
    ]
    for measure in results.read.by_topic:
        values = results.read.values[measure.name]
        for index, reference_set in enumerate(results.sets):
            own = [entry for entry in results.entries if entry.of == index]
            kind = f" of {reference_set.run_type}" if reference_set.run_type else ""
            yield from _family(
                measure, own, values, reference_set.by_topic[measure.name].median, f"{MEDIAN}{kind}"
            )

        for row in baselines:
            own = [entry for entry in results.entries if entry.row != row]
            yield from _family(measure, own, values, values[row], results.read.entries[row].run.tag)


def _family(
    measure: Measure, own: list[OwnEntry], values: Floats, other: Floats, against: str
) -> Iterator[Tested]:
    rows = np.vstack([*(values[entry.row] for entry in own), other])
    common = np.isfinite(rows).all(axis=0)
    topics = int(np.count_nonzero(common))
    if not own or topics < 2:
        return

    pairs = Pairs(len(rows), (len(own),))
    family = compare_family(
        rows[:, common], pairs, TEST, USUAL_RULE, lower_is_better=measure.lower_is_better
    )
    result = family.result

    for index, entry in enumerate(own):
        yield Tested(
            measure,
            entry,
            against,
            topics,
            float(result.difference[index]),
            float(result.low[index]),
            float(result.high[index]),
            float(result.p_value[index]),
            float(family.adjusted[index]),
            bool(family.significant[index]),
        )
