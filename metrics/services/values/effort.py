"""How long statistics will take, estimated before they begin: a question that takes too long is refused."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.bootstrap import INTERVAL_RESAMPLES

MAX_SECONDS = 2.0
# Values that are read from the database at once.
MAX_VALUES = 10_000_000


@dataclass(frozen=True)
class _Cost:
    """Nanoseconds of a test for each pair and topic, for each pair and resample, for each run, topic and resample, and
    for each pair and resample of its interval."""

    pair: float = 10.0
    drawn_pair: float = 0.0
    drawn_value: float = 0.0
    interval: float = 0.0


# Measured with 200 and 1,000 runs on one core, rounded up: they need to be right to a factor of two.
# Tests that are not listed are as fast as Student's t.
_COSTS = {
    "wilcoxon": _Cost(18.0),
    "sign": _Cost(14.0),
    "mann_whitney": _Cost(100.0),
    "randomisation": _Cost(10.0, 0.25, 0.1),
    "bootstrap": _Cost(10.0, 0.5, 0.1, 1.6),
    "randomised_tukey_hsd": _Cost(10.0, 0.0, 1.3),
}
_RANKED_RUN, _DRAWN_VALUE = 400e-9, 0.2e-9
_ORDERED_PAIR = 6e-9
_SWAPPED_PAIR, _SWAPPED_VALUE = 40e-9, 3e-9
_PLANNED = 0.6e-3


def seconds_of_test(test: str, runs: int, topics: int, pairs: int, resamples: int) -> float:
    cost = _COSTS.get(test, _Cost())
    # What is fewer than B is enumerated.
    resamples = min(resamples, 2**topics) if test == "randomisation" else resamples
    drawn = resamples * (pairs * cost.drawn_pair + runs * topics * cost.drawn_value)
    interval = min(resamples, INTERVAL_RESAMPLES) * pairs * cost.interval
    return 1e-9 * (pairs * topics * cost.pair + drawn + interval)


def seconds_of_ranks(runs: int, topics: int, resamples: int) -> float:
    """Of the rank intervals of so many runs; held in memory, they cost more than their time."""
    return resamples * runs * (_RANKED_RUN + topics * _DRAWN_VALUE)


def seconds_of_orders(orders: int, pairs: int, runs: int, topics: int, resamples: int) -> float:
    return resamples * (pairs * runs**2 * _ORDERED_PAIR + orders * runs * (_RANKED_RUN / 4 + topics * _DRAWN_VALUE))


def seconds_of_swaps(runs: int, topics: int, draws: int) -> float:
    return draws * (runs * (runs - 1) / 2 * _SWAPPED_PAIR + runs * topics * _SWAPPED_VALUE)


def seconds_of_plans(differences: int) -> float:
    """Of finding how many topics so many differences need."""
    return differences * _PLANNED


def check_seconds(seconds: float, what: str, narrow: str, pointer: str) -> None:
    """StatisticsError where an answer would take longer than one request may."""
    if seconds > MAX_SECONDS:
        message = f"{what} would take about {seconds:,.0f} s; the limit is {MAX_SECONDS:g} s: {narrow}"
        raise StatisticsError(message, code="too_much_work", pointer=pointer)


def check_values(runs: int, topics: int, measures: int) -> None:
    """StatisticsError where more values would be read than are held at once."""
    values = runs * topics * measures
    if values > MAX_VALUES:
        message = f"{values:,} values of topics would be read; the limit is {MAX_VALUES:,}: name fewer measures or runs"
        raise StatisticsError(message, code="too_much_work", pointer="measures")
