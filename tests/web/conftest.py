"""The people of the tests that walk every address, and what stands in the place of its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.worlds import People, add_qrels, arguments, make_collection, make_people, make_runs


@pytest.fixture
def people(db: None) -> People:
    return make_people()


@pytest.fixture
def values(people: People) -> dict[str, Any]:
    make_collection(people, "one")
    add_qrels(people, "one")
    return arguments(people, "one", make_runs(people, "one"))
