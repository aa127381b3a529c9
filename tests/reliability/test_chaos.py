"""Kills and freezes, seeded: nothing lost, nothing doubled, nothing different. `make chaos` is the long form, and runs
on SQLite and on two machines as well."""

from __future__ import annotations

import os

import pytest

from tests.reliability.chaos import Chaos, Goals, service_on
from tests.reliability.rigs import installed

# Of every kind of fault, whichever come first.
GOALS = Goals(submissions=20, kills=4, freezes=1, redis=1, postgres=1)


@pytest.mark.skipif(
    not (installed() or os.environ.get("EVALHUB_TEST_REQUIRED")),
    reason="no PostgreSQL or Redis to start",
)
def test_nothing_is_lost_doubled_or_different_while_processes_are_killed_and_frozen() -> None:
    with service_on("services") as service:
        tally = Chaos(service, GOALS, seed=1).run()
    assert tally.clean, tally
    assert all(tally.faults[kind] for kind in ("kills", "freezes", "redis", "postgres"))
