"""The dispatcher: hints are bounded, lost ones are sent again, and no step holds up another."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.serving import worker
from evalhub.serving.celery import app
from metrics.models import Evaluation
from metrics.services.queue import lifecycle
from metrics.services.queue.queueing import queue_missing
from metrics.services.upkeep import dispatch
from metrics.services.upkeep.dispatch import MESSAGES, Dispatcher, publish_due
from runs.models import Run
from tests.conftest import GOOD, POOR, upload

RUNS = "collections/small/runs/"


@pytest.fixture
def queue(api: APIClient, collection: str) -> list[int]:
    """Three queued evaluations, oldest first."""
    for number in range(3):
        upload(api, RUNS, GOOD, tag=f"run-{number}")
    return list(Evaluation.objects.order_by("created_at", "pk").values_list("pk", flat=True))


def test_a_full_broker_gets_no_more_messages(queue: list[int]) -> None:
    sent: list[int] = []
    assert publish_due(sent.append, lambda: MESSAGES) == 0
    assert publish_due(sent.append, lambda: MESSAGES - 2) == 2
    assert publish_due(sent.append, lambda: MESSAGES) == 0
    assert sent == queue[:2]


def test_a_queue_behind_a_worker_that_takes_nothing_stays_bounded(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it lasts: every message is silent for a lease's time again and again, and is not sent again."""
    monkeypatch.setattr(dispatch, "MESSAGES", 2)
    broker: list[int] = []
    for _ in range(20):
        publish_due(broker.append, lambda: len(broker))
        Evaluation.objects.exclude(dispatched_at=None).update(
            dispatched_at=timezone.now() - timedelta(hours=1)
        )
    assert broker == queue[:2]
    broker.clear()
    publish_due(broker.append, lambda: len(broker))
    assert broker == queue[:2]


def test_the_broker_is_asked_only_when_something_is_due(db: None) -> None:
    def ask() -> int:
        raise AssertionError

    assert publish_due(print, ask) == 0


def test_messages_that_wait_are_counted() -> None:
    with app.pool.acquire(block=True) as connection:
        connection.default_channel.queue_purge(app.conf.task_default_queue)
    assert worker.count_messages() == 0
    for _ in range(3):
        worker.publish(1)
    assert worker.count_messages() == 3
    with app.pool.acquire(block=True) as connection:
        connection.default_channel.queue_purge(app.conf.task_default_queue)


def steps(monkeypatch: pytest.MonkeyPatch, **replaced: Callable[..., Any]) -> Dispatcher:
    for name, function in replaced.items():
        monkeypatch.setattr(dispatch, name, function)
    return Dispatcher(lambda evaluation_id: None)


def test_a_reaper_that_fails_every_second_time_does_not_stop_the_queue(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def reap() -> int:
        calls.append("reap")
        if len(calls) % 2:
            raise RuntimeError("no")
        return 0

    dispatcher = steps(monkeypatch, reap_expired=reap, REAP_SECONDS=0.0, FAILED_SECONDS=0.0)
    for _ in range(4):
        dispatcher.round()
    assert calls == ["reap"] * 4
    assert not Evaluation.objects.filter(dispatched_at=None).exists()


def test_a_dead_broker_does_not_stop_the_reaper(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    lifecycle.claim(queue[0])
    Evaluation.objects.filter(pk=queue[0]).update(lease_until=timezone.now() - timedelta(seconds=1))

    def refuse(*arguments: object) -> int:
        raise ConnectionError("the broker is away")

    steps(monkeypatch, publish_due=refuse).round()
    assert Evaluation.objects.get(pk=queue[0]).state == "queued"


def test_no_process_is_forked_in_the_middle_of_a_round(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would have the locks of SQLite that this thread holds, and wait for them for ever."""
    begun, leave, forking, forked = (threading.Event() for _ in range(4))

    def look(*arguments: object) -> set[Any]:
        begun.set()
        assert leave.wait(10)
        return set()

    dispatcher = steps(monkeypatch, kinds_due=look, ROUND_SECONDS=0.001, LOOK_SECONDS=0.0)
    monkeypatch.setattr(dispatcher, "_steps", dispatcher._steps[1:2])
    monkeypatch.setattr(dispatcher._notes, "note", lambda: None)

    def fork() -> None:
        dispatcher.rest()
        forking.set()
        assert forked.wait(10)
        dispatcher.go_on()

    dispatcher.start()
    assert begun.wait(10)
    thread = threading.Thread(target=fork)
    thread.start()
    assert not forking.wait(0.05)
    leave.set()
    assert forking.wait(10)
    begun.clear()
    assert not begun.wait(0.05)
    forked.set()
    assert begun.wait(10)
    thread.join()
    dispatcher.stop()
    assert not dispatcher.is_alive()


@pytest.mark.django_db(transaction=True)
def test_what_is_due_is_looked_for_after_each_change_and_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[object] = []
    # Not the real one, which tests beside this one change on PostgreSQL: it counts in all databases
    # of its server.
    states: list[object] = ["first"]

    def look(*arguments: object) -> set[Any]:
        looked.append(arguments)
        return set()

    def rounds() -> int:
        before = len(looked)
        for _ in range(3):
            dispatcher.round()
        return len(looked) - before

    monkeypatch.setattr(dispatch, "state_of_database", lambda: states[-1])
    dispatcher = steps(monkeypatch, kinds_due=look, LOOK_SECONDS=3600.0)
    monkeypatch.setattr(dispatcher, "_steps", dispatcher._steps[1:2])
    assert rounds() == 1
    assert rounds() == 0
    states.append("second")
    assert rounds() == 1
    # One that is not known is another one each time.
    states.append(None)
    assert rounds() == 3
    states.append("third")
    assert rounds() == 1
    monkeypatch.setattr(dispatcher, "_enough_until", 0.0)
    assert rounds() == 1


def test_after_an_outage_living_workers_renew_their_leases_before_the_reaper_comes(
    queue: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [True]

    def publish(*arguments: object) -> int:
        if away:
            raise OperationalError("server closed the connection")
        return 0

    dispatcher = steps(monkeypatch, publish_due=publish, REAP_SECONDS=0.0, FAILED_SECONDS=0.0)
    lease = lifecycle.claim(queue[0])
    assert lease
    dispatcher.round()
    Evaluation.objects.filter(pk=queue[0]).update(lease_until=timezone.now() - timedelta(seconds=1))
    away.clear()
    dispatcher.round()
    assert Evaluation.objects.get(pk=queue[0]).state == "evaluating"
    assert lifecycle.beat(lease)
    assert Evaluation.objects.get(pk=queue[0]).attempts == 1


def test_what_nobody_queued_is_queued_once(api: APIClient, submit: Callable[..., Run]) -> None:
    submit(GOOD)
    deleted = submit(POOR)
    api.delete(f"/api/v1/runs/{deleted.pk}/")
    # As after an upgrade of the engine: no evaluation is of this version.
    Evaluation.objects.update(engine_version="0")
    assert (queue_missing(), queue_missing()) == (1, 0)
    assert list(Evaluation.objects.filter(state="queued").values_list("run__tag", flat=True)) == [
        "good"
    ]


def test_nothing_is_published_in_the_request(
    api: APIClient, collection: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither over the network nor through Celery; test_faults.py does the same to a server whose Redis is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(
            app.conf, "broker_url", f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        )
        monkeypatch.setattr(app, "send_task", None)
        monkeypatch.setattr(worker.evaluate, "apply_async", None)
        assert upload(api, RUNS, GOOD).status_code == 202
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
