"""The threads of a web process that compute answers, shared fairly among clients."""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger(__name__)


class Task(Protocol):
    """A request that waits for a thread: `client` names its client."""

    @property
    def client(self) -> str: ...

    def service(self) -> None: ...


class FairThreads:
    """A fixed number of threads, of which a client has no more than `share` at once.

    Clients take turns: a client that sends a hundred expensive requests waits for them, and another
    client's single request is next. The interface is that of waitress's task dispatcher, as far as
    its server uses it. `report` gets the number of busy threads.
    """

    def __init__(
        self, name: str, count: int, share: int, report: Callable[[int], None] | None = None
    ) -> None:
        self._share = share
        self._report = report
        self._changed = threading.Condition()
        # Tasks by client, in the order of their turns.
        self._waiting: dict[str, deque[Task]] = {}
        self._running: Counter[str] = Counter()
        self.busy = 0
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def add_task(self, task: Task) -> None:
        with self._changed:
            self._waiting.setdefault(task.client, deque()).append(task)
            self._count(1)
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while (next_task := self._next()) is None:
                    self._changed.wait()

            client, task = next_task
            try:
                task.service()
            except BaseException:
                _log.exception("a request was not answered")

            # Free the request now, and not with the next one.
            del task, next_task
            with self._changed:
                self._running[client] -= 1
                if not self._running[client]:
                    del self._running[client]

                self._count(-1)
                # Another request of this client may be waiting for its share.
                self._changed.notify()

    def _next(self) -> tuple[str, Task] | None:
        for client, tasks in self._waiting.items():
            if self._running[client] < self._share:
                task = tasks.popleft()
                del self._waiting[client]
                if tasks:
                    # Its next turn comes after those of all other clients.
                    self._waiting[client] = tasks

                self._running[client] += 1
                return client, task

        return None

    def _count(self, change: int) -> None:
        self.busy += change
        if self._report:
            self._report(self.busy)
