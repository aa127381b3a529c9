"""Running sums and products along each topic's rows, all topics at once."""

from __future__ import annotations

import numpy as np

from metrics.engine.ranking import Floats, Ints


def running_sum(topic: Ints, values: Floats) -> Floats:
    """Sum of the values of a topic's rows up to and including each row; topics must be grouped."""
    return _scan(np.add, topic, values)


def running_product(topic: Ints, values: Floats) -> Floats:
    """Product of the values of a topic's rows up to and including each row; topics must be grouped."""
    return _scan(np.multiply, topic, values)


def before(topic: Ints, running: Floats, start: float) -> Floats:
    """The running value before each row; `start` for the first row of a topic."""
    earlier = np.empty_like(running)
    earlier[:1] = start
    earlier[1:] = np.where(topic[1:] == topic[:-1], running[:-1], start)
    return earlier


def place(topic: Ints) -> Ints:
    """How many rows of the same topic come before each row."""
    return np.arange(len(topic)) - np.searchsorted(topic, topic)


def _scan(combine: np.ufunc, topic: Ints, values: Floats) -> Floats:
    """Each step doubles the stretch a row covers, so topics never mix and a product may pass through 0."""
    result = np.array(values, np.float64)
    places = place(topic)
    step = 1
    while step <= places.max(initial=0):
        later = np.flatnonzero(places >= step)
        result[later] = combine(result[later - step], result[later])
        step *= 2
    return result
