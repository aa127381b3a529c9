"""What tests find, and intervals hold, of real runs: the score matrices of a few tracks, taken for all of their topics.

Topics are drawn with replacement. Moved to equal means, the runs keep their unequal spreads and
their skewness; left where they are, the true values are those of the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from metrics.engine.agreement.intervals import rank_intervals
from metrics.engine.agreement.standings import standings
from metrics.engine.arrays import Flags, Floats
from metrics.engine.curve.intervals import row_intervals
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS
from metrics.engine.significance.effect_sizes import effect_sizes
from metrics.engine.significance.families import Pairs, Rule, compare_family, separate
from metrics.engine.significance.pairs import Matrix, Options, all_pairs
from metrics.engine.significance.rank_sets import rank_sets
from metrics.engine.significance.verdicts import adjust
from tests.engine.calibration import ALPHA, FAMILY, Rate, Statement, rate_of, span

RUNS, TOPICS, SIZES = 20, 50, (5, 10, 25, 50)
# Whether boards keep their level is looked at where they have tiers.
LEVELS, LEVEL_TESTS = (10, 25, 50), ("paired_t", "tukey_hsd", "t_and_tukey")
HOLM = Rule(FAMILY, ALPHA)
EVERY_PAIR, AGAINST_FIRST = Pairs(RUNS), Pairs(RUNS, (0,))
AGAINST_BASELINE = (
    "paired_t",
    "t_and_tukey",
    "randomisation",
    "bootstrap",
    "max_t",
    "tukey_hsd",
    "randomised_tukey_hsd",
)
Tracks = dict[str, Matrix]


def null(
    rng: np.random.Generator, values: Matrix, *, paired: bool = True, size: int = TOPICS
) -> Matrix:
    """Some runs moved to one mean, on topics of their own unless they are paired."""
    some = values[rng.choice(len(values), RUNS, replace=False)]
    topics = rng.integers(0, values.shape[1], (1 if paired else RUNS, size))
    return np.take_along_axis(
        some - some.mean(axis=1, keepdims=True), np.broadcast_to(topics, (RUNS, size)), axis=1
    )


def exchangeable(rng: np.random.Generator, values: Matrix, size: int) -> Matrix:
    """Some runs whose labels are dealt anew on every topic."""
    some = values[rng.choice(len(values), RUNS, replace=False)]
    return rng.permuted(some[:, rng.integers(0, values.shape[1], size)], axis=0)


def level(name: str, draws: Iterable[Matrix], pairs: Pairs = EVERY_PAIR) -> Rate:
    """The share of collections without a difference in which any pair is significant."""
    wrong = [findings(drawn, name, pairs) > 0 for drawn in draws]
    return rate_of(np.array(wrong)[:, None])


def findings(values: Matrix, name: str, pairs: Pairs) -> int:
    """The number of significant pairs."""
    if not pairs.baselines:
        return int(separate(values, name, HOLM).verdicts.significant.sum())
    return int(compare_family(values, pairs, name, HOLM).significant.sum())


def print_levels(say: Statement, tracks: Tracks, collections: int) -> None:
    """The tables of docs/statistics.md about the default test."""
    say(
        f"\nAny wrong pair of {RUNS} runs, {collections:,} collections of each of {len(tracks)} matrices; mean, lowest "
        "and highest matrix\n"
    )
    say(f"| runs, test | {' | '.join(f'{size} topics' for size in LEVELS)} |")
    say(f"| --- |{' --- |' * len(LEVELS)}")
    for title, draw, pairs in (
        ("equal means", null_of_size, EVERY_PAIR),
        ("labels dealt anew", exchangeable, EVERY_PAIR),
        ("equal means, a baseline", null_of_size, AGAINST_FIRST),
    ):
        for name in LEVEL_TESTS if pairs is EVERY_PAIR else ("paired_t", "t_and_tukey"):
            cells = [
                span(
                    level(name, _drawn(draw, values, number, size, collections), pairs)
                    for number, values in enumerate(tracks.values())
                )
                for size in LEVELS
            ]
            say(f"| {title}, `{name}` | {' | '.join(cells)} |")
    for title, pairs in (("all pairs", EVERY_PAIR), ("a baseline", AGAINST_FIRST)):
        shares = [
            _relative_findings("t_and_tukey", tracks, collections, size, pairs) for size in LEVELS
        ]
        say(f"| pairs found of runs as they are, {title}, `t_and_tukey` | {' | '.join(shares)} |")


def _drawn(
    draw: Callable[[np.random.Generator, Matrix, int], Matrix],
    values: Matrix,
    number: int,
    size: int,
    collections: int,
) -> Iterator[Matrix]:
    for at in range(collections):
        yield draw(np.random.default_rng((7, number, size, at)), values, size)


def null_of_size(rng: np.random.Generator, values: Matrix, size: int) -> Matrix:
    return null(rng, values, size=size)


def _relative_findings(name: str, tracks: Tracks, collections: int, size: int, pairs: Pairs) -> str:
    """How many pairs of runs as they are the test finds for each that `paired_t` finds; by all, and of each matrix."""
    counts = np.zeros((len(tracks), 2))
    for number, values in enumerate(tracks.values()):
        for at in range(collections):
            rng = np.random.default_rng((8, number, size, at))
            some = values[rng.choice(len(values), RUNS, replace=False)]
            drawn = some[:, rng.integers(0, values.shape[1], size)]
            counts[number] += [findings(drawn, test, pairs) for test in (name, "paired_t")]
    ours, students = counts.sum(axis=0)
    each = counts[:, 0] / np.maximum(counts[:, 1], 1)
    return f"{ours / students:.2f} ({each.min():.2f} to {each.max():.2f})"


def print_real_tests(say: Statement, tracks: Tracks, collections: int, resamples: int) -> None:
    """The table of docs/statistics.md about runs with equal means."""
    say(
        f"\n{collections:,} collections of {RUNS} real runs x {TOPICS} topics, moved to equal means, of each of "
    )
    say(
        f"{len(tracks)} matrices, B = {resamples:,}; mean over the matrices, and the lowest to the highest\n"
    )
    say(
        "| test | pairs with p < 0.05 | any pair, Holm where p is of a pair | intervals hold | finds |"
    )
    say("| --- | --- | --- | --- | --- |")
    usual = np.array([_found("paired_t", values) for values in tracks.values()])
    for name, test in TESTS.items():
        each = [
            _on_matrix(name, values, number, collections, resamples)
            for number, values in enumerate(tracks.values())
        ]
        results = [_found(name, values) for values in tracks.values()] if test.paired else []
        more = f"{np.mean(results / usual):.2f}" if results else ""
        say(f"| `{name}` | {' | '.join(map(span, zip(*each, strict=True)))} | {more} |")
    for name in OMNIBUS:
        wrong = [
            _omnibus(name, values, number, collections)
            for number, values in enumerate(tracks.values())
        ]
        say(f"| `{name}` | | {span(rate_of(rows[:, 0]) for rows in wrong)} | | |")
        if name == "anova":
            say(
                f"| `anova` without epsilon | | {span(rate_of(rows[:, 1]) for rows in wrong)} | | |"
            )


def print_real_baselines(say: Statement, tracks: Tracks, collections: int, resamples: int) -> None:
    """The same of the pairs with a baseline, which is the first of the runs."""
    say(f"\nThe same with a baseline, {RUNS - 1} pairs\n")
    say("| test | any pair, Holm where p is of a pair | intervals hold |")
    say("| --- | --- | --- |")
    for name in AGAINST_BASELINE:
        each = [
            _on_matrix(name, values, number, collections, resamples, AGAINST_FIRST)
            for number, values in enumerate(tracks.values())
        ]
        _, wrong, coverage = (span(rates) for rates in zip(*each, strict=True))
        say(f"| `{name}` | {wrong} | {coverage} |")


def _on_matrix(
    name: str,
    values: Matrix,
    number: int,
    collections: int,
    resamples: int,
    pairs: Pairs = EVERY_PAIR,
) -> list[Rate]:
    """Of pairs the share with a small p, of collections that with a wrong finding, and of intervals that which holds:
    of collections where they are simultaneous."""
    test, chosen = TESTS[name], pairs.indices()
    correct = CORRECTIONS["none" if test.simultaneous else FAMILY]
    small, wrong, coverage = [], [], []
    for at in range(collections):
        drawn = null(np.random.default_rng((3, number, at)), values, paired=test.paired)
        result = test.compare(drawn, *chosen, Options(resamples=resamples, seed=at, threads=2))
        holds = (result.low <= 0) & (result.high >= 0)
        small.append(result.p_value < ALPHA)
        wrong.append([(adjust(result.p_value, correct) < ALPHA).any()])
        coverage.append([holds.all()] if test.joint_intervals else holds)
    return [rate_of(np.array(rows)) for rows in (small, wrong, coverage)]


def _found(name: str, values: Matrix) -> float:
    """The share of the real pairs that the test separates, corrected by Holm where it wants a correction."""
    correct = CORRECTIONS["none" if TESTS[name].simultaneous else FAMILY]
    result = TESTS[name].compare(
        values, *all_pairs(len(values)), Options(resamples=100_000, threads=2)
    )
    return float(np.mean(adjust(result.p_value, correct) < ALPHA))


def _omnibus(name: str, values: Matrix, number: int, collections: int) -> Flags:
    """Whether p is small, and p without epsilon; shape (collections, 2)."""
    wrong = []
    for at in range(collections):
        p_value = OMNIBUS[name](
            null(np.random.default_rng((3, number, at)), values, paired=name != "kruskal_wallis")
        )
        plain = p_value.sphericity.p_uncorrected if p_value.sphericity else p_value.p_value
        wrong.append((p_value.p_value < ALPHA, plain < ALPHA))
    return np.array(wrong)


def print_real_intervals(say: Statement, tracks: Tracks, collections: int) -> None:
    """The table of docs/statistics.md about intervals of runs that differ as they do."""
    say(
        f"\n{collections:,} collections of {RUNS} real runs of each of {len(tracks)} matrices: how often 95 % "
    )
    say(
        "intervals hold the value of the whole matrix; mean over the matrices, and the lowest to the highest\n"
    )
    say(
        f"| interval of | {' | '.join(f'{topics} topics' for topics in SIZES)} |\n| --- |{' --- |' * len(SIZES)}"
    )
    cells = [
        [_held(values, number, size, collections) for number, values in enumerate(tracks.values())]
        for size in SIZES
    ]
    for name in cells[0][0]:
        say(
            f"| {name} | {' | '.join(span(of_matrix[name] for of_matrix in cell) for cell in cells)} |"
        )


def _held(values: Matrix, number: int, topics: int, collections: int) -> dict[str, Rate]:
    covered: dict[str, list[float]] = {}
    delta = np.array(
        [np.sign(sample[:, None] - values[:, None, :]).mean(axis=(1, 2)) for sample in values]
    )
    for at in range(collections):
        rng = np.random.default_rng((6, number, topics, at))
        chosen = rng.choice(len(values), RUNS, replace=False)
        some = values[chosen]
        drawn = some[:, rng.integers(0, values.shape[1], topics)]
        held_by = intervals(
            some, drawn, delta[np.ix_(chosen, chosen)], Options(resamples=1_999, seed=at)
        )
        for name, covers in held_by.items():
            covered.setdefault(name, []).append(float(np.nanmean(covers)))
    return {name: rate_of(np.array(shares)) for name, shares in covered.items()}


def intervals(true: Matrix, drawn: Matrix, delta: Matrix, options: Options) -> dict[str, Floats]:
    """Which intervals of the drawn topics hold what all topics have; NaN where there is no interval.

    `delta` is Cliff's of all topics, shape (runs, runs).
    """
    first, second = all_pairs(RUNS)
    means, differences = true.mean(axis=1), (true[first] - true[second]).mean(axis=1)
    covers: dict[str, Floats] = {
        "a mean": _holds(means, *row_intervals(drawn, 0.95, (0.0, 1.0))),
        "a mean, by Student's t": _holds(means, *row_intervals(drawn, 0.95)),
    }
    for name in ("paired_t", "bootstrap"):
        result = TESTS[name].compare(drawn, first, second, options)
        covers[f"a difference, `{name}`"] = _holds(differences, result.low, result.high)
    sizes = effect_sizes(drawn, first, second, options)
    for name, of_all in (
        _effects_of_all(true, differences) | {"cliff_delta": delta[first, second]}
    ).items():
        estimate = getattr(sizes, name)
        covers[f"`{name}`"] = _holds(of_all, estimate.low, estimate.high)
    places = standings(means[None, :], np.array([False]))[0]
    ranks = rank_intervals(drawn, options)
    covers["a rank, by samples of the topics"] = _holds(places, ranks.low, ranks.high)
    covers["all of these ranks at once"] = _holds(places, ranks.low, ranks.high).min()
    joint = TESTS["t_and_tukey"].compare(drawn, first, second, options)
    covers["all differences at once, `t_and_tukey`"] = np.nanmin(
        _holds(differences, joint.low, joint.high)
    )
    for name in ("paired_t", "t_and_tukey"):
        verdicts = separate(drawn, name, HOLM, options).verdicts
        sets = rank_sets(RUNS, first, second, verdicts.better(False))
        covers[f"all rank sets at once, `{name}`"] = _holds(places, sets.low, sets.high).min()
        covers[f"the set of the best, `{name}`"] = sets.best[places == 1].min()
    return covers


def _effects_of_all(true: Matrix, differences: Floats) -> dict[str, Floats]:
    """The effect sizes of all topics together, by their definitions, topics counting as all that there are."""
    first, second = all_pairs(RUNS)
    apart = true[first] - true[second]
    residual = true - true.mean(axis=0) - true.mean(axis=1, keepdims=True) + true.mean()
    spread = np.sqrt(np.square(residual).sum() / ((len(true) - 1) * true.shape[1]))
    return {
        "cohen_d": np.divide(
            differences, apart.std(axis=1), out=np.full(len(first), np.nan), where=apart.any(axis=1)
        ),
        "standardised": differences / spread,
        "probability_better": (apart > 0).mean(axis=1) + (apart == 0).mean(axis=1) / 2,
    }


def _holds(value: Floats, low: Floats, high: Floats) -> Floats:
    """Whether each interval holds its value, but for rounding; NaN without an interval."""
    slack = 1e-12 * np.maximum(1.0, np.abs(value))
    return np.where(
        np.isnan(low) | np.isnan(value), np.nan, (low - slack <= value) & (value <= high + slack)
    )
