"""How often the gate is wrong: simulated pairs of runs, compared as the server does, decided as the client does.

`python -m tests.benchmarks.gate [pairs]`; the figures of docs/how-to/gate.md are those of 10,000
pairs.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from evalhub.client.rules import FINE, UNDECIDED, WORSE, Result, Rule, decide, parse_rule
from metrics.engine.significance.effect_sizes import detectable_difference
from metrics.engine.significance.paired_t import mean_and_error, mean_interval
from metrics.engine.significance.pairs import Matrix

ALPHA, MARGIN, TOPICS = 0.05, 0.02, 50
# Of the differences over topics, about what runs of one laboratory have in AP.
DEVIATION = 0.12
_AT_ONCE = 1_000


def verdicts_of(values: Matrix, margin: float) -> list[tuple[str, Result]]:
    """Return verdict and numbers of every pair of rows (candidate, baseline), (candidate, baseline), ..."""
    rule = parse_rule(f"AP no-worse-than {margin}")
    first = np.arange(0, len(values), 2)
    confidence = 1 - 2 * ALPHA
    d, low, high = mean_interval(values, first, first + 1, confidence)
    _, error = mean_and_error(values, first, first + 1)
    detectable = detectable_difference(error, values.shape[1] - 1, confidence)
    return [
        _decided(rule, values.shape[1], *row) for row in zip(d, low, high, detectable, strict=True)
    ]


def _decided(
    rule: Rule, topics: int, d: float, low: float, high: float, detectable: float
) -> tuple[str, Result]:
    margin = rule.number or 0.0
    result = Result(rule, d=d, low=low, high=high, n=topics, margin=margin, detectable=detectable)
    result.topics_needed = math.ceil(topics * (detectable / margin) ** 2 - 1e-9)
    decide([result], ALPHA)
    return result.verdict, result


def share(difference: float, topics: int, pairs: int, seed: int) -> dict[str, float]:
    """Return how often each verdict is given where the true difference is this."""
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys((FINE, WORSE, UNDECIDED), 0)
    for start in range(0, pairs, _AT_ONCE):
        now = min(_AT_ONCE, pairs - start)
        baseline = rng.normal(0.3, 0.2, (now, topics))
        values = np.empty((2 * now, topics))
        values[1::2] = baseline
        values[::2] = baseline + rng.normal(difference, DEVIATION, (now, topics))
        for verdict, _ in verdicts_of(values, MARGIN):
            counts[verdict] += 1
    return {verdict: count / pairs for verdict, count in counts.items()}


def needed_topics(seed: int) -> int:
    """Return the median of the numbers of topics that the gate prints for pairs without a difference."""
    rng = np.random.default_rng(seed)
    printed = verdicts_of(rng.normal(0, DEVIATION / math.sqrt(2), (402, TOPICS)), MARGIN)
    return sorted(result.topics_needed or 0 for _, result in printed)[len(printed) // 2]


def rates(pairs: int, seed: int = 0) -> tuple[float, int, float]:
    """Return the share of fine at exactly -MARGIN, the printed number of topics, and the share of fine with so many
    topics and no difference."""
    needed = needed_topics(seed)
    return (
        share(-MARGIN, TOPICS, pairs, seed)[FINE],
        needed,
        share(0.0, needed, pairs, seed + 1)[FINE],
    )


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    start = time.perf_counter()
    needed = needed_topics(0)
    bound = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / pairs)
    print(
        f"{pairs:,} pairs, margin {MARGIN}, deviation {DEVIATION}, alpha {ALPHA}; fine may be {bound:.4f} at -margin"
    )
    for difference, topics in (
        (-MARGIN, 10), (-MARGIN, TOPICS), (-MARGIN, needed), (-2 * MARGIN, TOPICS), (0.0, TOPICS), (0.0, needed),
    ):  # fmt: skip
        shares = ", ".join(
            f"{verdict} {rate:.4f}" for verdict, rate in share(difference, topics, pairs, 1).items()
        )
        print(f"true difference {difference:+.2f}, {topics:4} topics: {shares}")
    print(f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
