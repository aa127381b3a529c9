"""A worker's log: which evaluation every line is about, and a line for each that ended."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import Any

from celery import signals
from django.db import DatabaseError

from evalhub.logs import begin_evaluation
from metrics.models import Evaluation
from metrics.tasks import evaluate

_log = logging.getLogger("evalhub.evaluation")
# A pool's process works on one task at a time.
_began = {"at": 0.0}


def connect() -> None:
    """Listen to this process's evaluations."""
    signals.task_prerun.connect(_begin, sender=evaluate)
    signals.task_postrun.connect(_end, sender=evaluate)


def _begin(kwargs: dict[str, Any], **signal: Any) -> None:
    begin_evaluation(kwargs["evaluation_id"])
    _began["at"] = time.perf_counter()


def _end(kwargs: dict[str, Any], **signal: Any) -> None:
    """Say how the evaluation stands; what could not be asked is not said."""
    if _log.isEnabledFor(logging.INFO):
        seconds = round(time.perf_counter() - _began["at"], 4)
        with contextlib.suppress(DatabaseError):
            _log.info("evaluation", extra={"seconds": seconds, **_standing(kwargs["evaluation_id"])})


def _standing(evaluation_id: int) -> dict[str, Any]:
    row = Evaluation.objects.filter(pk=evaluation_id).values("run_id", "state", "attempts", "error_code").first()
    if row is None:
        return {}
    return {"run": str(row["run_id"]), "state": row["state"], "attempts": row["attempts"], "code": row["error_code"]}
