"""Submitting by hand: logging in, checking a file, submitting it, making tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import ApiToken, AuditEvent, Collection, Membership, Run, Team, User
from runs.services.storage.files import upload_folder
from runs.services.storage.stores.chosen import the_store
from runs.services.tracking.lineage import links_of
from tests.conftest import GOOD, POOR
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words

PATH = "/collections/small/submit/"
BAD = "1 Q0 a 1 3 bad\n1 Q0 a 2 2 bad\n2 Q0 b 1 x bad\n3 Q0\n"


@pytest.fixture
def browser(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def send(
    browser: Client, content: str, action: str = "submit", headers: Any = None, **fields: str
) -> Any:
    form = {
        "file": SimpleUploadedFile("run.txt", content.encode()),
        "action": action,
        "tag": "",
        **fields,
    }
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
    assert "Submit runs" in page(browser, PATH)
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
    answers = [
        Client().post("/login/", {"username": "alice", "password": "x"}).status_code
        for _ in range(8)
    ]
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
    assert len(list(the_store().entries())) == 1
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
    [
        ({"tag": "no good"}, 400, "a tag has 1 to 64 characters"),
        ({"team": "nobody"}, 400, "does not exist"),
    ],
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


def test_costs_are_lines_or_json_and_a_wrong_one_is_named(browser: Client, collection: str) -> None:
    wrong = send(browser, GOOD, costs="latency_ms = fast")
    assert (wrong.status_code, Run.objects.count()) == (422, 0)
    assert "atency_ms: value is not a finite number from 0 on" in text_of(wrong.content.decode())
    assert "osts, line 1" in text_of(send(browser, GOOD, costs="12.1").content.decode())
    lines = 'latency_ms = {"value": 12.1, "low": 11, "high": 14}\nindex_bytes = 5000000\n'
    assert send(browser, GOOD, costs=lines).status_code == 303
    costs = {"latency_ms": {"value": 12.1, "low": 11, "high": 14}, "index_bytes": 5000000}
    assert Run.objects.get().costs == costs
    assert send(browser, POOR, tag="other", costs='{"energy_j": 40}').status_code == 303
    assert Run.objects.get(tag="other").costs == {"energy_j": 40}


def test_an_empty_second_file_is_no_file(browser: Client, collection: str) -> None:
    """As browsers send it where nobody chose one."""
    assert send(browser, GOOD, known="", team="", description="").status_code == 303


def send_several(browser: Client, files: dict[str, str], **fields: str) -> Any:
    sent = [SimpleUploadedFile(name, content.encode()) for name, content in files.items()]
    return browser.post(PATH, {"file": sent, "action": "submit", **fields})


def test_one_refused_file_stops_no_other(browser: Client, collection: str) -> None:
    files = {"a.run": GOOD, "b.run.gz": "1 Q0\n2 Q0 x\n", "c d.run": POOR, "a-again.run": GOOD}
    fields = {
        "tags": "name",
        "description": "three",
        "metadata": "k1 = 0.9\n\nmodel = bm25 = b\nstop = true",
    }
    checked = send_several(browser, files, **{**fields, "action": "check"})
    assert (checked.status_code, Run.objects.count()) == (200, 0)
    assert "a-again.run a-again can be submitted: 3 topics, 5 documents" in text_of(
        checked.content.decode()
    )
    answer = send_several(browser, files, **fields)
    text = text_of(answer.content.decode())
    assert answer.status_code == 200
    assert "3 new, 1 refused Open the leaderboard : the runs are being evaluated" in text
    assert "a.run a submitted b.run.gz – refused Line 1: a line needs 6 columns" in text
    assert "Problems in b.run.gz" in text
    assert set(Run.objects.values_list("tag", flat=True)) == {"a", "c-d", "a-again"}
    run = Run.objects.get(tag="c-d")
    assert (run.description, run.metadata) == (
        "three",
        {"k1": 0.9, "model": "bm25 = b", "stop": True},
    )
    again = text_of(
        send_several(browser, {"a.run": GOOD, "c d.run": POOR}, tags="name").content.decode()
    )
    assert "0 new, 2 were there already" in again
    assert again.count("was there already") == 2
    assert list(upload_folder().iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"tag": "one"}, "tag", "Leave the tag empty with several files"),
        (
            {"metadata": "k1 = 1\nno sign"},
            "metadata",
            "Parameters, line 2: &#x27;no sign&#x27; has no =",
        ),
        ({"metadata": "a=1\na=2"}, "metadata", "Parameters, line 2: a is there twice"),
        ({"team": "nobody"}, "team", "does not exist"),
    ],
)
def test_a_form_for_several_files_that_does_not_fit_submits_none(
    browser: Client, collection: str, fields: dict[str, str], field: str, says: str
) -> None:
    answer = send_several(browser, {"a": GOOD, "b": POOR}, **{"description": "typed", **fields})
    html = answer.content.decode()
    assert answer.status_code == 400
    assert says in html.partition(f'id="{field}-hint"')[2].partition("</span>")[0]
    assert "typed</textarea>" in html
    assert not Run.objects.exists()
    assert list(upload_folder().iterdir()) == []


def test_the_team_of_the_collection_is_proposed_to_its_members(
    browser: Client, alice: User, collection: str
) -> None:
    lab = Team.objects.create(slug="zlab", name="Lab")
    Collection.objects.update(team=lab)
    assert '<option value="alice">' in page(browser, PATH)
    Membership.objects.create(team=lab, user=alice)
    for path in (PATH, "/collections/small/submit-sessions/"):
        assert '<option value="zlab" selected>' in page(browser, path)


def test_all_refused_is_no_success_and_there_is_a_most(browser: Client, collection: str) -> None:
    assert send_several(browser, {"a": BAD, "b": BAD}).status_code == 422
    many = {str(number): GOOD for number in range(21)}
    answer = send_several(browser, many)
    assert (answer.status_code, "20 files at most" in answer.content.decode()) == (400, True)
    files = [SimpleUploadedFile(name, GOOD.encode()) for name in "ab"]
    known = SimpleUploadedFile("known", b"1 a\n")
    answer = browser.post(PATH, {"file": files, "known": known, "action": "submit"})
    assert (answer.status_code, "come with a single run" in answer.content.decode()) == (400, True)
    assert not Run.objects.exists()
    assert list(upload_folder().iterdir()) == []


def test_the_quota_ends_in_the_middle_of_several_files(browser: Client, collection: str) -> None:
    Collection.objects.update(daily_submissions=1)
    text = text_of(send_several(browser, {"a": GOOD, "b": POOR}).content.decode())
    assert "a good submitted" in text
    assert "has reached its quota of 1" in text
    assert Run.objects.count() == 1


def test_a_taken_tag_is_told_on_the_page(browser: Client, collection: str) -> None:
    send(browser, GOOD)
    answer = send(browser, GOOD + "3 Q0 q 2 0.5 good\n")
    assert answer.status_code == 409
    assert "already has another run with tag" in answer.content.decode()
    assert '<a href="#if_taken">make it the next version</a>' in answer.content.decode()


def test_a_taken_tag_becomes_the_next_version_where_asked(browser: Client, collection: str) -> None:
    send(browser, GOOD, tag="splade")
    assert send(browser, POOR, tag="splade", if_taken="fail").status_code == 409
    checked = send(browser, POOR, "check", tag="splade", if_taken="version")
    assert (checked.status_code, Run.objects.count()) == (200, 1)
    assert send(browser, POOR, tag="splade", if_taken="version").status_code == 303
    assert set(Run.objects.values_list("tag", "version")) == {("splade", 1), ("splade-v2", 2)}
    assert send(browser, GOOD, tag="splade", if_taken="never").status_code == 400
    several = send_several(browser, {"splade.run": GOOD + "3 Q0 q 2 0.5 x\n", "other.run": GOOD}, tags="name",
                           if_taken="version")  # fmt: skip
    assert several.status_code == 200
    assert set(Run.objects.values_list("tag", flat=True)) == {
        "splade",
        "splade-v2",
        "splade-v3",
        "other",
    }


def test_parents_and_links_come_with_a_run(browser: Client, collection: str) -> None:
    send(browser, GOOD, tag="first")
    lines = {
        "parents": "\nreranked first\n",
        "links": "code https://example.org/code commit=3f2a The title",
    }
    assert send(browser, POOR, tag="second", **lines).status_code == 303
    edge = Run.objects.get(tag="second").parent_edges.get()
    assert edge.parent
    assert (edge.parent.tag, edge.relation) == ("first", "reranked")
    (link,) = links_of(Run.objects.get(tag="second"))
    assert (link.kind, link.url, link.commit, link.title) == (
        "code",
        "https://example.org/code",
        "3f2a",
        "The title",
    )
    for fields, status, says in (
        (
            {"parents": "\nreranked nothing"},
            400,
            "Line 2: there is no run &#x27;nothing&#x27; in small",
        ),
        ({"links": "code ftp://example.org"}, 422, "an address begins with https:// or http://"),
    ):
        answer = send(browser, POOR, tag="third", **fields)
        assert (answer.status_code, Run.objects.count()) == (status, 2)
        ((name, text),) = fields.items()
        html = answer.content.decode()
        assert (
            says.lower() in html.partition(f'id="{name}-hint"')[2].partition("</span>")[0].lower()
        )
        assert f"{text.strip()}</textarea>" in html
        assert '<details id="one-lineage" class="full" open>' in html
        several = send_several(browser, {"a": GOOD, "b": POOR}, **fields)
        assert (several.status_code, "choose one file" in several.content.decode()) == (400, True)


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
    token = re.search(
        r'csrfmiddlewaretoken" value="(\w+)"', browser.get("/tokens/").content.decode()
    )
    assert token
    fields = {"action": "create", "name": "x", "scopes": "read", "csrfmiddlewaretoken": token[1]}
    assert browser.post("/tokens/", fields).status_code == 201


def test_requests_of_a_page_count_as_the_users(
    browser: Client, collection: str, settings: Any
) -> None:
    settings.EVALHUB_USER_RATE = 2
    codes = [browser.get(PATH).status_code for _ in range(5)]
    assert codes.count(429) >= 2


def test_a_token_is_shown_once_and_works(browser: Client) -> None:
    answer = browser.post(
        "/tokens/",
        {"action": "create", "name": "laptop", "scopes": ["read", "submit"], "days": "90"},
    )
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    match = re.search(r"evh_[0-9a-f]{8}_[\w-]+", answer.content.decode())
    assert match
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {match[0]}")
    assert api.get("/api/v1/teams/").status_code == 200
    token = ApiToken.objects.get(name="laptop")
    assert token.expires_at
    assert (token.expires_at - token.created_at).days in (89, 90)
    assert match[0] not in page(browser, "/tokens/")
    revoked = browser.post("/tokens/", {"action": "revoke", "key": token.key})
    assert revoked.status_code == 303
    assert api.get("/api/v1/teams/").status_code == 401


@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"name": "x", "scopes": ["all"]}, {"name": "x", "days": "7"}]
)
def test_a_token_that_cannot_be_made_says_why(browser: Client, fields: dict[str, Any]) -> None:
    answer = browser.post("/tokens/", {"action": "create", "scopes": ["read"], **fields})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert browser.post("/tokens/", {"action": "revoke", "key": "00000000"}).status_code == 404
