"""Evaluate one session set: load, judge, compute, store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import zstandard
from django.db import transaction

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judging import Judgements
from metrics.engine.sessions.blocks import Session, SessionBlock
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.judging import JudgedBy, judge_sessions
from metrics.models import SessionEvaluation, SessionView, StoredSessionCurves
from metrics.services.queue.leases import evaluate_leased
from metrics.services.queue.lifecycle import Lease, LeaseLost, count_moves, finish
from metrics.services.queue.notices import announce_ended
from metrics.services.sessions.curves import stored_curves
from metrics.services.sessions.judged_sets import (
    JudgedSet,
    default_measures,
    pack_sessions,
    values_of,
)
from runs.errors import StoredFileCorrupt
from runs.formats.sessions.qrels import own_judgements
from runs.models import SessionSet
from runs.services.collections.qrels import load_judgements
from runs.services.storage.files import HASH_SEED
from runs.services.submissions.session_sets import read_session_set


@dataclass(frozen=True)
class Outcome:
    """The result of evaluating a set."""

    judged: JudgedSet
    stored: SessionView
    curves: StoredSessionCurves
    means: dict[str, Any]
    means_digest: int
    files: str
    seconds: float


def evaluate_sessions(*, evaluation_id: int) -> bool:
    """Evaluate one queued session set and return whether this call finished it.

    A second call does nothing.
    """
    return evaluate_leased(
        evaluation_id, SessionEvaluation, ("session_set", "qrels"), _compute, _store
    )


def _compute(evaluation: SessionEvaluation, lost: threading.Event) -> Outcome:
    start = time.perf_counter()
    judged = _judge(evaluation.session_set, *_judgements(evaluation))

    def go_on() -> None:
        if lost.is_set():
            raise LeaseLost

    measures = default_measures()
    values = values_of(judged, measures, go_on)
    means = {measure.name: judged.means(measure, values[measure.name]) for measure in measures}

    stored = SessionView(
        evaluation_id=evaluation.pk,
        content=zstandard.compress(judged.view.to_bytes()),
        sessions=pack_sessions(judged.sessions),
    ).seal(evaluation.qrels_id)

    means_of_systems = {"systems": [name.decode() for name in judged.systems], "values": means}
    files, digest = (
        "".join(evaluation.session_set.files),
        evaluation.digest_of_means(means_of_systems),
    )
    curves = stored_curves(evaluation.pk, judged).seal(evaluation.qrels_id)
    return Outcome(
        judged, stored, curves, means_of_systems, digest, files, time.perf_counter() - start
    )


def _judgements(evaluation: SessionEvaluation) -> tuple[Judgements, JudgedBy]:
    """Return the judgements and their key: topic, session or query."""
    if evaluation.qrels is not None:
        qrels = evaluation.qrels
        judgements = load_judgements(qrels)
        if judgements.sampling:
            message = (
                "measures of sessions take documents outside the sample for not relevant, and the "
                "judgements are sampled"
            )
            raise MeasureError(message, code="sampled_judgements")
        return judgements, cast(JudgedBy, evaluation.judged_by)

    judgements_of_log = read_session_set(
        evaluation.session_set, lambda blocks: own_judgements(blocks, seed=HASH_SEED)
    )
    if judgements_of_log is None:
        raise StoredFileCorrupt("the log no longer has judgements of its own")
    return judgements_of_log, "query"


def _judge(session_set: SessionSet, judgements: Judgements, by: JudgedBy) -> JudgedSet:
    sessions: list[Session] = []

    def collect(blocks: Iterator[SessionBlock]) -> Iterator[SessionBlock]:
        for block in blocks:
            sessions.extend(block.sessions)
            yield block

    view: JudgedSessions = read_session_set(
        session_set, lambda blocks: judge_sessions(collect(blocks), judgements, by)
    )
    return JudgedSet(sessions, view)


def _store(lease: Lease, outcome: Outcome) -> bool:
    """Save the results in one transaction. A worker that lost its lease writes nothing."""
    means = {
        "means": outcome.means,
        "means_digest": outcome.means_digest,
        "judged_files": outcome.files,
    }

    judged = int(outcome.judged.view.is_judged.sum())
    stored = {name: getattr(outcome.stored, name) for name in ("content", "sessions", "digest")}
    curves = {name: getattr(outcome.curves, name) for name in ("content", "digest")}

    with transaction.atomic():
        if not finish(lease, seconds=outcome.seconds, sessions_judged=judged, **means):
            raise LeaseLost

        SessionView.objects.update_or_create(evaluation_id=lease.pk, defaults=stored)
        StoredSessionCurves.objects.update_or_create(evaluation_id=lease.pk, defaults=curves)
        count_moves(SessionEvaluation, [lease.pk])
        announce_ended(SessionEvaluation, [lease.pk])

    return True
