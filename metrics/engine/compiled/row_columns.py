"""The columns of a judged view's rows in fewer bytes: rows are stored by their differences.

Rows are sorted by topic and rank, so a topic is stored once for all of its rows, and a rank as its
distance from the row above. A document's row of the judgements is one of its topic's. Scores that
were written as decimals are whole multiples of their last digit, which differ little between
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from metrics.engine.arrays import Floats, Ints

COLUMNS = ("topic", "rank", "level", "judgement", "score", "tie_first", "tie_size")
# Numbers of digits after the point that are tried, and the scores of a first, quick try.
_DECIMALS = (0, 1, 2, 3, 4, 5, 6, 7, 8)
_SAMPLE = 16
# All whole numbers up to this one are floats.
_EXACT = 2.0**53


@dataclass(frozen=True)
class _Topics:
    """The first row and the number of rows of each topic that has rows."""

    topic: Ints
    starts: Ints
    sizes: Ints

    @classmethod
    def of(cls, counts: Ints) -> Self:
        topic = np.flatnonzero(counts)
        sizes = counts[topic]
        return cls(topic, np.cumsum(sizes) - sizes, sizes)

    def spread(self, values: Ints) -> Ints:
        """Return the value of each topic for each of its rows."""
        return np.repeat(values, self.sizes)

    def steps(self, column: Ints) -> tuple[Ints, Ints]:
        """Return a column's first value in each topic, and the difference of each row from the one
        above, 0 in the first."""
        added = np.zeros_like(column)
        np.subtract(column[1:], column[:-1], out=added[1:])
        added[self.starts] = 0
        return column[self.starts], added

    def from_steps(self, first: Ints, added: Ints) -> Ints:
        reached = np.cumsum(added)
        return reached + self.spread(first - reached[self.starts])


def shrink(columns: dict[str, Any], n_topics: int) -> dict[str, Any]:
    """Return the columns of COLUMNS as arrays of fewer bytes; `grow` restores every bit."""
    topic, rank, level, judgement, score, tie_first, tie_size = (columns[name] for name in COLUMNS)
    counts = np.bincount(topic, minlength=n_topics)
    topics = _Topics.of(counts)
    rank_first, rank_added = topics.steps(rank)
    least = np.minimum.reduceat(judgement, topics.starts) if len(topic) else judgement

    return {
        "rows": counts,
        "rank_first": rank_first,
        "rank_added": rank_added,
        "level": level,
        "judgement_least": least,
        "judgement_above": judgement - topics.spread(least),
        **_shrink_scores(score, topics),
        "tie_before": rank - tie_first,
        "tie_size": tie_size,
    }


def grow(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that `shrink` took, and remove its arrays from these."""
    counts = arrays.pop("rows")
    topics = _Topics.of(counts)
    rank = topics.from_steps(arrays.pop("rank_first"), arrays.pop("rank_added"))
    return {
        "topic": topics.spread(topics.topic),
        "rank": rank,
        "level": arrays.pop("level"),
        "judgement": arrays.pop("judgement_above") + topics.spread(arrays.pop("judgement_least")),
        "score": _grow_scores(arrays, topics),
        "tie_first": rank - arrays.pop("tie_before"),
        "tie_size": arrays.pop("tie_size"),
    }


def _shrink_scores(score: Floats, topics: _Topics) -> dict[str, Any]:
    sample = score[:_SAMPLE].tolist()
    for decimals in _DECIMALS:
        if (
            all(round(value, decimals) == value for value in sample)
            and (whole := _as_whole(score, decimals)) is not None
        ):
            first, added = topics.steps(whole)
            return {
                "score_decimals": np.array([decimals]),
                "score_first": first,
                "score_added": added,
            }

    return {"score": score}


def _grow_scores(arrays: dict[str, Any], topics: _Topics) -> Floats:
    score: Floats
    if "score" in arrays:
        score = arrays.pop("score")
    else:
        whole = topics.from_steps(arrays.pop("score_first"), arrays.pop("score_added"))
        score = whole / 10.0 ** arrays.pop("score_decimals").item()

    return score


def _as_whole(score: Floats, decimals: int) -> Ints | None:
    """Return the scores as multiples of the last of this many digits, or None if these would not
    restore the same bits: a zero with a sign, for example."""
    unit = 10.0**decimals
    # A very large score, multiplied, is infinite.
    with np.errstate(over="ignore"):
        rounded = np.rint(score * unit)

    if np.abs(rounded).max(initial=0) > _EXACT:
        return None
    whole = rounded.astype(np.int64)
    return whole if np.array_equal((whole / unit).view(np.int64), score.view(np.int64)) else None
