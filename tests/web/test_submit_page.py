"""Submitting by hand: logging in, checking a file, submitting it, making tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import ApiToken, AuditEvent, Run, Team, User
from runs.services.files import stored_files, upload_folder
from tests.conftest import GOOD
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words

PATH = "/collections/small/submit/"
BAD = "1 Q0 a 1 3 bad\n1 Q0 a 2 2 bad\n2 Q0 b 1 x bad\n3 Q0\n"


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def send(browser: Client, content: str, action: str = "submit", headers: Any = None, **fields: str) -> Any:
    form = {"file": SimpleUploadedFile("run.txt", content.encode()), "action": action, "tag": "", **fields}
    return browser.post(PATH, form, headers=headers)


@pytest.mark.slow
def test_whoever_is_not_logged_in_comes_back_after_it(collection: str, alice: User) -> None:
    alice.set_password("a long passphrase")
    alice.save()
    browser = Client()
    answer = browser.get(PATH)
    assert answer["Location"] == f"/login/?next={PATH}"
    assert "Log in" in page(browser, answer["Location"])
    fields = {"username": "alice", "password": "a long passphrase", "next": PATH}
    assert browser.post("/login/", fields)["Location"] == PATH
    assert "Submit a run" in page(browser, PATH)
    assert browser.post("/logout/")["Location"] == "/"
    assert browser.get(PATH).status_code == 302


def test_a_wrong_password_says_nothing_of_the_account(alice: User) -> None:
    pages = []
    for name in ("alice", "xxxxx"):
        html = Client().post("/login/", {"username": name, "password": "wrong"}).content.decode()
        pages.append(re.sub(r'(csrfmiddlewaretoken" value=")\w+', r"\1", html.replace(name, "")))
    assert "Wrong user name or password" in pages[0]
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_a_login_leads_nowhere_else(alice: User) -> None:
    alice.set_password("a long passphrase")
    alice.save()
    fields = {"username": "alice", "password": "a long passphrase", "next": "https://evil.example/"}
    assert Client().post("/login/", fields)["Location"] == "/"


@pytest.mark.slow
def test_guessing_passwords_on_the_page_is_slowed_down(alice: User, settings: Any) -> None:
    settings.EVALHUB_LOGIN_RATE = 3
    answers = [Client().post("/login/", {"username": "alice", "password": "x"}).status_code for _ in range(8)]
    assert 2 <= answers.count(429) <= 5


def test_a_check_reports_line_by_line_and_stores_nothing(browser: Client, collection: str) -> None:
    answer = send(browser, BAD, "check")
    assert answer.status_code == 422
    text = text_of(answer.content.decode())
    assert "3 problems; nothing was stored" in text
    assert "2 Document &#x27;a&#x27; is listed twice" in text
    assert "bad_score" in text
    assert "too_few_columns" in text
    many = text_of(send(browser, "1 Q0 a\n" * 311, "check").content.decode())
    assert "311 problems, the first 50 listed; nothing was stored" in many
    assert many.count("A line needs 6 columns") == 1
    good = send(browser, GOOD, "check")
    assert good.status_code == 200
    assert "The file can be submitted" in good.content.decode()
    assert not Run.objects.exists()
    assert len(list(stored_files())) == 1
    assert list(upload_folder().iterdir()) == []


def test_a_submission_leads_to_the_run(browser: Client, collection: str) -> None:
    answer = send(browser, GOOD, description="by hand", tag="mine")
    run = Run.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{run.pk}/")
    assert (run.tag, run.description, run.team.slug) == ("mine", "by hand", "alice")
    assert AuditEvent.objects.filter(action="run.submitted", actor="alice").count() == 1
    assert "In the queue" in page(browser, answer["Location"])
    again = send(browser, GOOD, headers={"HX-Request": "true"}, tag="mine")
    assert (again.status_code, again["HX-Redirect"]) == (200, f"/runs/{run.pk}/")


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [({"tag": "no good"}, 400, "a tag has 1 to 64 characters"), ({"team": "nobody"}, 400, "does not exist")],
)
def test_a_form_that_does_not_fit_says_why(
    browser: Client, collection: str, fields: dict[str, str], status: int, says: str
) -> None:
    answer = send(browser, GOOD, **fields)
    assert answer.status_code == status
    assert says in answer.content.decode()
    assert not Run.objects.exists()


def test_a_form_without_a_file_says_so(browser: Client, collection: str) -> None:
    answer = browser.post(PATH, {"action": "check"})
    assert (answer.status_code, "Choose a file first" in answer.content.decode()) == (400, True)


def test_an_empty_second_file_is_no_file(browser: Client, collection: str) -> None:
    """As browsers send it where nobody chose one."""
    assert send(browser, GOOD, known="", team="", description="").status_code == 303


def test_a_taken_tag_is_told_on_the_page(browser: Client, collection: str) -> None:
    send(browser, GOOD)
    answer = send(browser, GOOD + "3 Q0 q 2 0.5 good\n")
    assert answer.status_code == 409
    assert "already has another run with tag" in answer.content.decode()


def test_a_team_of_others_takes_no_run(browser: Client, collection: str) -> None:
    Team.objects.create(slug="others", name="Others")
    assert send(browser, GOOD, team="others").status_code == 400
    assert not Run.objects.exists()


def test_forms_need_a_csrf_token(collection: str, alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    for path in (PATH, "/tokens/", "/logout/"):
        answer = browser.post(path, {"action": "create", "name": "x", "scopes": "read"})
        assert answer.status_code == 403, path
    assert not ApiToken.objects.filter(name="x").exists()
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', browser.get("/tokens/").content.decode())
    assert token
    fields = {"action": "create", "name": "x", "scopes": "read", "csrfmiddlewaretoken": token[1]}
    assert browser.post("/tokens/", fields).status_code == 201


def test_requests_of_a_page_count_as_the_users(browser: Client, collection: str, settings: Any) -> None:
    settings.EVALHUB_USER_RATE = 2
    codes = [browser.get(PATH).status_code for _ in range(5)]
    assert codes.count(429) >= 2


def test_a_token_is_shown_once_and_works(browser: Client) -> None:
    answer = browser.post(
        "/tokens/", {"action": "create", "name": "laptop", "scopes": ["read", "submit"], "days": "90"}
    )
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    found = re.search(r"evh_[0-9a-f]{8}_[\w-]+", answer.content.decode())
    assert found
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {found[0]}")
    assert api.get("/api/v1/teams/").status_code == 200
    token = ApiToken.objects.get(name="laptop")
    assert token.expires_at
    assert (token.expires_at - token.created_at).days in (89, 90)
    assert found[0] not in page(browser, "/tokens/")
    revoked = browser.post("/tokens/", {"action": "revoke", "key": token.key})
    assert revoked.status_code == 303
    assert api.get("/api/v1/teams/").status_code == 401


@pytest.mark.parametrize("fields", [{"name": ""}, {"name": "x", "scopes": ["all"]}, {"name": "x", "days": "7"}])
def test_a_token_that_cannot_be_made_says_why(browser: Client, fields: dict[str, Any]) -> None:
    answer = browser.post("/tokens/", {"action": "create", "scopes": ["read"], **fields})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert browser.post("/tokens/", {"action": "revoke", "key": "00000000"}).status_code == 404
