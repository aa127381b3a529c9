"""Significance tests over all pairs of 100 runs x 50 topics, beside three peers in the same run: the loop over pairs
that users write, on a sample of the pairs; SciPy's one call for all pairs, with axis=1, where there
is one; and a few lines of NumPy that share their draws among all pairs.

Ratios are of processor time, for each pair. Before a ratio is printed, the answers must agree: to
1e-12 where nothing is drawn, else within what both draw.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from metrics.engine.significance import OMNIBUS, TESTS
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs

RUNS, TOPICS, RESAMPLES, TUKEY_RESAMPLES = 100, 50, 100_000, 10_000
ROUNDS = 5
# Boards for which variances of differences come from the covariance matrix.
COVARIANCE_RUNS = (100, 1_000)
# Resamples that NumPy holds at once.
_AT_ONCE = 10_000
Answer = tuple[float, ...]


@dataclass(frozen=True)
class Peer:
    """What SciPy does with one pair, how many pairs it is given, and how far its p and interval may be from ours.

    `together` is p of all pairs at once, by SciPy's call with axis=1 or by NumPy with shared draws,
    from the values of both runs of each pair, or from all values.
    """

    test: str
    answer: Callable[[Matrix, Matrix], Answer]
    sample: int
    off: Callable[[Answer, Answer, Matrix], bool]
    together: Callable[[Matrix], Matrix]
    # In one call SciPy takes one method for all pairs: with a tie in one of them, no exact
    # distribution for any.
    close: float = 1e-12


def _exact(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    return abs(theirs[0] - ours[0]) > 1e-12


def _drawn(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    return abs(theirs[0] - ours[0]) > 5 * np.sqrt(2 * max(ours[0], 1e-4) / RESAMPLES)


def _interval(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    unit = difference.std() / np.sqrt(len(difference))
    return max(abs(a - b) for a, b in zip(theirs, ours[1:], strict=True)) > 0.12 * unit


def _permutation(a: Matrix, b: Matrix) -> Answer:
    result = stats.permutation_test(
        (a - b,),
        _mean,
        permutation_type="samples",
        n_resamples=RESAMPLES,
        batch=10_000,
        vectorized=True,
        rng=1,
    )
    return (float(result.pvalue),)


def _bca(a: Matrix, b: Matrix) -> Answer:
    result = stats.bootstrap(
        (a - b,), _mean, n_resamples=RESAMPLES, batch=10_000, vectorized=True, rng=1
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _mean(values: Matrix, axis: int) -> Any:
    return values.mean(axis=axis)


def _pairwise(test: Callable[..., Any], **options: Any) -> Callable[[Matrix], Matrix]:
    """SciPy's test of all pairs in one call."""

    def p_values(values: Matrix) -> Matrix:
        first, second = all_pairs(len(values))
        p_values: Matrix = test(values[first], values[second], axis=1, **options).pvalue
        return p_values

    return p_values


def _shared(
    draw: Callable[[np.random.Generator, int, int], Matrix], centre: bool
) -> Callable[[Matrix], Matrix]:
    """Each run's sum in each resample by one product of matrices, and a difference of sums for each pair."""

    def p_values(values: Matrix) -> Matrix:
        first, second = all_pairs(len(values))
        observed = np.abs(values.sum(axis=1)[first] - values.sum(axis=1)[second])
        spread = values - values.mean(axis=1, keepdims=True) if centre else values
        rng, counts = np.random.default_rng(1), np.zeros(len(first))
        for _ in range(0, RESAMPLES, _AT_ONCE):
            sums = spread @ draw(rng, values.shape[1], _AT_ONCE)
            for a in range(len(values) - 1):
                those = slice(np.searchsorted(first, a), np.searchsorted(first, a, side="right"))
                apart = np.abs(sums[a] - sums[second[those]])
                counts[those] += (apart >= observed[those, None] - 1e-9).sum(axis=1)
        return (counts + 1) / (RESAMPLES + 1)

    return p_values


def _signs(rng: np.random.Generator, topics: int, resamples: int) -> Matrix:
    return rng.choice((-1.0, 1.0), (topics, resamples))


def _weights(rng: np.random.Generator, topics: int, resamples: int) -> Matrix:
    return rng.multinomial(topics, np.full(topics, 1 / topics), resamples).T.astype(np.float64)


def _shuffled(values: Matrix) -> Matrix:
    """Randomised Tukey: each topic's values shuffled among the runs."""
    rng, ranges = np.random.default_rng(1), np.empty(TUKEY_RESAMPLES)
    for resample in range(TUKEY_RESAMPLES):
        means = rng.permuted(values, axis=0).mean(axis=1)
        ranges[resample] = means.max() - means.min()
    first, second = all_pairs(len(values))
    apart = np.abs(values.mean(axis=1)[first] - values.mean(axis=1)[second])
    at_least = TUKEY_RESAMPLES - np.searchsorted(np.sort(ranges), apart - 1e-9)
    return (at_least + 1) / (TUKEY_RESAMPLES + 1)


def _largest_t(values: Matrix) -> Matrix:
    """Step-down max|t|: in each resample the largest |t| of the pairs up to each, in ascending order."""
    first, second = all_pairs(len(values))
    differences = values[first] - values[second]
    seen = np.abs(differences.sum(axis=1)) / np.sqrt(np.square(differences).sum(axis=1))
    order = np.argsort(seen)
    scaled = differences[order] / np.sqrt(np.square(differences[order]).sum(axis=1, keepdims=True))
    rng, counts, resamples = np.random.default_rng(1), np.zeros(len(first)), 100
    for _ in range(0, TUKEY_RESAMPLES, resamples):
        # Faster than to subtract the sums of runs, which are twice as many numbers to read.
        largest = np.maximum.accumulate(
            np.abs(scaled @ _signs(rng, values.shape[1], resamples)), axis=0
        )
        counts += (largest >= seen[order, None] - 1e-9).sum(axis=1)
    p_values = np.empty(len(first))
    p_values[order] = np.maximum.accumulate(((counts + 1) / (TUKEY_RESAMPLES + 1))[::-1])[::-1]
    return p_values


PEERS = (
    Peer(
        "paired_t",
        lambda a, b: (float(stats.ttest_rel(a, b).pvalue),),
        1000,
        _exact,
        _pairwise(stats.ttest_rel),
    ),
    Peer(
        "wilcoxon",
        lambda a, b: (float(stats.wilcoxon(a, b).pvalue),),
        1000,
        _exact,
        _pairwise(stats.wilcoxon),
        0.01,
    ),
    Peer(
        "mann_whitney",
        lambda a, b: (float(stats.mannwhitneyu(a, b).pvalue),),
        1000,
        _exact,
        _pairwise(stats.mannwhitneyu),
        0.01,
    ),
    Peer(
        "welch_t",
        lambda a, b: (float(stats.ttest_ind(a, b, equal_var=False).pvalue),),
        1000,
        _exact,
        _pairwise(stats.ttest_ind, equal_var=False),
    ),
    Peer("randomisation", _permutation, 4, _drawn, _shared(_signs, centre=False)),
    Peer("bootstrap", _bca, 4, _interval, _shared(_weights, centre=True)),
)


def simulated(runs: int, topics: int) -> Matrix:
    rng = np.random.default_rng(7)
    ease = rng.beta(1, 2, topics)
    return np.clip(
        ease + rng.normal(0, 0.15, (runs, topics)) + rng.normal(0, 0.03, (runs, 1)), 0, 1
    )


def measure_statistics() -> None:
    """Processor time of each test, and the ratios to its peers."""
    values = simulated(RUNS, TOPICS)
    pairs = all_pairs(RUNS)
    print(
        f"all {len(pairs[0]):,} pairs of {RUNS} runs x {TOPICS} topics, B = {RESAMPLES:,}, best of {ROUNDS}",
        flush=True,
    )
    timings = {
        name: _best(lambda name=name: TESTS[name].compare(values, *pairs, Options()))
        for name in TESTS
    }
    ratios = {peer.test: _ratio(peer, values, *timings[peer.test]) for peer in PEERS}
    for name, (seconds, _) in timings.items():
        print(f"{name}: {1000 * seconds:.1f} ms{ratios.get(name, '')}")
    for runs in COVARIANCE_RUNS:
        _measure_covariance(simulated(runs, TOPICS))
    _measure_max_t(values)
    _measure_tukey(values)
    _measure_friedman(values)
    _measure_many()


def _best(call: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    call()
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        answer = call()
        seconds.append(time.process_time() - start)
    return min(seconds), answer


def _ratio(peer: Peer, values: Matrix, seconds: float, ours: PairedResult) -> str:
    first, second = all_pairs(RUNS)
    chosen = np.random.default_rng(1).choice(len(first), peer.sample, replace=False).tolist()
    start = time.process_time()
    theirs = [peer.answer(values[first[pair]], values[second[pair]]) for pair in chosen]
    each = (time.process_time() - start) / peer.sample
    start = time.process_time()
    together = peer.together(values)
    whole = time.process_time() - start
    bound = (
        peer.close
        if peer.off is _exact
        else 5 * np.sqrt(2 * np.maximum(ours.p_value, 1e-4) / RESAMPLES)
    )
    if (np.abs(together - ours.p_value) > bound).any():
        raise SystemExit(f"{peer.test}: all pairs at once have other p values")
    for pair, answer in zip(chosen, theirs, strict=True):
        own = (float(ours.p_value[pair]), float(ours.low[pair]), float(ours.high[pair]))
        if peer.off(answer, own, values[first[pair]] - values[second[pair]]):
            raise SystemExit(f"{peer.test}: pair {pair} has {own}, SciPy says {answer}")
    one_call = "SciPy's call with axis=1" if peer.off is _exact else "NumPy with shared draws"
    return (
        f", {each * len(first) / seconds:,.0f} times as fast as a loop over SciPy ({peer.sample:,} pairs compared, all "
        f"agree), {whole / seconds:.1f} times as fast as {one_call}"
    )


def _covariance_t(values: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """p and interval of Student's paired t test of all pairs, by the covariance matrix of the runs."""
    topics = values.shape[1]
    first, second = np.triu_indices(len(values), 1)
    means, covariance = values.mean(axis=1), np.cov(values)
    variances = covariance.diagonal()
    spread = variances[first] + variances[second] - 2 * covariance[first, second]
    difference, error = means[first] - means[second], np.sqrt(spread / topics)
    p_value = 2 * special.stdtr(topics - 1, -np.abs(difference / error))
    margin = special.stdtrit(topics - 1, 0.975) * error
    return p_value, difference - margin, difference + margin


def _measure_covariance(values: Matrix) -> None:
    """The same in twelve lines of NumPy. It has no runs that are nearly equal here, where it would lose digits."""
    pairs = all_pairs(len(values))
    # Both spend four fifths of it on p: what differs shows in the best of many rounds only.
    rounds = 20_000 // len(values)
    ours, answer = _best(lambda: TESTS["paired_t"].compare(values, *pairs, Options()), rounds)
    theirs, expected = _best(lambda: _covariance_t(values), rounds)
    for name, numbers in zip(("p_value", "low", "high"), expected, strict=True):
        if np.abs(getattr(answer, name) - numbers).max() > 1e-12:
            raise SystemExit(f"paired_t: NumPy's covariance matrix has another {name}")
    print(
        f"paired_t of {len(values):,} runs: {1000 * ours:.1f} ms, {theirs / ours:.2f} times as fast as NumPy over the "
        "covariance matrix (agrees)"
    )


def _measure_max_t(values: Matrix) -> None:
    options = Options(resamples=TUKEY_RESAMPLES)
    ours, answer = _best(lambda: TESTS["max_t"].compare(values, *all_pairs(RUNS), options))
    start = time.process_time()
    together = _largest_t(values)
    theirs = time.process_time() - start
    if (
        np.abs(together - answer.p_value)
        > 5 * np.sqrt(2 * np.maximum(answer.p_value, 1e-3) / TUKEY_RESAMPLES)
    ).any():
        raise SystemExit("max_t: NumPy's flips have other p values")
    title = f"max_t, B = {TUKEY_RESAMPLES:,}"
    print(
        f"{title}: {1000 * ours:.1f} ms, {theirs / ours:.1f} times as fast as NumPy with shared draws"
    )


def _measure_tukey(values: Matrix) -> None:
    ours, answer = _best(
        lambda: TESTS["randomised_tukey_hsd"].compare(
            values, *all_pairs(RUNS), Options(resamples=TUKEY_RESAMPLES)
        )
    )
    start = time.process_time()
    together = _shuffled(values)
    theirs = time.process_time() - start
    if (
        np.abs(together - answer.p_value)
        > 5 * np.sqrt(2 * np.maximum(answer.p_value, 1e-3) / TUKEY_RESAMPLES)
    ).any():
        raise SystemExit("randomised_tukey_hsd: NumPy's shuffles have other p values")
    title = f"randomised_tukey_hsd, B = {TUKEY_RESAMPLES:,}"
    print(
        f"{title}: {1000 * ours:.1f} ms, {theirs / ours:.1f} times as fast as NumPy with shared draws"
    )


def _measure_friedman(values: Matrix) -> None:
    ours, answer = _best(lambda: OMNIBUS["friedman"](values))
    theirs, expected = _best(lambda: stats.friedmanchisquare(*values))
    if abs(answer.p_value - expected.pvalue) > 1e-12:
        raise SystemExit(f"friedman: {answer.p_value}, SciPy says {expected.pvalue}")
    print(f"friedman: {1000 * ours:.2f} ms, {theirs / ours:.1f} times as fast as SciPy (agrees)")


def _measure_many() -> None:
    """Half a million pairs."""
    values = simulated(1000, 250)
    for name in ("randomisation", "bootstrap"):
        start = time.process_time()
        TESTS[name].compare(values, *all_pairs(1000), Options(resamples=10_000))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name}, 1,000 runs x 250 topics, B = 10,000: {time.process_time() - start:.2f} s, peak {peak:.2f} GB"
        )
