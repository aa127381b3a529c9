"""Logging in through an OpenID Connect provider: whom it lets in, and what it refuses."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from django.contrib.auth import get_user
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from evalhub.environment import check_provider
from runs.errors import Conflict
from runs.models import AuditEvent, Mail, ProviderAccount, Team, User
from runs.services.accounts.provider_accounts import (
    Identity,
    create_with_provider,
    link_provider,
    unlink_provider,
)
from tests.conftest import client_of
from tests.openid_provider import Provider, openid_provider, unsigned
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.django_db
SECRET = "correct horse battery"
START, CALLBACK = "/login/organisation/", "/login/organisation/callback/"
NEW = "/login/organisation/new/"


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    with openid_provider(settings) as server:
        yield server


def begin(browser: Client, provider: Provider, address: str = "") -> str:
    """Return the path of the callback, after a person logged in at the provider."""
    answer = browser.get(START, {"next": address} if address else {})
    assert answer.status_code == 302, answer.content
    target = urlsplit(answer["Location"])
    assert f"{target.scheme}://{target.netloc}{target.path}" == f"{provider.issuer}/authorize"
    back = urlsplit(provider.authorize(dict(parse_qsl(target.query))))
    return f"{back.path}?{back.query}"


def log_in(browser: Client, provider: Provider, address: str = "") -> str:
    """Log in, and return where the browser is led."""
    answer = browser.get(begin(browser, provider, address))
    assert answer.status_code == 303
    assert (answer["Cache-Control"], answer["Referrer-Policy"]) == ("no-store", "same-origin")
    return answer["Location"]


def user_of(browser: Client) -> str:
    return get_user(browser).get_username()  # type: ignore[arg-type]


def refusal(browser: Client, address: str) -> str:
    """Return the sentence of the page to which a refused login leads."""
    assert urlsplit(address).path == "/login/", address
    return text_of(page(browser, address))


def test_the_first_login_creates_an_account_and_the_next_one_finds_it(provider: Provider) -> None:
    browser = Client()
    assert log_in(browser, provider, "/campaigns/") == NEW
    assert not User.objects.exists()
    assert 'value="ada"' in browser.get(NEW).content.decode()

    answer = browser.post(NEW, {"username": "ada.l"})
    assert (answer.status_code, answer["Location"]) == (303, "/campaigns/")
    ada = User.objects.get()
    assert (ada.username, ada.email, ada.is_staff) == ("ada.l", "ada@lab.example", False)
    assert not ada.has_usable_password()
    assert user_of(browser) == "ada.l"
    actions = list(AuditEvent.objects.order_by("pk").values_list("action", "object_id"))
    assert actions == [("user.created", "ada.l"), ("provider.linked", "ada.l")]

    # The provider renamed the person, and the address now belongs to another one.
    provider.person = {**provider.person, "email": "new@lab.example", "preferred_username": "x"}
    other = Client()
    assert log_in(other, provider, "/campaigns/") == "/campaigns/"
    assert user_of(other) == "ada.l"
    provider.person = {**provider.person, "sub": "eve-2", "email": "ada@lab.example"}
    assert log_in(Client(), provider) == NEW


def test_an_equal_address_takes_over_no_account(provider: Provider) -> None:
    User.objects.create_superuser("ada", "ada@lab.example", SECRET)
    browser = Client()
    assert log_in(browser, provider) == NEW
    assert browser.post(NEW, {"username": "ada"}).status_code == 409
    assert not get_user(browser).is_authenticated  # type: ignore[arg-type]
    assert browser.post(NEW, {"username": "ada2"}).status_code == 303
    assert not User.objects.get(username="ada2").is_superuser


def test_the_owner_of_an_account_links_it_and_unlinks_it(provider: Provider) -> None:
    ada = User.objects.create_user("ada", "", SECRET)
    browser = Client()
    assert log_in(browser, provider) == NEW
    # As the page offers it: the password first.
    answer = browser.post("/login/", {"username": "ada", "password": SECRET, "next": NEW})
    assert (answer.status_code, answer["Location"]) == (302, NEW)
    assert not ProviderAccount.objects.exists()
    assert "Link it to ada" in text_of(page(browser, NEW))
    assert browser.post(NEW).status_code == 303
    assert ProviderAccount.objects.get().user == ada

    other = Client()
    log_in(other, provider)
    assert user_of(other) == "ada"
    # Another user cannot take it.
    eve = Client()
    eve.force_login(User.objects.create_user("eve"))
    assert log_in(eve, provider, "/campaigns/") == "/account/"
    assert user_of(eve) == "eve"

    account = ProviderAccount.objects.get()
    form = {"action": "unlink", "provider_account": str(account.pk)}
    assert eve.post("/account/", form).status_code == 404
    assert other.post("/account/", form).status_code == 200
    assert not ProviderAccount.objects.exists()
    events = AuditEvent.objects.filter(action__startswith="provider.").order_by("pk")
    assert [event.action for event in events] == ["provider.linked", "provider.unlinked"]


def test_the_only_way_into_an_account_stays(provider: Provider) -> None:
    user = create_with_provider(identity=Identity(provider.issuer, "ada-1"), username="ada")
    with pytest.raises(Conflict, match="alone"):
        unlink_provider(user=user, key=str(ProviderAccount.objects.get().pk))
    browser = Client()
    browser.force_login(user)
    assert "Change your password" not in text_of(page(browser, "/account/"))
    answer = browser.post("/account/", {"action": "password", "new_password1": SECRET})
    assert answer.status_code == 403


def test_an_invitation_is_accepted_after_a_login(provider: Provider, settings: Any) -> None:
    root = User.objects.create_superuser("root", "", SECRET)
    Team.objects.create(slug="lab", name="Lab")
    answer = client_of(root).post("/api/v1/account-invitations/", {"team": "lab"}, format="json")
    path = answer.json()["url"].removeprefix("https://eval.example.org")
    settings.EVALHUB_PASSWORD_LOGIN = False
    browser = Client()
    assert "Create an account" not in text_of(page(browser, path))
    assert log_in(browser, provider, path) == NEW
    answer = browser.post(NEW, {"username": "ada"})
    assert answer["Location"] == path
    code = dict(parse_qsl(urlsplit(path).query))["code"]
    assert browser.post("/join/", {"code": code}).status_code == 303
    assert Team.objects.get(slug="lab").memberships.get().user.username == "ada"


def with_claims(**changes: Any) -> Callable[[Provider], None]:
    def lie(provider: Provider) -> None:
        provider.change = lambda claims: {
            name: value for name, value in {**claims, **changes}.items() if value is not None
        }

    return lie


def with_token(make: Callable[[Provider, dict[str, Any]], str]) -> Callable[[Provider], None]:
    def lie(provider: Provider) -> None:
        provider.sign = lambda claims: make(provider, claims)

    return lie


def _tampered(provider: Provider, claims: dict[str, Any]) -> str:
    head, _, signature = provider.signed(claims).split(".")
    _, body, _ = provider.signed({**claims, "sub": "root"}).split(".")
    return f"{head}.{body}.{signature}"


LIES = {
    "another issuer": with_claims(iss="https://evil.example"),
    "no issuer": with_claims(iss=None),
    "another audience": with_claims(aud="other"),
    # The authorised party is this client; the audience still is not.
    "another audience for this party": with_claims(aud="other", azp="evalhub"),
    "another party": with_claims(aud=["evalhub", "other"], azp="other"),
    "expired": with_claims(exp=int(time.time()) - 60),
    "no end": with_claims(exp=None),
    "from the future": with_claims(nbf=int(time.time()) + 3600),
    "another nonce": with_claims(nonce="other"),
    "no nonce": with_claims(nonce=None),
    "no subject": with_claims(sub=None),
    "empty subject": with_claims(sub=""),
    "subject that is no text": with_claims(sub=["ada-1"]),
    "long subject": with_claims(sub="a" * 256),
    "unsigned": with_token(lambda provider, claims: unsigned(claims)),
    "signed with the public key": with_token(Provider.signed_with_public_key),
    "changed after signing": with_token(_tampered),
    "no token": with_token(lambda provider, claims: ""),
    "no JWT": with_token(lambda provider, claims: "a.b"),
}


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_tokens_that_are_not_valid_log_nobody_in(
    lie: Callable[[Provider], None], provider: Provider
) -> None:
    create_with_provider(identity=Identity(provider.issuer, "ada-1"), username="ada")
    lie(provider)
    browser = Client()
    address = log_in(browser, provider)
    assert "Lab login sent a login" in refusal(browser, address)
    assert not get_user(browser).is_authenticated  # type: ignore[arg-type]
    assert "_auth_user_id" not in browser.session
    assert browser.get(NEW).status_code == 303

    # The same person gets in with a true token.
    provider.change, provider.sign = (lambda claims: claims), provider.signed
    log_in(browser, provider)
    assert user_of(browser) == "ada"


def test_a_state_is_used_once_and_in_one_browser(provider: Provider) -> None:
    create_with_provider(identity=Identity(provider.issuer, "ada-1"), username="ada")
    browser, thief = Client(), Client()
    callback = begin(browser, provider)
    address = thief.get(callback)["Location"]
    assert "began in another browser" in refusal(thief, address)
    assert browser.get(callback)["Location"] == "/"
    assert user_of(browser) == "ada"

    browser.post("/logout/")
    address = browser.get(callback)["Location"]
    assert "was used already" in refusal(browser, address)
    assert not get_user(browser).is_authenticated  # type: ignore[arg-type]
    for query in ("", "?state=x&code=y", "?code=y", "?state=&code="):
        assert "was used already" in refusal(browser, browser.get(CALLBACK + query)["Location"])


def test_a_code_with_another_state_is_not_exchanged(provider: Provider) -> None:
    """The code of one login in the callback of another: the verifier is that of the other one."""
    browser = Client()
    first = dict(parse_qsl(urlsplit(begin(browser, provider)).query))
    second = dict(parse_qsl(urlsplit(begin(browser, provider)).query))
    answer = browser.get(CALLBACK, {"code": first["code"], "state": second["state"]})
    assert "declined the login" in refusal(browser, answer["Location"])


def test_what_the_provider_declines_is_said_in_our_words(provider: Provider) -> None:
    browser = Client()
    begin(browser, provider)
    query = {"error": "access_denied", "error_description": "call +1 555 evil", "state": "x"}
    text = refusal(browser, browser.get(CALLBACK, query)["Location"])
    assert "Lab login declined the login" in text
    assert "555" not in text


def test_a_provider_that_is_another_or_away_is_named(provider: Provider, settings: Any) -> None:
    provider.description = {"issuer": "https://evil.example"}
    browser = Client()
    answer = browser.get(START, {"next": "/campaigns/"})
    assert answer["Location"] == "/login/?next=%2Fcampaigns%2F"
    assert "Lab login does not answer" in refusal(browser, answer["Location"])

    provider.description = {}
    callback = begin(browser, provider)
    settings.EVALHUB_OIDC_ISSUER = "http://127.0.0.1:9"
    assert "does not answer" in refusal(browser, browser.get(callback)["Location"])


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_a_login_leads_to_this_server_alone(address: str, provider: Provider) -> None:
    create_with_provider(identity=Identity(provider.issuer, "ada-1"), username="ada")
    assert log_in(Client(), provider, address) == "/"


@pytest.mark.parametrize(
    ("person", "enters"),
    [
        ({}, True),
        ({"email": "ada@LAB.example"}, True),
        ({"email": "ada@sub.lab.example"}, False),
        ({"email": "ada@lab.example.evil.example"}, False),
        ({"email_verified": False}, False),
        ({"email_verified": "true"}, False),
        ({"email_verified": None}, False),
        ({"email": None}, False),
    ],
)
def test_only_verified_addresses_of_the_domains_enter(
    person: dict[str, Any], enters: bool, provider: Provider, settings: Any
) -> None:
    settings.EVALHUB_OIDC_DOMAINS = ["lab.example"]
    with_claims(**person)(provider)
    browser = Client()
    address = log_in(browser, provider)
    assert (address == NEW) == enters
    if not enters:
        assert "verified mail address of lab.example" in refusal(browser, address)


@pytest.mark.parametrize(
    ("rule", "claims", "enters"),
    [
        ("groups=ir", {"groups": ["ir", "x"]}, True),
        ("groups=ir", {"groups": ["irx"]}, False),
        ("groups=ir", {"groups": "ir"}, True),
        ("groups=ir", {"groups": "ir x"}, False),
        ("groups=ir", {}, False),
        ("staff=true", {"staff": True}, True),
        ("staff=true", {"staff": False}, False),
    ],
)
def test_a_claim_must_hold_at_every_login(
    rule: str, claims: dict[str, Any], enters: bool, provider: Provider, settings: Any
) -> None:
    create_with_provider(identity=Identity(provider.issuer, "ada-1"), username="ada")
    settings.EVALHUB_OIDC_CLAIM = rule
    with_claims(**claims)(provider)
    browser = Client()
    address = log_in(browser, provider)
    assert (address == "/") == enters
    assert get_user(browser).is_authenticated == enters  # type: ignore[arg-type]


def test_claims_come_from_the_user_info_of_the_same_subject(provider: Provider) -> None:
    with_claims(email=None, email_verified=None)(provider)
    provider.user_info = {"sub": "ada-1", "email": "ada@lab.example", "email_verified": True}
    browser = Client()
    log_in(browser, provider)
    browser.post(NEW, {"username": "ada"})
    assert User.objects.get().email == "ada@lab.example"

    provider.user_info = {**provider.user_info, "sub": "eve-2"}
    other = Client()
    assert "sent a login" in refusal(other, log_in(other, provider))


def test_a_disabled_account_stays_out(provider: Provider) -> None:
    identity = Identity(provider.issuer, "ada-1")
    user = create_with_provider(identity=identity, username="ada")
    User.objects.filter(pk=user.pk).update(is_active=False)
    browser = Client()
    assert "is disabled" in refusal(browser, log_in(browser, provider))


def test_two_first_logins_at_once_make_one_account(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity(provider.issuer, "ada-1")
    first = create_with_provider(identity=identity, username="ada")
    # The second request looked before the first one was stored.
    looks = iter([None])
    module = "runs.services.accounts.provider_accounts"
    monkeypatch.setattr(f"{module}.find_user", lambda identity: next(looks, first))
    for username in ("ada", "ada2"):
        looks = iter([None])
        assert create_with_provider(identity=identity, username=username) == first
    assert User.objects.count() == 1
    with pytest.raises(Conflict):
        link_provider(user=User.objects.create_user("eve"), identity=identity)


def test_passwords_can_be_left_to_administrators(provider: Provider, settings: Any) -> None:
    ada = User.objects.create_user("ada", "ada@lab.example", SECRET)
    User.objects.create_user("staff", "", SECRET, is_staff=True)
    User.objects.create_superuser("root", "", SECRET)
    before = Client()
    before.force_login(ada)
    settings.EVALHUB_PASSWORD_LOGIN = False
    settings.EVALHUB_REGISTRATION = True
    settings.EVALHUB_MAIL_URL = "smtp://127.0.0.1:1"
    for name, path in (("ada", "/login/"), ("staff", "/login/"), ("staff", "/admin/login/")):
        browser = Client()
        answer = browser.post(path, {"username": name, "password": SECRET})
        assert answer.status_code == 200
        assert not get_user(browser).is_authenticated  # type: ignore[arg-type]
    answer = Client().post("/login/", {"username": "ada", "password": SECRET})
    assert "Only administrators have a password of this server" in text_of(answer.content.decode())

    browser = Client()
    assert browser.post("/login/", {"username": "root", "password": SECRET}).status_code == 302
    assert user_of(browser) == "root"
    assert browser.get("/register/").status_code == 404
    # Sessions and tokens go on.
    assert before.get("/account/").status_code == 200
    assert client_of(ada).get("/api/v1/me/").status_code == 200
    Client().post("/forgotten-password/", {"email": "ada@lab.example"})
    assert Mail.objects.get().text == ""


def test_logins_are_limited_by_address(provider: Provider, settings: Any) -> None:
    settings.EVALHUB_LOGIN_RATE = 3
    statuses = [Client().get(START).status_code for _ in range(2)]
    statuses += [Client().get(CALLBACK).status_code for _ in range(2)]
    assert statuses == [302, 302, 303, 429]
    assert Client().post(NEW, {"username": "x"}).status_code == 429


def test_the_login_refuses_a_parameter_that_it_does_not_read(provider: Provider) -> None:
    """The callback takes any: providers add their own."""
    answer = Client().get(START, {"nonsense": "1"})
    assert answer.status_code == 400
    assert "Unknown parameter &#x27;nonsense&#x27;; " in answer.content.decode()

    browser = Client()
    callback = begin(browser, provider)
    assert browser.get(f"{callback}&session_state=1").status_code == 303


def test_a_server_without_a_provider_has_no_such_login() -> None:
    for path in (START, CALLBACK):
        assert Client().get(path).status_code == 404
    assert Client().post(NEW, {"username": "x"}).status_code == 303
    assert not User.objects.exists()
    assert "Log in with" not in text_of(page(Client(), "/login/"))


def test_the_button_keeps_where_to_go(provider: Provider) -> None:
    content = Client().get("/login/", {"next": "/campaigns/?a=1&b=2"}).content.decode()
    assert 'href="/login/organisation/?next=%2Fcampaigns%2F%3Fa%3D1%26b%3D2"' in content
    assert "Log in with Lab login" in text_of(content)


WORKING = {
    "issuer": "https://login.example.org",
    "client_id": "evalhub",
    "client_secret": "secret",
    "claim": "",
    "url": "https://eval.example.org",
}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"issuer": "http://login.example.org"}, "https://"),
        ({"issuer": "login.example.org"}, "https://"),
        ({"issuer": ""}, "EVALHUB_OIDC_ISSUER is the address"),
        ({"client_id": ""}, "EVALHUB_OIDC_CLIENT_ID"),
        ({"client_secret": ""}, "EVALHUB_OIDC_CLIENT_SECRET"),
        ({"url": ""}, "EVALHUB_URL"),
        ({"claim": "groups"}, "groups=retrieval"),
        ({"claim": "groups="}, "groups=retrieval"),
    ],
)
def test_settings_that_do_not_work_are_refused(changes: dict[str, str], problem: str) -> None:
    check_provider(**WORKING)
    check_provider(**{**WORKING, "issuer": "http://127.0.0.1:9000", "claim": "a=b=c"})
    with pytest.raises(ImproperlyConfigured, match=problem):
        check_provider(**{**WORKING, **changes})


@pytest.mark.slow
def test_another_program_logs_people_in(settings: Any, provider: Provider) -> None:
    """oidc-provider-mock, a provider by other people, over HTTP and with its own form."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    issuer = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            try:
                httpx.get(f"{issuer}/.well-known/openid-configuration")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        settings.EVALHUB_OIDC_ISSUER = issuer
        claims = {"email": "ada@lab.example", "email_verified": True}
        httpx.put(f"{issuer}/users/ada-1", json=claims).raise_for_status()

        browser = Client()
        for _ in range(2):
            target = browser.get(START)["Location"]
            answer = httpx.post(target, data={"sub": "ada-1"})
            back = urlsplit(answer.headers["Location"])
            assert f"{back.scheme}://{back.netloc}" == "https://eval.example.org"
            answer = browser.get(f"{back.path}?{back.query}")
            if answer["Location"] == NEW:
                browser.post(NEW, {"username": "ada"})
                browser.post("/logout/")
        assert user_of(browser) == "ada"
        account = ProviderAccount.objects.get()
        assert (account.issuer, account.subject) == (issuer, "ada-1")
        assert account.user.email == "ada@lab.example"
    finally:
        process.terminate()
        process.wait()
