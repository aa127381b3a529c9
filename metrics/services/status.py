"""What to say of a run's state: that of its evaluation under the judgements that count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from metrics.engine import ENGINE_VERSION
from metrics.models import Evaluation
from runs.models import Qrels, Run


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run's state, since when, and the reason where it failed or cannot be evaluated yet."""

    state: str
    since: datetime
    qrels_version: int | None = None
    code: str = ""
    reason: str = ""


def statuses(runs: list[Run]) -> dict[str, RunStatus]:
    """The status of each run by its id, in two queries."""
    rows = Evaluation.objects.filter(
        run__in=[run.pk for run in runs],
        qrels__active=True,
        scores=F("run__collection__scores"),
        engine_version=ENGINE_VERSION,
    ).values_list("run_id", "state", "since", "qrels__version", "error_code", "error_message")
    asked = set(
        Qrels.objects.filter(active=True, collection__in={run.collection_id for run in runs}).values_list(
            "collection_id", flat=True
        )
    )
    known = {str(row[0]): RunStatus(*row[1:]) for row in rows}
    return {str(run.pk): known.get(str(run.pk)) or _waiting(run, run.collection_id in asked) for run in runs}


def _waiting(run: Run, judged: bool) -> RunStatus:
    if judged:
        return RunStatus(Evaluation.State.QUEUED, run.created_at)
    reason = "the collection has no active judgements yet"
    return RunStatus(Evaluation.State.QUEUED, run.created_at, None, "no_active_qrels", reason)
