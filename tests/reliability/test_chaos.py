"""Kills and freezes, seeded: nothing lost, nothing doubled, nothing different. `make chaos` is the long form."""

from __future__ import annotations

import os

import pytest

from tests.reliability.chaos import Chaos, Goals, service_on
from tests.reliability.rigs import WEED, installed


@pytest.mark.parametrize("kind", ["sqlite", "services", "machines"])
def test_nothing_is_lost_doubled_or_different_while_processes_are_killed_and_frozen(
    kind: str,
) -> None:
    if kind == "services" and not (installed() or os.environ.get("EVALHUB_TEST_REQUIRED")):
        pytest.skip("no PostgreSQL or Redis to start")
    if kind == "machines" and not (installed() and WEED):
        pytest.skip("no PostgreSQL, Redis or SeaweedFS to start")
    with service_on(kind) as service:
        tally = Chaos(service, Goals(seconds=15, submissions=20, kills=3), seed=1).run()
    assert tally.clean, tally
