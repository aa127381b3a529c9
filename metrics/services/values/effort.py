"""Estimate the time of statistics and of values that are not stored, before work begins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.db.models.functions import Length

from metrics.engine.errors import StatisticsError
from metrics.engine.explanation.association import PERMUTATIONS, RESAMPLES
from metrics.engine.measures.cutoffs import at_each_cutoff
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.subtopics import OF_SUBTOPICS
from metrics.engine.significance.bootstrap import INTERVAL_RESAMPLES
from metrics.models import JudgedView
from metrics.services.work import begin, begin_reading, known_sizes

# The most values that are read from the database at once.
MAX_VALUES = 10_000_000


@dataclass(frozen=True)
class _Cost:
    """The nanoseconds of a test.

    `pair` is for each pair and topic, `resampled_pair` for each pair and resample,
    `resampled_value` for each run, topic and resample, and `interval` for each pair and resample of
    its interval.
    """

    pair: float = 10.0
    resampled_pair: float = 0.0
    resampled_value: float = 0.0
    interval: float = 0.0


# Measured with 200 and 1,000 runs on one core, and rounded up: the estimates need to be right
# within a factor of two. Tests that are not listed are as fast as Student's t.
_COSTS = {
    "wilcoxon": _Cost(18.0),
    "sign": _Cost(14.0),
    "mann_whitney": _Cost(100.0),
    "randomisation": _Cost(10.0, 0.25, 0.1),
    "bootstrap": _Cost(10.0, 0.5, 0.1, 1.6),
    "max_t": _Cost(5.0, 0.15, 0.1),
    "randomised_tukey_hsd": _Cost(10.0, 0.0, 1.3),
}
_RANKED_RUN, _RESAMPLED_VALUE = 60e-9, 0.2e-9
# For two orders, for each pair of runs: once, and for every resample; for each run in a resample.
_ORDERED_ONCE, _ORDERED_PAIR, _ORDERED_RUN = 1.2e-6, 8e-9, 100e-9
_SWAPPED_PAIR, _SWAPPED_VALUE = 52e-9, 4e-9
_PLANNED = 2e-3
# Of the importance of parameters: for each run in a permutation, once and for each parameter; once
# for each parameter and each pair of them. For each pair of runs of a frontier.
_SHUFFLED, _SHARE, _SETTING, _MATCHED = 50e-9, 1.5e-9, 5e-6, 30e-9
_COMPARED_COST = 100e-9


def seconds_of_test(test: str, runs: int, topics: int, pairs: int, resamples: int) -> float:
    cost = _COSTS.get(test, _Cost())
    # If there are fewer than B permutations, all are enumerated.
    resamples = min(resamples, 2**topics) if test == "randomisation" else resamples
    resampled = resamples * (pairs * cost.resampled_pair + runs * topics * cost.resampled_value)
    interval = min(resamples, INTERVAL_RESAMPLES) * pairs * cost.interval

    return 1e-9 * (pairs * topics * cost.pair + resampled + interval)


def seconds_of_ranks(runs: int, topics: int, resamples: int) -> float:
    """Return the estimate for rank intervals of this many runs."""
    return resamples * runs * (_RANKED_RUN + topics * _RESAMPLED_VALUE)


def seconds_of_orders(orders: int, pairs: int, runs: int, topics: int, resamples: int) -> float:
    per_resample = pairs * runs**2 * _ORDERED_PAIR + orders * runs * (
        _ORDERED_RUN + topics * _RESAMPLED_VALUE
    )
    return pairs * runs**2 * _ORDERED_ONCE + resamples * per_resample


def seconds_of_swaps(runs: int, topics: int, draws: int) -> float:
    return draws * (runs * (runs - 1) / 2 * _SWAPPED_PAIR + runs * topics * _SWAPPED_VALUE)


def seconds_of_plans(differences: int) -> float:
    """Return the estimate for finding the number of topics that each of the differences needs."""
    return differences * _PLANNED


def seconds_of_importance(runs: int, topics: int, parameters: int) -> float:
    """Return the seconds to examine parameters.

    They count once for each pair, and in every permutation and sample.
    """
    per_run = PERMUTATIONS * (_SHUFFLED + parameters * _SHARE) + RESAMPLES * (
        topics * _RESAMPLED_VALUE + parameters * _SHARE
    )
    return runs * (per_run + parameters * _SETTING + parameters**2 * _MATCHED)


def seconds_of_frontier(runs: int, topics: int) -> float:
    """Return the estimate for comparing every run with those that are not dearer."""
    return runs**2 * (_COMPARED_COST + seconds_of_test("paired_t", 2, topics, 1, 0))


def check_values(runs: int, topics: int, measures: int) -> None:
    """Raise StatisticsError if more values would be read than are held at once."""
    values = runs * topics * measures
    if values > MAX_VALUES:
        message = (
            f"{values:,} values of topics would be read; the limit is {MAX_VALUES:,}: name "
            "fewer measures or runs"
        )
        raise StatisticsError(message, code="too_much_work", pointer="measures")


# Seconds to order the runs on a topic, for each value.
_ORDERED_VALUE = 0.4e-6
# Seconds for reading a stored vector; for reading a judged view, and for each of its bytes.
_VECTOR = 25e-6
_VIEW, _VIEW_BYTE = 0.4e-3, 8e-9
# Seconds of a measure for each run, and nanoseconds for each stored byte of its view, measured on
# views of 10 to 350 kB and rounded up. Measures that are not listed are as fast as nDCG, or faster.
_MEASURE, _USUAL_BYTE = 0.15e-3, 2.0
_BYTES = {
    **dict.fromkeys(OF_SUBTOPICS, 9.0),
    "INST": 11.0,
    "Total": 5.0,
    "Compat": 4.0,
    "ndcg_rel": 4.0,
    "Rndcg": 4.0,
    "AvgPos": 4.0,
    "G": 3.0,
    "Frustration": 3.0,
    "Satisfaction": 3.0,
}
# These rank the judged documents again for each rank of the ideal ranking.
_IN_TURNS = ("alpha_nDCG", "nERR_IA", "nNRBP")
_TURN, _FIRST_TURN_BYTE, _TURN_BYTE = 60e-6, 8.0, 0.9
# The depth of nNRBP depends on its beta.
_DEEPEST = 1000
# For a curve, for each byte of the view, and for each point that is written into an answer.
_CURVE, _CURVE_BYTE, _POINT = 1e-3, 20e-9, 1e-6
# For a curve that changes at every rank of every topic: for its time, and for its memory of a
# hundred bytes.
_EVERY_RANK = 0.6e-6
# For each byte of a run's file that is read to its end.
_FILE_BYTE = 20e-9
_ADVICE = (
    "name fewer measures or runs, measures of the collection, which are stored, or let a worker "
    "compare (POST comparison/)"
)


@lru_cache(maxsize=1024)
def seconds_of_measure(measure: Measure) -> tuple[float, float]:
    """Return the seconds to compute a measure for a run, and those for each byte of its view."""
    name, parameters = measure.definition.name, measure.parameters
    seconds, per_byte = _MEASURE, 1e-9 * _BYTES.get(name, _USUAL_BYTE)
    if name in _IN_TURNS:
        beta = parameters.get("beta", 0.0)
        turns = math.ceil(-37 / math.log(beta)) if beta else int(measure.cutoff or _DEEPEST)
        seconds, per_byte = (
            seconds + turns * _TURN,
            per_byte + 1e-9 * (_FIRST_TURN_BYTE + turns * _TURN_BYTE),
        )

    inner = parameters.get("of")
    if isinstance(inner, Measure):
        cutoffs = parameters.get("cutoffs")
        for measured in at_each_cutoff(inner, cutoffs) if cutoffs else [inner]:
            inner_seconds, inner_per_byte = seconds_of_measure(measured)
            seconds, per_byte = seconds + inner_seconds, per_byte + inner_per_byte

    return seconds, per_byte


def seconds_of_views(missing: Mapping[int, Sequence[Measure]]) -> float:
    """Return the seconds to compute these measures of these evaluations from their judged views."""
    seconds = 0.0
    for pk, size in sizes_of_views([*missing]).items():
        costs = [seconds_of_measure(measure) for measure in missing[pk]]
        seconds += (
            _VIEW
            + _VIEW_BYTE * size
            + sum(constant + per_byte * size for constant, per_byte in costs)
        )
    return seconds


def sizes_of_views(evaluation_ids: list[int]) -> dict[int, int]:
    """Return the stored bytes of judged views; neither database reads the views for this."""
    sizes = known_sizes()
    if missing := [pk for pk in evaluation_ids if pk not in sizes]:
        rows = JudgedView.objects.filter(pk__in=missing).values_list("pk", Length("content"))
        sizes |= dict.fromkeys(missing, 0) | dict(rows)
    return {pk: sizes[pk] for pk in evaluation_ids if sizes[pk]}


def begin_vectors(vectors: int) -> None:
    """Begin reading this many stored vectors of values."""
    begin(
        vectors * _VECTOR, f"{vectors:,} values of runs", "name fewer measures or runs", "measures"
    )


def begin_disagreement(runs: int, topics: int) -> None:
    """Begin ordering the runs on this many topics."""
    subject = f"the order of {runs:,} runs on {topics:,} topics"
    begin(runs * topics * _ORDERED_VALUE, subject, "sort by another column", "sort")


def begin_values(missing: Mapping[int, Sequence[Measure]]) -> None:
    """Begin computing values that are not stored: measures by evaluation, from judged views."""
    lacking = {pk: measures for pk, measures in missing.items() if measures}
    if lacking:
        subject = f"{sum(map(len, lacking.values())):,} values of runs that are not stored"
        begin(seconds_of_views(lacking), subject, _ADVICE, "measures")


def begin_curves(
    evaluation_ids: list[int],
    curves: int,
    points: int,
    *,
    with_readings: bool = False,
    every_rank: int = 0,
) -> None:
    """Begin computing curves of each run, each with this many points in the answer."""
    sizes, runs = sizes_of_views(evaluation_ids), len(evaluation_ids)
    bytes_of_views = sum(sizes[pk] for pk in evaluation_ids if pk in sizes)
    seconds_of_curve = runs * (_CURVE + _POINT * points) + _CURVE_BYTE * bytes_of_views * (
        2 if with_readings else 1
    )

    begin(
        runs * (_VIEW + _EVERY_RANK * every_rank)
        + _VIEW_BYTE * bytes_of_views
        + curves * seconds_of_curve,
        f"{curves * runs} curves",
        f"name fewer {'runs, ' if runs > 1 else ''}measures or a smaller depth",
        "depth",
    )


def begin_reading_file(size: int, pointer: str | None = None) -> None:
    """Begin reading a stored file of this many bytes to its end."""
    begin_reading(
        _FILE_BYTE * size, "reading the stored file", "download it and look into it there", pointer
    )
