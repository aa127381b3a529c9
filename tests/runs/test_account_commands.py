"""Accounts that an operator changes and deletes on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from runs.models import AuditEvent, Run, Team, User
from tests.conftest import GOOD
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]


def last_event() -> AuditEvent:
    return AuditEvent.objects.order_by("-pk")[0]


def test_a_changed_account_leaves_one_event(alice: User) -> None:
    call_command("change_user", "alice", "--name", "alicia", "--email", "a@b.example", "--staff")
    alice.refresh_from_db()
    assert (alice.username, alice.email, alice.is_staff, alice.is_superuser) == (
        "alicia", "a@b.example", True, False,
    )  # fmt: skip
    event = last_event()
    assert (event.action, event.object_id, event.actor) == ("user.changed", "alice", "")
    # The trail has that the address was changed, not the address.
    assert event.after == {"username": "alicia", "email": "changed", "is_staff": True}

    known = AuditEvent.objects.count()
    call_command("change_user", "alicia", "--staff")
    assert AuditEvent.objects.count() == known
    call_command("change_user", "alicia", "--no-staff")
    alice.refresh_from_db()
    assert not alice.is_staff


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["alice", "--name", "bob"], "there is a user 'bob' already"),
        (["alice", "--name", "a b"], "Enter a valid username"),
        (["alice", "--email", "nowhere"], "Enter a valid email address"),
        (["carol", "--staff"], "there is no user 'carol'"),
    ],
)
def test_what_an_account_cannot_be_is_refused(
    alice: User, bob: User, options: list[str], reason: str
) -> None:
    known = AuditEvent.objects.count()
    with pytest.raises(CommandError, match=reason):
        call_command("change_user", *options)
    assert set(User.objects.values_list("username", "email")) == {("alice", ""), ("bob", "")}
    assert AuditEvent.objects.count() == known


def test_a_new_password_is_printed_once_and_ends_sessions(
    alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = Client()
    browser.force_login(alice)
    assert browser.get("/tokens/").status_code == 200
    call_command("change_user", "alice", "--password")
    match = re.search(r"password: (\S+)", capsys.readouterr().out)
    assert match
    assert browser.get("/tokens/").status_code == 302
    assert Client().login(username="alice", password=match[1])
    assert match[1] not in str(last_event().after)


def test_an_account_is_deleted_with_its_team_unless_it_submitted(
    alice: User, bob: User, submit: Callable[..., Run]
) -> None:
    assert submit(GOOD).team.personal_of == alice
    with pytest.raises(CommandError, match="personal team of alice has runs"):
        call_command("delete_user", "alice")
    assert User.objects.filter(username="alice").exists()
    assert not AuditEvent.objects.filter(action="user.deleted").exists()

    call_command("delete_user", "bob")
    assert not User.objects.filter(username="bob").exists()
    assert not Team.objects.filter(slug="bob").exists()
    event = last_event()
    assert (event.action, event.object_id, event.before) == ("user.deleted", "bob", {"name": "bob"})
