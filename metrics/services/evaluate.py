"""Evaluating one run: load, judge, compute, store."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import zstandard
from billiard.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, connections, transaction

from metrics.engine.errors import EvalHubError
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.judged import JudgedRun
from metrics.engine.judging import judge
from metrics.engine.known import mark_known
from metrics.engine.search import search_compiled
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.lifecycle import MAX_ATTEMPTS, Lease, LeaseLost, beat, claim, drop, fail, finish, release
from runs.formats.trec_run import read_run
from runs.services.files import HASH_SEED, read_stored
from runs.services.known_documents import load_known
from runs.services.qrels import load_judgements

logger = logging.getLogger(__name__)
T = TypeVar("T")

_RETRY_SECONDS = 5.0
# Less than Celery's time limits.
_OUTAGE_SECONDS = 300.0
_PAUSE_SECONDS = 0.5
_DELAYED, _ERROR, _TIMEOUT = "evaluation_delayed", "evaluation_error", "evaluation_timeout"


@dataclass(frozen=True)
class Outcome:
    """What evaluating a run gives."""

    view: JudgedRun
    vectors: list[MetricVector]
    seconds: float


def evaluate(*, evaluation_id: int) -> bool:
    """Evaluate one queued run; True where this call finished it. Called twice, the second does nothing."""
    lease = _patiently(lambda: claim(evaluation_id))
    if lease is None:
        return False
    try:
        return _evaluate(lease)
    except LeaseLost:
        logger.warning("evaluation %s: lease_lost, its results are dropped", evaluation_id)
    except SystemExit:
        # The worker is told to end and cannot wait: another one takes over at once.
        release(lease, delay=0, burn=False, code=_DELAYED)
        raise
    except EvalHubError as error:
        _give_up(lease, error.code, error.message)
    except SoftTimeLimitExceeded:
        _give_up(lease, _TIMEOUT, "the evaluation took longer than its time limit")
    except (DatabaseError, OSError) as error:
        logger.warning("evaluation %s put back: %s", evaluation_id, error)
        _patiently(lambda: release(lease, delay=_RETRY_SECONDS, burn=False, code=_DELAYED))
    except Exception:
        logger.exception("evaluation %s failed", evaluation_id)
        _give_up_or_retry(lease)
    return False


def _evaluate(lease: Lease) -> bool:
    with _heartbeat(lease) as lost:
        evaluation = Evaluation.objects.select_related("run__collection", "qrels").get(pk=lease.evaluation_id)
        if evaluation.run.deleted_at:
            drop(lease)
            return False
        outcome = _compute(evaluation, lost)
        return _patiently(lambda: _store(lease, outcome))


def _patiently(call: Callable[[], T]) -> T:
    """What `call` gives, tried again while the database is away: waiting here burns no attempt."""
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


def _give_up(lease: Lease, code: str, message: str, trace: str = "") -> None:
    _patiently(lambda: fail(lease, code=code, message=message, traceback=trace))


def _give_up_or_retry(lease: Lease) -> None:
    trace = traceback.format_exc()
    attempts = Evaluation.objects.values_list("attempts", flat=True).get(pk=lease.evaluation_id)
    if attempts >= MAX_ATTEMPTS:
        message = f"the evaluation failed {attempts} times; an administrator can see why"
        _give_up(lease, _ERROR, message, trace)
    else:
        release(lease, delay=_RETRY_SECONDS * attempts, burn=True, code=_ERROR, traceback=trace)


def _compute(evaluation: Evaluation, lost: threading.Event) -> Outcome:
    start = time.perf_counter()
    run = evaluation.run
    judgements = load_judgements(evaluation.qrels.sha256)
    view = read_stored(
        run.sha256,
        lambda opener: judge(
            read_run(opener, grouped=run.grouped, seed=HASH_SEED),
            judgements,
            evaluation.scores,  # type: ignore[arg-type]
            search_compiled,
        ),
    )
    if run.known_sha256:
        view = mark_known(view, judgements, load_known(run.known_sha256))
    vectors = []
    for name in run.collection.measures:
        if lost.is_set():
            raise LeaseLost
        vectors.append(make_vector(evaluation.pk, parse_measure(name), view))
    return Outcome(view, vectors, time.perf_counter() - start)


def make_vector(evaluation_id: int, measure: Measure, view: JudgedRun) -> MetricVector:
    """A measure's values as a row, not yet saved."""
    values = measure.compute(view)
    mean, topics = measure.aggregate(values, view)
    content = values.astype("<f8").tobytes()
    return MetricVector(evaluation_id=evaluation_id, measure=measure.name, mean=mean, topics=topics, content=content)


def _store(lease: Lease, outcome: Outcome) -> bool:
    """Save the results in one transaction, fenced: a worker that lost its lease writes nothing."""
    view = outcome.view
    content = zstandard.compress(view.to_bytes())
    answered = int((view.num_ret > 0).sum())
    with transaction.atomic():
        if not finish(lease, seconds=outcome.seconds, topics_answered=answered):
            raise LeaseLost
        MetricVector.objects.filter(evaluation_id=lease.evaluation_id).delete()
        JudgedView.objects.update_or_create(evaluation_id=lease.evaluation_id, defaults={"content": content})
        MetricVector.objects.bulk_create(outcome.vectors)
    return True


@contextlib.contextmanager
def _heartbeat(lease: Lease) -> Iterator[threading.Event]:
    """Renew the lease from a thread while the evaluation runs; the event is set where it was lost."""
    done, lost = threading.Event(), threading.Event()
    thread = threading.Thread(target=_beat_until, args=(lease, done, lost), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        done.set()
        thread.join()


def _beat_until(lease: Lease, done: threading.Event, lost: threading.Event) -> None:
    try:
        while not done.wait(settings.EVALHUB_LEASE_SECONDS / 3):
            try:
                if not beat(lease):
                    lost.set()
                    return
            except DatabaseError as error:
                logger.warning("evaluation %s: no heartbeat (%s)", lease.evaluation_id, error)
                connections.close_all()
    finally:
        connections.close_all()
