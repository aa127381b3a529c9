"""Comparisons as jobs: claimed by one worker, fenced, tried again, published by the dispatcher."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from metrics.models import Comparison, Evaluation
from metrics.services.comparisons import stored as stored_comparisons
from metrics.services.comparisons.stored import compare
from metrics.services.queue import leases as work
from metrics.services.queue import lifecycle
from metrics.services.queue.lifecycle import LeaseLost
from metrics.services.upkeep.dispatch import Dispatcher, publish_comparisons, publish_due
from runs.models import Team, User
from tests.conftest import upload
from tests.metrics.scored import make_scored, simulated
from tests.metrics.waiting import (
    QUERY,
    SCORED,
    address,
    compute_now,
    expire,
    ids,
    queued,
    slow,
)

__all__ = ["ids", "queued", "slow"]


# The worker


def test_only_one_claim_succeeds_and_the_second_call_does_nothing(queued: Comparison) -> None:
    assert lifecycle.claim(queued.pk, Comparison)
    assert lifecycle.claim(queued.pk, Comparison) is None
    assert not compare(comparison_id=str(queued.pk))


def test_a_comparison_whose_worker_was_killed_is_made_by_another(
    api: APIClient, queued: Comparison
) -> None:
    lease = lifecycle.claim(queued.pk, Comparison)
    assert lease
    expire(queued)
    assert lifecycle.reap_expired() == 1
    assert compute_now(queued).attempts == 2
    content = bytes(queued.content or b"")
    # The first one wakes up: it is too late for it.
    assert not lifecycle.finish(lease, content=b"late")
    queued.refresh_from_db()
    assert bytes(queued.content or b"") == content


def test_a_comparison_that_kills_its_workers_fails(api: APIClient, queued: Comparison) -> None:
    for _ in range(lifecycle.MAX_DEATHS):
        assert lifecycle.claim(queued.pk, Comparison)
        expire(queued)
        lifecycle.reap_expired()
    comparison = api.get(address(queued)).json()["comparison"]
    assert (comparison["state"], comparison["error_code"]) == ("failed", "comparison_crashed")
    for path in (SCORED, f"{address(queued)}export/csv/", f"{address(queued)}charts/ranks.svg"):
        answer = api.get(path, QUERY if path == SCORED else {})
        assert (answer.status_code, answer.json()["code"]) == (409, "comparison_failed")
    body = {"tests": ["randomisation", "paired_t"], "resamples": 3000, "measures": ["AP"]}
    again = api.post(SCORED, body).json()["comparison"]
    assert (again["id"], again["state"], again["attempts"]) == (str(queued.pk), "queued", 0)
    assert compute_now(queued).state == "compared"


def test_a_worker_that_lost_its_lease_stops_and_stores_nothing(
    queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a test that draws."""
    monkeypatch.setattr(stored_comparisons, "_NOTE_SECONDS", 0.0)
    blocks: list[int] = []

    def take_over(self: stored_comparisons.Progress) -> None:
        blocks.append(1)
        expire(queued)
        lifecycle.reap_expired()
        self._tell()

    monkeypatch.setattr(stored_comparisons.Progress, "block", take_over)
    assert not compare(comparison_id=str(queued.pk))
    queued.refresh_from_db()
    assert (queued.state, queued.content, len(blocks)) == ("queued", None, 1)


def test_a_heartbeat_that_finds_the_lease_lost_ends_the_work(queued: Comparison) -> None:
    lease, lost = lifecycle.claim(queued.pk, Comparison), threading.Event()
    lost.set()
    assert lease
    with pytest.raises(LeaseLost):
        stored_comparisons._compare(lease, lost)


def test_progress_is_told_and_only_grows(
    api: APIClient, queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_comparisons, "_NOTE_SECONDS", 0.0)
    seen: list[float] = []
    note = lifecycle.note

    def listen(lease: Any, **changes: Any) -> bool:
        result = note(lease, **changes)
        seen.append(api.get(address(queued)).json()["comparison"]["progress"])
        return result

    monkeypatch.setattr(stored_comparisons, "note", listen)
    compute_now(queued)
    assert seen == sorted(seen)
    # One for each test, one for each block of resamples.
    assert len(seen) == 2 + 3
    assert 0 < seen[-2] <= seen[-1] < 1


def test_an_error_nobody_expected_is_tried_again_then_shown(
    api: APIClient, queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*args: Any) -> Any:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(stored_comparisons, "encode", explode)
    for attempt in range(1, lifecycle.MAX_ATTEMPTS + 1):
        Comparison.objects.update(not_before=None)
        assert not compare(comparison_id=str(queued.pk))
        queued.refresh_from_db()
        assert queued.attempts == attempt
    assert (queued.state, queued.error_code) == ("failed", "comparison_error")
    assert "secret" in queued.traceback
    assert "secret" not in api.get(address(queued)).content.decode()


def test_a_measure_without_common_topics_fails_with_its_reason(
    api: APIClient, alice: User, slow: None
) -> None:
    values = simulated(2, 3)
    values[0, 0] = values[1, 1] = float("nan")
    make_scored("scored", Team.objects.get(personal_of=alice), values)
    comparison = api.get(SCORED).json()["comparison"]
    compare(comparison_id=comparison["id"])
    comparison = api.get(comparison["url"]).json()["comparison"]
    assert (comparison["state"], comparison["error_code"]) == ("failed", "too_few_topics")
    assert "AP: a comparison needs at least 2 topics" in comparison["error_message"]


def test_a_worker_told_to_end_gives_the_comparison_back(
    queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*args: Any) -> Any:
        raise SystemExit(-241)

    monkeypatch.setattr(stored_comparisons, "encode", end)
    with pytest.raises(SystemExit):
        compare(comparison_id=str(queued.pk))
    queued.refresh_from_db()
    assert (queued.state, queued.attempts, queued.error_code) == ("queued", 0, "comparison_delayed")


def test_the_dispatcher_publishes_comparisons_beside_evaluations(
    api: APIClient, collection: str, queued: Comparison
) -> None:
    upload(api, "collections/small/runs/", "1 Q0 a 1 1.0 x\n")
    evaluations: list[Any] = []
    comparisons: list[Any] = []
    dispatcher = Dispatcher(evaluations.append, publish_comparison=comparisons.append)
    dispatcher.round()
    dispatcher.round()
    assert evaluations == [Evaluation.objects.get(state="queued").pk]
    assert comparisons == [queued.pk]


def test_comparisons_leave_a_process_to_the_evaluations(
    api: APIClient, queued: Comparison, settings: Any
) -> None:
    for seed in range(4):
        api.get(SCORED, {"seed": str(seed)})
    sent: list[Any] = []
    for processes, most in ((1, 1), (2, 1), (4, 3)):
        settings.EVALHUB_WORKER_PROCESSES = processes
        Comparison.objects.update(dispatched_at=None)
        assert publish_comparisons(sent.append) == most
        assert publish_comparisons(sent.append) == 0
    assert lifecycle.claim(sent[-1], Comparison)
    # One that a worker fell silent about is sent again; those in hand count.
    Comparison.objects.filter(state="queued").update(dispatched_at=None)
    assert publish_comparisons(sent.append) == 2


def test_a_comparison_that_could_not_be_published_is_due_again(queued: Comparison) -> None:
    def refuse(pk: Any) -> None:
        raise ConnectionError("the broker is away")

    with pytest.raises(ConnectionError):
        publish_due(refuse, kind=Comparison)
    sent: list[Any] = []
    assert publish_due(sent.append, kind=Comparison) == 1
    assert publish_due(sent.append, kind=Comparison) == 0
    assert sent == [queued.pk]


def test_the_database_refuses_a_lease_or_a_result_that_contradicts_the_state(
    queued: Comparison,
) -> None:
    for wrong in (
        {"state": "comparing"},
        {"lease_token": uuid.uuid4()},
        {"state": "compared"},
        {"content": b"x"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Comparison.objects.update(**wrong)


def test_a_comparison_over_its_time_limit_fails(
    queued: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_for_ever(*args: Any) -> Any:
        raise work.SoftTimeLimitExceeded

    monkeypatch.setattr(stored_comparisons, "encode", take_for_ever)
    compare(comparison_id=str(queued.pk))
    queued.refresh_from_db()
    assert (queued.state, queued.error_code) == ("failed", "comparison_timeout")
