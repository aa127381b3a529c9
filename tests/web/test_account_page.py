"""The page of one's own account: its password, its other sessions, and what outlives both."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.models import ApiToken, AuditEvent, Mail, Team, User
from runs.services.accounts.accounts import disable_user, enable_user
from runs.services.mail.sending import message_of
from tests.conftest import client_of
from tests.shared_data import alice, module_data
from tests.web.test_pages import page

__all__ = ["alice", "module_data"]

OLD, NEW = "correct horse battery", "staple battery horse"


@pytest.fixture
def browsers(alice: User) -> tuple[Client, Client]:
    """Two sessions of Alice's."""
    alice.set_password(OLD)
    alice.save()
    pair = Client(), Client()
    for browser in pair:
        assert browser.login(username="alice", password=OLD)
    return pair


def send(browser: Client, **fields: str) -> Any:
    return browser.post("/account/", fields)


def logged_in(browser: Client) -> bool:
    return bool(browser.get("/tokens/").status_code == 200)


def test_a_new_password_ends_the_other_sessions_and_no_token(
    alice: User, browsers: tuple[Client, Client]
) -> None:
    here, other = browsers
    api = client_of(alice)
    assert "1 token will keep working" in " ".join(page(here, "/account/").split())
    answer = send(here, action="password", old_password=OLD, new_password1=NEW, new_password2=NEW)
    assert "Password changed" in answer.content.decode()
    assert answer["Cache-Control"] == "no-store"
    assert (logged_in(here), logged_in(other)) == (True, False)
    assert api.get("/api/v1/teams/").status_code == 200
    assert (Client().login(username="alice", password=OLD), Client().login(username="alice", password=NEW)) == (
        False, True,
    )  # fmt: skip
    event = AuditEvent.objects.get(action="user.changed")
    assert (event.actor, event.object_id, event.after) == (
        "alice",
        "alice",
        {"password": "changed"},
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"old_password": "wrong"}, "Your old password was entered incorrectly"),
        ({"new_password2": "another one here"}, "The two password fields"),
        ({"new_password1": "short", "new_password2": "short"}, "at least 10 characters"),
        ({"old_password": ""}, "This field is required"),
    ],
)
def test_a_password_that_does_not_fit_is_refused(
    browsers: tuple[Client, Client], fields: dict[str, str], says: str
) -> None:
    sent = {
        "action": "password",
        "old_password": OLD,
        "new_password1": NEW,
        "new_password2": NEW,
        **fields,
    }
    answer = send(browsers[0], **sent)
    assert answer.status_code == 400
    assert says in answer.content.decode()
    assert all(logged_in(browser) for browser in browsers)
    assert not AuditEvent.objects.filter(action="user.changed").exists()


def test_other_sessions_are_ended(browsers: tuple[Client, Client]) -> None:
    here, other = browsers
    assert "ended" in send(here, action="sessions").content.decode()
    assert (logged_in(here), logged_in(other)) == (True, False)
    assert other.login(username="alice", password=OLD)
    assert logged_in(other)


@pytest.mark.parametrize("times", [0, 1], ids=["never ended", "ended once"])
def test_sessions_go_on_under_an_earlier_secret_key(
    alice: User, browsers: tuple[Client, Client], settings: Any, times: int
) -> None:
    here, other = browsers
    if times:
        send(here, action="sessions")
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-one-another-one-another-one-another-one"
    assert (logged_in(here), logged_in(other)) == (True, not times)


def test_an_account_that_is_enabled_again_has_none_of_its_old_sessions(
    alice: User, browsers: tuple[Client, Client]
) -> None:
    _, text = ApiToken.objects.issue(user=alice, name="x")
    disable_user(user=alice)
    enable_user(user=alice)
    assert not any(logged_in(browser) for browser in browsers)
    assert browsers[0].login(username="alice", password=OLD)
    assert logged_in(browsers[0])
    assert ApiToken.objects.find(text)


def test_invitations_are_answered(alice: User, browsers: tuple[Client, Client]) -> None:
    for slug, name in (("lab", "The <Lab>"), ("guild", "Guild")):
        Team.objects.create(slug=slug, name=name).invitations.create(user=alice, role="owner")
    html = page(browsers[0], "/account/")
    assert "The &lt;Lab&gt; (lab) as owner" in " ".join(html.split())
    assert (
        "You are now in team lab" in send(browsers[0], action="accept", team="lab").content.decode()
    )
    assert "declined" in send(browsers[0], action="decline", team="guild").content.decode()
    assert set(Team.objects.of(alice).values_list("slug", flat=True)) == {"alice", "lab"}
    assert "Invitations" not in page(browsers[0], "/account/")
    assert send(browsers[0], action="accept", team="guild").status_code == 404


def test_guessing_the_old_password_is_slowed_down(
    browsers: tuple[Client, Client], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_LOGIN_RATE = 3
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    codes = [send(browsers[0], action="password", old_password="x").status_code for _ in range(5)]
    assert codes == [400] * 3 + [429] * 2


def test_forms_from_elsewhere_lock_nobody_out(
    alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_LOGIN_RATE = 3
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    form = {"username": "alice", "password": "wrong"}
    elsewhere = Client(enforce_csrf_checks=True)
    for number in range(5):
        refused = elsewhere.post("/login/", form, REMOTE_ADDR=f"192.0.2.{number}")
        assert refused.status_code == 403
    codes = [
        Client().post("/login/", form, REMOTE_ADDR=f"198.51.100.{number}").status_code
        for number in range(4)
    ]
    assert codes == [200, 200, 200, 429]


def test_an_address_counts_when_it_is_confirmed(
    alice: User, browsers: tuple[Client, Client], settings: Any
) -> None:
    here, api = browsers[0], client_of(alice, ["read", "manage"])
    me = "/api/v1/me/"

    def ask(email: str) -> Any:
        return api.patch(me, {"email": email}, format="json")

    settings.EVALHUB_MAIL_URL = ""
    assert (ask("al@example.org").status_code, ask("al@example.org").json()["code"]) == (
        409,
        "mail_not_set_up",
    )
    settings.EVALHUB_MAIL_URL, settings.EVALHUB_URL = (
        "smtp://mail.example.org",
        "https://eval.example.org",
    )
    assert ask("nonsense").json()["errors"][0]["pointer"] == "/email"
    answer = ask("al@example.org")
    assert (answer.status_code, answer.json()["email"]) == (202, "")
    mail = Mail.objects.get()
    assert message_of(mail).to == ["al@example.org"]
    token = mail.text.partition("confirm=")[2].split()[0]
    other = client_of(User.objects.create_user("other"), ["manage"])
    for client, value in ((other, token), (api, f"{token}x"), (api, "x")):
        refused = client.patch(me, {"confirmation": value}, format="json")
        assert refused.json()["errors"][0]["pointer"] == "/confirmation"
    assert "Confirm al@example.org" in page(here, f"/account/?confirm={token}")
    assert (
        "Mail goes to al@example.org"
        in send(here, action="confirm", confirmation=token).content.decode()
    )
    assert api.get(me).json()["email"] == "al@example.org"
    # It was used.
    assert api.patch(me, {"confirmation": token}, format="json").status_code == 400
    assert (
        "A mail was sent to" in send(here, action="address", email="b@example.org").content.decode()
    )
    for name in "cde":
        assert ask(f"{name}@example.org").status_code == 202
    assert ask("f@example.org").status_code == 429
    assert ask("").json()["email"] == ""
    trail = AuditEvent.objects.filter(action="user.changed").order_by("pk")
    assert [event.after for event in trail] == [{"email": "changed"}, {"email": "removed"}]
    assert "example.org" not in str(list(trail.values()))
