"""Compute the next results of an iterator while the current one is used."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# On a machine with many cores a file uses only a few, because other files need the rest.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
THREADS = min(4, CORES)


_thread_limit: ContextVar[int] = ContextVar("threads of a file", default=THREADS)


@contextmanager
def few_threads(most: int) -> Iterator[None]:
    """Use at most this many threads for a file inside the block, and leave other cores free."""
    token = _thread_limit.set(most)
    try:
        yield
    finally:
        _thread_limit.reset(token)


def most_threads() -> int:
    """Return how many threads a file may use in this context."""
    return _thread_limit.get()


class _Call(Generic[Result]):
    """A call of a function in another thread, in the context of this one."""

    def __init__(self, function: Callable[..., Result], *arguments: Any) -> None:
        self._context = copy_context()
        self._function = function
        self._arguments = arguments
        self._done = Lock()
        self._done.acquire()

    def run(self) -> None:
        try:
            self._result: Result = self._context.run(self._function, *self._arguments)
            self._failure: BaseException | None = None
        except BaseException as failure:
            self._failure = failure

        self._done.release()

    def result(self) -> Result:
        """Wait for the call, and return its result or raise its error."""
        with self._done:
            if self._failure is not None:
                raise self._failure
            return self._result


def ahead(
    function: Callable[[Item], Result], items: Iterator[Item], threads: int
) -> Iterator[Result]:
    """Yield the results of a function in order, some of them computed ahead in other threads.

    The function should release the interpreter's lock. The items themselves are read in the
    caller's thread; if reading one fails, the results of those before it come first. The module has
    threads of its own, because loading concurrent.futures takes as long as reading a small file.
    """
    threads = min(threads, _thread_limit.get())
    if threads == 1:
        # A thread that only waits for another one costs more than it gains.
        yield from map(function, items)
        return

    pending: deque[_Call[Result]] = deque()
    calls: SimpleQueue[_Call[Result] | None] = SimpleQueue()
    workers: list[Thread] = []
    failure: Exception | None = None

    def work() -> None:
        while call := calls.get():
            call.run()

    try:
        while failure is None:
            try:
                call = _Call(function, next(items))
            except StopIteration:
                break
            except Exception as error:
                failure = error
            else:
                pending.append(call)
                calls.put(call)
                if len(workers) < threads:
                    workers.append(Thread(target=work))
                    workers[-1].start()

            if len(pending) >= threads:
                yield pending.popleft().result()

        while pending:
            yield pending.popleft().result()
    finally:
        for _ in workers:
            calls.put(None)

        for worker in workers:
            worker.join()

    if failure is not None:
        raise failure
