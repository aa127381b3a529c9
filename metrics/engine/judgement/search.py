"""Compiled search: find the judged rows of a block, and their ties, in one pass over the block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metrics.engine.arrays import Floats, Ints, Positions
from metrics.engine.compiled.machine_code import Kernel
from metrics.engine.judgement.judging import Judgements, Matches
from metrics.engine.judgement.ranking import RankedBlock

_MODULE = "metrics.engine.compiled.kernels.searching"
_FILL = Kernel(_MODULE, "fill", "void(int64[::1], uint64[::1], int64[::1], int64[::1])")
_SEARCH = {
    scores: Kernel(
        _MODULE,
        "search",
        f"uint64(uint8[::1], int64[::1], {scores}[::1], int32[:], int32[:], uint64[::1], "
        "int64[::1], uint8[::1], int32[::1], int32[::1], uint64[::1], int64[::1], int64[::1], "
        "int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1])",
    )
    for scores in ("float64", "float32")
}
KERNELS = (_FILL, *_SEARCH.values())
_FREE = -1


class _Tables(NamedTuple):
    """A hash table of the judgements of each topic in `table`, which begins at one of `starts`; and
    the spans of the documents."""

    table: Ints
    starts: Ints
    doc_starts: Positions
    doc_ends: Positions


def search_compiled(
    block: RankedBlock, scores: Floats, judgements: Judgements, topic_of: Ints
) -> Matches:
    """Return the same as `metrics.engine.judgement.judging.search`."""
    tables = judgements.derived("tables", _tables)
    capacity = int(np.diff(block.topic_starts)[topic_of >= 0].sum())
    rows, judgement_rows, first, size = (np.empty(capacity, np.int64) for _ in range(4))
    descends = np.empty(1, np.uint8)
    count = _SEARCH[scores.dtype.name](
        block.data, block.topic_starts, scores, block.doc_starts.astype(np.int32, copy=False),
        block.doc_ends.astype(np.int32, copy=False), block.doc_hashes,
        topic_of, judgements.data, tables.doc_starts, tables.doc_ends, judgements.doc_hashes,
        tables.table, tables.starts, rows, judgement_rows, first, size, descends,
    )  # fmt: skip

    # Copies, so that only the matches of a block stay in memory.
    rows, judgement_rows, first, size = (
        column[:count].copy() for column in (rows, judgement_rows, first, size)
    )
    return Matches(rows, judgement_rows, (first, size) if descends[0] else None)


def _tables(judgements: Judgements) -> _Tables:
    """Return the hash tables of all topics. A table is at most half full, and fits into a cache."""
    sizes = np.bincount(judgements.topics, minlength=len(judgements.topic_ids))
    capacities = 2 ** np.ceil(np.log2(np.maximum(2 * sizes, 2))).astype(np.int64)
    starts = np.append(0, np.cumsum(capacities))
    table = np.full(starts[-1], _FREE, np.int64)
    _FILL(judgements.topics, judgements.doc_hashes, table, starts)

    return _Tables(table, starts, *judgements.short_spans)
