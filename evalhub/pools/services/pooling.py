"""Choose the documents of a pool from rankings, by its recipe."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalhub.pools.services.drawing import draw_order
from evalhub.pools.services.rankings import Rankings
from evalhub.pools.services.recipes import RRF_K, Fusion, Method, Recipe
from metrics.engine.arrays import Flags, Floats, Ints
from runs.attention import keep_going

# The stratum of documents that organisers add; others count from 1.
EXTRA = 0
# Ranks of the table of depths, those up to the depth of the pool.
_TABLE_DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class PooledDocument:
    """A document of a pool.

    Bit r of `contributors` is that of the run with place r; the bit behind the last run is set for
    a document that organisers added. `best_rank` is None if no run has the document.
    """

    doc_id: str
    stratum: int
    probability: float
    contributors: int
    best_rank: int | None


@dataclass(frozen=True)
class DepthTable:
    """Documents of the pool of runs 1 to r at each depth: `documents[r][d]`."""

    depths: list[int]
    documents: list[list[int]]


@dataclass(frozen=True)
class PoolContent:
    """The documents of each topic, and the depth to which each run contributes.

    `undrawn` has by topic the stratum of the documents of strata that were not drawn.
    """

    topics: list[tuple[str, list[PooledDocument]]]
    depths: list[int]
    table: DepthTable
    undrawn: dict[str, dict[str, int]]

    @property
    def documents(self) -> int:
        return sum(len(documents) for _, documents in self.topics)


def choose_documents(
    *,
    rankings: Rankings,
    recipe: Recipe,
    seed: int,
    rounds: Sequence[Sequence[int]],
    judged: dict[str, set[str]],
) -> PoolContent:
    """Return the documents of a pool.

    `rounds` has the places of runs by priority, `judged` by topic what is left out. Documents of a
    topic are in bytewise order. Topics without a document are left out.

    Depth: the union of ranks 1 to k. With a budget, the rounds are added one after the other, and
    in a round depth grows from 1 to k, until the next rank of a run would exceed the budget; such a
    step is taken for all topics or for none.

    Take: the n best documents of a topic that are not left out, by the sum over runs of
    1 / (60 + rank) (Cormack, Clarke and Büttcher, SIGIR 2009), or of (1 - p) p^(rank - 1) (Moffat,
    Webber and Zobel, SIGIR 2007); ties by document id, descending.

    Sample: of the documents of a topic with a best rank in a stratum, ceil(rate x number) are drawn
    without replacement; each has the probability drawn / number.
    """
    extra = _extra_documents(rankings, recipe)
    new = np.ones(len(rankings.doc_ids), np.bool_)
    for topic, topic_id in enumerate(rankings.topics):
        for doc_id in judged.get(topic_id.decode(), ()):
            number = rankings.find(topic, doc_id.encode())
            if number is not None:
                new[number] = False

    extra = [number for number in extra if new[number]]
    depths = [rankings.depth] * len(rankings.ranked)
    if recipe.method == Method.DEPTH:
        depths = _depths_of(rankings, recipe, rounds, new, extra)

    best = _best_ranks(rankings, depths)
    stratum = np.full(len(new), -1, np.int64)
    probability = np.ones(len(new))
    undrawn: dict[str, dict[str, int]] = {}
    candidates = (best > 0) & new
    candidates[extra] = False
    if recipe.method == Method.DEPTH:
        stratum[candidates] = 1
    elif recipe.method == Method.TAKE:
        stratum[_best_documents(rankings, recipe, candidates)] = 1
    else:
        undrawn = _draw_strata(rankings, recipe, seed, best, candidates, stratum, probability)

    stratum[extra] = EXTRA
    bits = _contributors(rankings, depths, stratum >= 0)
    for number in extra:
        bits[number] |= 1 << len(rankings.ranked)

    return PoolContent(
        _by_topic(rankings, stratum, probability, bits, best),
        depths,
        _table(rankings, rounds, new),
        undrawn,
    )


def _extra_documents(rankings: Rankings, recipe: Recipe) -> list[int]:
    places = {topic: place for place, topic in enumerate(rankings.topics)}
    numbers = (
        rankings.number(places[document.topic_id.encode()], document.doc_id.encode())
        for document in recipe.extra
    )
    return list(dict.fromkeys(numbers))


def _depths_of(
    rankings: Rankings,
    recipe: Recipe,
    rounds: Sequence[Sequence[int]],
    new: Flags,
    extra: Sequence[int],
) -> list[int]:
    """Return how deep each run contributes within the budget."""
    if recipe.budget is None:
        return [rankings.depth] * len(rankings.ranked)

    depths = [0] * len(rankings.ranked)
    outside = new.copy()
    outside[list(extra)] = False
    total = len(extra)

    for places in rounds:
        for depth in range(rankings.depth):
            keep_going()
            for place in places:
                step = rankings.ranked[place][:, depth]
                step = step[step >= 0]
                added = step[outside[step]]
                if total + len(added) > recipe.budget:
                    return depths

                outside[added] = False
                total += len(added)
                depths[place] = depth + 1

    return depths


def _best_ranks(rankings: Rankings, depths: Sequence[int]) -> Ints:
    """Return the best rank of each document over the runs, 0 where no run has it."""
    best = np.zeros(len(rankings.doc_ids), np.int64)
    for ranked, depth in zip(rankings.ranked, depths, strict=True):
        topics, columns = np.nonzero(ranked[:, :depth] >= 0)
        numbers, ranks = ranked[topics, columns], columns + 1
        better = (best[numbers] == 0) | (ranks < best[numbers])
        best[numbers[better]] = ranks[better]
    return best


def _best_documents(rankings: Rankings, recipe: Recipe, candidates: Flags) -> list[int]:
    """Return the n best candidates of each topic by the sum over runs."""
    ranks: Floats = np.arange(1.0, rankings.depth + 1.0)
    if recipe.by == Fusion.RRF:
        weights = 1.0 / (RRF_K + ranks)
    else:
        weights = (1.0 - recipe.p) * recipe.p ** (ranks - 1.0)

    # Documents with the same ranks, in whatever runs, must have the same sum to the last bit: terms
    # are added by rank, not by run.
    listed = [np.nonzero(ranked >= 0) for ranked in rankings.ranked]
    numbers = np.concatenate(
        [ranked[rows] for ranked, rows in zip(rankings.ranked, listed, strict=True)]
    )
    terms = weights[np.concatenate([columns for _, columns in listed])]
    order = np.lexsort((terms, numbers))
    sums = np.bincount(numbers[order], terms[order], minlength=len(rankings.doc_ids))

    by_topic: dict[int, list[int]] = defaultdict(list)
    for number in np.flatnonzero(candidates).tolist():
        by_topic[rankings.topic_of[number]].append(number)

    chosen: list[int] = []
    for rows in by_topic.values():
        rows.sort(key=lambda number: (sums[number], rankings.doc_ids[number]), reverse=True)
        chosen += rows[: recipe.n]
    return chosen


def _draw_strata(
    rankings: Rankings,
    recipe: Recipe,
    seed: int,
    best: Ints,
    candidates: Flags,
    stratum: Ints,
    probability: Floats,
) -> dict[str, dict[str, int]]:
    """Draw the documents of each topic and stratum, and write them into the last two arrays.

    Return the strata of the others by topic.
    """
    undrawn: dict[str, dict[str, int]] = defaultdict(dict)
    for place, part in enumerate(recipe.strata, 1):
        by_topic: dict[int, dict[str, int]] = defaultdict(dict)
        within = candidates & (best >= part.first) & (best <= part.last)
        for number in np.flatnonzero(within).tolist():
            by_topic[rankings.topic_of[number]][rankings.doc_ids[number].decode()] = number

        for topic, numbers in by_topic.items():
            # A product that is a whole number but for rounding is meant to be that number.
            size = math.ceil(round(part.rate * len(numbers), 9))
            topic_id = rankings.topics[topic].decode()
            order = draw_order(seed, "sample", topic_id, doc_ids=numbers)
            chosen = [numbers[doc_id] for doc_id in order[:size]]
            stratum[chosen] = place
            probability[chosen] = size / len(numbers)
            undrawn[topic_id] |= dict.fromkeys(order[size:], place)

    return undrawn


def _contributors(rankings: Rankings, depths: Sequence[int], pooled: Flags) -> dict[int, int]:
    """Return the bits of the runs that have each pooled document within their depth."""
    bits = dict.fromkeys(np.flatnonzero(pooled).tolist(), 0)
    for place, (ranked, depth) in enumerate(zip(rankings.ranked, depths, strict=True)):
        numbers = ranked[:, :depth].ravel()
        numbers = numbers[numbers >= 0]
        for number in numbers[pooled[numbers]].tolist():
            bits[number] |= 1 << place
    return bits


def _by_topic(
    rankings: Rankings, stratum: Ints, probability: Floats, bits: dict[int, int], best: Ints
) -> list[tuple[str, list[PooledDocument]]]:
    topics: list[list[int]] = [[] for _ in rankings.topics]
    for number in bits:
        topics[rankings.topic_of[number]].append(number)

    pooled = []
    for topic_id, numbers in zip(rankings.topics, topics, strict=True):
        numbers.sort(key=rankings.doc_ids.__getitem__)
        documents = [
            PooledDocument(
                doc_id=rankings.doc_ids[number].decode(),
                stratum=int(stratum[number]),
                probability=float(probability[number]),
                contributors=bits[number],
                best_rank=int(best[number]) or None,
            )
            for number in numbers
        ]
        if documents:
            pooled.append((topic_id.decode(), documents))
    return pooled


def _table(rankings: Rankings, rounds: Sequence[Sequence[int]], new: Flags) -> DepthTable:
    """Return how many new documents the first runs, in the order of the rounds, have by depth."""
    depths = [depth for depth in _TABLE_DEPTHS if depth < rankings.depth] + [rankings.depth]
    best = np.full(len(new), rankings.depth + 1, np.int64)
    counts = np.zeros(rankings.depth + 2, np.int64)
    rows = []

    for places in rounds:
        for place in places:
            ranked = rankings.ranked[place]
            topics, columns = np.nonzero(ranked >= 0)
            numbers, ranks = ranked[topics, columns], columns + 1
            better = new[numbers] & (ranks < best[numbers])
            numbers, ranks = numbers[better], ranks[better]
            counts -= np.bincount(best[numbers], minlength=len(counts))
            counts += np.bincount(ranks, minlength=len(counts))
            best[numbers] = ranks
            rows.append(np.cumsum(counts[1:])[np.array(depths) - 1].tolist())

    return DepthTable(depths, rows)
