"""Celery's side: a task takes keys, calls the service of its name, and may run twice."""

from __future__ import annotations

from celery import shared_task

from metrics.services.comparisons.stored import compare as compare_service
from metrics.services.sessions.evaluate import evaluate_sessions as evaluate_sessions_service
from metrics.services.values.evaluate import evaluate as evaluate_service
from metrics.services.values.evaluate import evaluate_batch as evaluate_batch_service
from metrics.services.values.missing import store_missing as store_missing_service


@shared_task(name="metrics.evaluate")
def evaluate(*, evaluation_id: int) -> None:
    evaluate_service(evaluation_id=evaluation_id)


@shared_task(name="metrics.evaluate_batch")
def evaluate_batch(*, evaluation_ids: list[int]) -> None:
    evaluate_batch_service(evaluation_ids=evaluation_ids)


@shared_task(name="metrics.evaluate_sessions")
def evaluate_sessions(*, session_evaluation_id: int) -> None:
    evaluate_sessions_service(evaluation_id=session_evaluation_id)


@shared_task(name="metrics.store_missing")
def store_missing(*, qrels_id: int) -> None:
    store_missing_service(qrels_id=qrels_id)


@shared_task(name="metrics.compare")
def compare(*, comparison_id: str) -> None:
    compare_service(comparison_id=comparison_id)
