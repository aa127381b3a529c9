"""The arguments and results of all tests of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.cautions import Caution as Caution  # noqa: PLC0414 - what tests give
from metrics.engine.errors import StatisticsError

Matrix = npt.NDArray[np.float64]

MAX_RESAMPLES = 10_000_000
INTERVALS = ("each_pair", "simultaneous")
ZEROS, TIES = ("drop", "pratt"), ("exact", "rounded")
# Values that differ by less than this share of the larger one are equal: they were summed in
# another order.
ROUNDING = 1e-12
# Differences in memory at once: few enough for a cache.
_DIFFERENCES_AT_ONCE = 1 << 16

Watch = Callable[[], None]
"""Called before each block of resamples, in the thread that draws it. An error ends the test."""


def unwatched() -> None:
    """Watch nothing."""


@dataclass(frozen=True)
class Options:
    """The options of tests; each test reads its own.

    `confidence` of the intervals; `resamples` (B) and `seed` of tests that draw, `threads` to draw
    with (the answer is the same for any number); `min_difference` below or at which the sign test
    takes two values for equal; `zeros` is what Wilcoxon's test does with equal values, 'drop' them
    or rank them and drop then ('pratt'), and `ties` says which differences tie for it: those equal
    to the last bit ('exact', as for SciPy), or to 12 digits ('rounded'). `watch` is called
    before every block of resamples. Raises StatisticsError for a value without a meaning.
    """

    confidence: float = 0.95
    resamples: int = 100_000
    seed: int = 0
    threads: int = 1
    min_difference: float = 0.0
    zeros: str = "drop"
    ties: str = "exact"
    watch: Watch = field(default=unwatched, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, fits, meaning in (
            ("confidence", 0 < self.confidence < 1, "between 0 and 1"),
            ("resamples", 1 <= self.resamples <= MAX_RESAMPLES, f"between 1 and {MAX_RESAMPLES:,}"),
            ("seed", self.seed >= 0, "0 or above"),
            ("threads", self.threads >= 1, "1 or above"),
            ("min_difference", 0 <= self.min_difference < np.inf, "0 or above"),
            ("zeros", self.zeros in ZEROS, "'drop' or 'pratt'"),
            ("ties", self.ties in TIES, "'exact' or 'rounded'"),
        ):
            if not fits:
                message = f"{name} must be {meaning}, not {getattr(self, name)!r}"
                raise StatisticsError(message, code="bad_parameter", pointer=name)


DEFAULTS = Options()


@dataclass(frozen=True)
class PairedResult:
    """One entry per pair: mean difference, bounds of its interval, test statistic, p value.

    Statistic and p are NaN where differences without spread leave nothing to test with, and so are
    bounds of an interval that would have no width. `exact` marks the pairs with p of the exact
    distribution under the null hypothesis, not of an approximation or a sample of it. The interval
    is always one of the mean difference: Student's, where the test has none of its own. `direction`
    is of the test's own statistic: above 0 where it says that the first run's values are higher,
    below 0 where lower; None for a test of means, which points as the mean difference does.
    """

    difference: Floats
    low: Floats
    high: Floats
    statistic: Floats
    p_value: Floats
    exact: Flags
    cautions: tuple[Caution, ...] = ()
    direction: Floats | None = None

    @property
    def leaning(self) -> Floats:
        """Return the direction of the test's statistic: 1, 0 or -1."""
        signs: Floats = np.sign(self.difference if self.direction is None else self.direction)
        return signs


@dataclass(frozen=True)
class Statistics:
    """Student's t of each pair, NaN without spread, with the mean difference and its standard
    error."""

    difference: Floats
    error: Floats
    statistic: Floats
    cautions: tuple[Caution, ...] = ()


@dataclass(frozen=True)
class Separation:
    """The mean difference of each pair, whether it is significant over all pairs, and whether it
    cannot be tested."""

    difference: Floats
    significant: Flags
    untested: Flags
    cautions: tuple[Caution, ...] = ()


PairedTest = Callable[[Matrix, Ints, Ints, Options], PairedResult]
"""test(values (runs, topics), first run of each pair, second one, options) -> PairedResult"""

QuickTest = Callable[[Matrix, Ints, Ints, float], Separation]
"""separate(values (runs, topics), first run of each pair, second one, alpha) -> Separation"""

SamplesTest = Callable[[list[Floats], Ints, Ints, Options], PairedResult]
"""test(values of each sample, first sample of each pair, second one, options) -> PairedResult"""

Correction = Callable[[Floats], Floats]
"""correction(p values of one family) -> adjusted p values, same order"""


@dataclass(frozen=True)
class SignificanceTest:
    """An entry of TESTS.

    `simultaneous` marks tests with p values that already count for all pairs of the runs: they take
    no correction. `of_given_pairs` marks those of them that count for the compared pairs only, and
    `joint_intervals` those with intervals that hold for all these pairs, too. `draws` marks those
    that read `resamples` and `seed`, `ranks` those that ask about ranks or signs and not about
    means, and `normal` those that skewed differences of a pair mislead; `omnibus` names the test of
    all runs at once that a post-hoc test goes with, and `assumes_omnibus` marks one that assumes
    its finding. `compare_samples` is the same test of samples of unequal sizes; None for a test of
    pairs of values. `separate` finds the significant pairs by a critical value, under Holm's
    correction where p does not count for all pairs; None for a test that needs the p of each."""

    compare: PairedTest
    paired: bool = True
    simultaneous: bool = False
    of_given_pairs: bool = False
    joint_intervals: bool = False
    draws: bool = False
    ranks: bool = False
    normal: bool = False
    omnibus: str | None = None
    assumes_omnibus: bool = False
    compare_samples: SamplesTest | None = None
    separate: QuickTest | None = None

    @property
    def intervals(self) -> str:
        """Return whether intervals hold one by one or all at once; one of INTERVALS."""
        return INTERVALS[self.joint_intervals]


@lru_cache(maxsize=4)
def all_pairs(runs: int) -> tuple[Ints, Ints]:
    """Return every pair (i, j) with i before j, in read-only arrays."""
    places = np.arange(runs, dtype=np.int64)
    following = places[::-1]
    first = np.repeat(places, following)

    # The last pair of a run is with the last run.
    second = np.arange(len(first), dtype=np.int64) - np.repeat(
        np.cumsum(following) - runs, following
    )
    for side in (first, second):
        side.flags.writeable = False

    return first, second


def baseline_pairs(runs: int, baselines: Sequence[int]) -> tuple[Ints, Ints]:
    """Return every other run against each baseline, each pair once.

    The runs against the first baseline come first, those against the second baseline follow
    without the first one, and so on.
    """
    others = [np.delete(np.arange(runs), baselines[: place + 1]) for place in range(len(baselines))]
    return np.concatenate(others), np.repeat(baselines, [len(runs_of) for runs_of in others])


def check(values: Matrix, test: str, runs: int = 1) -> None:
    """Raise StatisticsError for fewer than 2 topics or `runs` runs, and for a value that is not
    finite."""
    if values.shape[1] < 2:
        message = f"{test} needs at least 2 common topics; found {values.shape[1]}"
        raise StatisticsError(message, code="too_few_topics")

    if len(values) < runs:
        raise StatisticsError(
            f"{test} needs at least {runs} runs; found {len(values)}", code="too_few_runs"
        )
    if not np.isfinite(values).all():
        raise StatisticsError(
            f"{test} needs a finite value of every run on every topic: leave out topics without one"
        )


def chunks(first: Ints, second: Ints, topics: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs in pieces of bounded memory; at least one piece."""
    size = max(1, _DIFFERENCES_AT_ONCE // topics)
    for begin in range(0, max(len(first), 1), size):
        yield first[begin : begin + size], second[begin : begin + size]


def noise_of(values: Matrix, first: Ints, second: Ints) -> Floats:
    """Return the difference of each pair that rounding can make: smaller differences are ties."""
    largest = np.abs(values).max(axis=1)
    noise: Floats = ROUNDING * np.maximum(largest[first], largest[second])
    return noise
