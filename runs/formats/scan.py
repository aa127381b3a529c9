"""Which code scans a file: the compiled kernel, or plain NumPy in a command that is over before the kernel is loaded.

Both give the same arrays. The service always uses the kernel; `plain_for` is a command's choice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from metrics.engine.judging import Search, search
from metrics.engine.ranking import Ints
from runs.formats.columns import Columns, Layout
from runs.formats.limits import Limits

# Loading Numba and the kernel takes about half a second, in which the plain scan reads some 50 MB.
PLAIN_BYTES = 32 * 1024 * 1024
# Named as text, so that whoever uses one does not load the other.
_KERNEL, _PLAIN = "runs.formats.kernel", "runs.formats.plain_scan"
_COMPILED_SEARCH = "metrics.engine.search"
_BLAS = "scipy.linalg"
_chosen = ContextVar("scan", default=_KERNEL)


@contextmanager
def plain_for(size: int) -> Iterator[None]:
    """Scan with plain NumPy inside, where all there is to read has no more than PLAIN_BYTES."""
    token = _chosen.set(_PLAIN if size <= PLAIN_BYTES else _KERNEL)
    try:
        if size > PLAIN_BYTES:
            _load_kernel()
        yield
    finally:
        _chosen.reset(token)


def _load_kernel() -> None:
    """Load compiled code without BLAS: Numba looks for it with its first function, by importing scipy.linalg, which
    takes a quarter of a second and is not used here."""
    blocked = sys.modules.setdefault(_BLAS, None)  # type: ignore[arg-type]
    try:
        last_topic(b"")
    finally:
        if blocked is None:
            del sys.modules[_BLAS]


def scan(content: bytes, layout: Layout, first_line: int, seed: int, limits: Limits) -> Columns:
    """The columns of whole lines; `first_line` is the 1-based number of the first of them."""
    columns: Columns = _code().scan(content, layout, first_line, seed, limits)
    return columns


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Rows that repeat a document of their topic, in order: the document's first row, and the row that repeats it."""
    pairs: tuple[Ints, Ints] = _code().find_duplicates(columns, topic_starts)
    return pairs


def last_topic(content: bytes) -> int:
    """Where the last topic of some lines begins, which may go on after them; 0 where they have one topic only.

    Comments and blank lines have no topic: without any other line, it is where the last line ends.
    """
    begin: int = _code().last_topic(content)
    return begin


def search_beside() -> Search:
    """The search of judgements that goes with the scan: compiled beside the kernel, plain beside the plain one."""
    compiled: Search = import_module(_COMPILED_SEARCH).search_compiled if _chosen.get() == _KERNEL else search
    return compiled


def _code() -> Any:
    return import_module(_chosen.get())
