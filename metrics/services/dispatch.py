"""The dispatcher: from the rows that are the queue to messages that are hints. Every worker runs one."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from django.db import close_old_connections, connections

from metrics.services.lifecycle import forget_dispatch, reap_expired, take_due
from metrics.services.rounds import RoundNotes

logger = logging.getLogger(__name__)

ROUND_SECONDS = 0.1
REAP_SECONDS = 1.5
# A message unanswered for so long is sent again.
REDISPATCH_SECONDS = 30.0
BATCH = 50


class Dispatcher(threading.Thread):
    """Publishes due evaluations every 100 ms and returns expired leases to the queue, until stopped."""

    def __init__(self, publish: Callable[[int], None]) -> None:
        super().__init__(name="dispatcher", daemon=True)
        self._publish = publish
        self._stopped = threading.Event()
        self._next_reaping = 0.0
        self._notes = RoundNotes()

    def run(self) -> None:
        while not self._stopped.wait(ROUND_SECONDS):
            # A connection that a database restart broke would otherwise stay broken for ever.
            close_old_connections()
            try:
                self.round()
            except Exception as error:
                self._notes.failed += 1
                logger.warning("dispatcher round failed: %s", error)
                self._stopped.wait(1.0)
        connections.close_all()

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=5)

    def round(self) -> None:
        """Reap when it is time, then publish what is due."""
        if time.monotonic() >= self._next_reaping:
            reap_expired()
            # Before anything is published: a broker that is away must not make every web server unready.
            self._notes.note()
            self._next_reaping = time.monotonic() + REAP_SECONDS * random.uniform(0.7, 1.3)  # noqa: S311
        publish_due(self._publish)


def publish_due(publish: Callable[[int], None]) -> int:
    """Publish every evaluation that is due; those that could not be sent become due again."""
    due = take_due(BATCH, REDISPATCH_SECONDS)
    for sent, evaluation_id in enumerate(due):
        try:
            publish(evaluation_id)
        except Exception:
            forget_dispatch(due[sent:])
            raise
    return len(due)
