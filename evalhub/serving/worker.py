"""A Celery worker with its dispatcher. Every worker loads this module through CELERY_IMPORTS."""

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
from evalhub.operating.install import settle_redis
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
_FINISH_SECONDS = 8.5
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


def count_messages() -> int:
    """Return how many messages no worker has received yet."""
    with app.pool.acquire(block=True) as connection:
        channel: Any = connection.default_channel  # type: ignore[attr-defined]
        count: int = channel.queue_declare(app.conf.task_default_queue).message_count
        return count


class CheckStep(bootsteps.StartStopStep):
    """Refuse to start with settings that would lose runs, as Celery ignores failed checks."""

    def create(self, worker: Any) -> Any:
        messages = checks.run_checks(tags=OWN_CHECKS)
        if not settings.EVALHUB_EMBEDDED:
            messages += check_redis(settings.EVALHUB_REDIS_URL)

        for message in messages:
            logger.log(message.level, "%s", message)

        if any(message.is_serious() for message in messages):
            raise ImproperlyConfigured("the worker did not start; see the reason above")

        try:
            self._check_install()
        except WrongPlace as error:
            raise ImproperlyConfigured(str(error)) from error
        except DatabaseError as error:
            # Reading and sweeping the store check it again.
            logger.warning("the database does not answer yet: %s", error)
        finally:
            # The pool forks next, and no process may inherit a connection.
            connections.close_all()

    def _check_install(self) -> None:
        install = Install.objects.first()
        if install is None:
            raise WrongPlace(
                "this install is not set up yet; start it with evalhub web or worker, or run "
                "evalhub adopt"
            )

        require_place()
        if settings.EVALHUB_WEBHOOKS:
            # Secrets that the web server sealed must be readable here.
            keep_key()

        if not settings.EVALHUB_EMBEDDED:
            settle_redis(install.uuid)


class DispatcherStep(bootsteps.StartStopStep):
    """Run the dispatcher as a thread of the worker's main process."""

    requires = ("celery.worker.components:Pool",)

    def create(self, worker: Any) -> Any:
        dispatcher = Dispatcher(
            publish,
            count_messages,
            publish_batch=publish_batch,
            publish_sessions=publish_sessions,
            publish_vectors=publish_vectors,
            publish_comparison=publish_comparison,
            publish_warming=publish_warming,
        )

        # The pool forks a new process for each one that has ended.
        os.register_at_fork(
            before=dispatcher.rest,
            after_in_parent=dispatcher.go_on,
            after_in_child=dispatcher.go_on,
        )
        return dispatcher


class PoolWatch(threading.Thread):
    """End an embedded worker with its children, on request or when a signal killed one of its pool.

    The processes of the pool share one queue under a lock. A process that is killed while it holds
    the lock leaves the others waiting forever, so the supervisor must start all of them again; the
    leases return their work to the queue.
    """

    def __init__(self, worker: Any) -> None:
        super().__init__(name="pool watch", daemon=True)
        self._pool = worker.pool
        self._processes: dict[int, Any] = {}
        self._ending = threading.Event()
        # A worker that ends kills the processes of its pool itself.
        signals.worker_shutting_down.connect(self._end)

    def run(self) -> None:
        while (
            state.should_stop is None
            and state.should_terminate is None
            and not self._ending.wait(_WATCH_SECONDS)
        ):
            self._processes.update({process.pid: process for process in self._pool._pool._pool})
            codes = {pid: process.exitcode for pid, process in self._processes.items()}
            ended = {pid: code for pid, code in codes.items() if code is not None}
            if any(code < 0 for code in ended.values()) and not self._ending.is_set():
                logger.error("a pool process was killed; the worker ends to be started anew")
                os.killpg(0, signal.SIGKILL)

            for pid in ended:
                del self._processes[pid]

        self._finish()

    def _finish(self) -> None:
        """Let running evaluations finish or return to the queue, then end.

        Celery would take five seconds more to wake and join idle threads.
        """
        busy, deadline = bool(state.reserved_requests), time.monotonic() + _FINISH_SECONDS
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
    """Close the connection of the last task if it is old or broken, as between requests."""
    close_old_connections()


@signals.celeryd_init.connect
def prepare_worker(**signal: Any) -> None:
    """Prepare this process as a worker; a supervisor loads the module, too, and is not one."""
    signals.task_prerun.connect(keep_connections)


def run_worker(processes: int) -> int:
    """Run a worker with this number of processes until a signal, and return the exit code."""
    # Celery writes its own messages there; the important ones are in the log.
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 1)

    ignore_warnings()
    worker = app.Worker(
        concurrency=processes,
        loglevel=settings.EVALHUB_LOG_LEVEL,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
    )

    worker.start()
    return worker.exitcode or 0


def ignore_warnings() -> None:
    """Ignore warnings about pickled messages, which a worker does not read, and missing users.

    Containers run users without a name.
    """
    for message in ("You're running the worker", "An entry for the specified gid"):
        warnings.filterwarnings("ignore", message)


# Before the pool forks, so that its processes share the compiled kernels.
warm_up()
app.steps["worker"].update({CheckStep, DispatcherStep, PoolWatchStep})
evaluation_log.connect()
