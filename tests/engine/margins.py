"""How often claims that a difference is small are wrong where it is just too large, and intervals hold the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.significance.equivalence import tost
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import Matrix, Options
from metrics.engine.significance.posterior import POSTERIORS
from tests.engine.calibration import ALPHA, RUNS, Rate, Statement, paired_null, rate_of, span

MARGIN, REAL_MARGIN, SIZES, REAL_SIZES = 0.1, 0.05, (10, 25, 50, 200), (25, 50)
FIRST, SECOND = np.zeros(RUNS - 1, np.int64), np.arange(1, RUNS)
COLUMNS = (
    "`tost`: not worse",
    "`tost`: equivalent",
    *(
        f"`{name}`: {what}"
        for name in POSTERIORS
        for what in ("95 % interval holds", "surely better", "surely equal")
    ),
)


def rates(draws: Iterator[Matrix], margin: float, resamples: int) -> list[Rate]:
    """One rate for each of COLUMNS. Every run of a draw has the same true mean; the first one is then moved.

    At the margin, where each claim is just false, 5 per cent of the claims are expected at most.
    Posteriors are asked of equal runs: their central interval holds 0 where neither side of it has
    less than a fortieth, and one of two sides has 0.95 or more in a tenth of the cases; then with
    the margin as the region, at its end.
    """
    p_values: list[list[Floats]] = [[] for _ in COLUMNS]
    for seed, values in enumerate(draws):
        moved, options = values.copy(), Options(resamples=resamples, seed=seed)
        moved[0] -= margin
        claims = tost(moved, FIRST, SECOND, margin, Rule("none", ALPHA))
        row = [claims.a.p_value < ALPHA, claims.both.p_value < ALPHA]
        for posterior in POSTERIORS.values():
            lower = posterior(values, FIRST, SECOND, 0.0, options).lower
            equal = posterior(moved, FIRST, SECOND, margin, options).equal
            row += [abs(lower - 0.5) <= 0.475, abs(lower - 0.5) > 0.45, equal > 0.95]
        for column, entry in zip(p_values, row, strict=True):
            column.append(entry)
    return [rate_of(np.array(column)) for column in p_values]


def simulated(collections: int, topics: int) -> Iterator[Matrix]:
    return (
        paired_null(np.random.default_rng((4, topics, number)), RUNS, topics)
        for number in range(collections)
    )


def real(collections: int, values: Matrix, topics: int, track: int) -> Iterator[Matrix]:
    """Some runs of a real track, moved to one mean, on topics drawn with replacement."""
    for number in range(collections):
        rng = np.random.default_rng((5, track, topics, number))
        some = values[rng.choice(len(values), RUNS, replace=False)]
        yield (some - some.mean(axis=1, keepdims=True))[:, rng.integers(0, values.shape[1], topics)]


def print_margins(
    say: Statement, collections: int, tracks: dict[str, Matrix], real_collections: int
) -> None:
    """The table of docs/statistics.md about small differences."""
    say(
        f"\n{collections:,} collections of {RUNS} runs that differ from the first by a margin of {MARGIN}; then "
    )
    say(
        f"{real_collections:,} of {RUNS} real runs of each of {len(tracks)} tracks, a margin of {REAL_MARGIN}\n"
    )
    say(f"| runs, topics | {' | '.join(COLUMNS)} |\n| --- |{' --- |' * len(COLUMNS)}")
    for topics in SIZES:
        rows = rates(simulated(collections, topics), MARGIN, 1_999)
        say(
            _row(
                f"simulated, {topics}",
                rows,
                lambda rate: f"{100 * rate.value:.1f} ± {100 * rate.error:.1f} %",
            )
        )
    for topics in REAL_SIZES if tracks else ():
        by_track = [
            rates(real(real_collections, values, topics, track), REAL_MARGIN, 1_999)
            for track, values in enumerate(tracks.values())
        ]
        say(_row(f"real, {topics}", list(zip(*by_track, strict=True)), span))


def _row(title: str, entries: list[Any], figure: Callable[[Any], str]) -> str:
    return f"| {title} | {' | '.join(map(figure, entries))} |"
