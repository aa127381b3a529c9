"""Subtopics: the parts of a topic for which a document is judged, and those that a ranking covers.

Other words for a subtopic are aspect, intent, instance and nugget. Qrels name it in their second
column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.compiled.running import place

# Gains that differ by less are equal: their sums were added in another order.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Coverage:
    """Which subtopics a ranking's documents are relevant to: rows sorted by topic and rank.

    Shapes: one entry per (document, subtopic) in `topic`, `rank`, `earlier` (documents above this
    one that are relevant to the same subtopic) and `size` (judged documents relevant to it,
    retrieved or not); one entry per topic in `subtopics`, how many of them have a relevant
    document.
    """

    topic: Ints
    rank: Ints
    earlier: Ints
    size: Ints
    subtopics: Ints

    @classmethod
    def of(cls, topic: Ints, subtopic: Ints, rank: Ints, n_topics: int) -> Self:
        """Return the relevant rows that have a rank; rank 0 is that of a document that the ranking
        does not contain."""
        cells, cell = _number(topic, subtopic)
        subtopics = np.bincount(topic[cells], minlength=n_topics)
        size = np.bincount(cell)[cell]
        ranked = np.flatnonzero(rank)
        ranked = ranked[np.lexsort((rank[ranked], topic[ranked]))]
        by_cell = np.argsort(cell[ranked], kind="stable")
        earlier = np.empty(len(ranked), np.int64)
        earlier[by_cell] = place(cell[ranked][by_cell])

        return cls(topic[ranked], rank[ranked], earlier, size[ranked], subtopics)


@dataclass(frozen=True)
class Subtopics:
    """The judgements by subtopic, retrieved or not: rows sorted by topic, then by doc_id
    descending.

    Shapes: one entry per judged (document, subtopic) in `topic`, `judgement` (row of the qrels),
    `subtopic` (counted from 0 within the topic) and `level`.
    """

    topic: Ints
    judgement: Ints
    subtopic: Ints
    level: Ints

    @property
    def count(self) -> int:
        """Return how many subtopics there are in all topics, with a relevant document or
        without."""
        return len(_number(self.topic, self.subtopic)[0])

    def without(self, left_out: Flags) -> Self:
        """Return the subtopics without these judgements; `left_out` has one entry for each row of
        the qrels."""
        rows = np.logical_not(left_out[self.judgement])
        return replace(
            self,
            topic=self.topic[rows],
            judgement=self.judgement[rows],
            subtopic=self.subtopic[rows],
            level=self.level[rows],
        )

    def coverage(self, judgement: Ints, rank: Ints, rel: int, n_topics: int) -> Coverage:
        """Return the coverage of a ranking that has these judged documents at these ranks."""
        ranks = np.zeros(self.judgement.max(initial=-1) + 1, np.int64)
        ranks[judgement] = rank
        rows = self.level >= rel
        return Coverage.of(
            self.topic[rows], self.subtopic[rows], ranks[self.judgement[rows]], n_topics
        )

    def ideal(self, rel: int, alpha: float, depth: int, n_topics: int) -> Coverage:
        """Return the coverage of the greedy ideal ranking: at each rank the document that gains
        most after those above it.

        Among documents with the same gain the one with the highest doc_id comes first, as in
        ndeval.
        """
        rows = self.level >= rel
        topic, subtopic = self.topic[rows], self.subtopic[rows]
        rank = _greedy_ranks(
            topic, self.judgement[rows], _number(topic, subtopic)[1], 1.0 - alpha, depth
        )

        return Coverage.of(topic, subtopic, rank, n_topics)


def _number(topic: Ints, subtopic: Ints) -> tuple[Ints, Ints]:
    """Return a row of each subtopic, sorted by topic and subtopic, and for every row the number of
    its subtopic among them."""
    key = topic * (subtopic.max(initial=0) + 1) + subtopic
    _, rows, cell = np.unique(key, return_index=True, return_inverse=True)
    return rows, cell


def _greedy_ranks(topic: Ints, judgement: Ints, cell: Ints, decay: float, depth: int) -> Ints:
    """Return the rank of each row's document in the greedy ideal ranking, 0 below `depth`; each
    round ranks one document per topic."""
    new = np.ones(len(topic), np.bool_)
    new[1:] = judgement[1:] != judgement[:-1]
    starts, document = np.flatnonzero(new), np.cumsum(new) - 1
    _, first, owner = np.unique(topic[starts], return_index=True, return_inverse=True)

    rank = np.zeros(len(starts), np.int64)
    gain = np.ones(cell.max(initial=-1) + 1)
    for next_rank in range(1, min(depth, int(np.bincount(owner).max(initial=0))) + 1):
        chosen = _best(gain[cell], rank, starts, first, owner)
        rank[chosen] = next_rank
        gain[cell[(rank == next_rank)[document]]] *= decay

    ranks: Ints = rank[document]
    return ranks


def _best(gain: Floats, rank: Ints, starts: Ints, first: Ints, owner: Ints) -> Ints:
    """Return the document of each topic with the highest gain among those without a rank, the first
    of several."""
    value = np.add.reduceat(gain, starts)
    value[rank > 0] = -1.0
    best = np.maximum.reduceat(value, first)
    candidates = np.flatnonzero((value >= 0) & (value >= (best * (1.0 - _ROUNDING))[owner]))
    chosen: Ints = candidates[np.unique(owner[candidates], return_index=True)[1]]

    return chosen
