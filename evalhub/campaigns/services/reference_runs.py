"""Compare an entry with the runs of its phase, topic by topic, as its team may see it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from evalhub.campaigns.services.results import OwnResults, read_own_results
from evalhub.campaigns.services.versions import latest_release
from metrics.engine.errors import EvalHubError
from metrics.services.snapshots import read_in_snapshot
from runs.models import Entry


class TopicComparison(NamedTuple):
    """A topic with the value of the entry, and with three values of the reference set."""

    topic: str
    value: float
    low: float
    median: float
    high: float

    @property
    def difference(self) -> float:
        return self.value - self.median


@dataclass(frozen=True)
class EntryComparison:
    """The topics by the primary measure, largest difference from the median first.

    `runs` is the size of the reference set.
    """

    measure: str
    runs: int
    topics: list[TopicComparison]
    lower_is_better: bool

    @property
    def higher(self) -> int:
        return sum(topic.difference > 0 for topic in self.topics)

    @property
    def lower(self) -> int:
        return sum(topic.difference < 0 for topic in self.topics)


def compare_entry(entry: Entry) -> EntryComparison | None:
    """Compare an evaluated entry with the medians that its team sees in its results.

    Return None if there are no medians: before the evaluation, for a measure without values of
    topics, or with too few runs.
    """
    phase, team = entry.phase, entry.participation
    released = latest_release(phase)
    qrels = released.qrels if released else phase.collection.active_qrels
    if team is None or qrels is None:
        return None

    as_of = released.at if released else None

    try:
        results = read_in_snapshot(
            lambda: read_own_results(
                phase=phase, participation=team, qrels=qrels, sees_all=False, as_of=as_of
            )
        )
    except EvalHubError:
        # Too much to be read for a page: the packet has it.
        return None

    return _comparison_of(results, entry)


def _comparison_of(results: OwnResults, entry: Entry) -> EntryComparison | None:
    own = next((topic for topic in results.entries if topic.entry.pk == entry.pk), None)
    if own is None or own.of is None or not results.read.by_topic:
        return None

    measure, reference_set = results.read.by_topic[0], results.sets[own.of]
    numbers = reference_set.by_topic[measure.name]
    columns = (
        results.read.values[measure.name][own.row],
        numbers.low,
        numbers.median,
        numbers.high,
    )
    rows = zip(results.read.qrels.topic_ids, *(column.tolist() for column in columns), strict=True)
    topics = [
        topic
        for row in rows
        if math.isfinite((topic := TopicComparison(*row)).value) and math.isfinite(topic.median)
    ]
    if not topics:
        return None

    ordered = sorted(topics, key=lambda topic: (-topic.difference, topic.topic))

    return EntryComparison(measure.name, len(reference_set.rows), ordered, measure.lower_is_better)
