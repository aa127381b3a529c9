"""Rows that are found by statements whose SQL is generated once, as by querysets."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection

from runs.models import Collection, Run, User
from runs.models.prepared import PreparedRows
from runs.models.readers import reader_of
from runs.models.submissions import seen_by
from tests.web.worlds import ROLES, People, add_qrels, make_collection, make_runs

LATER = timedelta(days=1)


def readers(people: People) -> dict[str, Any]:
    return {role: people.users.get(role, AnonymousUser()) for role in ROLES}


@pytest.mark.parametrize("visibility", ["public", "team", "private"])
@pytest.mark.parametrize("blind", [True, False])
def test_every_reader_finds_what_the_queryset_finds(
    people: People, visibility: str, blind: bool
) -> None:
    """One after the other, twice, so that what was generated for one is not taken for another."""
    for slug in ("one", "two"):
        make_collection(people, slug, visibility=visibility, blind=blind)
        add_qrels(people, slug)
    collections = PreparedRows(
        lambda user, slug: (
            Collection.objects.visible_to(user).select_related("team").filter(slug=slug).order_by()
        )
    )
    found = set()
    for slug in ("one", "two", "one", "nowhere"):
        for role, user in readers(people).items():
            row = collections.first(reader_of(user), slug)
            assert row == Collection.objects.visible_to(user).filter(slug=slug).first(), (
                role,
                slug,
            )
            if row:
                assert (row.slug, row.blind, row.team.slug) == (slug, blind, "lab")
            found.add((role, slug, row is not None))
    assert ("staff", "one", True) in found
    assert (("anonymous", "one", True) in found) is (visibility == "public")


def test_a_time_and_a_key_are_parameters(people: People) -> None:
    """Names that are hidden until tomorrow: other teams see no run today."""
    make_collection(people, "one")
    add_qrels(people, "one")
    run = UUID(make_runs(people, "one"))
    tomorrow = datetime.now(UTC) + LATER
    Collection.objects.update(veiled_until=tomorrow)
    runs = PreparedRows(
        lambda user, at, pk: Run.objects.filter(seen_by(user, at=at), pk=pk).order_by()
    )
    for role, user in readers(people).items():
        for at in (tomorrow - LATER, tomorrow + LATER, tomorrow):
            for pk in (run, UUID(int=5)):
                expected = Run.objects.filter(seen_by(user, at=at), pk=pk).first()
                assert runs.first(reader_of(user), at, pk) == expected, (role, at, pk)
    other = reader_of(people.users["other"])
    assert [runs.first(other, at, run) is not None for at in (tomorrow - LATER, tomorrow)] == [
        False,
        True,
    ]


def test_rows_have_their_own_types(people: People) -> None:
    users = PreparedRows(lambda pk: User.objects.filter(pk=pk).order_by())
    owner = people.users["owner"]
    found = users.first(owner.pk)
    assert found == owner
    assert (found.date_joined, found.is_staff) == (owner.date_joined, False)
    found.first_name = "Olive"
    found.save()
    assert users.first(owner.pk).first_name == "Olive"  # type: ignore[union-attr]


def test_who_sees_nothing_asks_nothing(people: People, django_assert_num_queries: Any) -> None:
    make_collection(people, "one")
    managed = PreparedRows(
        lambda user, pk: Collection.objects.managed_by(user).filter(pk=pk).order_by()
    )
    with django_assert_num_queries(0):
        assert managed.first(reader_of(AnonymousUser()), 1) is None


def test_a_value_that_the_statement_does_not_depend_on_is_refused(db: None) -> None:
    """The first one would be used for ever."""
    forgotten = PreparedRows(lambda pk, name: User.objects.filter(pk=pk).order_by())
    with pytest.raises(TypeError, match="does not depend on one of its values"):
        forgotten.first(1, "x")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="in memory it has one connection")
def test_threads_ask_at_the_same_time() -> None:
    made = [User.objects.create_user(f"user{number}") for number in range(4)]
    users = PreparedRows(lambda pk: User.objects.filter(pk=pk).order_by())
    wrong: list[Any] = []

    def ask(user: User) -> None:
        wrong.extend(found for found in (users.first(user.pk) for _ in range(200)) if found != user)
        connection.close()

    threads = [threading.Thread(target=ask, args=(user,)) for user in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
