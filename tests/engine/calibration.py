"""What the tests do where nothing is to be found: simulated collections whose runs differ by chance alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.effect_sizes import effect_sizes
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs

RUNS, TOPICS, ALPHA = 5, 50, 0.05
# Two runs of the simulated collections with an effect differ by so many standard deviations of a
# run's noise.
GAP = 0.3
# The correction that goes with a table of each test's own p values.
FAMILY = "holm"


@dataclass(frozen=True)
class Rate:
    """A share over collections with its standard error: the pairs of a collection are not independent."""

    value: float
    error: float


def rate_of(flags: Flags) -> Rate:
    """`found` has one row per collection."""
    shares = flags.reshape(len(flags), -1).mean(axis=1)
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


def simulate(name: str, collections: int, resamples: int) -> list[PairedResult]:
    """A test's answers for collections without a difference."""
    draw = paired_null if TESTS[name].paired else unpaired_null
    pairs = all_pairs(RUNS)
    return [
        TESTS[name].compare(
            draw(np.random.default_rng((1, number))),
            *pairs,
            Options(resamples=resamples, seed=number),
        )
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
    covers = np.array([(result.low <= 0) & (result.high >= 0) for result in results])
    return rate_of(covers.all(axis=1) if TESTS[name].joint_intervals else covers)


def omnibus_rate(name: str, collections: int) -> Rate:
    draw = unpaired_null if name == "kruskal_wallis" else paired_null
    flags = [
        OMNIBUS[name](draw(np.random.default_rng((1, number)))).p_value < ALPHA
        for number in range(collections)
    ]
    return rate_of(np.array(flags))


def uneven_null(rng: np.random.Generator, runs: int, topics: int) -> Matrix:
    """Runs of one mean, their deviations from 0.2 to 2."""
    spread = np.geomspace(0.2, 2, runs)[:, None]
    return rng.normal(0, 1, (runs, topics)) * spread + rng.normal(0, 1, topics)


def epsilon_rates(
    runs: int, topics: int, collections: int, draw: Callable[..., Matrix]
) -> list[Rate]:
    """How often the analysis of variance of equal runs rejects: with Greenhouse and Geisser's epsilon, with Huynh and
    Feldt's, and without one."""
    rows = []
    for number in range(collections):
        analysis = OMNIBUS["anova"](draw(np.random.default_rng((21, number)), runs, topics))
        sphericity = analysis.sphericity
        assert sphericity
        rows.append([analysis.p_value, sphericity.p_huynh_feldt, sphericity.p_uncorrected])
    return [rate_of(column[:, None] < ALPHA) for column in np.array(rows).T]


def effect_coverage(collections: int) -> dict[str, Rate]:
    """How often the intervals of effect sizes hold the true one."""
    truth = {
        "cohen_d": GAP / np.sqrt(2),
        "standardised": GAP,
        "probability_better": special.ndtr(GAP / np.sqrt(2)),
        # Values of different topics differ by the topics, too, whose deviation is 2.
        "cliff_delta": 2 * special.ndtr(GAP / np.sqrt(10)) - 1,
    }
    covers: dict[str, list[Flags]] = {name: [] for name in truth}
    first, second = np.zeros(RUNS - 1, np.int64), np.arange(1, RUNS)
    for number in range(collections):
        sizes = effect_sizes(with_effect(np.random.default_rng((2, number))), first, second)
        for name, true in truth.items():
            estimate = getattr(sizes, name)
            covers[name].append((estimate.low <= true) & (true <= estimate.high))
    return {name: rate_of(np.array(rows)) for name, rows in covers.items()}


Statement = Callable[[str], None]


def print_table(say: Statement, collections: int, resamples: int) -> None:
    """The calibration of every test as a Markdown table."""
    say(
        f"{collections:,} collections of {RUNS} runs x {TOPICS} topics without a difference, B = {resamples:,}\n"
    )
    say(
        "| test | pairs with p < 0.05 | any pair, Holm where p is of a pair | coverage of the 95% interval |"
    )
    say("| --- | --- | --- | --- |")
    for name in TESTS:
        results = simulate(name, collections, resamples)
        figures = (pair_rate(results), family_rate(name, results), coverage(name, results))
        say(f"| `{name}` | {' | '.join(_figure(rate) for rate in figures)} |")
    for name in OMNIBUS:
        say(f"| `{name}` | | {_figure(omnibus_rate(name, collections))} | |")
    say(
        "\n| equal runs, runs x topics | Greenhouse and Geisser | Huynh and Feldt | without epsilon |"
    )
    say("| --- | --- | --- | --- |")
    for name, draw in (("of one spread", paired_null), ("of different spread", uneven_null)):
        for runs, topics in ((5, 10), (20, 10), (20, 25), (20, 50)):
            rates = epsilon_rates(runs, topics, min(collections, 2_000), draw)
            say(f"| {name}, {runs} x {topics} | {' | '.join(_figure(rate) for rate in rates)} |")
    say("\n| correction of `paired_t` | any pair |\n| --- | --- |")
    results = simulate("paired_t", collections, resamples)
    for name in CORRECTIONS:
        say(f"| `{name}` | {_figure(family_rate('paired_t', results, name))} |")
    say("\n| effect size | coverage of the 95% interval |\n| --- | --- |")
    for name, rate in effect_coverage(collections).items():
        say(f"| {name} | {_figure(rate)} |")


def _figure(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} ± {100 * rate.error:.1f} %"


def span(rates: Iterable[Rate]) -> str:
    """The mean over some matrices with its standard error, and the lowest and the highest of them."""
    values = list(rates)
    shares = 100 * np.array([rate.value for rate in values])
    error = 100 * np.sqrt(np.mean(np.square([rate.error for rate in values])) / len(values))
    return f"{shares.mean():.1f} ± {error:.1f} % ({shares.min():.1f} to {shares.max():.1f})"
