"""Tokens: scopes, where they may be written, guessing them (cases A12, A13, A14, A28)."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from rest_framework.settings import api_settings
from rest_framework.test import APIClient

from runs.models import ALL_SCOPES, ApiToken, AuditEvent, Collection, Membership, Run, Team, User
from runs.services.audit import rates
from runs.web.conditions import KnownConditions
from runs.web.parameters import KnownParameters
from runs.web.permissions import Scoped
from tests.conftest import GOOD, client_of, upload
from tests.web.access.addresses import patterns

pytestmark = pytest.mark.words

SECRET = "evh_01234567_" + "s" * 43


def test_a_token_reads_and_submits_unless_told_otherwise(api: APIClient, alice: User) -> None:
    token = api.post("/api/v1/tokens/", {"name": "x"}).json()
    assert token["scopes"] == ["read", "submit"]
    assert api.post("/api/v1/tokens/", {"name": "x", "scopes": ["manage", "manage"]}).json()[
        "scopes"
    ] == ["manage"]
    for scopes in ([], ["own"], "read", None):
        assert api.post("/api/v1/tokens/", {"name": "x", "scopes": scopes}).status_code == 400, (
            scopes
        )


@pytest.mark.parametrize("scope", ALL_SCOPES)
def test_a_token_does_what_its_scope_says(alice: User, collection: str, scope: str) -> None:
    """A14: the scopes do not include each other."""
    client = client_of(alice, [scope])
    answers = {
        "read": client.get("/api/v1/collections/small/leaderboard/"),
        "submit": upload(client, "collections/small/runs/", GOOD),
        "manage": client.patch("/api/v1/collections/small/", {"name": "x"}),
    }
    for needed, answer in answers.items():
        assert (answer.status_code < 400) == (needed == scope), (needed, answer.content)
        assert needed == scope or answer.json()["code"] == "missing_scope"
    assert Run.objects.count() == (scope == "submit")
    assert Collection.objects.get().name == ("x" if scope == "manage" else "Small")


def test_a_token_makes_none_that_is_more_than_itself(alice: User) -> None:
    soon = timezone.now() + timedelta(days=1)
    _, text = ApiToken.objects.issue(user=alice, name="x", scopes=["manage"], expires_at=soon)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    body = {"name": "y", "scopes": ["manage"], "expires_at": soon.isoformat()}
    assert (
        client.post("/api/v1/tokens/", {**body, "scopes": ["read", "manage"]}).json()["code"]
        == "missing_scope"
    )
    assert (
        client.post("/api/v1/tokens/", {**body, "expires_at": None}).json()["code"] == "not_allowed"
    )
    assert client.post("/api/v1/tokens/", body).status_code == 201
    assert ApiToken.objects.count() == 2


@pytest.mark.queries
def test_a_token_ends_with_the_one_that_made_it(alice: User) -> None:
    """However long the chain, whoever ends it, and none beside it."""

    def with_token(text: str) -> APIClient:
        return APIClient(headers={"Authorization": f"Bearer {text}"})

    beside, text = (
        ApiToken.objects.issue(user=alice, name="x", scopes=["manage"])[1] for _ in range(2)
    )
    texts = [text]
    for _ in range(3):
        answer = with_token(texts[-1]).post("/api/v1/tokens/", {"name": "y", "scopes": ["manage"]})
        assert answer.status_code == 201
        texts.append(answer.json()["token"])
    assert with_token(beside).delete(f"/api/v1/tokens/{texts[1].split('_')[1]}/").status_code == 204
    assert [ApiToken.objects.find(text) is not None for text in (beside, *texts)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert AuditEvent.objects.filter(action="token.revoked").count() == 3
    # Beside the account's own session, which makes tokens that belong to none.
    browser = Client()
    browser.force_login(alice)
    browser.post("/tokens/", {"name": "z", "scopes": ["read"]})
    assert ApiToken.objects.get(name="z").maker is None


@pytest.mark.queries
def test_the_command_makes_tokens_with_scopes(
    alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("create_token", "alice", scope=["manage"], days=3)
    call_command("create_token", "alice")
    texts = capsys.readouterr().out.split()
    assert [ApiToken.objects.find(text).scopes for text in texts] == [
        ["manage"],
        ["read", "submit"],
    ]  # type: ignore[union-attr]
    with pytest.raises(CommandError):
        call_command("create_token", "alice", "--scope", "own")


def test_every_view_of_the_api_is_under_the_one_permission() -> None:
    """A view may say what it needs, never who decides; what is not named is refused."""
    assert list(api_settings.DEFAULT_PERMISSION_CLASSES) == [
        Scoped,
        KnownParameters,
        KnownConditions,
    ]
    for pattern in patterns():
        view: Any = getattr(pattern.callback, "cls", None)
        if view is None:
            continue
        assert view.permission_classes == [Scoped, KnownParameters, KnownConditions], pattern.name
        writing = {
            method.upper() for method in ("post", "put", "patch", "delete") if hasattr(view, method)
        }
        assert writing == set(getattr(view, "scopes", {})), pattern.name


def test_what_a_view_does_not_name_is_refused_to_everybody(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.api.accounts.accounts.TeamList.scopes", {})
    answer = api.post("/api/v1/teams/", {"slug": "x", "name": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


@pytest.mark.parametrize(
    "query",
    [
        f"x={SECRET}",
        f"{SECRET}",
        "token=abc",
        "a=1&access_token=",
        "API_KEY=x",
        "x=evh%5F01234567%5Fabc",
        "a=1;token=b",
    ],
)
def test_a_token_in_an_address_is_refused_and_not_logged(
    api: APIClient, collection: str, query: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A13."""
    with caplog.at_level(logging.DEBUG):
        answer = api.get(f"/api/v1/collections/?{query}")
        page = api.get(f"/?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "token_in_address")
    assert (page.status_code, page["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert "sss" not in caplog.text + answer.content.decode() + page.content.decode()
    # What a server in front of Django would log is gone as well.
    assert answer.wsgi_request.META["QUERY_STRING"] == ""
    assert answer.wsgi_request.META["RAW_URI"] == "/api/v1/collections/"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/tokens/{0}/",
        "/api/v1/runs/{0}/",
        "/api/v1/collections/{0}/",
        "/{0}",
        "/tokens/{0}/",
        "/static/{0}.css",
    ],
)
@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_a_token_in_a_path_is_refused_and_not_repeated(
    api: APIClient, path: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A13."""
    with caplog.at_level(logging.DEBUG):
        answer = getattr(api, method)(path.format(SECRET))
    assert answer.status_code == 400
    assert "sss" not in caplog.text + answer.content.decode()
    assert answer["Cache-Control"] == "private, no-cache"
    assert {"Authorization", "Cookie"} <= set(answer["Vary"].split(", "))
    if path.startswith("/api/"):
        assert answer.json()["code"] == "token_in_address"
    assert "sss" not in str(
        {name: answer.wsgi_request.META[name] for name in ("PATH_INFO", "RAW_URI", "REQUEST_URI")}
    )


@pytest.mark.queries
def test_an_innocent_address_is_not_refused(api: APIClient, collection: str) -> None:
    assert api.get("/api/v1/collections/small/runs/?tag=token&team=evh_x").status_code == 200


def test_guessing_tokens_is_slowed_down(
    alice: User, collection: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A12: exactly as many tries in a minute as are allowed."""
    settings.EVALHUB_LOGIN_RATE = 20
    client = APIClient()
    codes: list[int] = []
    minute = 1_000_000
    monkeypatch.setattr(rates, "time", SimpleNamespace(time=lambda: 60.0 * minute + 15))
    for number in range(25):
        client.credentials(HTTP_AUTHORIZATION=f"Bearer evh_{number:08x}_wrong")
        codes.append(client.get("/api/v1/measures/AP/").status_code)
    assert codes == [401] * 20 + [429] * 5
    answer = client.get("/api/v1/measures/AP/")
    assert (answer.status_code, answer.json()["code"]) == (429, "throttled")
    assert int(answer["Retry-After"]) in (45, 46)
    # Whoever has a token that works is not locked out by a neighbour, nor is anybody from
    # elsewhere.
    assert client_of(alice).get("/api/v1/teams/").status_code == 200
    assert client.get("/api/v1/measures/AP/", REMOTE_ADDR="192.0.2.7").status_code == 401
    minute += 1
    assert client.get("/api/v1/measures/AP/").status_code == 401


def test_guessing_passwords_is_slowed_down(alice: User, settings: Any) -> None:
    """A12: and nothing tells an account from none."""
    settings.EVALHUB_LOGIN_RATE = 3
    browser = Client()
    answers = [
        browser.post("/admin/login/", {"username": name, "password": "x"})
        for name in ("alice", "nobody")
        for _ in range(4)
    ]
    assert [answer.status_code for answer in answers[:3]] == [200] * 3
    assert 2 <= [answer.status_code for answer in answers].count(429) <= 5
    assert "nobody" not in answers[0].content.decode()


def test_guessing_the_password_of_one_account_from_many_addresses_is_slowed_down(
    alice: User, bob: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever spelling of the name the form reads as the same, and whether there is such an account or not."""
    settings.EVALHUB_LOGIN_RATE = 5
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    for name, other in (("alice", "\uff41lice "), ("nobody", " nobody")):
        codes = [
            Client()
            .post("/login/", {"username": spelt, "password": "x"}, REMOTE_ADDR=f"192.0.2.{number}")
            .status_code
            for number, spelt in enumerate([name, other] * 5)
        ]
        assert codes == [200] * 5 + [429] * 5
    bob.set_password("right password")
    bob.save()
    sent = {"username": "bob", "password": "right password"}
    assert Client().post("/login/", sent, REMOTE_ADDR="192.0.2.1").status_code == 302


def test_an_account_cannot_be_told_from_none_at_login(alice: User) -> None:
    alice.set_password("right password")
    alice.save()
    pages = []
    for name in ("alice", "xxxxx"):
        answer = Client().post("/admin/login/", {"username": name, "password": "wrong"})
        text = re.sub(
            r'(csrfmiddlewaretoken" value=")\w+', r"\1", answer.content.decode().replace(name, "")
        )
        pages.append(text[text.index("errornote") :])
    assert pages[0] == pages[1]


@pytest.mark.queries
def test_nobody_exists_by_default(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A28: the first secrets are made, printed once, and stored as hashes."""
    assert not User.objects.exists()
    assert not ApiToken.objects.exists()
    printed = []
    for name in ("first", "second"):
        call_command("create_admin", name)
        printed.append(
            [line.split(":")[1].strip() for line in capsys.readouterr().out.splitlines()[1:]]
        )
    assert len({secret for secrets in printed for secret in secrets}) == 4
    for user, (password, token) in zip(User.objects.order_by("pk"), printed, strict=True):
        assert user.check_password(password)
        assert password not in user.password
        assert token.split("_", 2)[2] not in ApiToken.objects.get(user=user).digest
    for command in ("create_admin", "create_user"):
        with pytest.raises(CommandError, match="there is a user 'first' already"):
            call_command(command, "first")


@pytest.mark.queries
def test_an_ordinary_user_is_created_on_the_command_line(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("create_user", "dana")
    name, password, token = (
        line.split(":", 1)[1].strip() for line in capsys.readouterr().out.splitlines()
    )
    user = User.objects.get(username=name)
    assert (user.is_staff, user.is_superuser, user.personal_team.slug) == (False, False, "dana")
    assert user.check_password(password)
    assert ApiToken.objects.find(token) == ApiToken.objects.get(
        user=user, scopes=["read", "submit"]
    )
    assert AuditEvent.objects.get(action="user.created").after == {"is_superuser": False}


@pytest.mark.parametrize("name", ["", "two words", "x" * 151])
def test_what_is_no_user_name_creates_no_account(db: None, name: str) -> None:
    with pytest.raises(CommandError, match="user name"):
        call_command("create_user", name)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("path", "accept"),
    [("docs/", "text/html"), ("docs/", "*/*"), ("schema/", "*/*"), ("measures/", "*/*")],
)
def test_whoever_guesses_too_often_is_told_to_wait_everywhere(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, path: str, accept: str
) -> None:
    monkeypatch.setattr("time.time", lambda: 6_000_000_030.0)
    settings.EVALHUB_LOGIN_RATE = 1
    client = APIClient(headers={"Authorization": "Bearer evh_00000000_wrong", "Accept": accept})
    answers = [client.get(f"/api/v1/{path}") for _ in range(3)]
    assert answers[-1].status_code == 429
    assert (answers[-1].json()["code"], answers[-1]["Content-Type"]) == (
        "throttled",
        "application/problem+json",
    )


def test_a_token_says_whose_it_is_and_what_it_may_do(alice: User, anonymous: APIClient) -> None:
    lab = Team.objects.create(slug="lab", name="The lab")
    Membership.objects.create(team=lab, user=alice, role="member")
    body = client_of(alice, ["read"]).get("/api/v1/me/").json()
    assert body["username"] == "alice"
    assert [(team["slug"], team["role"]) for team in body["teams"]] == [
        ("alice", "owner"),
        ("lab", "member"),
    ]
    token = ApiToken.objects.get(user=alice)
    assert (body["token"]["key"], body["token"]["scopes"]) == (token.key, ["read"])
    assert token.digest not in str(body)
    browser = Client()
    browser.force_login(alice)
    assert browser.get("/api/v1/me/").json()["token"] is None
    assert anonymous.get("/api/v1/me/").status_code == 401


def test_an_answer_with_a_new_token_is_not_stored(api: APIClient) -> None:
    answer = api.post("/api/v1/tokens/", {"name": "laptop", "scopes": ["read"]}, format="json")
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
