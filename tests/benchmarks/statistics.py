"""Significance tests over all pairs of 100 runs x 50 topics, and SciPy's on a sample of those pairs in the same run.

Ratios are per pair: the time of SciPy on its sample divided by its size, over ours divided by all pairs. Before a ratio
is printed, the answers to the sample must agree: to 1e-12 where nothing is drawn, else within what both draw.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from metrics.engine.significance import OMNIBUS, TESTS
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs

RUNS, TOPICS, RESAMPLES = 100, 50, 100_000
ROUNDS = 5
Answer = tuple[float, ...]


@dataclass(frozen=True)
class Peer:
    """What SciPy does with one pair, how many pairs it is given, and how far its p and interval may be from ours."""

    test: str
    answer: Callable[[Matrix, Matrix], Answer]
    sample: int
    off: Callable[[Answer, Answer, Matrix], bool]


def _exact(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    return abs(theirs[0] - ours[0]) > 1e-12


def _drawn(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    return abs(theirs[0] - ours[0]) > 5 * np.sqrt(2 * max(ours[0], 1e-4) / RESAMPLES)


def _interval(theirs: Answer, ours: Answer, difference: Matrix) -> bool:
    unit = difference.std() / np.sqrt(len(difference))
    return max(abs(a - b) for a, b in zip(theirs, ours[1:], strict=True)) > 0.12 * unit


def _permutation(a: Matrix, b: Matrix) -> Answer:
    found = stats.permutation_test(
        (a - b,), _mean, permutation_type="samples", n_resamples=RESAMPLES, batch=10_000, vectorized=True, rng=1
    )
    return (float(found.pvalue),)


def _bca(a: Matrix, b: Matrix) -> Answer:
    found = stats.bootstrap((a - b,), _mean, n_resamples=RESAMPLES, batch=10_000, vectorized=True, rng=1)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _mean(values: Matrix, axis: int) -> Any:
    return values.mean(axis=axis)


PEERS = (
    Peer("paired_t", lambda a, b: (float(stats.ttest_rel(a, b).pvalue),), 1000, _exact),
    Peer("wilcoxon", lambda a, b: (float(stats.wilcoxon(a, b).pvalue),), 1000, _exact),
    Peer("mann_whitney", lambda a, b: (float(stats.mannwhitneyu(a, b).pvalue),), 1000, _exact),
    Peer("welch_t", lambda a, b: (float(stats.ttest_ind(a, b, equal_var=False).pvalue),), 1000, _exact),
    Peer("randomisation", _permutation, 4, _drawn),
    Peer("bootstrap", _bca, 4, _interval),
)


def simulated(runs: int, topics: int) -> Matrix:
    rng = np.random.default_rng(7)
    ease = rng.beta(1, 2, topics)
    return np.clip(ease + rng.normal(0, 0.15, (runs, topics)) + rng.normal(0, 0.03, (runs, 1)), 0, 1)


def measure_statistics() -> None:
    """Seconds of each test, and the ratio to SciPy's per pair."""
    values = simulated(RUNS, TOPICS)
    pairs = all_pairs(RUNS)
    print(f"all {len(pairs[0]):,} pairs of {RUNS} runs x {TOPICS} topics, B = {RESAMPLES:,}, best of {ROUNDS}")
    found = {name: _best(lambda name=name: TESTS[name].compare(values, *pairs, Options())) for name in TESTS}
    ratios = {peer.test: _ratio(peer, values, *found[peer.test]) for peer in PEERS}
    for name, (seconds, _) in found.items():
        print(f"{name}: {1000 * seconds:.1f} ms{ratios.get(name, '')}")
    _measure_friedman(values)
    _measure_many()


def _best(call: Callable[[], Any]) -> tuple[float, Any]:
    call()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


def _ratio(peer: Peer, values: Matrix, seconds: float, ours: PairedResult) -> str:
    first, second = all_pairs(RUNS)
    chosen = np.random.default_rng(1).choice(len(first), peer.sample, replace=False).tolist()
    start = time.perf_counter()
    theirs = [peer.answer(values[first[pair]], values[second[pair]]) for pair in chosen]
    each = (time.perf_counter() - start) / peer.sample
    for pair, answer in zip(chosen, theirs, strict=True):
        own = (float(ours.p_value[pair]), float(ours.low[pair]), float(ours.high[pair]))
        if peer.off(answer, own, values[first[pair]] - values[second[pair]]):
            raise SystemExit(f"{peer.test}: pair {pair} has {own}, SciPy says {answer}")
    return f", {each * len(first) / seconds:,.0f} times as fast as SciPy ({peer.sample:,} pairs compared, all agree)"


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
        start = time.perf_counter()
        TESTS[name].compare(values, *all_pairs(1000), Options(resamples=10_000))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}, 1,000 runs x 250 topics, B = 10,000: {time.perf_counter() - start:.2f} s, peak {peak:.2f} GB")
