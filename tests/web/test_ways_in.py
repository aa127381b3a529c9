"""Invitations of administrators, registration and forgotten passwords, with a real server of mail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import get_user
from django.core.management import CommandError, call_command
from django.db.models import F
from django.test import Client

from runs.models import AuditEvent, InvitationLink, Mail, Team, User
from runs.services.accounts.passwords import token_of
from runs.services.mail.sending import send_due
from tests.conftest import client_of
from tests.mail_server import MailServer, mail_server
from tests.web.test_pages import page, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.words]
SECRET = "correct horse battery"
API = "/api/v1/account-invitations/"


@pytest.fixture
def mails(settings: Any) -> Iterator[MailServer]:
    with mail_server(settings) as server:
        yield server


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", "root@example.org", SECRET))
    return client


def account(username: str, **fields: str) -> dict[str, str]:
    return {"username": username, "password": SECRET, "again": SECRET, **fields}


def path_of(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


def code_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["code"][0]


def test_a_mailed_invitation_creates_one_account_in_a_team(
    admin: Client, mails: MailServer
) -> None:
    Team.objects.create(slug="lab", name="Lab")
    answer = admin.post(
        "/invite/", {"action": "create", "email": "ada@example.org", "team": "lab", "days": "3"}
    )
    assert answer.status_code == 201
    assert send_due() == 1
    (link,) = mails.links("ada@example.org")
    assert link.startswith("https://eval.example.org/join/?code=")
    # The text has a secret, and is not kept.
    assert Mail.objects.get().text == ""
    assert code_of(link).partition("-")[2] not in str(AuditEvent.objects.values())

    visitor = Client()
    answer = visitor.get(path_of(link))
    assert answer["X-Robots-Tag"] == "noindex, nofollow"
    assert (answer["Cache-Control"], answer["Referrer-Policy"]) == ("no-store", "same-origin")
    assert visitor.post("/join/", {**account("ada"), "code": code_of(link)}).status_code == 303
    ada = User.objects.get(username="ada")
    assert (ada.email, ada.is_staff) == ("ada@example.org", False)
    assert list(ada.memberships.values_list("team__slug", "role").order_by("pk")) == [
        ("ada", "owner"),
        ("lab", "member"),
    ]
    assert get_user(visitor) == ada
    assert "expired or was revoked" in page(Client(), path_of(link), 404)
    again = Client().post("/join/", {**account("bob"), "code": code_of(link)})
    assert (again.status_code, User.objects.filter(username="bob").exists()) == (404, False)


def test_links_are_listed_revoked_and_only_for_administrators(admin: Client) -> None:
    ann = User.objects.create_user("ann", password=SECRET)
    staff = client_of(User.objects.get(username="root"))
    new = staff.post(API, {"max_uses": 2}, format="json")
    assert (new.status_code, new.json()["max_uses"], new["Cache-Control"]) == (201, 2, "no-store")
    code = code_of(new.json()["url"])
    assert [link["key"] for link in staff.get(API).json()["results"]] == [new.json()["key"]]
    for client in (client_of(ann), Client()):
        assert client.get(API).status_code in (401, 404)
        assert client.delete(f"{API}{code[:8]}/").status_code in (401, 403, 404)
    ann_browser = Client()
    ann_browser.force_login(ann)
    assert ann_browser.get("/invite/").status_code == 404
    assert ann_browser.post("/invite/", {"action": "create"}).status_code == 404
    assert "You have an account already" in text_of(page(ann_browser, f"/join/?code={code}"))
    assert ann_browser.post("/join/", {"code": code}).status_code == 409

    for name in ("one", "two", "three"):
        answer = Client().post("/join/", {**account(name), "code": code})
        assert answer.status_code == (404 if name == "three" else 303)
    assert staff.get(API).json()["results"] == []

    other = staff.post(API, {}, format="json").json()
    assert "Revoked" not in page(admin, "/invite/")
    assert admin.post("/invite/", {"action": "revoke", "key": other["key"]}).status_code == 303
    assert Client().get(path_of(other["url"])).status_code == 404
    third = staff.post(API, {}, format="json").json()
    assert staff.delete(f"{API}{third['key']}/").status_code == 204
    assert staff.delete(f"{API}{third['key']}/").status_code == 404
    actions = AuditEvent.objects.filter(object_type="invitationlink").values_list("action")
    assert (
        sorted(action for (action,) in actions)
        == ["invitation.ended"] * 2 + ["invitation.made"] * 3
    )

    # Who is no administrator any more invites nobody.
    fourth = staff.post(API, {}, format="json").json()
    User.objects.filter(username="root").update(is_staff=False)
    assert Client().get(path_of(fourth["url"])).status_code == 404


def test_a_command_makes_lists_and_revokes_links(admin: Client, settings: Any) -> None:
    out, hint = StringIO(), StringIO()
    call_command("invite", "--people", "0", stdout=out, stderr=hint)
    assert out.getvalue().startswith("/join/?code=")
    assert "Put the address of the server in front" in hint.getvalue()
    link = InvitationLink.objects.get()
    assert (link.max_uses, str(link.created_by)) == (None, "root")
    call_command("invite", "--list", stdout=out)
    assert f"{link.key}  an account" in out.getvalue()
    call_command("invite", "--revoke", link.key)
    assert not InvitationLink.objects.exists()
    with pytest.raises(CommandError, match="no mail"):
        call_command("invite", "--email", "x@example.org")
    call_command(
        "create_user", "eve", "--email", "eve@example.org", "--scope", "manage", stdout=out
    )
    assert User.objects.get(username="eve").email == "eve@example.org"
    with pytest.raises(CommandError, match="not a mail address"):
        call_command("create_user", "ben", "--email", "ben")


def test_an_address_comes_first_and_nobody_learns_which_have_accounts(
    mails: MailServer, settings: Any
) -> None:
    User.objects.create_user("ann", "ann@lab.example", SECRET)
    assert Client().get("/register/").status_code == 404
    assert "Create an account" not in page(Client(), "/login/")
    settings.EVALHUB_REGISTRATION = True
    settings.EVALHUB_REGISTRATION_DOMAINS = ["lab.example"]
    assert "Create an account" in page(Client(), "/login/")
    pages = {}
    for name in ("ann", "new"):
        answer = Client().post("/register/", {"email": f"{name}@lab.example"})
        pages[name] = text_of(answer.content.decode()).replace(f"{name}@", "who@")
    assert pages["ann"] == pages["new"]
    assert Client().post("/register/", {"email": "x@elsewhere.example"}).status_code == 400
    assert Client().post("/register/", {"email": "x"}).status_code == 400
    assert send_due() == 2
    assert mails.links("ann@lab.example")[0] == "https://eval.example.org/login/"
    assert User.objects.count() == 1

    (link,) = mails.links("new@lab.example")
    sent = {**account("new", email="other@lab.example"), "code": code_of(link)}
    assert Client().post("/join/", {**sent, "again": "x"}).status_code == 400
    assert Client().post("/join/", sent).status_code == 303
    # Another address than the confirmed one is not believed.
    assert User.objects.get(username="new").email == "new@lab.example"
    assert Client().post("/join/", sent).status_code == 404

    # Three mails in a day to an address, and only the newest link works.
    for _ in range(4):
        Client().post("/register/", {"email": "more@lab.example"})
    assert send_due() == 3
    every = [code_of(path) for path in _links(mails, "more@lab.example")]
    statuses = [Client().get("/join/", {"code": code}).status_code for code in every]
    assert statuses == [404, 404, 200]
    settings.EVALHUB_REGISTRATION = False
    assert Client().get("/join/", {"code": every[-1]}).status_code == 404


def _links(mails: MailServer, address: str) -> list[str]:
    texts = [mail.get_content() for mail in mails.mails if mail["To"] == address]
    return [word for text in texts for word in text.split() if word.startswith("https:")]


def test_a_forgotten_password_is_replaced_once_and_sessions_end(
    mails: MailServer, settings: Any
) -> None:
    ann = User.objects.create_user("ann", "Ann@example.org", SECRET)
    User.objects.create_user("ben", "ben@example.org", SECRET, is_active=False)
    User.objects.create_user("oid", "oid@example.org")
    session = Client()
    session.force_login(ann)
    assert "Forgotten password" in page(Client(), "/login/")
    answers = set()
    for name in ("ann", "ben", "oid", "nobody"):
        answer = Client().post("/forgotten-password/", {"email": f"{name}@example.org"})
        answers.add(text_of(answer.content.decode()).replace(f"{name}@", "who@"))
    assert len(answers) == 1
    assert Mail.objects.count() == 4
    assert send_due() == 1
    (link,) = mails.links("Ann@example.org")
    assert link.startswith("https://eval.example.org/new-password/?code=")
    token = parse_qs(urlsplit(link).query)["code"][0]
    answer = Client().get(path_of(link))
    assert (answer.status_code, answer["X-Robots-Tag"]) == (200, "noindex, nofollow")

    form = {"code": token, "password": "another long word", "again": "another long word"}
    strict = Client(enforce_csrf_checks=True)
    assert strict.post("/new-password/", form).status_code == 403
    assert Client().post("/new-password/", {**form, "again": "x"}).status_code == 400
    assert (
        Client().post("/new-password/", {**form, "password": "x", "again": "x"}).status_code == 400
    )
    answer = Client().post("/new-password/", form)
    assert (answer.status_code, answer["Location"]) == (303, "/login/")
    assert not get_user(session).is_authenticated
    assert Client().login(username="ann", password="another long word")
    for wrong in (token, "1-x", "x", "", f"{ann.pk}-", "9" * 30 + "-x"):
        assert Client().post("/new-password/", {**form, "code": wrong}).status_code == 404
    assert AuditEvent.objects.filter(object_id="ann", after={"password": "changed"}).count() == 1

    # Five mails in a day.
    for _ in range(6):
        Client().post("/forgotten-password/", {"email": "ann@example.org"})
    assert send_due() == 4


def test_each_address_gets_the_links_of_its_own_accounts(mails: MailServer) -> None:
    """Databases compare addresses without case, and some letters of other alphabets as equal."""
    for name, address in (("mallory", "ANN@lab.example"), ("ann", "ann@lab.example")):
        User.objects.create_user(name, password=SECRET)
        User.objects.filter(username=name).update(email=address)
    User.objects.create_user("anna", "ann@lab.example", SECRET)
    Client().post(
        "/forgotten-password/", {"email": "ann@lab.example"}, headers={"host": "localhost"}
    )
    assert send_due() == 2
    texts = {mail["To"]: mail.get_content() for mail in mails.mails}
    names = {
        address: [name for name in ("ann", "anna", "mallory") if f"{name}: https://eval.e" in text]
        for address, text in texts.items()
    }
    assert names == {"ANN@lab.example": ["mallory"], "ann@lab.example": ["ann", "anna"]}
    assert "localhost" not in str(texts)


def test_mail_to_confirm_one_address_is_limited(mails: MailServer) -> None:
    for number in range(6):
        user = User.objects.create_user(f"user{number}", password=SECRET)
        answer = client_of(user).patch("/api/v1/me/", {"email": "victim@x.example"}, format="json")
        assert answer.status_code == (429 if number == 5 else 202), answer.content
    assert send_due() == 5


@pytest.mark.parametrize(
    "path", ["/join/", "/join-campaign/", "/register/", "/forgotten-password/", "/new-password/"]
)
def test_forms_for_people_without_a_session_are_limited(path: str, settings: Any) -> None:
    settings.EVALHUB_LOGIN_RATE = 2
    statuses = [Client().post(path, {"code": "x", "email": "x"}).status_code for _ in range(3)]
    assert statuses[2] == 429
    assert 429 not in statuses[:2]
    assert Client().get("/login/").status_code == 200


def test_opening_a_link_uses_nothing(admin: Client, mails: MailServer) -> None:
    """Programs that check mail open every link in it."""
    admin.post("/invite/", {"action": "create", "email": "ada@example.org"})
    Client().post("/forgotten-password/", {"email": "root@example.org"})
    send_due()
    for address in ("ada@example.org", "root@example.org"):
        path = path_of(mails.links(address)[0])
        for _ in range(2):
            assert Client().head(path).status_code == 200
            assert Client().get(path).status_code == 200
    assert InvitationLink.objects.get().uses == 0
    assert User.objects.count() == 1


def test_a_new_account_starts_a_new_session(admin: Client) -> None:
    staff = client_of(User.objects.get(username="root"))
    code = code_of(staff.post(API, {}, format="json").json()["url"])
    browser = Client()
    session = browser.session
    session["planted"] = "yes"
    session.save()
    fields = {"is_staff": "on", "is_superuser": "on", "next": "https://evil.example/"}
    assert browser.post("/join/", {**account("ada"), "code": code, **fields}).status_code == 400
    answer = browser.post("/join/", {**account("ada"), "code": code})
    assert (answer.status_code, answer["Location"]) == (303, "/")
    ada = User.objects.get(username="ada")
    assert (ada.is_staff, ada.is_superuser) == (False, False)
    assert browser.session.session_key != session.session_key


def test_a_link_of_a_forgotten_password_expires(settings: Any) -> None:
    assert Client().get("/forgotten-password/").status_code == 404
    assert "Forgotten password" not in page(Client(), "/login/")
    ann = User.objects.create_user("ann", "ann@example.org", SECRET)
    token = token_of(ann)
    assert Client().get("/new-password/", {"code": token}).status_code == 200
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert Client().get("/new-password/", {"code": token}).status_code == 404


def test_who_opens_a_link_without_a_mailed_address_confirms_theirs(
    admin: Client, mails: MailServer
) -> None:
    staff = client_of(User.objects.get(username="root"))
    code = code_of(staff.post(API, {}, format="json").json()["url"])
    assert Client().post("/join/", {**account("ada"), "code": code}).status_code == 400
    browser = Client()
    sent = {**account("ada", email="ada@example.org"), "code": code}
    assert browser.post("/join/", sent).status_code == 303
    assert User.objects.get(username="ada").email == ""
    assert send_due() == 1
    (link,) = mails.links("ada@example.org")
    confirmation = parse_qs(urlsplit(link).query)["confirm"][0]
    assert "Confirm ada@example.org" in page(browser, path_of(link))
    browser.post("/account/", {"action": "confirm", "confirmation": confirmation})
    assert User.objects.get(username="ada").email == "ada@example.org"


def test_an_expired_link_and_one_without_a_maker_open_nothing(admin: Client) -> None:
    staff = client_of(User.objects.get(username="root"))
    new = staff.post(API, {}, format="json").json()
    InvitationLink.objects.update(expires_at=F("created_at") - timedelta(days=1))
    assert Client().get(path_of(new["url"])).status_code == 404
    assert staff.get(API).json()["results"] == []
