"""The picture of an entry and the medians of its phase, as numbers for an SVG of 1,000 by 200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evalhub.campaigns.services.reference_runs import (
    EntryComparison,
    TopicComparison,
    compare_entry,
)
from runs.models import Entry

WIDTH, HEIGHT = 1_000.0, 200.0
# Rows of the table below; the packet has all.
_LISTED = 200


class Bar(NamedTuple):
    """The coordinates of a topic: a bar from median to value, and a line over the range."""

    topic: TopicComparison
    left: float
    width: float
    top: float
    height: float
    middle: float
    highest: float
    lowest: float


@dataclass(frozen=True)
class EntryPicture:
    """The bars, where the median is, and the rows of a table."""

    comparison: EntryComparison
    bars: list[Bar]
    zero: float
    listed: list[TopicComparison]


def draw_entry(entry: Entry) -> EntryPicture | None:
    """Return the picture of an entry; None if its team does not see medians."""
    comparison = compare_entry(entry)
    if comparison is None:
        return None

    above = max(max(topic.high, topic.value) - topic.median for topic in comparison.topics)
    below = max(topic.median - min(topic.low, topic.value) for topic in comparison.topics)
    scale = HEIGHT / (above + below) if above + below else 0.0
    zero = above * scale if scale else HEIGHT / 2
    step = WIDTH / len(comparison.topics)
    bars = []

    for place, topic in enumerate(comparison.topics):
        ends = sorted((zero, zero - topic.difference * scale))
        left = round(place * step + 0.15 * step, 2)
        highest, lowest = (zero - (end - topic.median) * scale for end in (topic.high, topic.low))
        height = max(ends[1] - ends[0], 0.5)
        middle = round((place + 0.5) * step, 2)
        numbers = (0.7 * step, ends[0], height, middle, highest, lowest)
        bars.append(Bar(topic, left, *(round(number, 2) for number in numbers)))

    return EntryPicture(comparison, bars, round(zero, 2), comparison.topics[:_LISTED])
