"""Faults in the middle of things, on a PostgreSQL and a Redis of our own behind a network that can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

from evalhub.operating.simulation import TEXTBOOK_RUN
from evalhub.serving.celery import app
from tests.reliability.faults import Rig, child_of, running_rig, signal_all
from tests.reliability.rigs import installed

pytestmark = pytest.mark.skipif(
    not installed() and not os.environ.get("EVALHUB_TEST_REQUIRED"),
    reason="no PostgreSQL or Redis to start",
)
LEASE = 3


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with running_rig(tmp_path_factory.mktemp("faults"), LEASE) as running:
        yield running


@pytest.fixture(scope="module")
def worker(rig: Rig) -> Iterator[subprocess.Popen[bytes]]:
    """One that stays, with evaluations of a second."""
    with rig.worker(slow=1.0) as process:
        yield process


def test_a_message_nobody_knows_stops_nothing(rig: Rig, worker: subprocess.Popen[bytes]) -> None:
    """As an older worker meets the tasks of a newer one, during an upgrade."""
    with app.connection_for_write(url=rig.redis.url) as connection:
        for name, fields in (
            ("metrics.no_such_task", {"x": 1}),
            ("metrics.evaluate", {"evaluation_id": 1, "unheard_of": 2}),
        ):
            app.send_task(name, kwargs=fields, connection=connection)
    assert rig.redis.client().dbsize()
    rig.wait_for(rig.submit(), "evaluated")


def test_messages_that_redis_lost_are_sent_again(rig: Rig, worker: subprocess.Popen[bytes]) -> None:
    """By being killed; a run is accepted while it is dead."""
    rig.wait_for(rig.submit(), "evaluated")
    child = child_of(worker)
    child.suspend()
    runs = [rig.submit() for _ in range(3)]
    deadline = time.monotonic() + 10
    # Until there is something to lose.
    while not rig.redis.client().dbsize() and time.monotonic() < deadline:
        time.sleep(0.05)
    rig.redis.kill()
    runs.append(rig.submit())
    assert rig.evaluation(runs[-1])["state"] == "queued"
    rig.redis.start()
    child.resume()
    for run in runs:
        rig.wait_for(run, "evaluated")


def test_a_worker_hears_again_after_the_network_was_silent(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    """What Redis says meanwhile is gone; without a time limit on its sockets a worker would listen for ever, and so
    would a request that sent its run to Redis itself: its client gives up after 10 seconds."""
    rig.wait_for(rig.submit(), "evaluated")
    rig.network.cut.set()
    # Longer than a worker waits for its next message.
    time.sleep(2)
    rig.client.timeout = httpx.Timeout(10.0)
    run = rig.submit()
    rig.client.timeout = httpx.Timeout(60.0)
    time.sleep(1)
    assert rig.evaluation(run)["state"] == "queued"
    rig.network.cut.clear()
    rig.wait_for(run, "evaluated", 60)


def test_a_full_redis_refuses_and_loses_nothing(rig: Rig, worker: subprocess.Popen[bytes]) -> None:
    rig.redis.client().config_set("maxmemory", "1")
    try:
        run = rig.submit()
        time.sleep(1)
        assert rig.evaluation(run)["state"] == "queued"
    finally:
        rig.redis.client().config_set("maxmemory", "0")
    rig.wait_for(run, "evaluated")


def test_a_database_that_goes_away_costs_no_attempt(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    run = rig.submit()
    rig.wait_for(run, "evaluating")
    rig.postgres.kill()
    for method, address in (
        ("GET", "collections/"),
        ("POST", "collections/faults/runs/"),
        ("GET", run),
    ):
        answer = rig.client.request(
            method, address, content=TEXTBOOK_RUN, headers={"Content-Type": "text/plain"}
        )
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert answer.headers["Retry-After"]
    # Longer than the lease: when the database is back the heartbeat must come before the reaper.
    time.sleep(LEASE + 1)
    rig.postgres.start()
    rig.wait_for(run, "evaluated")
    assert rig.evaluation(run)["attempts"] == 1


def test_a_connection_that_broke_between_two_runs_is_opened_again(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    """A worker keeps its connections, and its database is started again while it has nothing to do."""
    rig.wait_for(rig.submit(), "evaluated")
    rig.postgres.kill()
    rig.postgres.start()
    run = rig.submit()
    rig.wait_for(run, "evaluated")
    assert rig.evaluation(run)["attempts"] == 1


def test_a_killed_pool_process_is_replaced_and_its_run_evaluated(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    run = rig.submit()
    rig.wait_for(run, "evaluating")
    child_of(worker).kill()
    rig.wait_for(run, "evaluated")
    assert rig.evaluation(run)["attempts"] == 2


def test_a_frozen_worker_is_overtaken_and_changes_nothing(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    run = rig.submit()
    rig.wait_for(run, "evaluating")
    signal_all(worker, signal.SIGSTOP)
    with rig.worker():
        rig.wait_for(run, "evaluated")
    before = rig.evaluation(run)
    signal_all(worker, signal.SIGCONT)
    rig.wait_for(rig.submit(), "evaluated")
    assert before["attempts"] == 2
    assert rig.evaluation(run) == before


def test_a_comparison_survives_its_worker(rig: Rig, worker: subprocess.Popen[bytes]) -> None:
    """Killed in the middle of it, and all messages lost."""
    for run in [rig.submit(), rig.submit()]:
        rig.wait_for(run, "evaluated")
    comparison = rig.ask_comparison(seed=1)
    rig.wait_for_comparison(comparison, "comparing")
    child_of(worker).kill()
    rig.redis.client().flushall()
    assert rig.wait_for_comparison(comparison, "compared")["attempts"] == 2
    assert rig.client.get(comparison).json()["measures"][0]["pairs"]


def test_a_worker_told_to_end_gives_back_its_comparison(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    signal_all(worker, signal.SIGSTOP)
    try:
        with rig.worker(slow=300) as ending:
            comparison = rig.ask_comparison(seed=2)
            rig.wait_for_comparison(comparison, "comparing")
            ending.terminate()
            given_back = rig.wait_for_comparison(comparison, "queued")
            ending.wait(20)
    finally:
        signal_all(worker, signal.SIGCONT)
    assert (given_back["attempts"], given_back["error_code"]) == (0, "comparison_delayed")
    rig.wait_for_comparison(comparison, "compared")


def test_a_worker_ends_an_evaluation_over_its_time_limit(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    """F22: and has its slot free for the next one."""
    signal_all(worker, signal.SIGSTOP)
    try:
        with rig.worker(slow=300, limit="2"):
            runs = [rig.submit(), rig.submit()]
            for run in runs:
                rig.wait_for(run, "failed", 60)
    finally:
        signal_all(worker, signal.SIGCONT)
    assert {rig.evaluation(run)["error_code"] for run in runs} == {"evaluation_timeout"}


def test_a_greedy_run_in_a_batch_is_nobody_elses_fate(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    """F23: the kernel kills its process, five times. It takes the others of its batch with it once, and is alone from
    then on: they are evaluated by the same worker meanwhile."""
    signal_all(worker, signal.SIGSTOP)
    try:
        runs = [rig.submit() for _ in range(2)]
        greedy = rig.submit("greedy")
        runs += [rig.submit() for _ in range(5)]
        with rig.worker():
            for run in runs:
                rig.wait_for(run, "evaluated", 60)
            rig.wait_for(greedy, "failed", 60)
    finally:
        signal_all(worker, signal.SIGCONT)
    evaluation = rig.evaluation(greedy)
    assert (evaluation["error_code"], evaluation["attempts"]) == ("evaluation_crashed", 5)
    assert {rig.evaluation(run)["attempts"] for run in runs} == {1, 2}


def test_a_worker_told_to_end_in_a_batch_gives_back_what_is_left(
    rig: Rig, worker: subprocess.Popen[bytes]
) -> None:
    signal_all(worker, signal.SIGSTOP)
    try:
        runs = [rig.submit() for _ in range(4)]
        with rig.worker(slow=300) as ending:
            rig.wait_for(runs[0], "evaluating")
            ending.terminate()
            rig.wait_for(runs[0], "queued")
            given_back = [rig.evaluation(run) for run in runs]
            ending.wait(20)
    finally:
        signal_all(worker, signal.SIGCONT)
    # Released, and not expired: that would have left the attempts counted.
    assert {(each["state"], each["attempts"]) for each in given_back} == {("queued", 0)}
    assert given_back[0]["error_code"] == "evaluation_delayed"
    for run in runs:
        rig.wait_for(run, "evaluated")


def test_everything_is_as_it_must_be_afterwards(rig: Rig, worker: subprocess.Popen[bytes]) -> None:
    assert rig.server.manage("fsck").endswith("fsck: 0 faults\n")
    rig.wait_for(rig.submit(), "evaluated")
