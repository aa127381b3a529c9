"""What tests that draw have in common: whole numbers, blocks of draws, counting for all pairs at
once.

Resampling is linear: with flips or weights S shared by all pairs, S(Xi - Xj) = (SX)i - (SX)j. So
the sums of each run are made once per resample, and a pair costs a subtraction and a comparison.

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
# Below so many units the differences of a pair are too coarse beside values as large as another
# run's.
_COARSE = 2.0**24

Draw = Callable[[int, int, int], Matrix]
"""draw(seed, block, topics) -> flips or weights of BLOCK resamples, shape (tiles, topics, TILE)"""


@dataclass(frozen=True)
class Plan:
    """How to draw, how often, from which seed, on how many threads, and whom to tell of each
    block."""

    draw: Draw
    resamples: int
    seed: int
    threads: int = 1
    watch: Watch = unwatched

    @property
    def blocks(self) -> int:
        return -(-self.resamples // BLOCK)

    def left(self, block: int) -> int:
        """Return how many resamples remain from this block on."""
        return self.resamples - block * BLOCK

    def sums(self, block: int, whole: Matrix) -> Matrix:
        """Of each run in each resample of a block; shape (tiles, runs, TILE)."""
        self.watch()
        sums = np.empty((BLOCK // TILE, len(whole), TILE))
        add_up(np.ascontiguousarray(whole), self.draw(self.seed, block, whole.shape[1]), sums)
        return sums


def generator_of(seed: int, block: int) -> np.random.Generator:
    return np.random.default_rng((seed, block))


def state_of(seed: int, block: int) -> Hashes:
    """Four words for a compiled generator to start from."""
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
    """Share the blocks out to threads and add up what they count; compiled code runs side by
    side."""
    shares = [range(at, blocks, threads) for at in range(min(threads, blocks))]
    if len(shares) == 1:
        return work(shares[0])

    with ThreadPoolExecutor(len(shares)) as pool:
        counts: Ints = np.sum(list(pool.map(work, shares)), axis=0)
    return counts


def whole_numbers(values: Matrix) -> Matrix:
    """Return the values times a power of two, rounded, so that the sizes of a run's values add up
    to 2^38 at most."""
    topics = values.shape[1]
    _, exponent = np.frexp(np.abs(values).max(initial=0.0))
    whole: Matrix = np.rint(np.ldexp(values, _BITS - int(np.ceil(np.log2(topics))) - int(exponent)))
    return whole


def least_of(whole: Matrix, first: Ints, second: Ints) -> Floats:
    """Return the difference of sums from which on a resample is as extreme as what was observed.

    Two equal sums can differ by half a unit for each value, observed and drawn: so far below it
    counts as a tie.
    """
    observed = np.abs(whole.sum(axis=1)[first] - whole.sum(axis=1)[second])
    least: Floats = observed - 2.0 * whole.shape[1]
    return least


def centred(whole: Matrix) -> Matrix:
    """Return each run's values without their mean, times the number of topics: still whole numbers,
    exact to 16,384 topics."""
    spread: Matrix = whole.shape[1] * whole - whole.sum(axis=1, keepdims=True)
    return spread


def count_pairs(whole: Matrix, least: Floats, first: Ints, second: Ints, plan: Plan) -> Ints:
    """In how many resamples the sums of each pair are at least so far apart; shape (1, pairs)."""

    def count(blocks: range) -> Ints:
        counts = np.zeros((1, len(first)), np.int64)
        for block in blocks:
            count_extreme(
                plan.sums(block, whole), plan.left(block), first, second, least, counts[0]
            )

        return counts

    return in_threads(count, plan.blocks, plan.threads)


def apart_from_huge(
    values: Matrix, first: Ints, second: Ints, compare: Callable[[Matrix, Ints, Ints], Ints]
) -> Ints:
    """Return what `compare` counts for each pair; where values lose digits beside huge ones of
    another run, without that."""
    found = compare(values, first, second)
    largest = np.abs(whole_numbers(values)).max(axis=1)
    sizes = np.abs(values).max(axis=1)
    coarse = (np.maximum(largest[first], largest[second]) < _COARSE) & (
        np.maximum(sizes[first], sizes[second]) > 0
    )

    if coarse.any() and not coarse.all():
        runs, places = np.unique([first[coarse], second[coarse]], return_inverse=True)
        found[:, coarse] = apart_from_huge(values[runs], places[0], places[1], compare)

    return found
