"""Work on one job.

Its lease is renewed while the work lasts, and the job is closed or given back however the work
ends.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connections,
)

from metrics.engine.errors import EvalHubError
from metrics.models import Job, SubmissionEvaluation
from metrics.services.queue.lifecycle import (
    LONGEST_DELAY,
    MAX_ATTEMPTS,
    Lease,
    LeaseLost,
    beat,
    claim,
    drop,
    fail,
    release,
)
from runs.errors import ReplicatesUnfinished, StorageUnavailable, StoredFileMissing

logger = logging.getLogger(__name__)
T = TypeVar("T")
E = TypeVar("E", bound=SubmissionEvaluation)

_RETRY_SECONDS = 5.0
# Less than Celery's time limits.
_OUTAGE_SECONDS = 300.0
_PAUSE_SECONDS = 0.5

# work(lease, lost) -> whether it finished the job; `lost` is set where another worker took it over
Work = Callable[[Lease, threading.Event], bool]


def work_on(pk: Any, kind: type[Job], work: Work) -> bool:
    """Do the work of one queued job and return whether this call finished it.

    A second call does nothing.
    """
    lease = patiently(lambda: claim(pk, kind))
    done = False
    if lease is not None:
        with closing(lease), heartbeat(lease) as lost:
            done = work(lease, lost)

    return done


@contextlib.contextmanager
def closing(lease: Lease) -> Iterator[None]:
    """Close the job or give it back however the work in this block fails.

    Only the end of the process is raised.
    """
    kind = lease.kind
    try:
        yield
    except LeaseLost:
        logger.warning("%s: lease_lost, its results are dropped", lease)
    except SystemExit:
        # The worker stops: another worker takes over immediately.
        release(lease, delay=0, burn=False, code=_code(lease, "delayed"))
        raise
    except (StoredFileMissing, StorageUnavailable) as error:
        # The file or the whole store may come back: a disk that is not mounted must not fail a run.
        logger.warning("%s put back: %s", lease, error.message)
        code, message = error.code, error.message
        patiently(
            lambda: release(lease, delay=LONGEST_DELAY, burn=False, code=code, message=message)
        )
    except ReplicatesUnfinished as waiting:
        # The end of a replicate's evaluation queues it anew: to ask again is for what is missed.
        code, message = waiting.code, waiting.message
        patiently(
            lambda: release(lease, delay=_RETRY_SECONDS, burn=False, code=code, message=message)
        )
    except EvalHubError as error:
        _give_up(lease, error.code, error.message)
    except SoftTimeLimitExceeded:
        _give_up(lease, _code(lease, "timeout"), f"the {kind.NOUN} took longer than its time limit")
    except (DatabaseError, OSError) as error:
        logger.warning("%s put back: %s", lease, error)
        patiently(
            lambda: release(lease, delay=_RETRY_SECONDS, burn=False, code=_code(lease, "delayed"))
        )
    except Exception:
        logger.exception("%s failed", lease)
        _give_up_or_retry(lease)


def evaluate_leased(
    pk: int,
    kind: type[E],
    related: tuple[str, ...],
    compute: Callable[[E, threading.Event], T],
    store: Callable[[Lease, T], bool],
    unread: tuple[str, ...] = (),
) -> bool:
    """Do the work of one queued evaluation and store the result of `compute`.

    It is loaded with its `related` objects without the `unread` columns. If the run or session set
    was withdrawn meanwhile, nothing is stored.
    """

    def work(lease: Lease, lost: threading.Event) -> bool:
        evaluation = kind._default_manager.select_related(*related).defer(*unread).get(pk=lease.pk)
        if drop_withdrawn(lease, evaluation):
            return False

        outcome = compute(evaluation, lost)
        return patiently(lambda: store(lease, outcome))

    return work_on(pk, kind, work)


def drop_withdrawn(lease: Lease, evaluation: SubmissionEvaluation) -> bool:
    """Drop an evaluation whose run or session set was withdrawn and return whether it was.

    Raise StoredValueCorrupt if the row of the submission is damaged.
    """
    if evaluation.submission.deleted_at:
        drop(lease, evaluation.withdrawn_code())
        return True

    evaluation.submission.check_sound()
    return False


def patiently(call: Callable[[], T]) -> T:
    """Return the result of `call`, repeated while the database is unavailable.

    Waiting here counts no attempt.
    """
    deadline = time.monotonic() + _OUTAGE_SECONDS
    while True:
        try:
            return call()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > deadline:
                raise
            logger.warning("waiting for the database: %s", error)

        time.sleep(_PAUSE_SECONDS)
        close_old_connections()


def _code(lease: Lease, problem: str) -> str:
    return f"{lease.kind.NOUN}_{problem}"


def _give_up(lease: Lease, code: str, message: str, trace: str = "") -> None:
    patiently(lambda: fail(lease, code=code, message=message, traceback=trace))


def _give_up_or_retry(lease: Lease) -> None:
    trace = traceback.format_exc()
    attempts = lease.kind._default_manager.values_list("attempts", flat=True).get(pk=lease.pk)
    if attempts >= MAX_ATTEMPTS:
        message = (
            f"attempt {attempts} of the {lease.kind.NOUN} ended in an error; an administrator can "
            "see the reason"
        )
        _give_up(lease, _code(lease, "error"), message, trace)
    else:
        release(
            lease,
            delay=_RETRY_SECONDS * attempts,
            burn=True,
            code=_code(lease, "error"),
            traceback=trace,
        )


@contextlib.contextmanager
def heartbeat(*leases: Lease) -> Iterator[threading.Event]:
    """Renew leases under one token from a thread while the work lasts.

    Set the event if all of them were lost.
    """
    done, lost = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=_beat_until, args=(leases, done, lost), name="heartbeat", daemon=True
    )
    thread.start()

    try:
        yield lost
    finally:
        done.set()
        thread.join()


def _beat_until(leases: tuple[Lease, ...], done: threading.Event, lost: threading.Event) -> None:
    try:
        while not done.wait(settings.EVALHUB_LEASE_SECONDS / 3):
            try:
                if not beat(*leases):
                    lost.set()
                    return
            except DatabaseError as error:
                logger.warning("%s: no heartbeat (%s)", leases[0], error)
                connections.close_all()
    finally:
        connections.close_all()
