"""Data that the tests of a file share: Alice's, made once in a transaction around all of these tests.

A file imports these fixtures in place of those of tests/conftest.py, and has module-scoped fixtures
for what else its tests read. Each of its tests has a savepoint in the transaction; no test of it may
need the end of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from runs.models import Run, User
from runs.services.storage.install_marker import remember
from tests.conftest import client_of, forget, make_collection, submit_run

__all__ = ["alice", "api", "collection", "module_data", "submit"]


@pytest.fixture(scope="module")
def module_data(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """The data folder of a file, of which each test has a copy.

    What other files left in the cache is not read by the fixtures of this one, nor the reverse.
    """
    folder = tmp_path_factory.mktemp("data")
    remember(unmarked=True)
    forget()
    with (
        django_db_blocker.unblock(),
        override_settings(EVALHUB_DATA=folder),
        transaction.atomic(),
    ):
        yield folder
        transaction.set_rollback(True)
    forget()


@pytest.fixture(scope="module")
def alice(module_data: Path) -> User:
    return User.objects.create_user("alice")


@pytest.fixture(scope="module")
def api(alice: User) -> APIClient:
    return client_of(alice)


@pytest.fixture(scope="module")
def collection(api: APIClient) -> str:
    return make_collection(api)


@pytest.fixture(scope="module")
def submit(api: APIClient, collection: str) -> Callable[..., Run]:
    return partial(submit_run, api)
