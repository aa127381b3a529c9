"""What machines ask: alive, ready, figures."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from rest_framework.test import APIClient

from evalhub.operating import monitoring, probes, request_counters
from evalhub.operating.install import newest_migrations
from metrics.models import DispatcherRound, Evaluation
from metrics.services.queue import rounds
from metrics.services.upkeep.dispatch import Dispatcher
from runs.models import Run
from runs.services.storage import files
from tests.conftest import GOOD, POOR, upload
from tests.test_docs import ROOT

TOKEN = "a-token-of-the-scraper"


def away(*arguments: Any, **options: Any) -> Any:
    raise DatabaseError('connection to "db.internal" as user "secret" failed')


def went_round(seconds_ago: float = 0.0, worker: str = "one", failed: int = 0) -> None:
    moment = timezone.now() - timedelta(seconds=seconds_ago)
    DispatcherRound.objects.update_or_create(pk=worker, defaults={"at": moment, "failed": failed})


def codes(answer: Any, kind: str = "reasons") -> list[str]:
    return [entry["code"] for entry in answer.json()[kind]]


def test_a_process_is_alive_without_a_database_or_a_known_host(
    client: Client, settings: Any
) -> None:
    """No database fixture: a query would fail this test. A probe comes by address and without TLS."""
    settings.ALLOWED_HOSTS, settings.SECURE_SSL_REDIRECT = ["eval.example.org"], True
    answer = client.get("/healthz", headers={"Host": "10.0.0.7"})
    assert (answer.status_code, answer.json()) == (200, {"alive": True})
    assert "no-store" in answer["Cache-Control"]
    assert client.post("/healthz").status_code == 405


def test_ready_means_that_a_dispatcher_goes_round(client: Client, db: None) -> None:
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer)) == (503, ["no_dispatcher_round"])
    went_round(31)
    assert codes(client.get("/readyz")) == ["no_dispatcher_round"]
    went_round(1, worker="another")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["ready"], codes(answer)) == (200, True, [])


def test_a_database_that_is_away_is_a_reason_and_its_words_stay_in_the_log(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", away)
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer)) == (503, ["database_unavailable"])
    assert b"secret" not in answer.content
    assert b"internal" not in answer.content


def test_the_log_tells_each_change_of_readiness_once(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However often a balancer asks: Django would log an error for every probe that is answered with 503."""
    monkeypatch.setattr(probes, "READINESS", probes.Readiness())
    for _ in range(3):
        assert client.get("/readyz").status_code == 503
    with monkeypatch.context() as patch:
        patch.setattr(MigrationRecorder, "applied_migrations", away)
        for _ in range(3):
            assert client.get("/readyz").status_code == 503
    went_round()
    for _ in range(3):
        assert client.get("/readyz").status_code == 200
    messages = [
        (record.levelname, record.getMessage().partition(":")[0]) for record in caplog.records
    ]
    assert messages == [
        ("WARNING", "not ready"),
        ("WARNING", "not ready"),
        ("WARNING", "ready again"),
    ]
    assert "secret" in caplog.records[1].getMessage()
    assert client.get("/no-such-page").status_code == 404


def test_a_missing_migration_is_named(client: Client, db: None) -> None:
    went_round()
    newest = max(name for app, name in newest_migrations() if app == "metrics")
    MigrationRecorder.Migration.objects.filter(app="metrics", name=newest).delete()
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer)) == (503, ["migrations_missing"])
    assert f"metrics.{newest}" in answer.json()["reasons"][0]["detail"]


def test_a_data_folder_that_cannot_be_written_is_a_reason(
    client: Client, db: None, settings: Any, tmp_path: Path
) -> None:
    went_round()
    (tmp_path / "file").touch()
    settings.EVALHUB_DATA = tmp_path / "file"
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer)) == (503, ["storage_unavailable"])
    assert str(tmp_path).encode() not in answer.content


@pytest.mark.parametrize("function", ["link", "fsync"])
@pytest.mark.parametrize(
    ("number", "code"), [(errno.EIO, "storage_unavailable"), (errno.ENOSPC, "storage_full")]
)
def test_ready_means_that_a_file_can_be_stored(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, function: str, number: int, code: str
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    went_round()
    assert codes(client.get("/readyz")) == []
    with monkeypatch.context() as patch:
        patch.setattr(files.os, function, fail)
        answer = client.get("/readyz")
    assert (answer.status_code, codes(answer)) == (503, [code])
    assert client.get("/readyz").status_code == 200


def test_a_database_that_takes_no_changes_is_a_reason(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_round()
    monkeypatch.setattr(probes, "_read_only", lambda: True)
    assert codes(client.get("/readyz")) == ["database_read_only"]


def test_a_round_in_the_future_is_nobodys(client: Client, db: None) -> None:
    """Of a dead worker, before the clock was set back; the one that lives notes its rounds all the same."""
    went_round(-3700, worker="dead")
    assert codes(client.get("/readyz")) == ["no_dispatcher_round"]
    rounds.RoundNotes().note()
    assert client.get("/readyz").status_code == 200
    assert [last.worker for last in rounds.last_rounds()] == [rounds.worker_name()]


@pytest.fixture
def queued(api: APIClient, collection: str) -> Evaluation:
    upload(api, f"collections/{collection}/runs/", GOOD)
    return Evaluation.objects.get()


def test_what_is_stuck_is_a_warning_and_refuses_nobody(client: Client, queued: Evaluation) -> None:
    went_round()
    Evaluation.objects.update(since=timezone.now() - timedelta(seconds=61))
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer, "warnings")) == (200, ["undispatched"])
    # Where others are sent meanwhile, it only waits its turn.
    sent = {
        "dispatched_at": timezone.now(),
        "created_at": timezone.now(),
        "run": queued.run,
        "qrels": queued.qrels,
    }
    Evaluation.objects.create(**sent, scores="float32")
    assert codes(client.get("/readyz"), "warnings") == []


def test_a_lease_that_nobody_took_back_is_a_warning(client: Client, queued: Evaluation) -> None:
    went_round()
    past = timezone.now() - timedelta(seconds=5)
    Evaluation.objects.update(state="evaluating", lease_token="0" * 32, lease_until=past)
    assert codes(client.get("/readyz"), "warnings") == ["expired_leases"]


@pytest.fixture(autouse=True)
def none_counted() -> None:
    """Those of all tests before fill a scrape that takes seconds to write and to read."""
    request_counters._requests.clear()


def scrape(client: Client) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a scrape, read by prometheus_client's own parser."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in families
        for s in family.samples
    }


def test_figures_are_off_without_a_token_and_need_it_with_one(
    client: Client, settings: Any, db: None
) -> None:
    assert client.get("/metrics").status_code == 404
    settings.EVALHUB_METRICS_TOKEN = TOKEN
    for header in ("", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer \u00fcmlaut"):
        answer = client.get("/metrics", headers={"Authorization": header})
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert client.get("/metrics", {"token": TOKEN}).status_code == 400
    assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_figures_say_what_is_in_the_database(
    client: Client, settings: Any, api: APIClient, submit: Callable[..., Run]
) -> None:
    settings.EVALHUB_METRICS_TOKEN = TOKEN
    submit(GOOD)
    seconds = [0.05, 0.2, 400.0]
    Evaluation.objects.update(seconds=seconds[0])
    template = Evaluation.objects.get()
    for i, (state, code, attempts) in enumerate(
        [
            ("evaluated", "", 1),
            ("evaluated", "", 3),
            ("failed", "evaluation_crashed", 3),
            ("queued", "", 0),
        ]
    ):
        template.pk, template.engine_version = None, f"other {i}"
        template.state, template.error_code, template.attempts = state, code, attempts
        template.seconds = seconds[i + 1] if i < 2 else None
        template.since = timezone.now() - timedelta(seconds=100)
        template.save()
    went_round(3, worker="one", failed=2)
    went_round(40, worker="two")
    figures = scrape(client)

    def figure(name: str, **labels: str) -> float:
        return figures[f"evalhub_{name}", tuple(sorted(labels.items()))]

    states = {state: figure("evaluations", state=state) for state in Evaluation.State.values}
    assert states == {"queued": 1, "evaluating": 0, "evaluated": 3, "failed": 1, "cancelled": 0}
    assert figure("evaluation_attempts", state="evaluated") == 5
    assert figure("evaluations_failed", code="evaluation_crashed") == 1
    for bound in ("0.05", "0.25", "300.0", "+Inf"):
        assert figure("evaluation_seconds_bucket", le=bound) == sum(
            value <= float(bound) for value in seconds
        )
    assert figure("evaluation_seconds_sum") == pytest.approx(sum(seconds))
    assert figure("evaluation_seconds_count") == 3
    assert 100 <= figure("queue_oldest_seconds") < 160
    assert (figure("queue_undispatched"), figure("queue_dispatched")) == (1, 0)
    assert figure("dispatchers") == 1
    assert 3 <= figure("dispatcher_round_age_seconds") < 40
    assert figure("dispatcher_failed_rounds_total", worker="one") == 2
    assert figure("database_up") == 1
    assert figure("data_total_bytes") > figure("data_free_bytes") > 0


def test_a_scrape_asks_seven_queries_however_much_there_is(
    db: None, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    submit(POOR)
    with CaptureQueriesContext(connection) as queries:
        monitoring.exposition()
    assert len(queries) == 7


def test_without_a_round_the_age_is_infinite_and_without_a_database_there_is_one_figure(
    client: Client, settings: Any, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_METRICS_TOKEN = TOKEN
    assert scrape(client)["evalhub_dispatcher_round_age_seconds", ()] == math.inf
    monkeypatch.setattr(monitoring, "read_figures", away)
    figures = scrape(client)
    assert figures["evalhub_database_up", ()] == 0
    assert ("evalhub_queue_oldest_seconds", ()) not in figures


def test_requests_are_counted_by_view_and_never_by_address(
    client: Client, settings: Any, db: None
) -> None:
    settings.EVALHUB_METRICS_TOKEN = TOKEN

    def counted(**labels: str) -> float:
        return scrape(client).get(
            ("evalhub_http_request_seconds_count", tuple(sorted(labels.items()))), 0
        )

    of_view = {"view": "collection", "method": "GET", "status": "404"}
    odd = {"view": "none", "method": "other", "status": "404"}
    before, odd_before = counted(**of_view), counted(**odd)
    client.get("/api/v1/collections/no-such-thing/")
    client.get("/api/v1/collections/nor-this/")
    client.generic("BREW", "/no-such-page")
    assert counted(**of_view) == before + 2
    assert counted(**odd) == odd_before + 1
    assert not any("no-such-thing" in str(sample) for sample in scrape(client))


def run_python(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_figures_of_an_ended_process_are_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes of a web server count, one ends and is folded: the sums stay, its files go."""
    script = (
        "import os, sys; from evalhub.operating.request_counters import count_request\n"
        "for i in range(int(sys.argv[1])): count_request('run', 'GET', 200, 0.02 * (i + 1))\n"
        "print(os.getpid())"
    )
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    pids = [run_python(script, str(count)) for count in (2, 3)]
    before = run_python(
        "from evalhub.operating.request_counters import export_request_counters; print(export_request_counters().decode())"
    )
    for pid in pids:
        request_counters.fold_ended_process(tmp_path, int(pid))
    after = run_python(
        "from evalhub.operating.request_counters import export_request_counters; print(export_request_counters().decode())"
    )
    assert sorted(after.split("\n")) == sorted(before.split("\n"))
    assert 'evalhub_http_request_seconds_count{method="GET",status="200",view="run"} 5.0' in after
    assert [path.name for path in tmp_path.glob("*.db")] == ["histogram_ended.db"]


def test_a_dispatcher_notes_its_rounds_at_most_every_five_seconds(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(rounds.time, "monotonic", lambda: now[0])
    notes = rounds.RoundNotes()
    notes.note()
    first = DispatcherRound.objects.get()
    now[0] += 4.9
    with CaptureQueriesContext(connection) as queries:
        notes.note()
    assert len(queries) == 0
    now[0] += 0.2
    notes.failed = 7
    notes.note()
    second = DispatcherRound.objects.get()
    assert (second.worker, second.failed) == (first.worker, 7)
    assert second.at >= first.at


def test_the_round_of_a_worker_long_gone_is_forgotten(db: None) -> None:
    went_round(3700, worker="gone")
    went_round(3500, worker="lately")
    rounds.RoundNotes().note()
    assert [last.worker for last in rounds.last_rounds()] == [rounds.worker_name(), "lately"]


def test_a_reaper_that_fails_every_second_time_is_noted_and_counted(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail_every_second_time() -> int:
        calls.append(1)
        if len(calls) % 2:
            raise ZeroDivisionError
        return 0

    monkeypatch.setattr("metrics.services.upkeep.dispatch.reap_expired", fail_every_second_time)
    monkeypatch.setattr("metrics.services.upkeep.dispatch.FAILED_SECONDS", 0.0)
    dispatcher = Dispatcher(lambda evaluation_id: None)
    dispatcher.round()
    assert not DispatcherRound.objects.exists()
    dispatcher.round()
    assert DispatcherRound.objects.count() == 1


@pytest.mark.parametrize(
    ("message", "code"),
    [("the broker is away", "broker_unavailable"), ("OOM command not allowed when used memory > 'maxmemory'",
                                                    "broker_full")],
)  # fmt: skip
def test_a_broker_that_is_away_or_full_is_a_warning_and_leaves_the_web_server_ready(
    client: Client,
    settings: Any,
    queued: Evaluation,
    monkeypatch: pytest.MonkeyPatch,
    message: str,
    code: str,
) -> None:
    settings.EVALHUB_METRICS_TOKEN = TOKEN
    monkeypatch.setattr("metrics.services.upkeep.dispatch.REAP_SECONDS", 0.0)
    monkeypatch.setattr("metrics.services.upkeep.dispatch.FAILED_SECONDS", 0.0)
    works = [False]

    def refuse(evaluation_id: int) -> None:
        if not works[0]:
            raise ConnectionError(message)

    dispatcher = Dispatcher(refuse)
    for _ in range(2):
        dispatcher.round()
    answer = client.get("/readyz")
    assert (answer.status_code, codes(answer, "warnings")) == (200, [code])
    assert "1 of 1 workers cannot send" in answer.json()["warnings"][0]["detail"]
    assert scrape(client)["evalhub_dispatchers_without_broker", ()] == 1
    assert scrape(client)["evalhub_queue_undispatched", ()] == 1
    works[0] = True
    for _ in range(2):
        dispatcher.round()
    assert codes(client.get("/readyz"), "warnings") == []
    assert (scrape(client)["evalhub_dispatchers_without_broker", ()],
            scrape(client)["evalhub_queue_undispatched", ()]) == (0, 0)  # fmt: skip


def test_a_broker_is_asked_where_nothing_is_to_be_sent(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> int:
        raise ConnectionError

    monkeypatch.setattr("metrics.services.upkeep.dispatch.REAP_SECONDS", 0.0)
    dispatcher = Dispatcher(lambda evaluation_id: None, away)
    for _ in range(2):
        dispatcher.round()
    assert codes(client.get("/readyz"), "warnings") == ["broker_unavailable"]


def test_what_no_worker_answers_counts_as_not_sent(
    client: Client, settings: Any, queued: Evaluation
) -> None:
    """Its message was lost, with everything that Redis held."""
    settings.EVALHUB_METRICS_TOKEN = TOKEN
    assert scrape(client)["evalhub_queue_undispatched", ()] == 1
    Evaluation.objects.update(dispatched_at=timezone.now())
    assert scrape(client)["evalhub_queue_undispatched", ()] == 0
    Evaluation.objects.update(
        dispatched_at=timezone.now() - timedelta(seconds=settings.EVALHUB_LEASE_SECONDS + 1)
    )
    assert scrape(client)["evalhub_queue_undispatched", ()] == 1
