"""The people of the tests that walk every address, and what stands in the place of its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.worlds import People, add_qrels, arguments, make_collection, make_people, make_runs


@pytest.fixture
def people(db: None) -> People:
    return make_people()


@pytest.fixture
def run(people: People) -> str:
    """One of two evaluated runs of the collection `one`."""
    add_qrels(people, make_collection(people, "one"))
    return make_runs(people, "one")


@pytest.fixture
def values(people: People, run: str) -> dict[str, Any]:
    return arguments(people, "one", run)
