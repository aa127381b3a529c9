"""The two ways EvalHub runs, started once each: every test that uses `server` runs on both.

They stop when their worker turns to another folder.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg2
import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Comparison, Evaluation
from runs.models import Run, SessionSet
from tests.conftest import GOOD, POOR, SESSIONS, upload
from tests.reliability.backups import RUNS
from tests.reliability.servers import Server, embedded_server, separate_servers


@contextlib.contextmanager
def own_database() -> Iterator[str]:
    """A database of our own on the server that the environment names, dropped afterwards."""
    base, _, _ = os.environ["EVALHUB_TEST_DATABASE_URL"].rpartition("/")
    name = f"evalhub_{uuid.uuid4().hex[:12]}"
    administer(f"CREATE DATABASE {name}")
    yield f"{base}/{name}"
    administer(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="package")
def database_url() -> Iterator[str]:
    """The database of the servers that tests share."""
    with own_database() as url:
        yield url


def administer(statement: str) -> None:
    connection = psycopg2.connect(os.environ["EVALHUB_TEST_DATABASE_URL"])
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


@pytest.fixture(scope="package")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with embedded_server(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture(scope="package")
def separate(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("separate")
    # One worker runs all tests that use this Redis.
    redis_url = os.environ["EVALHUB_TEST_REDIS_URL"]
    with separate_servers(data, database_url, redis_url) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("separate", marks=pytest.mark.services)])
def server(request: pytest.FixtureRequest) -> Server:
    """The embedded service, and the separate one where the environment names its services."""
    running: Server = request.getfixturevalue(request.param)
    return running


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    return tmp_path / "own"


@pytest.fixture
def filled(
    transactional_db: None, api: APIClient, submit: Callable[..., Run], tmp_path: Path
) -> APIClient:
    """An install with two evaluated runs, one deleted, one being evaluated, one queued, known documents, a
    comparison that is being made, and two session sets, one evaluated, one deleted."""
    for tag in ("log", "gone"):
        assert upload(api, "collections/small/sessions/", SESSIONS, tag=tag).status_code == 202
    submit(GOOD)
    submit(POOR)
    deleted = submit(GOOD, tag="deleted")
    api.delete(f"/api/v1/runs/{deleted.pk}/")
    api.delete(f"/api/v1/session-sets/{SessionSet.objects.get(tag='gone').pk}/")
    for tag in ("held", "waiting"):
        upload(api, RUNS, GOOD + "3 Q0 y 2 0.5 good\n", tag=tag)
    lease = {
        "state": "evaluating",
        "lease_token": uuid.uuid4(),
        "lease_until": timezone.now() + timedelta(hours=1),
    }
    Evaluation.objects.filter(run__tag="held").update(**lease)
    assert api.post("/api/v1/collections/small/comparison/", {}).status_code == 202
    Comparison.objects.update(**{**lease, "state": "comparing"})
    (tmp_path / "run").write_text(GOOD)
    (tmp_path / "known").write_text("1 a\n")
    with (tmp_path / "run").open("rb") as run, (tmp_path / "known").open("rb") as known:
        fields = {"file": run, "known": known, "tag": "known"}
        answer = api.post(
            f"/api/v1/{RUNS}", fields, format="multipart", headers={"Idempotency-Key": "k"}
        )
        assert answer.status_code == 202
    return api
