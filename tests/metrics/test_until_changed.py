"""What is read once until anything in the database changes: whoever changes it, and however it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest
from django.db import connection, connections, transaction

from metrics.services.snapshots import once_until_changed, one_snapshot, state_of_database
from runs.models import Team, User
from tests.metrics.snapshots import in_a_file

pytestmark = pytest.mark.django_db(transaction=True)


def names() -> list[str]:
    return list(Team.objects.order_by("pk").values_list("name", flat=True))


class Reading:
    """Reads in snapshots of its own, counts how often it asks the database, and notes in which states it was."""

    def __init__(self) -> None:
        self.asked = 0
        self._states: list[object] = []

    @property
    def states(self) -> int:
        """How many states were met, each counted again where another one was in between."""
        return len(list(groupby(self._states)))

    @property
    def met_one_again(self) -> bool:
        return self.states < len(self._states)

    def __call__(self) -> list[str]:
        with one_snapshot():
            return self.inside()

    def inside(self) -> list[str]:
        self._states.append(connections["default"].__dict__["read_before"][0])
        return once_until_changed("names", self._read)

    def _read(self) -> list[str]:
        self.asked += 1
        return names()


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


def test_nothing_is_asked_again_before_a_change(alice: User, tmp_path: Path) -> None:
    with others_may_write(tmp_path / "copy.sqlite3"):
        read = Reading()
        # PostgreSQL counts transactions in all of its databases: those of tests beside this one, too.
        for _ in range(1000):
            assert read() == names() != []
            if read.met_one_again:
                break
        assert read.met_one_again
        assert read.asked == read.states


def test_what_others_write_is_read(alice: User, tmp_path: Path) -> None:
    with others_may_write(tmp_path / "copy.sqlite3") as rename:
        read = Reading()
        for number in range(3):
            rename(f"name {number}")
            assert set(read()) == {f"name {number}"}
            # A name that another one has had before is read again as well.
            rename("once more")
            assert set(read()) == {"once more"}


def test_what_is_written_here_is_read_also_when_it_is_rolled_back(
    alice: User, tmp_path: Path
) -> None:
    with others_may_write(tmp_path / "copy.sqlite3"):
        read = Reading()
        before = read()
        with suppress(RuntimeError), transaction.atomic():
            Team.objects.update(name="never kept")
            # A transaction that was open before sees what it has written, and remembers nothing.
            assert set(read()) == {"never kept"}
            raise RuntimeError
        assert read() == before
        Team.objects.update(name="kept")
        assert set(read()) == {"kept"}


def test_one_snapshot_goes_on_seeing_what_it_saw(alice: User, tmp_path: Path) -> None:
    with others_may_write(tmp_path / "copy.sqlite3") as rename:
        read = Reading()
        before = read()
        with one_snapshot():
            rename("later")
            assert read.inside() == names() == before
        assert set(read()) == {"later"}
        assert read.asked == read.states


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


@pytest.mark.sqlite("states of PostgreSQL have the same names for every connection")
def test_a_new_connection_asks_anew(alice: User, tmp_path: Path) -> None:
    with others_may_write(tmp_path / "copy.sqlite3"):
        read = Reading()
        read()
        connection.close()
        read()
        assert read.asked == 2


def test_few_are_remembered(alice: User, tmp_path: Path) -> None:
    with others_may_write(tmp_path / "copy.sqlite3"), one_snapshot():
        for number in range(250):
            assert once_until_changed(number, partial(abs, number)) == number
        assert len(connections["default"].__dict__["read_before"][1]) <= 100
