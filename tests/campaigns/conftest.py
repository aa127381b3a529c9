"""Fixtures of the tests of campaigns."""

from __future__ import annotations

import pytest

from tests.campaigns.worlds import Clients, Clock, make_people, stop_clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the database, which a test sets."""
    return stop_clock(monkeypatch)


@pytest.fixture
def people(db: None, clock: Clock) -> Clients:
    return make_people()
