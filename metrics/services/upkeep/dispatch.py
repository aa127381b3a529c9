"""The dispatcher: it sends messages for the rows of the queue. Every worker runs one."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections

from metrics.models import JOBS, Comparison, Evaluation, Job, SessionEvaluation, VectorUpdate
from metrics.services import answer_store
from metrics.services.comparisons.stored import sweep_comparisons
from metrics.services.queue.batches import TOGETHER, in_batches
from metrics.services.queue.lifecycle import (
    any_due,
    forget_dispatch,
    kinds_due,
    reap_expired,
    take_due,
    under_way,
)
from metrics.services.queue.notices import announce_done
from metrics.services.queue.queueing import queue_missing
from metrics.services.queue.rounds import BROKER_AWAY, BROKER_FULL, RoundNotes
from metrics.services.snapshots import state_of_database
from runs import hooks
from runs.errors import StorageUnavailable
from runs.services.audit.revisions import take_settled
from runs.services.mail.outbox import reap_mails, sweep_mails
from runs.services.mail.sending import MailSender
from runs.services.submissions.sweeping import sweep
from runs.services.webhooks.deliveries import reap, sweep_deliveries
from runs.services.webhooks.sending import Sender

logger = logging.getLogger(__name__)

# How often a dispatcher asks whether anything in the database has changed.
ROUND_SECONDS = 0.02
# How often due jobs are looked for where nothing in the database has changed: some become due as
# time passes.
LOOK_SECONDS = 0.3
REAP_SECONDS = 1.5
SWEEP_SECONDS = 3600.0
FAILED_SECONDS = 1.0
# As Redis says that its memory is used up.
_FULL = "OOM "
# How often to ask for the broker where there is nothing to send.
BROKER_SECONDS = 5.0
# How often due deliveries of webhooks are looked for.
SENDING_SECONDS = 0.5
# How often due mails are looked for.
MAIL_SECONDS = 2.0
# How often to look for collections with settled evaluations.
WARMING_SECONDS = 2.0
# How long a process that is forked waits for the round under way.
REST_SECONDS = 10.0
BATCH = 50
# Of evaluations this many batches.
BATCHES = 5
# At most this many messages are in the broker; the rest of a long queue stays in the database.
MESSAGES = 100

Publish = Callable[[Any], None]
"""publish(primary key of a job)"""


def _no_message() -> int:
    return 0


def _send_nothing(pk: Any) -> None:
    """Send no message."""


@dataclass
class Step:
    """A task repeated about every `seconds`.

    Some variation keeps several dispatchers from running in step.
    """

    name: str
    seconds: float
    call: Callable[[], object]
    due: float = 0.0
    # Whether what fails is, most likely, the broker.
    sends: bool = False


class Dispatcher(threading.Thread):
    """Publish due jobs within 20 ms until stopped.

    Expired leases return to the queue, and every hour is a sweep.

    `waiting` returns how many messages the broker holds, and `publish_batch` sends one message for
    a list of evaluations; without it each has its own.
    """

    def __init__(
        self,
        publish: Publish,
        waiting: Callable[[], int] = _no_message,
        *,
        publish_batch: Publish | None = None,
        publish_sessions: Publish = _send_nothing,
        publish_vectors: Publish = _send_nothing,
        publish_comparison: Publish = _send_nothing,
        publish_warming: Publish = _send_nothing,
    ) -> None:
        super().__init__(name="dispatcher", daemon=True)
        self._stopped = threading.Event()

        # Held by each round, and while a process is forked.
        self._round_lock = threading.RLock()
        self._notes = RoundNotes()

        # By the step that meets it.
        self._troubles: dict[str, str] = {}
        self._reaping = Step("reaping", REAP_SECONDS, self._reap)

        # What is due at the beginning of a round.
        self._due: set[type[Job]] = set()
        # The state of the database in which they were looked for last, and until when that is
        # enough.
        self._looked_at: tuple[Any, ...] | None = None
        self._enough_until = 0.0

        def publishing(name: str, kind: type[Job], call: Callable[[], int]) -> Step:
            return Step(name, 0.0, lambda: call() if kind in self._due else 0, sends=True)

        def evaluations() -> int:
            if publish_batch is None:
                return publish_due(publish, waiting)
            return publish_batches(publish, publish_batch, waiting)

        self._steps = (
            self._reaping,
            Step("looking for what is due", 0.0, self._look_for_due),
            publishing("publishing", Evaluation, evaluations),
            publishing(
                "publishing sessions",
                SessionEvaluation,
                lambda: publish_due(publish_sessions, waiting, SessionEvaluation),
            ),
            publishing(
                "publishing vectors",
                VectorUpdate,
                lambda: publish_due(publish_vectors, waiting, VectorUpdate),
            ),
            # After the evaluations, with the remaining room in the broker.
            publishing(
                "publishing comparisons",
                Comparison,
                lambda: publish_comparisons(publish_comparison, waiting),
            ),
            Step("asking the broker", BROKER_SECONDS, waiting, sends=True),
            *(_warming_steps(publish_warming) if answer_store.is_on() else ()),
            Step("queueing", SWEEP_SECONDS, queue_missing),
            *(_webhook_steps() if settings.EVALHUB_WEBHOOKS else ()),
            *(Step(*work) for _, rows in hooks.due_work.send(Dispatcher) for work in rows or ()),
            *(_mail_steps() if settings.EVALHUB_MAIL_URL else ()),
            Step(
                "sweeping",
                SWEEP_SECONDS,
                _sweep,
                due=time.monotonic() + SWEEP_SECONDS * random.random(),  # noqa: S311
            ),
        )

    def run(self) -> None:
        while not self._stopped.wait(ROUND_SECONDS):
            with self._round_lock:
                # Otherwise a connection that a restart of the database broke would stay broken.
                close_old_connections()
                self.round()

        connections.close_all()

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=5)

    def rest(self) -> None:
        """Wait for the end of this round, and let none begin before `go_on`: a process is forked.

        A process that is forked while this thread is within SQLite has its locks, which nobody
        there releases: it waits for ever, or finds the database locked for ever.
        """
        self._round_lock.acquire(timeout=REST_SECONDS)

    def go_on(self) -> None:
        """Let rounds begin again; where `rest` waited in vain, do nothing."""
        with suppress(RuntimeError):
            self._round_lock.release()

    def round(self) -> None:
        """Run every step that is due; a step that fails does not stop the others."""
        for step in self._steps:
            if time.monotonic() >= step.due:
                self._run_step(step)
        self._notes.trouble = next(iter(self._troubles.values()), "")

    def _look_for_due(self) -> None:
        # Where the question fails each step asks for itself, and says why it fails.
        self._due = set(JOBS)
        state, now = state_of_database(), time.monotonic()
        if state is not None and state == self._looked_at and now < self._enough_until:
            self._due = set()
            return
        self._due = kinds_due(settings.EVALHUB_LEASE_SECONDS)
        self._looked_at, self._enough_until = state, now + LOOK_SECONDS

    def _reap(self) -> None:
        reap_expired()
        # Before publishing, so that an unavailable broker does not make every web server unready.
        self._notes.note()

    def _run_step(self, step: Step) -> None:
        step.due = time.monotonic() + step.seconds * random.uniform(0.7, 1.3)  # noqa: S311
        try:
            step.call()
            self._troubles.pop(step.name, None)
        except Exception as error:
            self._notes.failed += 1
            logger.warning("dispatcher: %s failed: %s", step.name, error)
            step.due = time.monotonic() + FAILED_SECONDS
            if step.sends and not isinstance(error, DatabaseError):
                self._troubles[step.name] = BROKER_FULL if _FULL in str(error) else BROKER_AWAY

            if isinstance(error, DatabaseError):
                # While the database was unavailable no worker could renew its lease: let the living
                # workers do so first.
                self._reaping.due = time.monotonic() + settings.EVALHUB_LEASE_SECONDS / 2


def _warming_steps(publish: Publish) -> tuple[Step, ...]:
    def publish_settled() -> None:
        for collection in take_settled():
            publish(collection)

    return (Step("warming the cache", WARMING_SECONDS, publish_settled, sends=True),)


def _webhook_steps() -> tuple[Step, ...]:
    return (
        Step("announcing", REAP_SECONDS, announce_done),
        Step("reaping deliveries", REAP_SECONDS, reap),
        Step("sending webhooks", SENDING_SECONDS, Sender().send_due),
    )


def _mail_steps() -> tuple[Step, ...]:
    return (
        Step("reaping mails", REAP_SECONDS, reap_mails),
        Step("sending mail", MAIL_SECONDS, MailSender().send_due),
    )


def _sweep() -> None:
    sweep_comparisons()
    sweep_deliveries()
    sweep_mails()

    try:
        swept = sweep()
    except StorageUnavailable as error:
        # Not again in a second, unlike other steps that fail: the next hour is soon enough.
        logger.error("nothing was swept: %s", error.message)
        return

    if swept.spared:
        logger.error(
            "%d stored files are named by no row, too many to be deleted unasked; see "
            "evalhub sweep --help",
            swept.spared,
        )


def publish_due(
    publish: Publish,
    waiting: Callable[[], int] = _no_message,
    kind: type[Job] = Evaluation,
    most: int = BATCH,
) -> int:
    """Publish the due jobs of one kind, at most `most` and as many as the broker has room for.

    Unsent ones become due again.

    A message that is not answered within a lease's time is sent again.
    """
    again_after = settings.EVALHUB_LEASE_SECONDS
    if not any_due(again_after, kind):
        return 0

    room = min(most, MESSAGES - waiting())
    due = take_due(room, again_after, kind) if room > 0 else []
    for place, pk in enumerate(due):
        try:
            publish(pk)
        except Exception:
            forget_dispatch(due[place:], kind)
            raise

    return len(due)


def publish_batches(
    publish: Publish, publish_batch: Publish, waiting: Callable[[], int] = _no_message
) -> int:
    """Publish due evaluations in batches, as many as the broker has room for.

    A single one goes by `publish`.
    """
    again_after = settings.EVALHUB_LEASE_SECONDS
    if not any_due(again_after, Evaluation):
        return 0

    room = MESSAGES - waiting()
    due = take_due(min(BATCHES, room) * TOGETHER, again_after) if room > 0 else []
    batches = in_batches(due)

    # Those that are alone may be more than there is room for.
    unsent = deque(batches)
    try:
        while unsent and len(batches) - len(unsent) < room:
            pks = unsent[0]
            if len(pks) == 1:
                publish(pks[0])
            else:
                publish_batch(pks)

            unsent.popleft()
    finally:
        if unsent:
            forget_dispatch([pk for pks in unsent for pk in pks])

    return len(due) - sum(map(len, unsent))


def publish_comparisons(publish: Publish, waiting: Callable[[], int] = _no_message) -> int:
    """Publish due comparisons, but leave one of several processes of a worker for evaluations."""
    if not any_due(settings.EVALHUB_LEASE_SECONDS, Comparison):
        return 0

    at_once = max(1, settings.EVALHUB_WORKER_PROCESSES - 1)
    most = at_once - under_way(settings.EVALHUB_LEASE_SECONDS, Comparison)
    return publish_due(publish, waiting, Comparison, most) if most > 0 else 0
