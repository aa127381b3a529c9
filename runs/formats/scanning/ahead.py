"""Work on the next items of an iterator while the current one is used."""

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


_limit: ContextVar[int] = ContextVar("threads of a file", default=THREADS)


@contextmanager
def few_threads(most: int) -> Iterator[None]:
    """Use at most so many threads for a file within this block: other processes use the other cores."""
    token = _limit.set(most)
    try:
        yield
    finally:
        _limit.reset(token)


def most_threads() -> int:
    """Return how many threads a file may use here."""
    return _limit.get()


class _Step(Generic[Result]):
    """A call that another thread makes, in the context of this one."""

    def __init__(self, function: Callable[..., Result], *given: Any) -> None:
        self._call = copy_context().run, function, *given
        self._made = Lock()
        self._made.acquire()

    def make(self) -> None:
        run, *given = self._call
        try:
            self._result: Result = run(*given)
            self._failure: BaseException | None = None
        except BaseException as failure:
            self._failure = failure
        self._made.release()

    def result(self) -> Result:
        """Return what the call returns, or raise what it raises."""
        with self._made:
            if self._failure is not None:
                raise self._failure
            return self._result


def ahead(
    function: Callable[[Item], Result], items: Iterator[Item], threads: int
) -> Iterator[Result]:
    """Yield the results of a function that releases the interpreter's lock, in order, with some of them computed in
    advance.

    The items themselves are drawn in the caller's thread. If drawing one fails, the results of
    those before it come first. Threads of this module's own, because concurrent.futures loads what
    takes as long as a small file.
    """
    threads = min(threads, _limit.get())
    if threads == 1:
        # A thread that only waits for another one costs more than it gains.
        yield from map(function, items)
        return
    waiting: deque[_Step[Result]] = deque()
    steps: SimpleQueue[_Step[Result] | None] = SimpleQueue()
    workers: list[Thread] = []
    failure: Exception | None = None

    def work() -> None:
        while step := steps.get():
            step.make()

    try:
        while failure is None:
            try:
                step = _Step(function, next(items))
            except StopIteration:
                break
            except Exception as error:
                failure = error
            else:
                waiting.append(step)
                steps.put(step)
                if len(workers) < threads:
                    workers.append(Thread(target=work))
                    workers[-1].start()
            if len(waiting) >= threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for _ in workers:
            steps.put(None)
        for worker in workers:
            worker.join()
    if failure is not None:
        raise failure
