"""Teams in the browser: members, roles, invitations by name and by link; session logs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from runs.models import AuditEvent, InvitationLink, Membership, SessionSet, System, Team, User
from tests.conftest import SESSIONS
from tests.shared_data import alice, api, collection, module_data
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "collection", "module_data"]

LAB = "/teams/lab/"


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def browser(alice: User) -> Client:
    """Alice's, who has created a team."""
    client = browser_of(alice)
    answer = client.post("/teams/", {"name": "Lab"})
    assert (answer.status_code, answer["Location"]) == (303, LAB)
    return client


def message_of(answer: Any) -> str:
    return text_of(answer.content.decode())


def new_link(browser: Client) -> str:
    """The path and query of a link that the page shows once."""
    answer = browser.post(LAB, {"action": "link"})
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    match = re.search(r"http://testserver(/join/\?code=[\w-]+)", answer.content.decode())
    assert match
    return match[1]


def test_a_team_is_created_and_its_members_invited(browser: Client, alice: User, bob: User) -> None:
    assert "Lab lab owner" in message_of(browser.get("/teams/"))
    taken = browser.post("/teams/", {"name": "Other", "slug": "lab"})
    assert (
        taken.status_code,
        "exists already" in message_of(taken),
        "Other" in taken.content.decode(),
    ) == (409, True, True)
    assert (
        browser.post(LAB, {"action": "invite", "username": "bob", "role": "member"}).status_code
        == 303
    )
    assert "bob is invited" in message_of(browser.get(LAB))
    again = browser.post(LAB, {"action": "invite", "username": "nobody", "role": "owner"})
    assert again.status_code == 400
    assert "There is no user" in again.content.decode().partition('id="username-hint"')[2][:200]
    assert 'value="nobody"' in again.content.decode()
    bobs = browser_of(bob)
    assert "You are invited to a team" in message_of(bobs.get("/teams/"))
    assert bobs.get(LAB).status_code == 404
    assert browser.post(LAB, {"action": "withdraw", "username": "bob"}).status_code == 303
    assert not Team.objects.get(slug="lab").invitations.exists()


def test_the_systems_of_a_team_are_listed(browser: Client, alice: User, bob: User) -> None:
    own = f"/teams/{alice.personal_team.slug}/"
    assert "Systems" not in page(browser, own)
    System.objects.create(team=alice.personal_team, slug="splade", name="The sparse one")
    System.objects.create(team=bob.personal_team, slug="other")
    html = page(browser, own)
    assert 'href="/systems/alice/splade/">splade</a> The sparse one' in html
    assert "other" not in text_of(html).partition("Systems")[2].split()


def test_roles_change_and_the_last_owner_stays(browser: Client, alice: User, bob: User) -> None:
    lab = Team.objects.get(slug="lab")
    Membership.objects.create(team=lab, user=bob)
    assert "last owner" in message_of(browser.post(LAB, {"action": "leave"}))
    bobs = browser_of(bob)
    assert "Create an invitation link" not in page(bobs, LAB)
    for action in ("invite", "role", "remove", "link", "delete", "revoke"):
        assert (
            bobs.post(LAB, {"action": action, "username": "alice", "role": "member"}).status_code
            == 403
        ), action
    assert (
        browser.post(LAB, {"action": "role", "username": "bob", "role": "owner"}).status_code == 303
    )
    answer = browser.post(LAB, {"action": "leave"})
    assert answer["Location"] == "/teams/"
    assert "You have left team Lab" in message_of(browser.get("/teams/"))
    assert list(lab.memberships.values_list("user__username", "role")) == [("bob", "owner")]
    assert browser.post("/teams/alice/", {"action": "leave"}).status_code == 409
    assert bobs.post(LAB, {"action": "remove", "username": "alice"}).status_code == 404
    assert bobs.post(LAB, {"action": "delete"})["Location"] == "/teams/"
    assert not Team.objects.filter(slug="lab").exists()


def test_a_link_leads_into_the_team_until_it_is_revoked(browser: Client, bob: User) -> None:
    path = new_link(browser)
    code = path.partition("=")[2]
    assert code not in page(browser, LAB)
    assert code.partition("-")[2] not in str(list(InvitationLink.objects.values())) + str(
        AuditEvent.objects.values()
    )
    bobs = browser_of(bob)
    html = page(bobs, path)
    assert "alice invites you to team Lab" in text_of(html)
    # With no-referrer, browsers send forms of the page without the origin that the CSRF check
    # needs.
    assert bobs.get(path)["Referrer-Policy"] == "same-origin"
    assert bobs.post("/join/", {"code": code})["Location"] == LAB
    assert bobs.post("/join/", {"code": code})["Location"] == LAB
    assert Team.objects.get(slug="lab").memberships.get(user=bob).role == "member"
    assert browser.post(LAB, {"action": "revoke", "key": code[:8]}).status_code == 303
    assert "paste the code" in page(bobs, "/join/")
    for wrong in (code, f"{code[:8]}-x", "x"):
        assert "expired or was revoked" in page(bobs, "/join/", 404, code=wrong)


def test_a_link_ends_with_time_and_with_its_owner(browser: Client, alice: User, bob: User) -> None:
    path = new_link(browser)
    InvitationLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    page(Client(), path, 404)
    path = new_link(browser)
    assert InvitationLink.objects.count() == 1
    lab = Team.objects.get(slug="lab")
    Membership.objects.create(team=lab, user=bob, role="owner")
    browser_of(bob).post(LAB, {"action": "role", "username": "alice", "role": "member"})
    assert not InvitationLink.objects.exists()
    page(Client(), path, 404)


def test_only_links_of_staff_create_accounts(browser: Client, alice: User) -> None:
    newcomer, path = Client(), new_link(browser)
    code = path.partition("=")[2]
    form = {
        "code": code,
        "username": "carol",
        "password": "a long passphrase",
        "again": "a long passphrase",
    }
    assert "Create an account" not in page(newcomer, path)
    assert newcomer.post("/join/", form).status_code == 403
    assert not User.objects.filter(username="carol").exists()
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    assert "Create an account" in page(newcomer, path)
    for change, field, says in (
        ({"again": "another one"}, "again", "The two passwords differ"),
        ({"password": "short", "again": "short"}, "password", "at least 10 characters"),
        ({"username": "alice"}, "username", "There is a user"),
        ({"username": "no spaces"}, "username", "Enter a valid username"),
    ):
        refused = newcomer.post("/join/", {**form, **change})
        html = refused.content.decode()
        assert refused.status_code in (400, 409)
        assert says in html.partition(f'id="{field}-hint"')[2][:200], change
        assert f'value="{ {**form, **change}["username"] }"' in html
        assert "passphrase" not in html
    assert newcomer.post("/join/", form)["Location"] == "/"
    assert "Welcome, carol. You are in team Lab." in message_of(newcomer.get("/"))
    assert set(
        Team.objects.of(User.objects.get(username="carol")).values_list("slug", flat=True)
    ) == {"carol", "lab"}
    secured = Client(enforce_csrf_checks=True)
    assert secured.post("/join/", {**form, "username": "dave"}).status_code == 403


def test_a_session_log_is_checked_and_submitted(alice: User, collection: str) -> None:
    client, path = browser_of(alice), "/collections/small/submit-sessions/"
    log = {
        "file": SimpleUploadedFile("log", SESSIONS.encode()),
        "metadata": "interface = grid",
        "tag": "",
    }
    checked = message_of(client.post(path, {**log, "action": "check"}))
    assert "Sessions 4 Queries 5 Topics 2 Searchers 1 Systems A, B" in checked
    assert not SessionSet.objects.exists()
    log["file"] = SimpleUploadedFile("log", SESSIONS.encode())
    answer = client.post(
        path, {**log, "action": "submit", "judged_by": "topic", "description": "a log"}
    )
    session_set = SessionSet.objects.get()
    assert answer["Location"] == f"/session-sets/{session_set.pk}/"
    assert (session_set.metadata, session_set.description, session_set.team) == (
        {"interface": "grid"},
        "a log",
        alice.personal_team,
    )
    bad = client.post(
        path, {"file": SimpleUploadedFile("log", b'{"session_id": 1}\n'), "description": "kept"}
    )
    assert (bad.status_code, "nothing was stored" in message_of(bad), "kept</textarea>" in bad.content.decode()) == (
        422, True, True,
    )  # fmt: skip
