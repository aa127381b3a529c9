"""Judge the lines of a run while scanning them, in compiled code.

The code is in `runs.formats.scanning.kernels.judging`.
"""

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
    "float64[::1], int64[:, ::1], int64[::1], int64[::1], float64[::1], "
    "int64[::1], int64[::1], int64[::1])",
)
KERNELS = (_FILL, _JUDGE)
# The fewest bytes of a usual line, and the columns of one.
_SHORTEST, _COLUMNS = 12, 6
_DELETE = b"\x7f"


def line_judge(judgements: Judgements, scores: ScoreType, checked: bool) -> LineJudge:
    """Return a function that judges lines by judgements; `checked` lines are known to be valid."""
    tables = judgements.derived("lines", _Tables.of)

    def judge(content: bytes, size: int, first_line: int, limits: Limits) -> JudgedLines | None:
        if not checked and _DELETE in content:
            return None

        data, capacity = np.frombuffer(content, np.uint8), size // _SHORTEST + 1
        ranks, row_scores, score = np.empty((3, capacity), np.float64)
        topics, totals = np.empty((capacity, 5), np.int64), np.empty(5, np.int64)
        judged_columns = np.empty((4, capacity), np.int64)
        count = _JUDGE(
            data, size, judgements.seed, scores == "float32", not checked,
            limits.id_length, limits.line_length,
            tables.topics, tables.topic_data, tables.topic_starts, tables.topic_ends,
            tables.documents, tables.places, judgements.data, tables.starts, tables.ends,
            np.empty(_COLUMNS, np.uint64), *np.empty((3, capacity), np.uint64),
            np.empty(4 * capacity + 4, np.int32), ranks, row_scores, topics,
            judged_columns[0], judged_columns[1], score, judged_columns[2], judged_columns[3],
            totals,
        )  # fmt: skip

        if not count:
            return None

        rows, judged_rows, tied, tag, tag_end = totals.tolist()
        begin, end, topic_of, sizes, judged = topics[:count].T.copy()

        with np.errstate(over="ignore"):
            squares = np.add.reduceat(np.square(row_scores[:rows]), np.cumsum(sizes) - sizes)

        ids = [
            content[start:stop] for start, stop in zip(begin.tolist(), end.tolist(), strict=True)
        ]

        # Copies, so that only judged rows stay in memory.
        rank, judgement, tie_first, tie_size = judged_columns[:, :judged_rows].copy()
        block = JudgedBlock(
            ids,
            topic_of,
            sizes,
            judged,
            squares,
            rank,
            judgement,
            score[:judged_rows].copy(),
            tie_first,
            tie_size,
        )
        return JudgedLines(block, first_line, rows, content[tag:tag_end], tied)

    return judge


def are_distinct(judgements: Judgements) -> bool:
    """Return whether the documents of each topic have different hashes: then none is judged twice.

    This fills the tables for judging, which are kept.
    """
    tables = _Tables.of(judgements, once=True)
    if tables.complete:
        judgements.derived("lines", lambda _: tables)
    return tables.complete


@dataclass(frozen=True)
class _Tables:
    """Hash tables: one of the topics, and one of the documents of each topic.

    The tables of documents are in one array, from `places` on. `complete` says whether all
    documents are in them.
    """

    topics: Hashes
    topic_data: Bytes
    topic_starts: Positions
    topic_ends: Positions
    documents: Hashes
    places: Hashes
    starts: Positions
    ends: Positions
    complete: bool

    @classmethod
    def of(cls, judgements: Judgements, once: bool = False) -> _Tables:
        """Return the tables of judgements; with `once`, stop if a topic has a hash twice."""
        topic_data = np.frombuffer(b"".join(judgements.topic_ids), np.uint8)
        edges = np.cumsum([0, *map(len, judgements.topic_ids)], dtype=np.int32)
        topic_starts, topic_ends = edges[:-1], edges[1:]
        hashes = hash_spans(topic_data, topic_starts, topic_ends, judgements.seed)
        topics, _, _ = _fill_tables(np.array([0, len(hashes)]), hashes, once=False)
        documents, places, complete = _fill_tables(
            judgements.topic_starts, judgements.doc_hashes, once
        )

        return cls(
            topics,
            topic_data,
            topic_starts,
            topic_ends,
            documents,
            places,
            *judgements.short_spans,
            complete,
        )


def _fill_tables(starts: Ints, hashes: Hashes, once: bool) -> tuple[Hashes, Hashes, bool]:
    """Return a hash table for each group of hashes, where each begins, and whether all are in them.

    A table is at most half full, and small, so that it stays in the cache. With `once`, a hash that
    is twice in a group ends the filling.
    """
    room = 2 ** np.ceil(np.log2(np.maximum(2 * np.diff(starts), 2))).astype(np.int64)
    places = np.append(0, np.cumsum(room)).astype(np.uint64)
    table = np.zeros(int(places[-1]), np.uint64)
    complete = _FILL(starts, hashes, table, places, once)

    return table, places, bool(complete)
