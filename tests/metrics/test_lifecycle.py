"""The life of an evaluation: every move is made once, by who holds the lease."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation, MetricVector
from metrics.services import evaluate as evaluate_module
from metrics.services import lifecycle
from metrics.services.dispatch import publish_due
from metrics.services.evaluate import evaluate
from metrics.services.lifecycle import queue_evaluation
from runs.models import Collection, Run, User
from runs.services.files import stored_path
from runs.services.runs import Submission, submit_run
from tests.conftest import GOOD, upload


@pytest.fixture
def queued(api: APIClient, collection: str) -> Evaluation:
    upload(api, f"collections/{collection}/runs/", GOOD)
    return Evaluation.objects.get()


def expire(evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def state(evaluation: Evaluation) -> str:
    evaluation.refresh_from_db()
    return evaluation.state


def test_only_one_claim_succeeds(queued: Evaluation) -> None:
    assert lifecycle.claim(queued.pk) is not None
    assert lifecycle.claim(queued.pk) is None
    assert state(queued) == "evaluating"


def test_a_task_that_runs_twice_writes_once(queued: Evaluation) -> None:
    assert evaluate(evaluation_id=queued.pk)
    before = list(MetricVector.objects.values_list("pk", "mean"))
    assert not evaluate(evaluation_id=queued.pk)
    assert list(MetricVector.objects.values_list("pk", "mean")) == before


def test_an_expired_lease_goes_back_to_the_queue(queued: Evaluation) -> None:
    lifecycle.claim(queued.pk)
    assert lifecycle.reap_expired() == 0
    expire(queued)
    assert lifecycle.reap_expired() == 1
    assert state(queued) == "queued"


def test_a_late_finish_is_fenced_off(queued: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen worker wakes up after another one took its evaluation: its results are dropped."""
    compute = evaluate_module._compute

    def freeze(evaluation: Evaluation) -> Any:
        outcome = compute(evaluation)
        expire(evaluation)
        lifecycle.reap_expired()
        assert lifecycle.claim(evaluation.pk) is not None
        return outcome

    monkeypatch.setattr(evaluate_module, "_compute", freeze)
    assert not evaluate(evaluation_id=queued.pk)
    assert state(queued) == "evaluating"
    assert not MetricVector.objects.exists()


def test_a_poisonous_run_fails_after_three_attempts(queued: Evaluation) -> None:
    for _ in range(lifecycle.MAX_ATTEMPTS):
        assert lifecycle.claim(queued.pk) is not None
        expire(queued)
        lifecycle.reap_expired()
    assert state(queued) == "failed"
    assert queued.error_code == "evaluation_crashed"


def test_an_unexpected_error_is_tried_again_then_shown(queued: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(evaluation: Evaluation) -> Any:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(evaluate_module, "_compute", explode)
    for attempt in range(1, lifecycle.MAX_ATTEMPTS + 1):
        Evaluation.objects.update(not_before=None)
        evaluate(evaluation_id=queued.pk)
        queued.refresh_from_db()
        assert queued.attempts == attempt
    assert queued.state == "failed"
    assert "secret" not in queued.error_message
    assert "ZeroDivisionError: secret detail" in queued.traceback


def test_a_database_outage_burns_no_attempt(queued: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(evaluation: Evaluation) -> Any:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(evaluate_module, "_compute", unreachable)
    assert not evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == ("queued", 0)
    assert queued.not_before is not None
    assert lifecycle.claim(queued.pk) is None


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_damaged_file_fails_and_gives_no_value(queued: Evaluation, damage: str) -> None:
    path = stored_path(queued.run.sha256)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(GOOD.replace("3.0", "0.5").encode())
    evaluate(evaluation_id=queued.pk)
    assert state(queued) == "failed"
    assert queued.error_code == "stored_file_corrupt"
    assert not MetricVector.objects.exists()


def test_due_evaluations_are_published_once_until_they_go_stale(queued: Evaluation) -> None:
    sent: list[int] = []
    assert publish_due(sent.append) == 1
    assert publish_due(sent.append) == 0
    Evaluation.objects.update(dispatched_at=timezone.now() - timedelta(seconds=31))
    assert publish_due(sent.append) == 1
    assert sent == [queued.pk, queued.pk]


def test_a_message_that_cannot_be_sent_is_due_again(queued: Evaluation) -> None:
    def refuse(evaluation_id: int) -> None:
        raise ConnectionError("the broker is away")

    with pytest.raises(ConnectionError):
        publish_due(refuse)
    sent: list[int] = []
    publish_due(sent.append)
    assert sent == [queued.pk]


def test_the_database_refuses_a_lease_outside_evaluation(queued: Evaluation) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Evaluation.objects.filter(pk=queued.pk).update(state="evaluating")


def test_a_failed_evaluation_is_tried_again_on_request(api: APIClient, queued: Evaluation) -> None:
    failed = {"state": "failed", "attempts": 3, "error_code": "evaluation_crashed"}
    Evaluation.objects.filter(pk=queued.pk).update(**failed)
    answer = api.post(f"/api/v1/runs/{queued.run_id}/evaluations/", {"scores": "float64"})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    Evaluation.objects.filter(pk=queued.pk).update(**failed)
    assert api.post("/api/v1/collections/small/evaluations/", {"scores": "float64"}).json() == {"queued": 1}
    assert evaluate(evaluation_id=queued.pk)


def test_a_collection_changed_during_an_upload_decides_how_the_run_is_judged(
    alice: User, collection: str, tmp_path: Path
) -> None:
    """The collection is read again inside the transaction: what the request loaded before the upload may be old."""
    loaded = Collection.objects.get(slug=collection)
    Collection.objects.update(scores="float32")
    file = tmp_path / "run"
    file.write_text(GOOD)
    submission = Submission(collection=loaded, team=alice.personal_team, user=alice, upload=file)
    with CaptureQueriesContext(connection) as queries:
        run, _ = submit_run(submission=submission, enqueue=queue_evaluation)
    # PostgreSQL locks the row against an activation in this moment; SQLite has one writer and no such lock.
    locked = any("FOR UPDATE" in query["sql"] for query in queries)
    assert locked == connection.features.has_select_for_update
    assert list(run.evaluations.values_list("scores", flat=True)) == ["float32"]


def test_a_deleted_run_is_not_evaluated(api: APIClient, queued: Evaluation) -> None:
    assert api.delete(f"/api/v1/runs/{queued.run_id}/").status_code == 204
    assert state(queued) == "cancelled"
    assert not evaluate(evaluation_id=queued.pk)


def test_new_judgements_make_old_values_stale_and_keep_them(api: APIClient, submit: Callable[..., Run]) -> None:
    run = submit(GOOD)
    upload(api, "collections/small/qrels/", "1 0 b 3\n2 0 y 1\n")
    (row,) = api.get("/api/v1/collections/small/leaderboard/").json()["results"]
    assert (row["rank"], row["stale"], row["qrels"]) == (None, True, 1)
    old = api.get(f"/api/v1/runs/{run.pk}/values/", {"qrels": 1}).json()
    assert (old["stale"], old["means"]["AP"]["mean"]) == (True, 1.0)
    assert evaluate(evaluation_id=Evaluation.objects.get(qrels__version=2).pk)
    (row,) = api.get("/api/v1/collections/small/leaderboard/").json()["results"]
    assert (row["rank"], row["stale"], row["qrels"]) == (1, False, 2)
    assert row["values"]["AP"]["mean"] == pytest.approx(1 / 6)
    assert api.get(f"/api/v1/runs/{run.pk}/values/", {"qrels": 1}).json()["means"] == old["means"]
    api.post("/api/v1/collections/small/qrels/1/activate/")
    (row,) = api.get("/api/v1/collections/small/leaderboard/").json()["results"]
    assert (row["rank"], row["qrels"], row["values"]["AP"]["mean"]) == (1, 1, 1.0)
