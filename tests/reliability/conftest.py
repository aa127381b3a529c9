"""The two ways EvalHub runs, started once each: every test that uses `server` runs on both."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from tests.reliability.servers import Server, embedded_server, separate_servers


@contextlib.contextmanager
def own_database() -> Iterator[str]:
    """A database of our own on the server that the environment names, dropped afterwards."""
    base, _, _ = os.environ["EVALHUB_TEST_DATABASE_URL"].rpartition("/")
    name = f"evalhub_{uuid.uuid4().hex[:12]}"
    administer(f"CREATE DATABASE {name}")
    yield f"{base}/{name}"
    administer(f"DROP DATABASE {name} WITH (FORCE)")


def own_redis_url() -> str:
    """The Redis that the environment names, another one of its 16 databases for each process of tests."""
    base, _, number = os.environ["EVALHUB_TEST_REDIS_URL"].rpartition("/")
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return f"{base}/{(int(number) + process) % 16}"


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with embedded_server(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture(scope="session")
def separate(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("separate")
    with separate_servers(data, database_url, own_redis_url()) as server:
        yield server


@pytest.fixture(params=["embedded", pytest.param("separate", marks=pytest.mark.services)])
def server(request: pytest.FixtureRequest) -> Server:
    """The embedded service, and the separate one where the environment names its services."""
    running: Server = request.getfixturevalue(request.param)
    return running


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    return tmp_path / "own"
