"""Judge the lines of a run while scanning them, with the compiled code of `runs.formats.scanning.kernels.judging`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Bytes, Hashes, Ints, Positions
from metrics.engine.compiled.machine_code import Kernel
from metrics.engine.judgement.judging import JudgedBlock, Judgements, ScoreType
from metrics.engine.judgement.ranking import hash_spans
from runs.formats.limits import Limits
from runs.formats.scanning.columns import JudgedLines, LineJudge

_MODULE = "runs.formats.scanning.kernels.judging"
_FILL = Kernel(_MODULE, "fill", "uint64(int64[::1], uint64[::1], uint64[::1], uint64[::1], uint64)")
_JUDGE = Kernel(
    _MODULE,
    "judge",
    "uint64(uint8[::1], uint64, uint64, uint64, uint64, uint64, uint64, "
    "uint64[::1], uint8[::1], int32[::1], int32[::1], "
    "uint64[::1], uint64[::1], uint8[::1], int32[::1], int32[::1], "
    "uint64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], float64[::1], "
    "float64[::1], int64[:, ::1], int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], int64[::1])",
)
KERNELS = (_FILL, _JUDGE)
# The fewest bytes of a usual line, and the columns of one.
_SHORTEST, _COLUMNS = 12, 6
_DELETE = b"\x7f"


def line_judge(judgements: Judgements, scores: ScoreType, checked: bool) -> LineJudge:
    """Return what judges lines by some judgements; `checked` lines were found to be right before."""
    tables = judgements.derived("lines", _Tables.of)

    def judge(content: bytes, size: int, first_line: int, limits: Limits) -> JudgedLines | None:
        if not checked and _DELETE in content:
            return None
        data, room = np.frombuffer(content, np.uint8), size // _SHORTEST + 1
        ranks, row_scores, score = np.empty((3, room), np.float64)
        topics, told = np.empty((room, 5), np.int64), np.empty(5, np.int64)
        found = np.empty((4, room), np.int64)
        count = _JUDGE(
            data, size, judgements.seed, scores == "float32", not checked, limits.id_length, limits.line_length,
            tables.topics, tables.topic_data, tables.topic_starts, tables.topic_ends, tables.documents, tables.places,
            judgements.data, tables.starts, tables.ends,
            np.empty(_COLUMNS, np.uint64), *np.empty((3, room), np.uint64), np.empty(4 * room + 4, np.int32), ranks,
            row_scores, topics, found[0], found[1], score, found[2], found[3], told,
        )  # fmt: skip
        if not count:
            return None
        rows, matched, tied, tag, tag_end = told.tolist()
        begin, end, topic_of, sizes, judged = topics[:count].T.copy()
        with np.errstate(over="ignore"):
            squares = np.add.reduceat(np.square(row_scores[:rows]), np.cumsum(sizes) - sizes)
        ids = [
            content[start:stop] for start, stop in zip(begin.tolist(), end.tolist(), strict=True)
        ]
        # Copies, so that only what was found stays in memory.
        rank, judgement, tie_first, tie_size = found[:, :matched].copy()
        block = JudgedBlock(
            ids,
            topic_of,
            sizes,
            judged,
            squares,
            rank,
            judgement,
            score[:matched].copy(),
            tie_first,
            tie_size,
        )
        return JudgedLines(block, first_line, rows, content[tag:tag_end], tied)

    return judge


def are_distinct(judgements: Judgements) -> bool:
    """Return whether no two documents of a topic have the same hash, and so none is judged twice. It takes the tables
    that judging takes, which are kept."""
    tables = _Tables.of(judgements, once=True)
    if tables.whole:
        judgements.derived("lines", lambda _: tables)
    return tables.whole


@dataclass(frozen=True)
class _Tables:
    """Hash tables: one of the topics, and in one array, from `places` on, one of the documents of each topic."""

    topics: Hashes
    topic_data: Bytes
    topic_starts: Positions
    topic_ends: Positions
    documents: Hashes
    places: Hashes
    starts: Positions
    ends: Positions
    whole: bool

    @classmethod
    def of(cls, judgements: Judgements, once: bool = False) -> _Tables:
        """Return the tables of some judgements; with `once` they are not whole if a topic has a hash twice."""
        text = b"".join(judgements.topic_ids)
        topic_ends = np.cumsum([0, *map(len, judgements.topic_ids)], dtype=np.int32)
        topic_data, topic_starts, topic_ends = (
            np.frombuffer(text, np.uint8),
            topic_ends[:-1],
            topic_ends[1:],
        )
        hashes = hash_spans(topic_data, topic_starts, topic_ends, judgements.seed)
        topics, _, _ = _filled(np.array([0, len(hashes)]), hashes, once=False)
        documents, places, whole = _filled(judgements.topic_starts, judgements.doc_hashes, once)
        return cls(
            topics,
            topic_data,
            topic_starts,
            topic_ends,
            documents,
            places,
            *judgements.short_spans,
            whole,
        )


def _filled(starts: Ints, hashes: Hashes, once: bool) -> tuple[Hashes, Hashes, bool]:
    """Return a table for each group of hashes, at most half full, so that one table stays in the cache; where each
    begins; and whether all hashes are in them: with `once`, not if one is twice in a group."""
    room = 2 ** np.ceil(np.log2(np.maximum(2 * np.diff(starts), 2))).astype(np.int64)
    places = np.append(0, np.cumsum(room)).astype(np.uint64)
    table = np.zeros(int(places[-1]), np.uint64)
    whole = _FILL(starts, hashes, table, places, once)
    return table, places, bool(whole)
