"""Running sums and products along each topic's rows, all topics at once."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints


def running_sum(topic: Ints, values: Floats) -> Floats:
    """Return the sum of a topic's values up to and including each row; topics must be sorted.

    Each topic's total is subtracted after its last row, so that a topic does not depend on those
    before it.
    """
    topics = int(topic[-1]) + 1 if len(topic) else 0
    places = np.arange(len(topic)) + topic
    sums = np.empty(len(topic) + topics)
    sums[places] = values
    ends = np.searchsorted(topic, np.arange(topics), side="right") + np.arange(topics)
    sums[ends] = -np.bincount(topic, values, topics)
    running: Floats = np.cumsum(sums, out=sums)[places]

    return running


def running_product(topic: Ints, values: Floats) -> Floats:
    """Return the product of a topic's values up to and including each row; topics must be grouped.

    Each step doubles the stretch a row covers, so topics never mix and a product may pass through
    0.
    """
    result = np.array(values, np.float64)
    places = place(topic)
    step = 1
    while step <= places.max(initial=0):
        later = np.flatnonzero(places >= step)
        result[later] *= result[later - step]
        step *= 2

    return result


def before(topic: Ints, running: Floats, start: float) -> Floats:
    """Return the running value before each row; `start` for the first row of a topic."""
    earlier = np.empty_like(running)
    earlier[:1] = start
    earlier[1:] = np.where(topic[1:] == topic[:-1], running[:-1], start)
    return earlier


def place(topic: Ints) -> Ints:
    """Return how many rows of the same topic come before each row."""
    return np.arange(len(topic)) - np.searchsorted(topic, topic)
