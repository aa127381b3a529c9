"""The first visit of an install, and the reader's own home page."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from runs.models import AuditEvent, Collection, User
from runs.services.accounts.first_account import offer_code
from tests.conftest import GOOD, client_of
from tests.web.test_pages import page, text_of

FORM = {"username": "ada", "password": "a long passphrase", "again": "a long passphrase"}


def test_the_first_account_needs_the_code_of_the_server(db: None, own_data_folder: Path) -> None:
    browser = Client()
    assert "evalhub create_admin NAME" in page(browser, "/")
    earlier, code = offer_code(), offer_code()
    (file,) = own_data_folder.glob("first-account.code")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert code.replace("-", "") not in file.read_text()
    assert "Create the administrator" in page(browser, "/")
    for fields, field, says in (
        ({"code": earlier}, "code", "This is not the code"),
        ({"code": ""}, "code", "This is not the code"),
        ({"code": code, "again": "other"}, "again", "The two passwords differ"),
        (
            {"code": code, "password": "short", "again": "short"},
            "password",
            "at least 10 characters",
        ),
    ):
        answer = browser.post("/first-account/", {**FORM, **fields})
        html = answer.content.decode()
        assert answer.status_code == 400
        assert says in html.partition(f'id="{field}-hint"')[2][:200]
        assert 'value="ada"' in html
    assert not User.objects.exists()
    answer = browser.post("/first-account/", {**FORM, "code": code.lower()})
    assert (answer.status_code, answer["Location"]) == (303, "/")
    home = page(browser, "/")
    assert "Welcome, ada. You are the administrator" in text_of(home)
    assert "/new-collection/" in home
    ada = User.objects.get()
    assert (ada.is_superuser, ada.personal_team.slug) == (True, "ada")
    assert AuditEvent.objects.filter(action="user.created").count() == 1
    assert not file.exists()


def test_there_is_one_first_account(alice: User, own_data_folder: Path) -> None:
    code = offer_code()
    assert "first-account" not in page(Client(), "/")
    answer = Client().post("/first-account/", {**FORM, "code": code})
    assert (answer.status_code, User.objects.count()) == (409, 1)


def test_guessing_the_code_is_slowed_down_and_needs_a_csrf_token(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_LOGIN_RATE = 3
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    offer_code()
    codes = [Client().post("/first-account/", {**FORM, "code": "X"}).status_code for _ in range(5)]
    assert codes == [400] * 3 + [429] * 2
    settings.EVALHUB_LOGIN_RATE = 100
    assert Client(enforce_csrf_checks=True).post("/first-account/", FORM).status_code == 403


def test_home_shows_own_work_and_what_to_do_next(alice: User, bob: User, submit: Any) -> None:
    browser = Client()
    browser.force_login(alice)
    text = text_of(page(browser, "/"))
    assert "Create a team" in text
    assert "Submit a run" in text
    submit(GOOD)
    client_of(bob).post(
        "/api/v1/collections/", {"slug": "theirs", "name": "Theirs", "visibility": "public"}
    )
    client_of(alice).post("/api/v1/collections/", {"slug": "empty", "name": "Empty one"})
    home = page(browser, "/")
    assert "good</a></th><td>" in home
    assert "Upload judgements for Empty one" in text_of(home)
    assert "Upload judgements for Theirs" not in text_of(home)
    other = Client()
    other.force_login(bob)
    assert "good</a></th><td>" not in page(other, "/")
    Collection.objects.update(blind=True)
    assert "Latest runs" not in page(Client(), "/")
