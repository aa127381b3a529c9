"""A Celery worker, its dispatcher and other steps. Every worker loads this module through CELERY_IMPORTS."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from typing import Any
from uuid import UUID

from celery import bootsteps, signals
from celery.worker import state
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, close_old_connections, connections

from evalhub.operating.checks import OWN_CHECKS, check_redis
from evalhub.operating.settling import settle_redis
from evalhub.serving import evaluation_log
from evalhub.serving.cache_warming import warm_cache
from evalhub.serving.celery import app
from evalhub.serving.secret_key import keep_key
from metrics.services.upkeep.dispatch import Dispatcher
from metrics.tasks import compare, evaluate, evaluate_batch, evaluate_sessions, store_missing
from runs.formats.scanning.warm_up import warm_up
from runs.models import Install
from runs.services.storage.installs import WrongPlace, require_place

logger = logging.getLogger(__name__)
_WATCH_SECONDS = 0.2
_LEAVE_SECONDS = 8.5
_GIVE_BACK_SECONDS = 1.0


def publish(evaluation_id: int) -> None:
    evaluate.apply_async(kwargs={"evaluation_id": evaluation_id})


def publish_batch(evaluation_ids: list[int]) -> None:
    evaluate_batch.apply_async(kwargs={"evaluation_ids": evaluation_ids})


def publish_sessions(session_evaluation_id: int) -> None:
    evaluate_sessions.apply_async(kwargs={"session_evaluation_id": session_evaluation_id})


def publish_vectors(qrels_id: int) -> None:
    store_missing.apply_async(kwargs={"qrels_id": qrels_id})


def publish_comparison(comparison_id: UUID) -> None:
    compare.apply_async(kwargs={"comparison_id": str(comparison_id)})


def publish_warming(collection_id: int) -> None:
    warm_cache.apply_async(kwargs={"collection_id": collection_id})


def waiting() -> int:
    """Return how many messages the broker holds that no worker has taken yet."""
    with app.pool.acquire(block=True) as connection:
        channel: Any = connection.default_channel  # type: ignore[attr-defined]
        count: int = channel.queue_declare(app.conf.task_default_queue).message_count
        return count


class CheckStep(bootsteps.StartStopStep):
    """Refuse to start with settings that would lose runs: Celery itself ignores the results of checks."""

    def create(self, worker: Any) -> Any:
        found = checks.run_checks(tags=OWN_CHECKS)
        if not settings.EVALHUB_EMBEDDED:
            found += check_redis(settings.EVALHUB_REDIS_URL)

        for message in found:
            logger.log(message.level, "%s", message)

        if any(message.is_serious() for message in found):
            raise ImproperlyConfigured("the worker did not start; see the reason above")

        try:
            self._check_place()
        except WrongPlace as error:
            raise ImproperlyConfigured(str(error)) from error
        except DatabaseError as error:
            # Every reading and every sweep of the store checks again.
            logger.warning("the database does not answer yet: %s", error)
        finally:
            # The pool forks next, and no process may inherit a connection.
            connections.close_all()

    def _check_place(self) -> None:
        install = Install.objects.first()
        if install is None:
            raise WrongPlace(
                "this install is not set up yet; start it with evalhub web or worker, or run "
                "evalhub adopt"
            )

        require_place()
        if settings.EVALHUB_WEBHOOKS:
            # What the web server sealed must open here.
            keep_key()

        if not settings.EVALHUB_EMBEDDED:
            settle_redis(install.uuid)


class DispatcherStep(bootsteps.StartStopStep):
    """Run the dispatcher as a thread of the worker's main process, beside its consumer."""

    requires = ("celery.worker.components:Pool",)

    def create(self, worker: Any) -> Any:
        dispatcher = Dispatcher(
            publish,
            waiting,
            publish_batch=publish_batch,
            publish_sessions=publish_sessions,
            publish_vectors=publish_vectors,
            publish_comparison=publish_comparison,
            publish_warming=publish_warming,
        )

        # The pool forks a new process for each that has ended.
        os.register_at_fork(
            before=dispatcher.rest,
            after_in_parent=dispatcher.go_on,
            after_in_child=dispatcher.go_on,
        )
        return dispatcher


class PoolWatch(threading.Thread):
    """End an embedded worker with all its children, on request or when a signal killed one of its pool's processes.

    The pool's processes share one queue under a lock. A process killed while it holds the lock
    leaves the others waiting for ever, so the supervisor must start all of them again; the leases
    return their work to the queue.
    """

    def __init__(self, worker: Any) -> None:
        super().__init__(name="pool watch", daemon=True)
        self._pool = worker.pool
        self._seen: dict[int, Any] = {}
        self._ending = threading.Event()
        # A worker that ends kills its pool's processes itself.
        signals.worker_shutting_down.connect(self._end)

    def run(self) -> None:
        while (
            state.should_stop is None
            and state.should_terminate is None
            and not self._ending.wait(_WATCH_SECONDS)
        ):
            self._seen.update({process.pid: process for process in self._pool._pool._pool})
            ended = {
                pid: process.exitcode
                for pid, process in self._seen.items()
                if process.exitcode is not None
            }

            if any(code < 0 for code in ended.values()) and not self._ending.is_set():
                logger.error("a pool process was killed; the worker ends to be started anew")
                os.killpg(0, signal.SIGKILL)

            for pid in ended:
                del self._seen[pid]

        self._leave()

    def _leave(self) -> None:
        """Let the running evaluations finish or be given back, then end.

        Celery would take five seconds more to wake and join idle threads.
        """
        busy, deadline = bool(state.reserved_requests), time.monotonic() + _LEAVE_SECONDS
        while state.reserved_requests and time.monotonic() < deadline:
            time.sleep(_WATCH_SECONDS)

        if busy:
            time.sleep(_GIVE_BACK_SECONDS)

        os.killpg(0, signal.SIGKILL)

    def stop(self) -> None:
        """Do nothing: the thread notices that the worker stops."""

    def _end(self, **shutdown: Any) -> None:
        self._ending.set()


class PoolWatchStep(bootsteps.StartStopStep):
    """Run the watch only if the supervisor started this worker, in a process group of its own."""

    requires = ("celery.worker.components:Pool",)

    def create(self, worker: Any) -> Any:
        own_group = os.getpgrp() == os.getpid()
        return PoolWatch(worker) if settings.EVALHUB_EMBEDDED and own_group else None


def keep_connections(**signal: Any) -> None:
    """Keep the connection of the task before, unless it is old or broken, as web processes do between requests."""
    close_old_connections()


@signals.celeryd_init.connect
def begin(**started: Any) -> None:
    """Make this process a worker, before it has a connection. A supervisor loads the module and is none."""
    signals.task_prerun.connect(keep_connections)


def run_worker(processes: int) -> int:
    """Run a worker with so many processes until a signal; returns the exit code."""
    # Celery writes its own messages there; the important ones are in the log.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)

    silence()
    worker = app.Worker(
        concurrency=processes,
        loglevel=settings.EVALHUB_LOG_LEVEL,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    )

    worker.start()
    return worker.exitcode or 0


def silence() -> None:
    """Warn of nothing that concerns pickled messages, which a worker does not read. Containers run users without a
    name."""
    for said in ("You're running the worker", "An entry for the specified gid"):
        warnings.filterwarnings("ignore", said)


# Before the pool forks, so that its processes share the compiled kernels.
warm_up()
app.steps["worker"].update({CheckStep, DispatcherStep, PoolWatchStep})
evaluation_log.connect()
