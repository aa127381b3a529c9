"""Fixtures of the tests of campaigns."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from tests.campaigns.worlds import Clock, make_team

# The names of the people in these tests, with a client of each.
Clients = dict[str, APIClient]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the database, which a test sets."""
    made = Clock()
    monkeypatch.setattr("runs.services.clock.database_now", made)
    monkeypatch.setattr("runs.models.collections.disclosure.now", made)
    return made


@pytest.fixture
def people(db: None, clock: Clock) -> Clients:
    """Olga organises for the lab; Ann and Abe are in team apples, Ben in team berries, Eve in none."""
    return {
        **make_team("lab", "olga"),
        **make_team("apples", "ann", "abe"),
        **make_team("berries", "ben"),
        **make_team("eves", "eve"),
    }
