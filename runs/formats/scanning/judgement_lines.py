"""Read the usual lines of a qrels file in one pass of compiled code.

The code is in `runs.formats.scanning.kernels.judgements`.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from metrics.engine.compiled.machine_code import Kernel
from metrics.engine.judgement.judging import Judgements
from metrics.engine.measures.definition import MAX_LEVEL
from runs.formats.limits import Limits
from runs.formats.scanning.ahead import ahead
from runs.formats.scanning.columns import JudgementReader
from runs.formats.scanning.kernel import large_parts
from runs.formats.scanning.line_judge import are_distinct

_READ = Kernel(
    "runs.formats.scanning.kernels.judgements",
    "read",
    "uint64(uint8[::1], uint64, uint64, uint64, float64, uint64, uint64, "
    "uint64[::1], int64[:, ::1], int32[::1], int32[::1], uint64[::1], int64[::1])",
)
KERNELS = (_READ,)
_COLUMNS = 4
_DELETE = b"\x7f"


def judgement_reader(seed: int) -> JudgementReader:
    """Return a function that reads judgements from usual lines."""

    def read(content: bytes, size: int, first_line: int, limits: Limits) -> Judgements | None:
        if not size or _DELETE in content:
            return None

        data, (parts, lines) = np.frombuffer(content, np.uint8), large_parts(content, size)
        rows, starts = sum(lines), [0, *accumulate(lines[:-1])]
        doc_starts, doc_ends = np.empty((2, rows), np.int32)
        hashes, levels = np.empty(rows, np.uint64), np.empty(rows, np.int64)

        def read_part(part: int) -> list[list[int]]:
            """Return where each topic's id begins and ends, and its first row."""
            end = starts[part] + lines[part]
            own = slice(starts[part], end)
            topics = np.empty((lines[part], 3), np.int64)
            count = _READ(
                data,
                *parts[part],
                seed,
                MAX_LEVEL,
                limits.id_length,
                limits.line_length,
                np.empty(_COLUMNS, np.uint64),
                topics,
                doc_starts[own],
                doc_ends[own],
                hashes[own],
                levels[own],
            )

            topics[:count, 2] += starts[part]
            topics_of_part: list[list[int]] = topics[:count].tolist()
            return topics_of_part

        ids, firsts = list[bytes](), list[int]()
        for topics_of_part in ahead(read_part, iter(range(len(parts))), len(parts)):
            if not topics_of_part:
                return None

            for begin, end, row in topics_of_part:
                # The first topic of a part may be the last one of the part before.
                if not ids or content[begin:end] != ids[-1]:
                    ids.append(content[begin:end])
                    firsts.append(row)

        if len(set(ids)) < len(ids):
            return None

        topics = np.repeat(np.arange(len(ids)), np.diff([*firsts, rows]))
        judgements = Judgements(ids, topics, levels, data, doc_starts, doc_ends, hashes, seed)
        return judgements if are_distinct(judgements) else None

    return read
