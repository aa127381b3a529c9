"""A database that says nothing, or takes too long: requests fail in time, probes answer, and all is well afterwards."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError, connection, connections

from evalhub.problems import problem_response
from evalhub.serving import database_limits
from tests.reliability.rigs import Proxy, own_postgres
from tests.reliability.servers import Server, clean_environment, free_port

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT max(i) FROM n"


@contextlib.contextmanager
def web_server(folder: Path, **settings: str) -> Iterator[Server]:
    port = free_port()
    server = Server(f"http://127.0.0.1:{port}", {**clean_environment(folder), **settings})
    try:
        server.prepare()
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        server.wait()
        yield server
    finally:
        server.stop()


def test_requests_fail_in_time_while_postgres_is_silent_and_work_afterwards(tmp_path: Path) -> None:
    with own_postgres() as postgres, contextlib.closing(Proxy(postgres.port)) as network:
        url = postgres.url.replace(f":{postgres.port}/", f":{network.port}/")
        limits = {"EVALHUB_STATEMENT_SECONDS": "4", "EVALHUB_DATABASE_SILENCE_SECONDS": "4"}
        with (
            web_server(tmp_path, EVALHUB_DATABASE_URL=url, **limits) as server,
            ThreadPoolExecutor(4) as pool,
        ):
            address = f"{server.url}/api/v1/collections/"
            assert httpx.get(address).status_code == 200
            network.cut.set()
            requests = [pool.submit(httpx.get, address, timeout=60) for _ in range(4)]
            time.sleep(0.5)
            for _ in range(2):
                assert httpx.get(f"{server.url}/healthz", timeout=10).status_code == 200
            # It waits for none of them.
            assert not any(request.done() for request in requests)
            answers = [request.result() for request in requests]
            assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {
                (503, "database_unavailable")
            }
            network.cut.clear()
            start = time.monotonic()
            while httpx.get(address, timeout=30).status_code != 200:
                assert time.monotonic() - start < 10
                time.sleep(0.2)


@pytest.fixture
def limited(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.EVALHUB_STATEMENT_SECONDS = 1
    options = connections.settings["default"].get("OPTIONS", {})
    before = dict(options)
    connection.close()
    database_limits.limit_statements()
    connection.ensure_connection()
    # A database in memory stays open; others are opened anew.
    database_limits.limit_sqlite(connection)
    yield
    if connection.vendor == "sqlite":
        connection.connection.set_progress_handler(None, 0)
    database_limits.connection_created.disconnect(dispatch_uid="limit statements")
    database_limits.extensions.set_wait_callback(None)
    options.clear()
    options.update(before)
    connection.close()


def test_a_statement_ends_when_its_time_is_over(limited: None) -> None:
    start = time.monotonic()
    with connection.cursor() as cursor, pytest.raises(OperationalError) as stop:
        cursor.execute(ENDLESS)
    assert time.monotonic() - start < 10
    answer = problem_response(stop.value, {})
    assert answer is not None
    assert (answer.status_code, answer.data["code"]) == (503, "query_too_long")
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL parses it")
def test_a_statement_that_the_database_cannot_parse_is_a_question_to_narrow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with connection.cursor() as cursor, pytest.raises(OperationalError) as stop:
        cursor.execute(f"SELECT {'(' * 200}1{')' * 200}")
    answer = problem_response(stop.value, {})
    assert answer is not None
    assert (answer.status_code, answer.data["code"]) == (400, "filter_too_complex")
    assert "Retry-After" not in answer
    assert str(stop.value) in caplog.text
