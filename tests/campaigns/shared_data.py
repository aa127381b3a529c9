"""The people of campaigns, and their clock, that the tests of a file share: see tests/shared_data.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.worlds import START, Clients, Clock, make_people, stop_clock
from tests.shared_data import module_data

__all__ = ["clock", "module_clock", "module_data", "people"]


@pytest.fixture(scope="module")
def module_clock() -> Iterator[Clock]:
    with pytest.MonkeyPatch.context() as patch:
        yield stop_clock(patch)


@pytest.fixture
def clock(module_clock: Clock) -> Clock:
    module_clock.now = START
    return module_clock


@pytest.fixture(scope="module")
def people(module_data: Path, module_clock: Clock) -> Clients:
    return make_people()
