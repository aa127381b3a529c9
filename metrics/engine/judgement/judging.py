"""Judging: compare a run's blocks with the judgements. Only this module decides order and ties.

The tie rule is trec_eval's: score descending, then doc_id descending bytewise, the rank column
ignored. Scores are compared as doubles (trec_eval 10) or as float32 (trec_eval 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from metrics.engine.arrays import Bytes, Flags, Floats, Hashes, Ints, Positions
from metrics.engine.judgement.judged import JudgedRun, RecallBase
from metrics.engine.judgement.ranking import RankedBlock, descending_id_keys, spans_equal
from metrics.engine.judgement.sampling import Sampling
from metrics.engine.judgement.subtopics import Subtopics

ScoreType = Literal["float64", "float32"]
SCORE_TYPES: tuple[ScoreType, ...] = ("float64", "float32")

_T = TypeVar("_T")
_TOPIC_MIX = np.uint64(0xD6E8FEB86659FD93)
_FILTER_BITS = 16
_FILTER_SHIFT = np.uint64(64 - _FILTER_BITS)
# Sort keys of longer ids than this would take more memory than the ids themselves: Python sorts
# those.
_LONG_ID = 64


@dataclass(frozen=True)
class Judgements:
    """A qrels version in arrays: one row per (topic, document), rows grouped by topic in the file's
    order of topics.

    Shapes: `topics`, `levels`, `doc_starts`, `doc_ends`, `doc_hashes` have one entry per judged
    document; doc ids are spans of `data`; `doc_hashes` use `seed`. `subtopics` is None if every
    topic has one iteration only, `sampling` unless the documents are a sample.
    """

    topic_ids: list[bytes]
    topics: Ints
    levels: Ints
    data: Bytes
    doc_starts: Positions
    doc_ends: Positions
    doc_hashes: Hashes
    seed: int
    subtopics: Subtopics | None = None
    sampling: Sampling | None = None

    @cached_property
    def topic_index(self) -> dict[bytes, int]:
        """Return the number of each topic by its id."""
        return {topic_id: index for index, topic_id in enumerate(self.topic_ids)}

    @cached_property
    def topic_starts(self) -> Ints:
        """Return the first row of each topic, and the number of rows at the end."""
        starts: Ints = np.searchsorted(self.topics, np.arange(len(self.topic_ids) + 1))
        return starts

    @property
    def short_spans(self) -> tuple[Positions, Positions]:
        """Return where each document begins and ends in `data` in the four bytes that kernels read.
        Raise ValueError if `data` has more than 2 GB."""
        if len(self.data) > np.iinfo(np.int32).max:
            raise ValueError("the document ids of the judgements have more than 2 GB")

        starts, ends = (
            np.ascontiguousarray(column, np.int32) for column in (self.doc_starts, self.doc_ends)
        )
        return starts, ends

    @cached_property
    def recall_base(self) -> RecallBase:
        return RecallBase.of(self.topics, self.levels, len(self.topic_ids))

    @cached_property
    def _keys(self) -> tuple[Hashes, Ints]:
        keys = _topic_keys(self.topics) ^ self.doc_hashes
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def _filter(self) -> Flags:
        prefixes = np.zeros(1 << _FILTER_BITS, np.bool_)
        prefixes[self._keys[0] >> _FILTER_SHIFT] = True
        return prefixes

    @cached_property
    def places(self) -> dict[tuple[int, bytes], int]:
        """Return the row of each judgement by the number of its topic and its document id."""
        text = self.data.tobytes()
        spans = zip(
            self.topics.tolist(), self.doc_starts.tolist(), self.doc_ends.tolist(), strict=True
        )
        return {(topic, text[start:end]): row for row, (topic, start, end) in enumerate(spans)}

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def derived(self, name: str, compute: Callable[[Judgements], _T]) -> _T:
        """Return what another module derives from the judgements, computed once."""
        if name not in self._derived:
            self._derived[name] = compute(self)
        value: _T = self._derived[name]
        return value

    def find(self, block: RankedBlock, topic_of: Ints) -> tuple[Ints, Ints]:
        """Return the rows of `block` that are judged and the judgement of each; `topic_of` gives
        the topic of each of its topics here, or -1.

        A hash only proposes a match: every match is compared byte by byte, and a wrong one is
        looked up exactly.
        """
        # A filter of the keys' first bits excludes most rows.
        sizes = np.diff(block.topic_starts)
        keys = np.repeat(_topic_keys(topic_of), sizes)
        keys ^= block.doc_hashes
        rows = np.flatnonzero(self._filter[keys >> _FILTER_SHIFT])
        ordered, order = self._keys

        nearest = np.minimum(np.searchsorted(ordered, keys[rows]), len(ordered) - 1)
        same_key = ordered[nearest] == keys[rows]
        rows, matched = rows[same_key], order[nearest[same_key]]
        topics = topic_of[block.topics_of(rows)]

        # Two documents can have the same key.
        is_same = spans_equal(
            block.data, block.doc_starts[rows], block.doc_ends[rows],
            self.data, self.doc_starts[matched], self.doc_ends[matched],
        )  # fmt: skip
        is_same &= topics == self.topics[matched]
        for index in np.flatnonzero(~is_same).tolist():
            row = int(rows[index])
            doc_id = block.data[block.doc_starts[row] : block.doc_ends[row]].tobytes()
            matched[index] = self.places.get((int(topics[index]), doc_id), -1)

        return rows[matched >= 0], matched[matched >= 0]


def _topic_keys(topics: Ints) -> Hashes:
    return (topics + 1).astype(np.uint64) * _TOPIC_MIX


@dataclass(frozen=True)
class Matches:
    """The judged rows of a block and the judgement of each. `ties` has first position and size of
    the tie group of each, if the block's topics are in descending order of score and the search
    found the ties."""

    rows: Ints
    judgements: Ints
    ties: tuple[Ints, Ints] | None = None


Search = Callable[[RankedBlock, Floats, Judgements, Ints], Matches]


@dataclass(frozen=True)
class JudgedBlock:
    """Complete topics of a run that a reader has judged already, by the tie rule.

    Shapes: `topic_of` (the number among the judged topics, or -1), `sizes`, `judged` (how many
    documents are judged) and `squares` (the sum of squared scores) have one entry per topic; the
    others one per judged document, by topic and rank.
    """

    topic_ids: list[bytes]
    topic_of: Ints
    sizes: Ints
    judged: Ints
    squares: Floats
    rank: Ints
    judgement: Ints
    score: Floats
    tie_first: Ints
    tie_size: Ints


def search(block: RankedBlock, scores: Floats, judgements: Judgements, topic_of: Ints) -> Matches:
    """Search in plain NumPy; `metrics.engine.judgement.search` has a compiled version."""
    return Matches(*judgements.find(block, topic_of))


def judge_nothing(judgements: Judgements) -> JudgedRun:
    """Return the view of a run that has no ranking."""
    return replace(judge((), judgements), ranked=False)


def judge(
    blocks: Iterable[RankedBlock | JudgedBlock],
    judgements: Judgements,
    scores: ScoreType = "float64",
    search: Search = search,
) -> JudgedRun:
    """Order a run by the tie rule and keep its judged documents.

    `blocks` is read once, so a run of any length is judged in the memory of one block. Topics
    without judgements are left out, as in trec_eval.
    """
    n_topics = len(judgements.topic_ids)
    num_ret = np.zeros(n_topics, np.int64)
    squares = np.zeros(n_topics, np.float64)
    parts = [
        _take_judged(block, num_ret, squares)
        if isinstance(block, JudgedBlock)
        else _judge_block(block, judgements, scores, search, num_ret, squares)
        for block in blocks
    ]

    columns: list[Any] = [_NO_ROWS] * len(_Rows._fields)
    if parts:
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    rows = _by_topic_and_rank(_Rows(*columns))

    judgement = rows.judgement.astype(np.int64, copy=False)
    return JudgedRun(
        topic=rows.topic.astype(np.int64, copy=False),
        rank=rows.rank.astype(np.int64, copy=False),
        level=judgements.levels[judgement],
        judgement=judgement,
        score=rows.score.astype(np.float64, copy=False),
        tie_first=rows.tie_first.astype(np.int64, copy=False),
        tie_size=rows.tie_size.astype(np.int64, copy=False),
        num_ret=num_ret,
        squared_scores=squares,
        recall_base=judgements.recall_base,
        subtopics=judgements.subtopics,
        sampling=judgements.sampling and judgements.sampling.take(judgement),
    )


def _by_topic_and_rank(rows: _Rows) -> _Rows:
    """Return the rows in the order of topic and rank, which most of them have already."""
    topic, rank = rows.topic, rows.rank
    rises = topic[1:] > topic[:-1]
    if (rises | ((topic[1:] == topic[:-1]) & (rank[1:] > rank[:-1]))).all():
        return rows

    order = np.lexsort((rank, topic))
    columns: list[Any] = [column[order] for column in rows]
    return _Rows(*columns)


def order_topic(block: RankedBlock, topic_id: bytes, scores: ScoreType = "float64") -> Ints:
    """Return all rows of one topic of the block, judged or not, in the order of the tie rule."""
    topic = block.topic_ids.index(topic_id)
    rows = np.arange(block.topic_starts[topic], block.topic_starts[topic + 1])
    by_id = rows[_order_by_id(block, rows, np.zeros_like(rows))]
    with np.errstate(over="ignore"):
        topic_scores = block.scores[by_id].astype(scores, copy=False)
    return by_id[np.argsort(-topic_scores, kind="stable")]


_NO_ROWS = np.zeros(0, np.int64)


class _Rows(NamedTuple):
    """Judged documents: one entry each in every column."""

    topic: Ints
    rank: Ints
    judgement: Ints
    score: Floats
    tie_first: Ints
    tie_size: Ints


def _take_judged(block: JudgedBlock, num_ret: Ints, squares: Floats) -> _Rows:
    """Return the rows of a block that is judged already, and count it in `num_ret` and
    `squares`."""
    is_judged = block.topic_of >= 0
    num_ret[block.topic_of[is_judged]] += block.sizes[is_judged]
    squares[block.topic_of[is_judged]] += block.squares[is_judged]

    topic = np.repeat(block.topic_of, block.judged)
    return _Rows(topic, block.rank, block.judgement, block.score, block.tie_first, block.tie_size)


def _judge_block(
    block: RankedBlock,
    judgements: Judgements,
    score_type: ScoreType,
    search: Search,
    num_ret: Ints,
    squares: Floats,
) -> _Rows:
    """Return the judged rows of a block, and count it in `num_ret` and `squares`."""
    index = judgements.topic_index
    topic_of = np.array([index.get(topic_id, -1) for topic_id in block.topic_ids], np.int64)
    is_judged = topic_of >= 0
    num_ret[topic_of[is_judged]] += np.diff(block.topic_starts)[is_judged]

    with np.errstate(over="ignore"):
        scores = block.scores.astype(score_type, copy=False)
        squares[topic_of[is_judged]] += np.add.reduceat(
            np.square(block.scores), block.topic_starts[:-1]
        )[is_judged]

    # The rank of a document without a tie is its position in the order of scores.
    matches = search(block, scores, judgements, topic_of)
    rows = matches.rows
    topics = block.topics_of(rows)
    score_order = _ScoreOrder(None, None, scores) if matches.ties else _ScoreOrder.of(block, scores)
    position = score_order.positions_of(rows)
    first, size = matches.ties or score_order.tie_groups(block, position, topics)

    # Within a tie, document ids decide.
    rank = position.copy()
    tied = np.flatnonzero(size > 1)
    if len(tied):
        rank[tied] = _rank_in_ties(block, score_order, rows[tied], first[tied], size[tied])

    start = block.topic_starts[topics]
    return _Rows(
        topic=topic_of[topics],
        rank=rank - start + 1,
        judgement=matches.judgements,
        score=block.scores[rows],
        tie_first=first - start + 1,
        tie_size=size,
    )


@dataclass(frozen=True)
class _ScoreOrder:
    """The positions of the rows of a block with each topic in descending order of score."""

    row_at: Ints | None  # row at each position; None where the file is already in order
    position_of: Ints | None  # position of each row
    scores: Floats  # score at each position

    @classmethod
    def of(cls, block: RankedBlock, scores: Floats) -> _ScoreOrder:
        rises = np.flatnonzero(scores[1:] > scores[:-1]) + 1
        # At the beginning of a topic its best score may be above the last one of the topic before.
        rises = rises[block.topic_starts[block.topics_of(rises)] != rises]
        if not len(rises):
            return cls(None, None, scores)

        row_at = _descending(block, scores, rises)
        position_of = np.empty_like(row_at)
        position_of[row_at] = np.arange(len(row_at))
        return cls(row_at, position_of, scores[row_at])

    def positions_of(self, rows: Ints) -> Ints:
        return rows if self.position_of is None else self.position_of[rows]

    def rows_at(self, positions: Ints) -> Ints:
        return positions if self.row_at is None else self.row_at[positions]

    def tie_groups(self, block: RankedBlock, positions: Ints, topics: Ints) -> tuple[Ints, Ints]:
        """Return first position and size of the tie group of each position.

        Few documents tie: only topics with a document that has its neighbour's score are examined.
        """
        first, size = positions.copy(), np.ones_like(positions)
        begin, end = block.topic_starts[topics], block.topic_starts[topics + 1]
        scores = self.scores[positions]
        above = (positions > begin) & (self.scores[positions - 1] == scores)
        below = (positions + 1 < end) & (
            self.scores[np.minimum(positions + 1, len(self.scores) - 1)] == scores
        )
        tied = np.flatnonzero(above | below)
        if len(tied):
            starts, ends = self._groups(block, np.unique(topics[tied]))
            group = np.searchsorted(starts, positions[tied], side="right") - 1
            first[tied], size[tied] = starts[group], (ends - starts)[group]

        return first, size

    def _groups(self, block: RankedBlock, topics: Ints) -> tuple[Ints, Ints]:
        """Return first position and end of every tie group of some topics."""
        positions = block.rows_of(topics)
        scores = self.scores[positions]
        new = np.ones(len(positions), np.bool_)
        new[1:] = (scores[1:] != scores[:-1]) | (positions[1:] != positions[:-1] + 1)
        sizes = np.diff(block.topic_starts)[topics]
        new[np.cumsum(sizes) - sizes] = True
        starts = np.flatnonzero(new)
        ends = np.append(starts[1:], len(positions))

        return positions[starts], positions[ends - 1] + 1


def _descending(block: RankedBlock, scores: Floats, rises: Ints) -> Ints:
    """Return the rows in descending order of score, touching only the topics in which a score
    rises."""
    order = np.arange(len(scores))
    unsorted = np.unique(block.topics_of(rises))
    rows = block.rows_of(unsorted)
    group = np.repeat(unsorted, np.diff(block.topic_starts)[unsorted])
    order[rows] = rows[np.lexsort((-scores[rows], group))]

    return order


def _rank_in_ties(
    block: RankedBlock, score_order: _ScoreOrder, rows: Ints, first: Ints, size: Ints
) -> Ints:
    """Return the positions of judged rows within their tie groups: each group is sorted by doc_id
    descending, once."""
    group_first, index = np.unique(first, return_index=True)
    group_size = size[index]
    offsets = np.cumsum(group_size) - group_size
    group = np.repeat(np.arange(len(group_first)), group_size)
    positions = np.arange(len(group)) - offsets[group] + group_first[group]
    members = score_order.rows_at(positions)
    ordered = np.empty(len(members), np.int64)
    ordered[_order_by_id(block, members, group)] = positions

    by_row = np.argsort(members)

    return ordered[by_row[np.searchsorted(members[by_row], rows)]]


def _order_by_id(block: RankedBlock, rows: Ints, group: Ints) -> Ints:
    """Return the order of the rows by group, and by document id descending within it."""
    starts, ends = block.doc_starts[rows], block.doc_ends[rows]
    if int((ends - starts).max()) > _LONG_ID:
        text = block.data.tobytes()
        ids = [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__, reverse=True))
        return by_id[np.argsort(group[by_id], kind="stable")]

    return np.lexsort((*reversed(descending_id_keys(block.data, starts, ends)), group))
