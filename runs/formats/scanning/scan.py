"""Choose the code that scans a file: the compiled kernel, or plain NumPy in a command that ends before the kernel would
be loaded.

Both give the same arrays. The service always uses the kernel; a command chooses with `plain_for`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from metrics.engine.judging import Judgements, ScoreType, Search, search
from metrics.engine.ranking import Ints
from runs.formats.limits import Limits
from runs.formats.scanning.columns import Columns, JudgementReader, Layout, LineJudge

# Compiling once takes seconds, in which the plain scan reads some hundred MB.
PLAIN_BYTES = 32 * 1024 * 1024
# Names instead of modules, so that using one does not load the other.
_KERNEL, _PLAIN = "runs.formats.scanning.kernel", "runs.formats.scanning.plain_scan"
_COMPILED_SEARCH = "metrics.engine.search"
_LINE_JUDGE, _JUDGEMENT_LINES = (
    "runs.formats.scanning.line_judge",
    "runs.formats.scanning.judgement_lines",
)
# Every line then ends in a newline, and the last columns may be read many bytes at a time.
PADDING = b"\n" * 128
_chosen = ContextVar("scan", default=_KERNEL)


@contextmanager
def plain_for(size: int) -> Iterator[None]:
    """Scan with plain NumPy inside, if the kernels are not compiled yet and there are no more than PLAIN_BYTES to
    read."""
    modules = (_KERNEL, _LINE_JUDGE, _JUDGEMENT_LINES, _COMPILED_SEARCH)
    kernels = (kernel for name in modules for kernel in import_module(name).KERNELS)
    plain = size <= PLAIN_BYTES and not all(kernel.compiled for kernel in kernels)
    token = _chosen.set(_PLAIN if plain else _KERNEL)
    try:
        yield
    finally:
        _chosen.reset(token)


def scan(
    content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits
) -> Columns:
    """Return the columns of whole lines: the first `size` bytes. `first_line` is the 1-based number of the first of
    them.

    The last line may lack its newline where PADDING follows it at once; PADDING follows somewhere in any case.
    """
    columns: Columns = _code().scan(content, size, layout, first_line, seed, limits)
    return columns


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return rows that repeat a document of their topic, in order: the document's first row, and the row that repeats
    it."""
    pairs: tuple[Ints, Ints] = _code().find_duplicates(columns, topic_starts)
    return pairs


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines, the first `size` bytes, begins; 0 if they have only one topic.

    Comments and blank lines have no topic: without any other line, the result is the end of the last line.
    """
    begin: int = _code().last_topic(content, size)
    return begin


def search_beside() -> Search:
    """Return the search of judgements that belongs to the scan: both compiled, or both plain."""
    compiled: Search = (
        import_module(_COMPILED_SEARCH).search_compiled if _chosen.get() == _KERNEL else search
    )
    return compiled


def judge_beside(
    judgements: Judgements, scores: ScoreType, checked: bool = False
) -> LineJudge | None:
    """Return what judges lines while it scans them, or None beside the plain scan; `checked` lines were found to be
    right before."""
    if _chosen.get() != _KERNEL:
        return None
    judge: LineJudge = import_module(_LINE_JUDGE).line_judge(judgements, scores, checked)
    return judge


def judgements_beside(seed: int) -> JudgementReader:
    """Return what reads judgements without columns; beside the plain scan it takes no lines."""
    if _chosen.get() != _KERNEL:
        return lambda *_: None
    reader: JudgementReader = import_module(_JUDGEMENT_LINES).judgement_reader(seed)
    return reader


def _code() -> Any:
    return import_module(_chosen.get())
