"""The state of a database is another one after each commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection, transaction

from metrics.services.snapshots import state_of_database
from runs.models import Team, User
from tests.metrics.snapshots import in_a_file

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def others_may_write(path: Path) -> Iterator[Callable[[str], None]]:
    """Yield what renames all teams through another connection."""
    if connection.vendor == "sqlite":
        with in_a_file(path) as write:
            yield lambda name: write(f"UPDATE runs_team SET name = '{name}'")
        return

    def rename(name: str) -> None:
        def write() -> None:
            Team.objects.update(name=name)
            connection.close()

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()

    yield rename


def test_the_state_is_another_one_after_each_commit_and_not_told_before_it(
    alice: User, tmp_path: Path
) -> None:
    with others_may_write(tmp_path / "copy.sqlite3") as rename:
        states = [state_of_database()]
        rename("by another connection")
        states.append(state_of_database())
        with transaction.atomic():
            Team.objects.update(name="by this one")
            assert state_of_database() is None
        states.append(state_of_database())
        assert None not in states
        assert len(set(states)) == 3
