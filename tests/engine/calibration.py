"""What the tests do where nothing is to be found: simulated collections whose runs differ by chance alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from metrics.engine.ranking import Flags, Floats
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.effect_sizes import effect_sizes
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs
from metrics.engine.significance.verdicts import adjust

RUNS, TOPICS, ALPHA = 5, 50, 0.05
REAL_RUNS = 20
# Two runs of the simulated collections with an effect differ by so many standard deviations of a run's noise.
GAP = 0.3
# The correction that goes with a table of each test's own p values.
FAMILY = "holm"


@dataclass(frozen=True)
class Rate:
    """A share over collections with its standard error: the pairs of a collection are not independent."""

    value: float
    error: float


def rate_of(found: Flags) -> Rate:
    """`found` has one row per collection."""
    shares = found.reshape(len(found), -1).mean(axis=1)
    return Rate(float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(len(shares))))


def paired_null(rng: np.random.Generator, runs: int = RUNS, topics: int = TOPICS) -> Matrix:
    """Values between 0 and 1 on topics of different difficulty; the labels of the runs mean nothing."""
    ease = rng.beta(1, 2, topics)
    return rng.beta(0.5 + 4 * ease, 4.5 - 4 * ease, (runs, topics))


def unpaired_null(rng: np.random.Generator, runs: int = RUNS, topics: int = TOPICS) -> Matrix:
    """Every run on topics of its own."""
    return rng.beta(1, 2, (runs, topics))


def with_effect(rng: np.random.Generator) -> Matrix:
    """Normal noise of deviation 1 around topics, and one run better than the others by GAP."""
    values = rng.normal(0, 1, (RUNS, TOPICS)) + rng.normal(0, 2, TOPICS)
    values[0] += GAP
    return values


def real_null(rng: np.random.Generator, values: Matrix) -> Matrix:
    """Some runs of a real track, moved to one mean, on topics drawn with replacement: their spreads stay unequal."""
    some = values[rng.choice(len(values), REAL_RUNS, replace=False)]
    moved: Matrix = (some - some.mean(axis=1, keepdims=True))[:, rng.integers(0, values.shape[1], TOPICS)]
    return moved


def simulate(name: str, collections: int, resamples: int) -> list[PairedResult]:
    """A test's answers for collections without a difference."""
    draw = paired_null if TESTS[name].paired else unpaired_null
    pairs = all_pairs(RUNS)
    return [
        TESTS[name].compare(draw(np.random.default_rng((1, number))), *pairs, Options(resamples=resamples, seed=number))
        for number in range(collections)
    ]


def p_values(results: list[PairedResult]) -> Matrix:
    return np.array([result.p_value for result in results])


def pair_rate(results: list[PairedResult]) -> Rate:
    """Of all pairs, the share that is found to differ, nothing corrected."""
    return rate_of(p_values(results) < ALPHA)


def family_rate(name: str, results: list[PairedResult], correction: str = FAMILY) -> Rate:
    """Of all collections, the share in which any pair is found to differ."""
    correct = CORRECTIONS["none" if TESTS[name].simultaneous else correction]
    return rate_of(np.array([(correct(row) < ALPHA).any() for row in p_values(results)]))


def coverage(name: str, results: list[PairedResult]) -> Rate:
    """How often intervals hold the difference, 0: all at once where they are simultaneous."""
    held = np.array([(result.low <= 0) & (result.high >= 0) for result in results])
    return rate_of(held.all(axis=1) if TESTS[name].joint_intervals else held)


def omnibus_rate(name: str, collections: int) -> Rate:
    draw = unpaired_null if name == "kruskal_wallis" else paired_null
    found = [OMNIBUS[name](draw(np.random.default_rng((1, number)))).p_value < ALPHA for number in range(collections)]
    return rate_of(np.array(found))


def effect_coverage(collections: int) -> dict[str, Rate]:
    """How often the intervals of effect sizes hold the true one."""
    truth = {"cohen_d": GAP / np.sqrt(2), "standardised": GAP}
    held: dict[str, list[Flags]] = {name: [] for name in truth}
    first, second = np.zeros(RUNS - 1, np.int64), np.arange(1, RUNS)
    for number in range(collections):
        sizes = effect_sizes(with_effect(np.random.default_rng((2, number))), first, second)
        for name, true in truth.items():
            estimate = getattr(sizes, name)
            held[name].append((estimate.low <= true) & (true <= estimate.high))
    return {name: rate_of(np.array(rows)) for name, rows in held.items()}


Statement = Callable[[str], None]


def print_table(say: Statement, collections: int, resamples: int) -> None:
    """The calibration of every test as a Markdown table."""
    say(f"{collections:,} collections of {RUNS} runs x {TOPICS} topics without a difference, B = {resamples:,}\n")
    say("| test | pairs with p < 0.05 | any pair, Holm where p is of a pair | coverage of the 95% interval |")
    say("| --- | --- | --- | --- |")
    for name in TESTS:
        results = simulate(name, collections, resamples)
        figures = (pair_rate(results), family_rate(name, results), coverage(name, results))
        say(f"| `{name}` | {' | '.join(_figure(rate) for rate in figures)} |")
    for name in OMNIBUS:
        say(f"| `{name}` | | {_figure(omnibus_rate(name, collections))} | |")
    say("\n| correction of `paired_t` | any pair |\n| --- | --- |")
    results = simulate("paired_t", collections, resamples)
    for name in CORRECTIONS:
        say(f"| `{name}` | {_figure(family_rate('paired_t', results, name))} |")
    say("\n| effect size | coverage of the 95% interval |\n| --- | --- |")
    for name, rate in effect_coverage(collections).items():
        say(f"| {name} | {_figure(rate)} |")


def print_real_table(say: Statement, tracks: dict[str, Matrix], collections: int, resamples: int) -> None:
    """The families of all pairs on real runs with equal means, and how many of their real differences they find."""
    say(f"\n{collections:,} collections of {REAL_RUNS} real runs x {TOPICS} topics, moved to equal means, of each of ")
    say(f"{len(tracks)} tracks, B = {resamples:,}; mean over the tracks, and the lowest to the highest\n")
    say("| family of all pairs | any wrong pair | all intervals hold | pairs found, beside `paired_t` and `holm` |")
    say("| --- | --- | --- | --- |")
    found = {name: np.array([_on_track(name, *one, resamples) for one in _drawn(tracks, collections)]) for name in REAL}
    for name, rates in found.items():
        entry = TESTS.get(name.split(" ")[0])
        wrong = _span(rates[:, 0], collections)
        held = _span(rates[:, 1], collections) if entry and entry.joint_intervals else ""
        more = f"{np.mean(rates[:, 2] / found['paired_t holm'][:, 2]):.2f}" if entry else ""
        say(f"| {' with '.join(f'`{part}`' for part in name.split(' '))} | {wrong} | {held} | {more} |")


REAL = ("paired_t holm", "randomisation holm", "max_t", "tukey_hsd", "randomised_tukey_hsd", "anova", "anova plain")


def _drawn(tracks: dict[str, Matrix], collections: int) -> Iterator[tuple[Matrix, list[Matrix]]]:
    for number, values in enumerate(tracks.values()):
        yield values, [real_null(np.random.default_rng((3, number, at)), values) for at in range(collections)]


def _on_track(name: str, values: Matrix, nulls: list[Matrix], resamples: int) -> tuple[float, float, float]:
    """Shares of the collections with a wrong pair and with all intervals right, and of the track's pairs found."""
    test, _, how = name.partition(" ")
    if test in OMNIBUS:
        found = [OMNIBUS[test](null) for null in nulls]
        p_value = [one.sphericity.p_uncorrected if how and one.sphericity else one.p_value for one in found]
        return float(np.mean(np.array(p_value) < ALPHA)), np.nan, np.nan
    correct = CORRECTIONS[how or "none"]
    pairs = all_pairs(REAL_RUNS)
    wrong, held = 0, 0
    for seed, null in enumerate(nulls):
        result = TESTS[test].compare(null, *pairs, Options(resamples=resamples, seed=seed, threads=2))
        wrong += bool((adjust(result.p_value, correct) < ALPHA).any())
        held += bool(((result.low <= 0) & (result.high >= 0)).all())
    whole = TESTS[test].compare(values, *all_pairs(len(values)), Options(resamples=100_000, threads=2))
    shown = float(np.mean(adjust(whole.p_value, correct) < ALPHA))
    return wrong / len(nulls), held / len(nulls), shown


def _span(rates: Floats, collections: int) -> str:
    """The mean over the tracks with its standard error, and the lowest to the highest track."""
    error = np.sqrt((rates * (1 - rates)).sum() / collections) / len(rates)
    return f"{100 * rates.mean():.1f} ± {100 * error:.1f} % ({100 * rates.min():.1f} to {100 * rates.max():.1f})"


def _figure(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} ± {100 * rate.error:.1f} %"
