"""Revisions of collections: every change raises them, and none waits for another."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from django.db import connection, transaction

from runs.models import Collection, RevisionPart, Team
from runs.services.audit.revisions import raise_revision, read_revision


@pytest.fixture
def collection(db: None) -> int:
    team = Team.objects.create(slug="lab", name="Lab")
    return Collection.objects.create(slug="one", name="One", team=team).pk


def raised(*collections: int, arriving: bool = False) -> None:
    with transaction.atomic():
        raise_revision(*collections, arriving=arriving)


def test_a_collection_without_changes_has_a_revision(collection: int) -> None:
    assert read_revision(collection) == (0, 0)


def test_every_change_raises_the_revision_of_its_collections(collection: int) -> None:
    other = Collection.objects.create(slug="two", name="Two", team=Team.objects.get()).pk
    before = [read_revision(pk) for pk in (collection, other)]
    raised(collection)
    assert read_revision(collection).changes > before[0].changes
    assert read_revision(other) == before[1]
    first = read_revision(collection)
    raised(collection, other)
    assert read_revision(collection).changes > first.changes
    assert read_revision(other).changes > before[1].changes


def test_arriving_runs_raise_one_number_alone(collection: int) -> None:
    raised(collection)
    before = read_revision(collection)
    raised(collection, arriving=True)
    after = read_revision(collection)
    assert after.changes > before.changes
    assert after.others == before.others
    raised(collection)
    assert read_revision(collection).others > before.others


def test_changes_one_after_another_add_to_one_part(collection: int) -> None:
    for _ in range(5):
        raised(collection)
    assert RevisionPart.objects.count() == 1


def test_what_is_rolled_back_raises_nothing(collection: int) -> None:
    before = read_revision(collection)
    with suppress(RuntimeError), transaction.atomic():
        raise_revision(collection)
        raise RuntimeError
    assert read_revision(collection) == before


def test_a_restored_database_has_no_revision_of_before(collection: int) -> None:
    """Its changes after that are others, however many there are."""
    seen = set[int]()
    for _ in range(20):
        with transaction.atomic():
            raise_revision(collection)
            seen.add(read_revision(collection).changes)
            transaction.set_rollback(True)
    assert len(seen) == 20


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="it has one writer at a time")
def test_no_change_waits_for_another_and_none_is_lost() -> None:
    team = Team.objects.create(slug="lab", name="Lab")
    pk = Collection.objects.create(slug="one", name="One", team=team).pk
    waiting, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            raise_revision(pk)
            waiting.set()
            assert go_on.wait(20)
        connection.close()

    raised(pk)
    first = read_revision(pk)
    thread = threading.Thread(target=hold)
    thread.start()
    assert waiting.wait(20)
    raised(pk)
    second = read_revision(pk)
    go_on.set()
    thread.join()
    assert first.changes < second.changes < read_revision(pk).changes
    assert RevisionPart.objects.count() == 2
