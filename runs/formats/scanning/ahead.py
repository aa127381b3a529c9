"""Work on the next items of an iterator while the current one is used."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# On a machine with many cores a file uses only a few, because other files need the rest.
THREADS = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def ahead(function: Callable[[Item], Result], items: Iterator[Item], threads: int) -> Iterator[Result]:
    """Yield the results of a function that releases the interpreter's lock, in order, with some of them computed in
    advance.

    The items themselves are drawn in the caller's thread. If drawing one fails, the results of those before it come
    first.
    """
    waiting: deque[Future[Result]] = deque()
    failure: Exception | None = None
    with ThreadPoolExecutor(threads) as pool:
        while failure is None:
            try:
                waiting.append(pool.submit(copy_context().run, function, next(items)))
            except StopIteration:
                break
            except Exception as error:
                failure = error
            if len(waiting) >= threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    if failure is not None:
        raise failure
