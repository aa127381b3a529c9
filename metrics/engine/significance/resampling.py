"""The common parts of tests that draw: whole numbers, blocks of draws, counts of all pairs.

Resampling is linear: with flips or weights S shared by all pairs, S(Xi - Xj) = (SX)i - (SX)j. So
the sums of each run are computed once per resample, and a pair costs a subtraction and a
comparison.

Values are scaled to whole numbers of at most 2^38 in the sum, more than 11 digits. Sums of those
are exact in a double in any order: a resample that ties with what was observed counts as a tie, and
the answer is the same on every machine and for any number of threads. Every block of resamples has
a generator of its own, seeded with (seed, block).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Hashes, Ints
from metrics.engine.compiled.kernels.sizes import TILE
from metrics.engine.significance.pair_pass import add_up, count_extreme, draw_topics
from metrics.engine.significance.pairs import Matrix, Watch, unwatched

BLOCK = 8 * TILE
_BITS = 38
# Values of fewer units than this are too coarse: those of another run are much larger.
_COARSE = 2.0**24

Draw = Callable[[int, int, int], Matrix]
"""draw(seed, block, topics) -> flips or weights of BLOCK resamples, shape (tiles, topics, TILE)"""


@dataclass(frozen=True)
class Plan:
    """How to draw, how often, from which seed and on how many threads; `watch` is called for each
    block."""

    draw: Draw
    resamples: int
    seed: int
    threads: int = 1
    watch: Watch = unwatched

    @property
    def blocks(self) -> int:
        return -(-self.resamples // BLOCK)

    def remaining(self, block: int) -> int:
        """Return how many resamples remain from this block on."""
        return self.resamples - block * BLOCK

    def sums(self, block: int, whole: Matrix) -> Matrix:
        """Return each run's sums in the resamples of a block; shape (tiles, runs, TILE)."""
        self.watch()
        sums = np.empty((BLOCK // TILE, len(whole), TILE))
        add_up(np.ascontiguousarray(whole), self.draw(self.seed, block, whole.shape[1]), sums)
        return sums


def generator_of(seed: int, block: int) -> np.random.Generator:
    return np.random.default_rng((seed, block))


def state_of(seed: int, block: int) -> Hashes:
    """Return the four words from which a compiled generator starts."""
    return np.random.SeedSequence((seed, block)).generate_state(4, np.uint64).astype(np.uint64)


def draw_weights(seed: int, block: int, topics: int) -> Matrix:
    """Return how often each topic is drawn, n draws with replacement, for a block of resamples."""
    weights = np.zeros((BLOCK // TILE, topics, TILE))
    draw_topics(state_of(seed, block), weights)
    return weights


def resampled_sums(values: Matrix, plan: Plan) -> Matrix:
    """Return each run's sum over the topics of each resample; shape (runs, resamples)."""
    sums = np.empty((len(values), plan.blocks * BLOCK))
    for block in range(plan.blocks):
        part = plan.sums(block, values)
        sums[:, block * BLOCK : (block + 1) * BLOCK] = part.transpose(1, 0, 2).reshape(
            len(values), BLOCK
        )

    return sums[:, : plan.resamples]


def in_threads(work: Callable[[range], Ints], blocks: int, threads: int) -> Ints:
    """Distribute the blocks over threads and return the sum of their counts."""
    shares = [range(begin, blocks, threads) for begin in range(min(threads, blocks))]
    if len(shares) == 1:
        return work(shares[0])

    with ThreadPoolExecutor(len(shares)) as pool:
        counts: Ints = np.sum(list(pool.map(work, shares)), axis=0)
    return counts


def whole_numbers(values: Matrix) -> Matrix:
    """Return the values times a power of two, rounded: a run's sizes add up to at most 2^38."""
    topics = values.shape[1]
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    whole: Matrix = np.rint(np.ldexp(values, _BITS - int(np.ceil(np.log2(topics))) - int(exponent)))
    return whole


def least_of(whole: Matrix, first: Ints, second: Ints) -> Floats:
    """Return the difference of sums from which a resample is as extreme as the observed one.

    Two equal sums can differ by half a unit for each value, observed and drawn: so far below it
    counts as a tie.
    """
    observed = np.abs(whole.sum(axis=1)[first] - whole.sum(axis=1)[second])
    least: Floats = observed - 2.0 * whole.shape[1]
    return least


def centred(whole: Matrix) -> Matrix:
    """Return each run's values less their mean, times the number of topics.

    They are whole numbers, exact up to 16,384 topics.
    """
    spread: Matrix = whole.shape[1] * whole - whole.sum(axis=1, keepdims=True)
    return spread


def count_pairs(whole: Matrix, least: Floats, first: Ints, second: Ints, plan: Plan) -> Ints:
    """Return in how many resamples each pair's sums are at least so far apart; shape (1, pairs)."""

    def count(blocks: range) -> Ints:
        counts = np.zeros((1, len(first)), np.int64)
        for block in blocks:
            count_extreme(
                plan.sums(block, whole), plan.remaining(block), first, second, least, counts[0]
            )

        return counts

    return in_threads(count, plan.blocks, plan.threads)


def apart_from_huge(
    values: Matrix, first: Ints, second: Ints, compare: Callable[[Matrix, Ints, Ints], Ints]
) -> Ints:
    """Return the counts of `compare` for each pair; pairs with values that would lose digits next
    to the huge values of another run are compared without that run."""
    counts = compare(values, first, second)
    largest = np.abs(whole_numbers(values)).max(axis=1)
    sizes = np.abs(values).max(axis=1)
    coarse = (np.maximum(largest[first], largest[second]) < _COARSE) & (
        np.maximum(sizes[first], sizes[second]) > 0
    )

    if coarse.any() and not coarse.all():
        runs, places = np.unique([first[coarse], second[coarse]], return_inverse=True)
        counts[:, coarse] = apart_from_huge(values[runs], places[0], places[1], compare)

    return counts
