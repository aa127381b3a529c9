"""Choose the code that scans a file: the compiled kernel or plain NumPy.

Both return the same arrays. The service always uses the kernel. A command chooses with `plain_for`:
it may end before the kernel would be loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from metrics.engine.arrays import Ints
from metrics.engine.judgement import search as compiled_search
from metrics.engine.judgement.judging import Judgements, ScoreType, Search, search
from runs.formats.limits import Limits
from runs.formats.scanning import judgement_lines, kernel, line_judge, plain_scan
from runs.formats.scanning.columns import Columns, JudgementReader, Layout, LineJudge

# Compiling once takes seconds, in which the plain scan reads some hundred MB.
PLAIN_BYTES = 32 * 1024 * 1024
_COMPILED = (kernel, line_judge, judgement_lines, compiled_search)
# With this, every line ends in a newline, and columns may be read many bytes at a time.
PADDING = b"\n" * 128
_is_plain = ContextVar("is_plain", default=False)


@contextmanager
def plain_for(size: int) -> Iterator[None]:
    """Scan with plain NumPy inside the block if this is faster.

    The kernels must not be compiled yet, and at most PLAIN_BYTES are read.
    """
    compiled = all(
        kernel_function.compiled for module in _COMPILED for kernel_function in module.KERNELS
    )
    token = _is_plain.set(size <= PLAIN_BYTES and not compiled)
    try:
        yield
    finally:
        _is_plain.reset(token)


def scan(
    content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits
) -> Columns:
    """Return the columns of whole lines: the first `size` bytes.

    `first_line` is the 1-based number of the first line. PADDING must follow somewhere; if it
    follows immediately, the last line may lack its newline.
    """
    if _is_plain.get():
        return plain_scan.scan(content, size, layout, first_line, seed, limits)
    return kernel.scan(content, size, layout, first_line, seed, limits)


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each repeated document of a topic, and the row that repeats it.

    They are in the order of the repeating rows.
    """
    if _is_plain.get():
        return plain_scan.find_duplicates(columns, topic_starts)
    return kernel.find_duplicates(columns, topic_starts)


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines, the first `size` bytes, begins.

    Return 0 if they have only one topic, and the end of the last line if all are comments or blank.
    """
    if _is_plain.get():
        return plain_scan.last_topic(content, size)
    return kernel.last_topic(content, size)


def search_beside() -> Search:
    """Return the search of judgements for the chosen scan: both are compiled, or both plain."""
    return search if _is_plain.get() else compiled_search.search_compiled


def judge_beside(
    judgements: Judgements, scores: ScoreType, checked: bool = False
) -> LineJudge | None:
    """Return a function that judges lines while it scans them, or None with the plain scan.

    `checked` lines are known to be valid.
    """
    return None if _is_plain.get() else line_judge.line_judge(judgements, scores, checked)


def judgements_beside(seed: int) -> JudgementReader:
    """Return a function that reads judgements without columns; the plain scan has none."""
    if _is_plain.get():
        return lambda *_: None
    return judgement_lines.judgement_reader(seed)
