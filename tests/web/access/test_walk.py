"""Who may do what: every address, every method, everybody (cases A1, A2 and A14).

What is expected follows from the views (`rules.py`): a new address needs no line here. A view that
does not say who may use it fails here with a sentence about it.
"""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import transaction
from django.urls.converters import IntConverter
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from runs.models import ALL_SCOPES, ApiToken, Collection, Run, SessionSet, User
from tests.conftest import client_of
from tests.web.access.addresses import ADDRESSES, API, CONSTANT, METHODS, PAGES, Address, patterns
from tests.web.access.bodies import BODIES
from tests.web.access.rules import (
    ALLOWED,
    HIDDEN,
    INSIDE,
    LOGIN,
    ROLES,
    WITHDRAWN,
    Unstated,
    expected,
    outcome,
    things_of,
)
from tests.web.access.world import ABSENT, World
from tests.web.worlds import body_of

# Its addresses are asked on PostgreSQL by test_hostile_requests and test_fuzz.
pytestmark = [pytest.mark.django_db, pytest.mark.words, pytest.mark.slow]

CSRF = re.compile(r'csrfmiddlewaretoken" value="\w+')
# What an address needs to be asked for anything.
QUERIES = {
    "agreement": "?with=2",
    "agreement-export": "?with=2",
    "agreement-page": "?with=2",
    "difference": "?runs={run},{other}",
    "pool-documents": "?topic=1",
    "suite-comparison": "?systems=guests/good,guests/poor",
    "suite-comparison-export": "?systems=guests/good,guests/poor",
    "suite-comparison-page": "?systems=guests/good,guests/poor",
    "run-ranking": "?topic=1",
    "run-states": "?id={run}",
    "reusability": "?depth=1",
    "reusability-export": "?depth=1",
    "reusability-page": "?depth=1",
    "topic": "?topic=1",
    "undecided": "?runs={run},{other}",
}
# Statuses of requests that were let through, but for which the world is not made.
UNREADY = {
    ("agreement", "GET"): 404,
    ("agreement-export", "GET"): 404,
    ("agreement-page", "GET"): 404,
    ("account-page", "POST"): 404,
    ("first-account-page", "POST"): 409,
    ("campaign-links", "POST"): 409,
    ("forgotten-password-page", "GET"): 404,
    ("forgotten-password-page", "POST"): 404,
    # Staff have no topics.
    ("judge-page", "POST"): 400,
    ("join-campaign-page", "GET"): 404,
    ("join-campaign-page", "POST"): 404,
    ("join-page", "POST"): 404,
    ("new-password-page", "GET"): 404,
    ("new-password-page", "POST"): 404,
    ("provider-login", "GET"): 404,
    ("provider-callback", "GET"): 404,
    ("register-page", "GET"): 404,
    ("register-page", "POST"): 404,
    ("manage-withdrawn-page", "POST"): 404,
    ("metrics", "GET"): 404,
    ("my-runs-page", "POST"): 404,
    ("packets", "GET"): 404,
    ("participant", "DELETE"): 400,
    ("phase-extend", "DELETE"): 400,
    ("readyz", "GET"): 503,
    ("rename-parameter-page", "POST"): 400,
    ("value-tables", "POST"): 422,
    ("value-tables-page", "POST"): 422,
}


def ask(
    world: World, client: Any, address: Address, method: str, path: str, body: Any = None
) -> tuple[int, str, str]:
    """Return status, target of a redirect and text of one answer, after which everything is as before."""
    name = address.name
    body = BODIES.get((name, method), dict)() if body is None else body
    cookies = copy.copy(client.cookies)
    with transaction.atomic():
        if name in PREPARED:
            PREPARED[name](world)
        if method in ("GET", "HEAD", "OPTIONS") or not isinstance(client, APIClient):
            answer = client.post(path, body) if method == "POST" else client.generic(method, path)
        else:
            form = "multipart" if "file" in body else "json"
            answer = getattr(client, method.lower())(path, body, format=form)
        text = body_of(answer).decode(errors="surrogateescape")
        transaction.set_rollback(True)
    client.cookies = cookies
    return answer.status_code, answer.get("Location", ""), text


def withdraw(world: World) -> None:
    for model, name in ((Run, "run"), (SessionSet, "session_set")):
        model.objects.filter(pk=world.values[name]).update(deleted_at=timezone.now())


PREPARED: dict[str, Callable[[World], None]] = dict.fromkeys(WITHDRAWN, withdraw)


def secrets_in(world: World, role: str, path: str, text: str) -> Iterator[str]:
    """Yield the words of an answer that its reader must not see, but for those of the request."""
    for word, seen in world.secrets.items():
        if role not in seen and word in text and word not in path:
            yield word


def without_names(world: World, text: str) -> str:
    """Return a refusal without the names of what is asked for, or is not there."""
    text = CSRF.sub("", unquote(html.unescape(text)))
    for name, absent in ABSENT.items():
        names = rf"{re.escape(str(world.values[name]))}|{re.escape(absent)}"
        text = re.sub(rf"(?<![\w-])({names})(?![\w-])", "<name>", text)
    return text


class Walk:
    """Asks addresses, and collects the sentences about what is answered otherwise than expected."""

    def __init__(self, world: World, *, private: bool = False) -> None:
        self.world, self.private = world, private
        self.wrong: list[str] = []
        self.requests = 0
        self.read: set[str] = set()
        self.compared: set[tuple[str, ...]] = set()

    def ask(self, address: Address, method: str, role: str) -> None:
        """Ask as somebody, and check the status and that nothing hidden is said."""
        where = f"{method} {address.name} as {role}"
        try:
            right = expected(address, method, role, private=self.private)
        except Unstated as unstated:
            self.wrong.append(f"{where}: {unstated}")
            return
        path = self.path(address, self.world.values)
        client = self.world.client(address, method, role)
        status, location, text = ask(self.world, client, address, method, path)
        self.requests += 1
        was = outcome(status, location)
        # A conflict is what comes after the access was checked.
        ready = UNREADY.get((address.name, method)) == status or (status == 409 and method != "GET")
        if right == ALLOWED and ready:
            was = ALLOWED
        if was != right:
            self.wrong.append(f"{where}: {status}, but the view says {right}")
        elif right == ALLOWED and status >= 400 and not ready:
            self.wrong.append(
                f"{where}: {status}, give it what it needs in BODIES or QUERIES: {text[:300]}"
            )
        body = str(BODIES.get((address.name, method), dict)())
        for word in secrets_in(self.world, role, path + body, text + location):
            self.wrong.append(f"{where}: says {word}")
        self.read |= {word for word in self.world.secrets if word in text}
        if right == HIDDEN:
            self.compare_with_absent(address, method, role, (status, text))

    def path(self, address: Address, values: dict[str, Any]) -> str:
        query = QUERIES.get(address.name, "").format(**self.world.values, other=self.world.other)
        return address.path(values) + query

    def compare_with_absent(
        self, address: Address, method: str, role: str, hidden: tuple[int, str]
    ) -> None:
        """Check that what is hidden is answered as what nobody has, but for its name: once for all
        who do not see the same."""
        things = things_of(address, private=self.private)
        unseen = [name for name, thing in things.items() if role not in thing.seen]
        request = (address.name, method, str(role == "anonymous"), *unseen)
        if request in self.compared:
            return

        self.compared.add(request)
        values = {**self.world.values, **{name: ABSENT[name] for name in unseen}}
        client = self.world.client(address, method, role)
        status, _, text = ask(self.world, client, address, method, self.path(address, values))
        self.requests += 1
        if (status, without_names(self.world, text)) != (
            hidden[0],
            without_names(self.world, hidden[1]),
        ):
            self.wrong.append(
                f"{method} {address.name} as {role}: what is hidden is told apart from what is not there"
            )


def readers_of(address: Address, method: str) -> Iterable[str]:
    """Return who asks: of what is the same for all, nobody, a team and another one."""
    try:
        same = {expected(address, method, role) for role in ROLES} == {ALLOWED}
    except Unstated:
        same = False
    few = same and method == "GET" and (address.parameters or address.name in CONSTANT)
    return ROLES[:3] if few else ROLES


def test_every_address_answers_everybody_as_its_view_says(world: World) -> None:
    """With tokens that have one scope: the one that the method needs."""
    walk = Walk(world)
    for address in ADDRESSES.values():
        for method in address.methods:
            for role in readers_of(address, method):
                walk.ask(address, method, role)
    assert not walk.wrong, "\n".join(walk.wrong)
    assert walk.read == set(world.secrets)
    assert walk.requests > 1500


def test_what_is_hidden_is_answered_as_what_is_not_there(world: World) -> None:
    """In a private collection: to the team of its runs, to a member of the team that owns it, and to nobody."""
    Collection.objects.filter(slug="one").update(visibility="private")
    walk = Walk(world, private=True)
    for address in (address for address in ADDRESSES.values() if INSIDE & set(address.parameters)):
        for method in address.methods:
            walk.ask(address, method, "member")
            if method == "GET":
                walk.ask(address, method, "owner" if len(address.name) % 4 == 0 else "participant")
        if "GET" in address.methods:
            client = world.client(address, "GET", "anonymous")
            head = ask(world, client, address, "HEAD", address.path(world.values))
            hidden = expected(address, "GET", "anonymous", private=True) == HIDDEN
            if (outcome(*head[:2]), head[2]) != (HIDDEN if hidden else LOGIN, ""):
                walk.wrong.append(f"HEAD {address.name}: {head[0]} {head[2][:200]}")
    assert not walk.wrong, "\n".join(walk.wrong)


def test_each_scope_opens_its_own_methods_and_no_others(world: World) -> None:
    """What a token with the one scope opens, one that has all but this does not; staff may do everything else."""
    others = {
        scope: client_of(world.people.users["staff"], set(ALL_SCOPES) - {scope})
        for scope in ALL_SCOPES
    }
    wrong = []
    for address, method in requests_to(API):
        client = others[address.scope(method)]
        status, _, text = ask(world, client, address, method, address.path(world.values))
        if (status, code_in(text)) != (403, "missing_scope"):
            wrong.append(f"{method} {address.name} without {address.scope(method)}: {status}")
    assert not wrong, "\n".join(wrong)


def test_a_token_that_has_ended_opens_nothing_that_is_open(world: World) -> None:
    """One answer to all kinds, by turns: also where no token at all would do."""
    ends: dict[str, dict[str, Any]] = {
        "expired": {"expires_at": timezone.now() - timedelta(seconds=1)},
        "revoked": {"revoked_at": timezone.now() - timedelta(seconds=1)},
        "unknown": {"key": "00000000"},
        "disabled": {},
    }
    clients = []
    for name, columns in ends.items():
        user = User.objects.create_user(name, is_staff=True, is_active=name != "disabled")
        clients.append(client_of(user))
        ApiToken.objects.filter(user=user).update(**columns)
    for number, (address, method) in enumerate(requests_to(API)):
        client = clients[number % len(clients)]
        status, _, text = ask(world, client, address, method, address.path(world.values))
        assert (status, code_in(text)) == (401, "authentication_failed"), (method, address.name)


def test_a_disabled_accounts_browser_is_nobodys(world: World) -> None:
    User.objects.filter(username="owner").update(is_active=False)
    for address, method in requests_to(PAGES):
        if method == "GET" and address.is_signed_in("GET"):
            browser = world.people.browsers["owner"]
            answer = ask(world, browser, address, method, address.path(world.values))
            assert outcome(*answer[:2]) == LOGIN, (method, address.name)


def test_no_other_method_does_anything(world: World) -> None:
    """OPTIONS nowhere, and by turns another method that the address does not have."""
    for number, address in enumerate(ADDRESSES.values()):
        refused = [method for method in METHODS if method not in address.methods]
        method = refused[number % len(refused)] if number % 2 else "OPTIONS"
        client = world.client(address, method, "staff")
        status = ask(world, client, address, method, address.path(world.values))[0]
        assert status == 405, (method, address.name)


def test_the_administration_is_closed_to_all_but_staff(world: World) -> None:
    tables = ["user", "collection", "auditevent", "qrels"]
    for path in ("", "jsi18n/", "metrics/evaluation/", *(f"runs/{table}/" for table in tables)):
        for role in ROLES:
            answer = world.people.browsers[role].get(f"/admin/{path}")
            opened = outcome(answer.status_code, answer.get("Location", "")[6:]) == ALLOWED
            assert opened == (role == "staff"), (role, path)


def test_a_foreign_run_in_a_comparison_is_unknown(world: World) -> None:
    """A2: the id of a run that may not be seen says no more than an id that nobody has."""
    hidden = str(Run.objects.get(tag="owner-in-secret-collection").pk)
    run, reader = world.values["run"], world.people.api["participant"]
    for query in ("runs={0},{1}", "runs={0}&baseline={1}"):
        answers = [
            reader.get(f"/api/v1/collections/one/comparison/?{query.format(run, other)}")
            for other in (hidden, ABSENT["run"])
        ]
        texts = [answer.content.decode().replace(hidden, ABSENT["run"]) for answer in answers]
        assert texts[0] == texts[1]
        assert answers[0].json()["code"] == "unknown_run"


def test_sessions_and_tokens_have_the_same_rights(world: World) -> None:
    for name in (
        "collection-audit",
        "members",
        "audit",
        "teams",
        "invitations",
        "team-invitations",
    ):
        path = ADDRESSES[name].path(world.values)
        for role in ("participant", "member", "other", "staff"):
            by_session = world.people.browsers[role].get(path).status_code
            assert by_session == world.people.api[role].get(path).status_code, (role, name)


def test_no_id_counts() -> None:
    """Whoever makes two objects would learn how many others made meanwhile; versions of judgements count on purpose."""
    counting = {
        parameter
        for pattern in patterns()
        for parameter, converter in pattern.pattern.converters.items()
        if isinstance(converter, IntConverter)
    }
    assert counting == {"version"}
    shapes = SchemaGenerator().get_schema(public=True)["components"]["schemas"]
    named = {
        f"{shape}.{name}": str(described)
        for shape, fields in shapes.items()
        for name, described in fields.get("properties", {}).items()
        if re.search(r"(^|_)(id|ids|key|pk)$", name)
    }
    assert {"NoteAnswer.id", "Run.id", "Experiment.id", "ShareLink.key"} <= set(named)
    assert [name for name, described in named.items() if "integer" in described] == []


def requests_to(names: Iterable[str]) -> Iterator[tuple[Address, str]]:
    for name in names:
        for method in ADDRESSES[name].methods:
            yield ADDRESSES[name], method


def code_in(text: str) -> str:
    code = re.search(r'"code":"(\w+)"', text)
    return code[1] if code else ""
