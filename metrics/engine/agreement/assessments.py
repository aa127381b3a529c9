"""Two sets of judgements of the same documents: which levels they give, and how far they agree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.judging import Judgements


@dataclass(frozen=True)
class Assessments:
    """Judged pairs of topic and document by the level that each side gives.

    Shapes: `levels` are those that occur on either side, ascending; `both` is (levels, levels), the
    first side's level in rows; `only_first` and `only_second` are (levels,), documents that one
    side alone has judged.

    `agreement` is the share of documents judged by both that have the same level. `kappa` is
    Cohen's, and `weighted_kappa` the same with linear weights on the difference of levels.
    `overlap` is the number of documents that both call relevant (level 1 or more) over those that
    either does, all judged documents taken into account. `cosine` is Borlund and Ingwersen's
    relative relevance: the cosine of both vectors of levels over the documents judged by both,
    levels below 0 counting 0. Each is NaN where it divides by nothing.

    Sources: Cohen (1960), Educational and Psychological Measurement 20; Cohen (1968), Psychological
    Bulletin 70; overlap: Voorhees (2000), Information Processing & Management 36; cosine: Borlund
    and Ingwersen (SIGIR 1998).
    """

    levels: Ints
    both: Ints
    only_first: Ints
    only_second: Ints

    @property
    def row_shares(self) -> Floats:
        """Return `both` over the sums of its rows; shape (levels, levels), NaN in an empty row."""
        return self._over(self.both.sum(axis=1, keepdims=True))

    @property
    def column_shares(self) -> Floats:
        """Return `both` over the sums of its columns; shape (levels, levels), NaN in an empty
        column."""
        return self._over(self.both.sum(axis=0, keepdims=True))

    @property
    def agreement(self) -> float:
        total = int(self.both.sum())
        return int(np.trace(self.both)) / total if total else math.nan

    @property
    def kappa(self) -> float:
        return self._kappa(1.0 - np.eye(len(self.levels)))

    @property
    def weighted_kappa(self) -> float:
        return self._kappa(np.abs(np.subtract.outer(self.levels, self.levels)).astype(np.float64))

    @property
    def overlap(self) -> float:
        relevant = self.levels >= 1
        rows, columns = self.both[relevant], self.both[:, relevant]
        shared = int(rows[:, relevant].sum())
        either = int(rows.sum() + columns.sum() - shared)
        either += int(self.only_first[relevant].sum() + self.only_second[relevant].sum())

        return shared / either if either else math.nan

    @property
    def cosine(self) -> float:
        gains = np.maximum(self.levels, 0).astype(np.float64)
        product = gains @ self.both @ gains
        lengths = (gains**2 @ self.both.sum(axis=1)) * (gains**2 @ self.both.sum(axis=0))
        return float(product / math.sqrt(lengths)) if lengths else math.nan

    def _over(self, sums: Ints) -> Floats:
        shares: Floats = np.full(self.both.shape, np.nan)
        np.divide(self.both, sums, out=shares, where=sums > 0)
        return shares

    def _kappa(self, weights: Floats) -> float:
        """Return 1 minus observed disagreement over that expected of independent assessors."""
        total = self.both.sum()
        expected = np.outer(self.both.sum(axis=1), self.both.sum(axis=0)) * weights
        if expected.any():
            return float(1.0 - total * (self.both * weights).sum() / expected.sum())
        return math.nan


def compare_assessments(first: Judgements, second: Judgements) -> Assessments:
    """Match the judgements of both sides by topic and document id."""
    levels = np.union1d(first.levels, second.levels)
    rows = np.searchsorted(levels, first.levels)
    columns = np.searchsorted(levels, second.levels)
    row_of = second.places
    shared = [topic_id in second.topic_index for topic_id in first.topic_ids]

    matches = np.full(len(first.levels), -1, np.int64)
    for (topic, document), row in first.places.items():
        if shared[topic]:
            matches[row] = row_of.get((second.topic_index[first.topic_ids[topic]], document), -1)

    matched = matches >= 0
    size = len(levels)
    both = np.bincount(
        rows[matched] * size + columns[matches[matched]], minlength=size * size
    ).reshape(size, size)
    only_second = np.ones(len(second.levels), np.bool_)
    only_second[matches[matched]] = False

    return Assessments(
        levels=levels,
        both=both,
        only_first=np.bincount(rows[~matched], minlength=size),
        only_second=np.bincount(columns[only_second], minlength=size),
    )
