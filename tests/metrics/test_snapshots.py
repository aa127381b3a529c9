"""One snapshot: what is read inside is as of one moment, whatever others write meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from django.db import OperationalError, transaction

from metrics.services.snapshots import one_snapshot
from runs.models import Team, User
from tests.metrics.snapshots import in_a_file

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sqlite("writes beside in SQLite's way"),
]
RENAME = "UPDATE runs_team SET name = name || '!'"


def names() -> list[str]:
    return list(Team.objects.order_by("pk").values_list("name", flat=True))


def rename(name: str) -> None:
    Team.objects.update(name=name)


def test_what_others_write_is_seen_after_the_block_and_not_inside(
    alice: User, tmp_path: Path
) -> None:
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with one_snapshot():
            before = names()
            write(RENAME)
            assert names() == before
        assert names() == [f"{name}!" for name in before] != []


def test_a_transaction_after_the_block_takes_the_write_lock_at_once_again(
    alice: User, tmp_path: Path
) -> None:
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with one_snapshot():
            names()
        write("PRAGMA busy_timeout = 0")
        with transaction.atomic(), pytest.raises(Exception, match="locked"):
            write(RENAME)


def test_what_is_left_for_later_is_stored_once_the_snapshot_has_ended(
    alice: User, tmp_path: Path
) -> None:
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with one_snapshot():
            names()
            write(RENAME)
            transaction.on_commit(partial(rename, "later"))
        assert set(names()) == {"later"}


def test_a_write_inside_that_came_too_late_is_refused(alice: User, tmp_path: Path) -> None:
    with in_a_file(tmp_path / "copy.sqlite3") as write:
        with one_snapshot():
            names()
            write(RENAME)
            with pytest.raises(OperationalError, match="locked"):
                rename("too late")
        assert "too late" not in names()


def test_a_snapshot_inside_another_one_is_the_outer_one(alice: User, tmp_path: Path) -> None:
    with in_a_file(tmp_path / "copy.sqlite3") as write, one_snapshot():
        before = names()
        write(RENAME)
        with one_snapshot():
            assert names() == before
