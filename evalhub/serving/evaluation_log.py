"""Log jobs in a worker: lines name their evaluation or comparison, and each end has a line."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery import signals
from django.db import DatabaseError

from evalhub.operating.logs import (
    begin_comparison,
    begin_evaluation,
    begin_session_evaluation,
    begin_vectors,
)
from metrics.models import Comparison, Evaluation, Job, SessionEvaluation, VectorUpdate
from metrics.services.queue.batches import begun
from metrics.tasks import compare, evaluate, evaluate_batch, evaluate_sessions, store_missing

_log = logging.getLogger("evalhub.evaluation")
# A process of the pool works on one task at a time.
_start = {"seconds": 0.0}


@dataclass(frozen=True)
class _LoggedJob:
    """A kind of job in the log; `subject` is the column of the run or session set, if any."""

    kind: type[Job]
    noun: str
    begin: Callable[[Any], None]
    subject: str = ""


# Kinds of jobs by the argument of their task.
_JOBS = {
    "evaluation_id": _LoggedJob(Evaluation, "evaluation", begin_evaluation, "run_id"),
    "session_evaluation_id": _LoggedJob(
        SessionEvaluation, "session evaluation", begin_session_evaluation, "session_set_id"
    ),
    "qrels_id": _LoggedJob(VectorUpdate, "vectors", begin_vectors),
    "comparison_id": _LoggedJob(Comparison, "comparison", begin_comparison),
}


# The evaluations of the present batch that have begun.
_batch: list[int] = []


def connect() -> None:
    """Connect to the signals of this process's evaluations and comparisons."""
    for task in (evaluate, evaluate_sessions, store_missing, compare):
        signals.task_prerun.connect(_begin, sender=task)
        signals.task_postrun.connect(_end, sender=task)

    signals.task_prerun.connect(_begin_batch, sender=evaluate_batch)
    begun.connect(_begin_in_batch)
    signals.task_postrun.connect(_end_batch, sender=evaluate_batch)


def _begin(kwargs: dict[str, Any], **signal: Any) -> None:
    key, pk = next(iter(kwargs.items()))
    _JOBS[key].begin(pk)
    _start["seconds"] = time.perf_counter()


def _end(kwargs: dict[str, Any], **signal: Any) -> None:
    """Log the state of the job, if it can be read."""
    if _log.isEnabledFor(logging.INFO):
        seconds = round(time.perf_counter() - _start["seconds"], 4)
        key, pk = next(iter(kwargs.items()))
        with contextlib.suppress(DatabaseError):
            _log.info(_JOBS[key].noun, extra={"seconds": seconds, **_state_of(_JOBS[key], pk)})


def _begin_batch(**signal: Any) -> None:
    _batch.clear()


def _begin_in_batch(pk: int, **signal: Any) -> None:
    begin_evaluation(pk)
    _batch.append(pk)


def _end_batch(**signal: Any) -> None:
    """Log the state of each evaluation of a batch that was begun, if they can be read."""
    if _batch and _log.isEnabledFor(logging.INFO):
        columns = ("pk", "run_id", "state", "attempts", "error_code", "seconds")
        with contextlib.suppress(DatabaseError):
            rows = Evaluation.objects.filter(pk__in=_batch).values_list(*columns)
            for pk, run, state, attempts, code, seconds in rows:
                begin_evaluation(pk)
                fields = {"run": str(run), "state": state, "attempts": attempts, "code": code}
                duration = {} if seconds is None else {"seconds": round(seconds, 4)}
                _log.info("evaluation", extra={**duration, **fields})


def _state_of(job: _LoggedJob, pk: Any) -> dict[str, Any]:
    subjects = [job.subject] if job.subject else []
    columns = (*subjects, "state", "attempts", "error_code")
    row = job.kind._default_manager.filter(pk=pk).values(*columns).first()
    if row is None:
        return {}

    fields = {name.removesuffix("_id"): str(row[name]) for name in subjects}
    return {**fields, "state": row["state"], "attempts": row["attempts"], "code": row["error_code"]}
