"""Everybody, and the runs of the collection `one`, that the tests of a file share: see tests/shared_data.py."""

from __future__ import annotations

from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import pytest

from runs.models import User
from tests.shared_data import module_data
from tests.web.worlds import People, add_qrels, arguments, make_collection, make_people, make_runs

__all__ = ["module_data", "module_people", "people", "run", "values"]


@pytest.fixture(scope="module")
def module_people(module_data: Path) -> People:
    return make_people()


@pytest.fixture
def people(module_people: People) -> People:
    """The people of the file, with users and cookies that a test may change."""
    users = User.objects.in_bulk([user.pk for user in module_people.users.values()])
    return People(
        users={role: users[user.pk] for role, user in module_people.users.items()},
        api={role: copy_of(client) for role, client in module_people.api.items()},
        browsers={role: copy_of(client) for role, client in module_people.browsers.items()},
    )


def copy_of(client: Any) -> Any:
    other = copy(client)
    other.cookies = deepcopy(client.cookies)
    return other


@pytest.fixture(scope="module")
def run(module_people: People) -> str:
    """One of two evaluated runs of the collection `one`."""
    add_qrels(module_people, make_collection(module_people, "one"))
    return make_runs(module_people, "one")


@pytest.fixture(scope="module")
def values(module_people: People, run: str) -> dict[str, Any]:
    return arguments(module_people, "one", run)
