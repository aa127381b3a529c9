"""The world that the tests of a file share; each of them leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared_data import module_data
from tests.web.access.world import World, make_world

__all__ = ["module_data"]


@pytest.fixture(scope="module")
def world(module_data: Path) -> World:
    return make_world()
