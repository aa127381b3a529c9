"""Batches: one message and few transactions for many evaluations, and each with an end of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from billiard.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.serving import evaluation_log, worker
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.queue import batches, lifecycle
from metrics.services.queue import leases as leases_module
from metrics.services.queue.batches import GROUP, TOGETHER, in_batches
from metrics.services.upkeep import dispatch
from metrics.services.upkeep.dispatch import MESSAGES, publish_batches
from metrics.services.values import evaluate as evaluate_module
from metrics.services.values.evaluate import evaluate, evaluate_batch
from runs.models import Run
from tests.conftest import GOOD, POOR, QRELS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
RUNS = "collections/small/runs/"
TORN = "run-7"


@pytest.fixture(scope="module")
def uploaded(api: APIClient, collection: str) -> None:
    """As many runs as a batch has evaluations."""
    for number in range(TOGETHER):
        upload(api, RUNS, GOOD if number % 2 else POOR, tag=f"run-{number}")


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """A batch has all the time of a slow machine: it gives nothing back, and its groups become full."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BATCH_SECONDS", 600.0)
        patch.setattr(batches, "GROUP_SECONDS", 600.0)
        yield


@pytest.fixture
def queue(uploaded: None) -> list[int]:
    """Their queued evaluations, oldest first."""
    return pks_in("queued")


def pks_in(state: str) -> list[int]:
    return list(
        Evaluation.objects.filter(state=state)
        .order_by("created_at", "pk")
        .values_list("pk", flat=True)
    )


def attempts() -> dict[str, int]:
    return dict(Evaluation.objects.values_list("run__tag", "attempts"))


def states() -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in Evaluation.objects.values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


def stored() -> list[tuple[Any, ...]]:
    vectors = MetricVector.objects.order_by("evaluation", "measure")
    columns = ("evaluation", "measure", "mean", "topics", "content", "digest", "mean_digest")
    rows = [tuple(bytes(cell) if isinstance(cell, memoryview) else cell for cell in row)
            for row in vectors.values_list(*columns)]  # fmt: skip
    views = JudgedView.objects.order_by("pk").values_list("pk", "content", "digest")
    return rows + [(pk, bytes(content), digest) for pk, content, digest in views]


def at(monkeypatch: pytest.MonkeyPatch, tag: str, act: Callable[[], object]) -> list[str]:
    """Do something before the run of this tag is evaluated; return the tags whose evaluation was begun, in time."""
    compute, begun = evaluate_module._compute, []

    def acting(evaluation: Evaluation, lost: Any) -> Any:
        begun.append(evaluation.run.tag)
        if evaluation.run.tag == tag:
            act()
        return compute(evaluation, lost)

    monkeypatch.setattr(evaluate_module, "_compute", acting)
    return begun


def fail_with(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_a_batch_stores_what_single_evaluations_store(queue: list[int]) -> None:
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER
    together = stored()
    assert states() == {"evaluated": TOGETHER}
    assert set(attempts().values()) == {1}
    # Over what is stored already, as after a damaged view.
    Evaluation.objects.update(state="queued", attempts=0)
    assert [evaluate(evaluation_id=pk) for pk in queue] == [True] * TOGETHER
    assert stored() == together
    assert len(together) == 4 * TOGETHER


def test_statements_of_a_batch_are_one_for_each_run_and_few_more(queue: list[int]) -> None:
    """A run's own is the UPDATE that finishes it."""

    def statements(pks: list[int]) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert evaluate_batch(evaluation_ids=pks) == len(pks)
        return len(queries)

    # What is asked once in a process.
    evaluate_batch(evaluation_ids=[queue.pop()])
    first = statements(queue[:4])
    assert statements(queue[4 : 4 + GROUP - 1]) - first == GROUP - 1 - 4
    # With the lock of measures of value tables, and the rows that the runs are replicates of.
    assert first - 4 < 20


def test_a_run_that_raises_among_twenty_fails_alone(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, TORN, fail_with(ZeroDivisionError("secret detail")))
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 1
    torn = Evaluation.objects.get(run__tag=TORN)
    assert (torn.state, torn.attempts, torn.error_code) == ("queued", 1, "evaluation_error")
    assert "ZeroDivisionError: secret detail" in torn.traceback
    assert states() == {"evaluated": TOGETHER - 1, "queued": 1}
    for _ in range(2):
        Evaluation.objects.update(not_before=None)
        # It never comes in a batch again.
        assert evaluate_batch(evaluation_ids=[torn.pk]) == 0
        evaluate(evaluation_id=torn.pk)
    assert states() == {"evaluated": TOGETHER - 1, "failed": 1}


def test_a_run_over_the_time_limit_fails_alone(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, TORN, fail_with(SoftTimeLimitExceeded()))
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 1
    assert Evaluation.objects.get(run__tag=TORN).error_code == "evaluation_timeout"


def test_a_batch_that_dies_comes_back_one_by_one(queue: list[int]) -> None:
    """Its worker is killed: nobody knows which of them it was, so none is with another one the next time."""
    leases = lifecycle.claim_together(queue)
    assert [lease.pk for lease in leases] == queue
    assert lifecycle.claim_together(queue) == []
    assert [evaluate(evaluation_id=pk) for pk in queue[:2]] == [False, False]
    Evaluation.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert lifecycle.reap_expired() == TOGETHER
    assert set(attempts().values()) == {1}
    assert in_batches(queue) == [[pk] for pk in queue]
    assert evaluate_batch(evaluation_ids=queue) == 0
    assert evaluate_all() == TOGETHER
    assert set(attempts().values()) == {2}


def test_a_heartbeat_renews_what_is_left_of_a_batch(queue: list[int]) -> None:
    leases = lifecycle.claim_together(queue)
    assert lifecycle.finish(leases[0])
    soon = timezone.now() + timedelta(seconds=1)
    Evaluation.objects.filter(state="evaluating").update(lease_until=soon)
    assert lifecycle.beat(*leases)
    assert not Evaluation.objects.filter(lease_until__lte=soon).exists()
    assert (lifecycle.give_back(leases, begun=False), lifecycle.beat(*leases)) == (
        TOGETHER - 1,
        False,
    )


def test_a_worker_that_must_end_stores_what_is_finished(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = at(monkeypatch, TORN, fail_with(SystemExit(-241)))
    with pytest.raises(SystemExit):
        evaluate_batch(evaluation_ids=queue)
    assert begun[-1] == TORN
    done = len(begun) - 1
    assert 0 < done < TOGETHER - 1
    assert states() == {"evaluated": done, "queued": TOGETHER - done}
    remaining = Evaluation.objects.filter(state="queued")
    assert set(remaining.values_list("attempts", "dispatched_at", "lease_token")) == {
        (0, None, None)
    }
    monkeypatch.undo()
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - done


def test_a_worker_that_must_end_while_it_stores_loses_nothing(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, calls = evaluate_module._store_together, []

    def end(outcomes: Any) -> Any:
        calls.append(len(outcomes))
        if len(calls) == 1:
            raise SystemExit(-241)
        return store(outcomes)

    monkeypatch.setattr(evaluate_module, "_store_together", end)
    with pytest.raises(SystemExit):
        evaluate_batch(evaluation_ids=queue)
    assert calls == [GROUP, GROUP]
    assert states() == {"evaluated": GROUP, "queued": TOGETHER - GROUP}
    assert attempts() == {f"run-{number}": int(number < GROUP) for number in range(TOGETHER)}


def test_a_run_withdrawn_among_twenty_is_cancelled(
    api: APIClient, queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, during = Run.objects.get(tag="run-3"), Run.objects.get(tag="run-12")
    api.delete(f"/api/v1/runs/{before.pk}/")
    at(monkeypatch, TORN, lambda: api.delete(f"/api/v1/runs/{during.pk}/"))
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 1
    states = dict(Evaluation.objects.values_list("run__tag", "state"))
    assert states.pop("run-3") == "cancelled"
    # Its evaluation had been taken: it ends, and nobody sees it.
    assert set(states.values()) == {"evaluated"}
    board = api.get("/api/v1/collections/small/leaderboard/").json()
    assert not {"run-3", "run-12"} & {row["run"]["tag"] for row in board["results"]}
    assert len(board["results"]) == TOGETHER - 2


def test_a_run_that_is_withdrawn_when_its_batch_is_claimed_is_dropped(queue: list[int]) -> None:
    Run.objects.filter(tag=TORN).update(deleted_at=timezone.now())
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 1
    torn = Evaluation.objects.get(run__tag=TORN)
    assert (torn.state, torn.error_code) == ("cancelled", "run_deleted")


def test_an_evaluation_deleted_in_the_middle_stops_nothing(
    queue: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at(monkeypatch, TORN, lambda: Evaluation.objects.filter(pk__in=[queue[3], queue[12]]).delete())
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 2
    assert states() == {"evaluated": TOGETHER - 2}
    assert caplog.text.count("lease_lost") == 2
    assert not MetricVector.objects.filter(evaluation_id__in=[queue[3], queue[12]]).exists()


def test_judgements_that_come_while_a_batch_runs_are_the_next_ones(
    api: APIClient, queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in hand ends with the judgements that it began with, and all runs are evaluated by the new ones."""
    at(
        monkeypatch,
        TORN,
        lambda: upload(api, "collections/small/qrels/", QRELS.replace("1 0 a 2", "1 0 a 1")),
    )
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER
    first = Evaluation.objects.filter(state="evaluated")
    assert set(first.values_list("qrels__version", flat=True)) == {1}
    monkeypatch.undo()
    again = pks_in("queued")
    assert len(again) == TOGETHER
    assert evaluate_batch(evaluation_ids=again) == TOGETHER
    assert all(vector.is_sound(vector.evaluation.qrels_id) for vector in MetricVector.objects.all())
    assert set(Evaluation.objects.counting().values_list("state", "qrels__version")) == {
        ("evaluated", 2)
    }


def test_a_frozen_batch_is_overtaken_and_changes_nothing(
    queue: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another worker takes what was not stored yet, and finishes one of them before the first one wakes up."""

    def freeze() -> None:
        Evaluation.objects.filter(state="evaluating").update(
            lease_until=timezone.now() - timedelta(seconds=1)
        )
        lifecycle.reap_expired()
        with monkeypatch.context() as patch:
            patch.setattr(evaluate_module, "_compute", compute)
            assert evaluate(evaluation_id=queue[7])
        assert lifecycle.claim(queue[8])

    compute = evaluate_module._compute
    at(monkeypatch, TORN, freeze)
    assert evaluate_batch(evaluation_ids=queue) == 0
    assert states() == {"evaluated": 1, "evaluating": 1, "queued": TOGETHER - 2}
    assert set(MetricVector.objects.values_list("evaluation", flat=True)) == {queue[7]}
    assert "lease_lost" in caplog.text


def test_what_cannot_be_stored_does_not_keep_the_others_from_it(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    compute = evaluate_module._compute

    def spoil(evaluation: Evaluation, lost: Any) -> Any:
        outcome = compute(evaluation, lost)
        if evaluation.run.tag == TORN:
            # The database takes no such row, and its transaction is lost.
            outcome.vectors[1].topics = None
        return outcome

    monkeypatch.setattr(evaluate_module, "_compute", spoil)
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 1
    torn = Evaluation.objects.get(run__tag=TORN)
    assert (torn.state, torn.error_code) == ("queued", "evaluation_delayed")
    assert not MetricVector.objects.filter(evaluation=torn).exists()
    assert not JudgedView.objects.filter(evaluation=torn).exists()


def test_a_batch_waits_for_a_database_that_is_away(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, failures = (
        evaluate_module._store_together,
        [OperationalError("server closed the connection")],
    )

    def store_later(outcomes: Any) -> Any:
        if failures:
            raise failures.pop()
        return store(outcomes)

    monkeypatch.setattr(evaluate_module, "_store_together", store_later)
    monkeypatch.setattr(leases_module, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(leases_module, "close_old_connections", lambda: None)
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER
    assert set(attempts().values()) == {1}


def test_a_batch_that_fails_itself_comes_back_one_by_one(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(kind: Any, pk: int, **signal: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(batches.begun, "send", fail)
    assert evaluate_batch(evaluation_ids=queue) == 0
    assert states() == {"queued": TOGETHER}
    assert set(attempts().values()) == {1}


def test_a_long_batch_gives_back_what_it_has_not_begun(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have nothing to do; and what it gives back was not tried."""
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.0)
    assert evaluate_batch(evaluation_ids=queue) == 0
    assert states() == {"queued": TOGETHER}
    begun = at(
        monkeypatch, "run-4", lambda: monkeypatch.setattr(batches.time, "monotonic", lambda: 1e12)
    )
    monkeypatch.setattr(batches, "BATCH_SECONDS", 60.0)
    assert evaluate_batch(evaluation_ids=queue) == len(begun) == 5
    monkeypatch.undo()
    remaining = Evaluation.objects.filter(state="queued")
    assert set(remaining.values_list("attempts", "dispatched_at", "lease_token")) == {
        (0, None, None)
    }
    assert evaluate_batch(evaluation_ids=queue) == TOGETHER - 5


def test_batches_are_shared_among_processes_and_bounded(queue: list[int], settings: Any) -> None:
    settings.EVALHUB_WORKER_PROCESSES = 1
    assert in_batches(queue) == [queue]
    assert in_batches([*queue, *range(-30, 0)])[0] == queue
    settings.EVALHUB_WORKER_PROCESSES = 3
    assert [len(batch) for batch in in_batches(queue)] == [7, 7, 6]
    assert in_batches(queue[:2]) == [queue[:1], queue[1:2]]
    settings.EVALHUB_WORKER_PROCESSES = 1
    Run.objects.filter(evaluations=queue[1]).update(lines=batches.LINES)
    Run.objects.filter(evaluations=queue[2]).update(lines=50 * batches.LINES)
    Evaluation.objects.filter(pk=queue[5]).update(attempts=1)
    assert in_batches(queue[:8]) == [
        queue[:1],
        queue[1:2],
        queue[2:3],
        queue[3:5],
        queue[5:6],
        queue[6:8],
    ]


def test_a_batch_is_one_message(queue: list[int], settings: Any) -> None:
    settings.EVALHUB_WORKER_PROCESSES = 1
    Evaluation.objects.filter(pk=queue[5]).update(attempts=1)
    alone: list[int] = []
    together: list[list[int]] = []
    assert publish_batches(alone.append, together.append, lambda: MESSAGES) == 0
    assert publish_batches(alone.append, together.append) == TOGETHER
    assert (alone, together) == ([queue[5]], [queue[:5], queue[6:]])
    assert publish_batches(alone.append, together.append) == 0


def test_a_full_broker_gets_no_more_batches(queue: list[int], settings: Any) -> None:
    """What there is no room for is due again at once."""
    settings.EVALHUB_WORKER_PROCESSES = 1
    Evaluation.objects.update(attempts=1)
    alone: list[int] = []
    assert publish_batches(alone.append, print, lambda: MESSAGES - 2) == 2
    assert (
        list(
            Evaluation.objects.filter(dispatched_at=None)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        == queue[2:]
    )
    assert publish_batches(alone.append, print) == TOGETHER - 2
    assert alone == queue


def test_a_batch_that_cannot_be_sent_is_due_again(queue: list[int], settings: Any) -> None:
    settings.EVALHUB_WORKER_PROCESSES = 2
    sent: list[list[int]] = []

    def refuse(pks: list[int]) -> None:
        if sent:
            raise ConnectionError("the broker is away")
        sent.append(pks)

    with pytest.raises(ConnectionError):
        publish_batches(print, refuse)
    assert sent == [queue[:10]]
    assert (
        list(
            Evaluation.objects.filter(dispatched_at=None)
            .order_by("pk")
            .values_list("pk", flat=True)
        )
        == queue[10:]
    )


def test_a_dispatcher_sends_batches_and_a_worker_takes_them(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(
        worker.evaluate_batch, "apply_async", lambda kwargs: sent.append(json.dumps(kwargs))
    )
    dispatch.Dispatcher(worker.publish, publish_batch=worker.publish_batch).round()
    assert len(sent) == 2
    for message in sent:
        worker.evaluate_batch(**json.loads(message))
    assert states() == {"evaluated": TOGETHER}


def test_each_evaluation_of_a_batch_has_a_line_in_the_log(
    queue: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    batches.begun.connect(evaluation_log._begin_in_batch)
    try:
        Run.objects.filter(tag=TORN).update(deleted_at=timezone.now())
        with caplog.at_level(logging.INFO, "evalhub.evaluation"):
            evaluation_log._begin_batch()
            evaluate_batch(evaluation_ids=queue[:8])
            evaluation_log._end_batch()
    finally:
        batches.begun.disconnect(evaluation_log._begin_in_batch)
    lines = [vars(record) for record in caplog.records if record.name == "evalhub.evaluation"]
    assert len(lines) == 8
    assert {line["run"] for line in lines} == {
        str(pk) for pk in Run.objects.filter(evaluations__in=queue[:8]).values_list("pk", flat=True)
    }
    assert [line["state"] for line in lines].count("evaluated") == 7
    assert [line["code"] for line in lines if line["state"] == "cancelled"] == ["run_deleted"]
