"""The life of an evaluation: every move is made once, by who holds the lease."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation, MetricVector
from metrics.services.queue import leases as work
from metrics.services.queue import lifecycle
from metrics.services.queue.queueing import queue_submitted
from metrics.services.upkeep.dispatch import publish_due
from metrics.services.values import evaluate as evaluate_module
from metrics.services.values.evaluate import evaluate
from runs.models import Collection, Run, User
from runs.services.audit.revisions import read_revision
from runs.services.submissions.runs import RunUpload
from runs.services.submissions.submissions import submit as submit_file
from tests.conftest import GOOD, POOR, upload
from tests.metrics.queued import QRELS_PATH, expire, queued, state

__all__ = ["queued"]


def test_only_one_claim_succeeds(queued: Evaluation) -> None:
    assert lifecycle.claim(queued.pk) is not None
    assert lifecycle.claim(queued.pk) is None
    assert state(queued) == "evaluating"


def test_every_move_raises_the_revision_of_the_collection(queued: Evaluation) -> None:
    """As one of a run that only arrives."""
    collection = queued.run.collection_id

    def claimed() -> lifecycle.Lease:
        lease = lifecycle.claim(queued.pk)
        assert lease
        return lease

    def raised_by(call: Callable[[], object]) -> bool:
        before = read_revision(collection)
        assert call()
        after = read_revision(collection)
        assert after.others == before.others
        return after.changes > before.changes

    jobs = Evaluation.objects.filter(pk=queued.pk)
    (lease,) = lifecycle.claim_together([queued.pk])
    assert raised_by(lambda: lifecycle.give_back([lease], begun=False))
    assert raised_by(lambda: lifecycle.claim_together([queued.pk]))
    assert raised_by(lifecycle.queue_interrupted)
    assert raised_by(claimed)
    expire(queued)
    assert raised_by(lifecycle.reap_expired)
    lease = claimed()
    assert raised_by(lambda: lifecycle.release(lease, delay=0.0, burn=False))
    lease = claimed()
    assert raised_by(lambda: lifecycle.fail(lease, code="failed", message="failed"))
    assert raised_by(lambda: lifecycle.try_failed_again(jobs))
    lease = claimed()
    assert raised_by(lambda: lifecycle.drop(lease, "run_deleted"))
    assert raised_by(lambda: lifecycle.queue_again(jobs))
    assert raised_by(lambda: evaluate(evaluation_id=queued.pk))


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

    def freeze(evaluation: Evaluation, lost: Any) -> Any:
        outcome = compute(evaluation, lost)
        expire(evaluation)
        lifecycle.reap_expired()
        assert lifecycle.claim(evaluation.pk) is not None
        return outcome

    monkeypatch.setattr(evaluate_module, "_compute", freeze)
    assert not evaluate(evaluation_id=queued.pk)
    assert state(queued) == "evaluating"
    assert not MetricVector.objects.exists()


def test_a_poisonous_run_fails_after_five_deaths_of_its_worker(queued: Evaluation) -> None:
    for _ in range(lifecycle.MAX_DEATHS):
        assert state(queued) == "queued"
        assert lifecycle.claim(queued.pk) is not None
        expire(queued)
        lifecycle.reap_expired()
    assert state(queued) == "failed"
    assert queued.error_code == "evaluation_crashed"


def test_an_unexpected_error_is_tried_again_then_shown(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(evaluation: Evaluation, lost: Any) -> Any:
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


def test_a_database_outage_burns_no_attempt(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(evaluation: Evaluation, lost: Any) -> Any:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(evaluate_module, "_compute", unreachable)
    assert not evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == ("queued", 0)
    assert queued.not_before is not None
    assert lifecycle.claim(queued.pk) is None


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OperationalError("database or disk is full"),
    ],
)
def test_a_full_disk_delays_an_evaluation_and_burns_no_attempt(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(evaluation: Evaluation, lost: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(evaluate_module, "_compute", full)
        assert not evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts, queued.error_code) == ("queued", 0, "evaluation_delayed")
    Evaluation.objects.update(not_before=None)
    assert evaluate(evaluation_id=queued.pk)


def test_an_evaluation_over_its_time_limit_fails(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The soft limit raises in the middle of it; the hard one kills the process, which the lease brings back."""

    def take_for_ever(evaluation: Evaluation, lost: Any) -> Any:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(evaluate_module, "_compute", take_for_ever)
    evaluate(evaluation_id=queued.pk)
    assert (state(queued), queued.error_code) == ("failed", "evaluation_timeout")


def test_a_worker_that_must_end_releases_its_lease_at_once(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(evaluation: Evaluation, lost: Any) -> Any:
        raise SystemExit(-241)

    monkeypatch.setattr(evaluate_module, "_compute", end)
    with pytest.raises(SystemExit):
        evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == ("queued", 0)
    assert lifecycle.claim(queued.pk) is not None


def test_a_database_that_answers_again_gets_the_results(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, failures = (
        evaluate_module._store,
        [OperationalError("gone"), InterfaceError("connection already closed")],
    )

    def store_later(lease: Any, outcome: Any) -> bool:
        if failures:
            raise failures.pop()
        return store(lease, outcome)

    monkeypatch.setattr(evaluate_module, "_store", store_later)
    monkeypatch.setattr(work, "_PAUSE_SECONDS", 0.0)
    # It would close the connection that holds the test's transaction.
    monkeypatch.setattr(work, "close_old_connections", lambda: None)
    assert evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == ("evaluated", 1)


def test_a_computation_whose_lease_is_lost_is_not_carried_on(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    computed: list[str] = []
    make = evaluate_module.make_vector

    def make_and_lose(evaluation_id: int, measure: Any, view: Any) -> MetricVector:
        computed.append(measure.name)
        lost.set()
        return make(evaluation_id, measure, view)

    compute = evaluate_module._compute
    lost = threading.Event()
    monkeypatch.setattr(evaluate_module, "make_vector", make_and_lose)
    monkeypatch.setattr(
        evaluate_module, "_compute", lambda evaluation, _: compute(evaluation, lost)
    )
    assert not evaluate(evaluation_id=queued.pk)
    assert computed == ["nDCG@10"]
    assert "lease_lost" in caplog.text


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_workers_clock_does_not_matter(
    queued: Evaluation, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Leases begin and end by the database's time."""
    wrong = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: wrong)
    monkeypatch.setattr(time, "time", wrong.timestamp)
    assert lifecycle.claim(queued.pk) is not None
    assert (lifecycle.reap_expired(), lifecycle.claim(queued.pk)) == (0, None)
    monkeypatch.undo()
    queued.refresh_from_db()
    assert timedelta(0) < queued.lease_until - timezone.now() < timedelta(minutes=1)


def test_a_message_that_comes_five_times_is_worked_on_once(queued: Evaluation) -> None:
    assert [evaluate(evaluation_id=queued.pk) for _ in range(5)] == [
        True,
        False,
        False,
        False,
        False,
    ]
    # The collection's two measures, and Judged@10.
    assert MetricVector.objects.count() == 3


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
    assert api.post("/api/v1/collections/small/evaluations/", {"scores": "float64"}).json() == {
        "queued": 1
    }
    assert evaluate(evaluation_id=queued.pk)


def test_a_collection_changed_during_an_upload_decides_how_the_run_is_judged(
    alice: User, collection: str, tmp_path: Path
) -> None:
    """The collection is read again inside the transaction: what the request loaded before the upload may be old."""
    loaded = Collection.objects.get(slug=collection)
    Collection.objects.update(scores="float32")
    file = tmp_path / "run"
    file.write_text(GOOD)
    sent = RunUpload(collection=loaded, team=alice.personal_team, user=alice, file=file)
    with CaptureQueriesContext(connection) as queries:
        run, _ = submit_file(upload=sent, enqueue=queue_submitted)
    # PostgreSQL locks the row against an activation in this moment; SQLite has one writer and no
    # such lock.
    locked = any("FOR UPDATE" in query["sql"] for query in queries)
    assert locked == connection.features.has_select_for_update
    assert list(run.evaluations.values_list("scores", flat=True)) == ["float32"]


def test_a_deleted_run_is_not_evaluated(api: APIClient, queued: Evaluation) -> None:
    assert api.delete(f"/api/v1/runs/{queued.run_id}/").status_code == 204
    assert state(queued) == "cancelled"
    assert not evaluate(evaluation_id=queued.pk)


def test_a_run_deleted_while_it_was_evaluated_is_cancelled_when_it_comes_back(
    api: APIClient, queued: Evaluation
) -> None:
    lease = lifecycle.claim(queued.pk)
    assert lease
    api.delete(f"/api/v1/runs/{queued.run_id}/")
    lifecycle.release(lease, delay=0, burn=False)
    assert not evaluate(evaluation_id=queued.pk)
    assert (state(queued), queued.error_code) == ("cancelled", "run_deleted")


def test_judgements_replaced_while_runs_are_evaluated_mix_nothing(
    api: APIClient, collection: str
) -> None:
    """Values carry the version they were computed by; the board is of one version, and says how far it has come."""
    upload(api, "collections/small/runs/", GOOD)
    upload(api, "collections/small/runs/", POOR)
    leased, waiting = Evaluation.objects.order_by("pk")
    assert evaluate(evaluation_id=waiting.pk)
    replace = evaluate_module._store

    with pytest.MonkeyPatch.context() as patch:
        # The new version is activated while the first run is being judged by the old one.
        patch.setattr(
            evaluate_module,
            "_store",
            lambda *args: (upload(api, QRELS_PATH, "1 0 b 3\n"), replace(*args))[1],
        )
        assert evaluate(evaluation_id=leased.pk)
    assert leased.qrels.version == 1
    assert progress(api) == {
        "qrels": 2,
        "total": 2,
        "evaluated": 0,
        "states": {"queued": 2},
        "computing": {},
        "done": False,
    }
    rows = board(api)
    assert [(row["rank"], row["stale"], row["qrels"]) for row in rows] == [(None, True, 1)] * 2
    first, second = Evaluation.objects.filter(qrels__version=2).order_by("pk")
    evaluate(evaluation_id=first.pk)
    assert progress(api)["evaluated"] == 1
    assert [(row["rank"], row["qrels"]) for row in board(api)] == [(1, 2), (None, 1)]
    evaluate(evaluation_id=second.pk)
    assert progress(api) == {
        "qrels": 2,
        "total": 2,
        "evaluated": 2,
        "states": {"evaluated": 2},
        "computing": {},
        "done": True,
    }
    assert [(row["rank"], row["qrels"]) for row in board(api)] == [(1, 2), (2, 2)]
    for run in Run.objects.all():
        old = api.get(f"/api/v1/runs/{run.pk}/values/", {"qrels": 1}).json()
        assert (old["stale"], len(old["topics"])) == (True, 3)


def board(api: APIClient) -> list[dict[str, Any]]:
    return list(api.get("/api/v1/collections/small/leaderboard/").json()["results"])


def progress(api: APIClient) -> dict[str, Any]:
    answer = api.get("/api/v1/collections/small/evaluations/").json()
    assert answer.pop("scores") == "float64"
    return dict(answer)


def test_progress_counts_what_failed_as_done(api: APIClient, queued: Evaluation) -> None:
    Evaluation.objects.update(state="failed")
    assert progress(api) == {
        "qrels": 1,
        "total": 1,
        "evaluated": 0,
        "states": {"failed": 1},
        "computing": {},
        "done": True,
    }
    assert api.get("/api/v1/collections/small/evaluations/?scores=float16").status_code == 400
    upload(api, QRELS_PATH, "1 0 b 3\n")
    assert api.get("/api/v1/collections/small/evaluations/?scores=float32").json()["states"] == {
        "queued": 1
    }


def test_new_judgements_make_old_values_stale_and_keep_them(
    api: APIClient, submit: Callable[..., Run]
) -> None:
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


def in_seconds(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)


def test_times_of_a_clock_that_was_set_back_hold_up_nothing(queued: Evaluation) -> None:
    """What was sent, delayed or leased an hour from now; what is sent or leased at this moment stays as it is."""
    Evaluation.objects.update(not_before=in_seconds(3600), dispatched_at=in_seconds(3600))
    assert lifecycle.take_due(9, 30) == [queued.pk]
    assert lifecycle.take_due(9, 30) == []
    Evaluation.objects.update(not_before=in_seconds(3600))
    assert lifecycle.claim(queued.pk)
    assert lifecycle.reap_expired() == 0
    Evaluation.objects.update(lease_until=in_seconds(3600))
    assert lifecycle.reap_expired() == 1
    assert state(queued) == "queued"
    Evaluation.objects.update(not_before=in_seconds(lifecycle.LONGEST_DELAY))
    assert lifecycle.claim(queued.pk) is None
