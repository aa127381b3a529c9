"""Who may do what, beyond the table of test_matrix: tokens that end or hold too little, methods that ask for nothing,
and what an open collection tells of a blind one. What is expected is what docs/api.md and
docs/security.md say."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import transaction
from django.urls.converters import IntConverter
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

from metrics.models import Evaluation, SessionEvaluation
from runs.models import ApiToken, Collection, User
from tests.conftest import GOOD, POOR, client_of, evaluate_all
from tests.web.test_blind import EVERYWHERE_THE_SAME, seen
from tests.web.test_matrix import BODIES, MATRIX, PAGES, parameters_of, patterns
from tests.web.worlds import (
    ROLES,
    People,
    add_qrels,
    address,
    arguments,
    body_of,
    make_collection,
    run_ids,
    submit_form,
)

pytestmark = pytest.mark.words
# For machines, which ask without a token.
PROBES = ("healthz", "readyz", "metrics")
API = tuple(name for name in MATRIX if name not in (*PAGES, *PROBES))
# Whose change `submit` opens; every other change is `manage`'s, but asking for a comparison, which
# is reading.
SUBMITTED = (
    "runs", "run", "run-metadata", "runs-metadata", "label", "session-sets", "session-set", "run-evaluations",
    "session-evaluations", "run-restore", "session-set-restore", "experiments", "experiment", "experiment-runs",
    "experiment-notes", "run-notes", "collection-notes", "note", "views", "view", "artifacts", "artifact",
    "run-parents", "run-links", "agreement-sign", "participations", "participation", "participants", "participant",
    "entries", "entry", "entry-withdraw", "priorities",
)  # fmt: skip
# How long a run has waited, in an answer and on a page.
WAITED = re.compile(r'"seconds":[\d.e-]+|\d+(\.\d+)? (s|seconds?|minutes?|min)\b')
CSRF = re.compile(r'csrfmiddlewaretoken" value="\w+')
# Drawn anew for every request, from what other addresses answer.
DRAWN = ("run-chart", "collection-chart", "session-chart", "stored-comparison-chart")


def requests(values: dict[str, Any], names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Name, method and path of everything that the table has."""
    for name in names:
        for method in MATRIX[name]:
            yield name, method, address(name, parameters_of()[name], values)


def status_of(client: Any, name: str, method: str, path: str) -> tuple[int, str]:
    """The status and the code of a request with a body that whoever may would succeed with; nothing stays done."""
    body = BODIES.get((name, method), dict)()
    with transaction.atomic():
        if isinstance(client, APIClient) and method not in ("GET", "HEAD", "OPTIONS"):
            form = "multipart" if "file" in body else "json"
            answer = getattr(client, method.lower())(path, body, format=form)
        else:
            answer = client.generic(method, path)
        content = body_of(answer)
        transaction.set_rollback(True)
    found = re.search(rb'"code":"(\w+)"', content)
    return answer.status_code, found[1].decode() if found else ""


def inside(name: str) -> bool:
    """Whether an address is of something in a collection."""
    return bool(
        {"collection", "run", "session_set", "slug", "run_id", "comparison", "code"}
        & set(parameters_of()[name])
    )


@pytest.mark.parametrize("ended", ["disabled", "expired", "revoked", "unknown"])
def test_a_token_that_has_ended_opens_nothing_that_is_open(
    people: People, values: dict[str, Any], ended: str
) -> None:
    """One answer to all of them, at every address: also where no token at all would do."""
    user = User.objects.create_user("gone", is_staff=True)
    client = client_of(user)
    tokens = ApiToken.objects.filter(user=user)
    if ended == "disabled":
        User.objects.filter(pk=user.pk).update(is_active=False)
    elif ended == "unknown":
        tokens.delete()
    else:
        column = {"expired": "expires_at", "revoked": "revoked_at"}[ended]
        tokens.update(**{column: timezone.now() - timedelta(seconds=1)})
    for name, method, path in requests(values, API):
        assert status_of(client, name, method, path) == (401, "authentication_failed"), (
            method,
            name,
        )


def test_a_disabled_accounts_browser_is_nobodys(people: People, values: dict[str, Any]) -> None:
    browser = people.browsers["owner"]
    User.objects.filter(username="owner").update(is_active=False)
    for name, method, path in requests(values, PAGES):
        if method == "GET":
            assert status_of(browser, name, method, path)[0] == int(
                MATRIX[name][method].split()[0]
            ), name


def test_each_scope_opens_its_own_methods_and_no_others(
    people: People, values: dict[str, Any]
) -> None:
    staff = people.users["staff"]
    clients = {scope: client_of(staff, [scope]) for scope in ("read", "submit", "manage")}
    # The three of the scopes do not include each other; staff may do everything, so that a scope
    # alone refuses.
    for name, method, path in requests(
        values, tuple(name for name in API if name not in ("schema", "api-docs"))
    ):
        asked = (name, method) == ("comparison", "POST")
        needed = "read" if method == "GET" or asked else "submit" if name in SUBMITTED else "manage"
        for scope, client in clients.items():
            if (name, method, scope) == ("tokens", "POST", "manage"):
                # The new one would have more scopes than its maker.
                continue
            status, code = status_of(client, name, method, path)
            assert ((status, code) == (403, "missing_scope")) == (scope != needed), (
                method,
                name,
                scope,
                status,
            )


@pytest.mark.slow
def test_head_answers_as_get_does_and_options_nothing(
    people: People, values: dict[str, Any]
) -> None:
    """In a collection that only some see: neither tells more than reading does."""
    Collection.objects.update(visibility="team")
    for name, methods in ((name, methods) for name, methods in MATRIX.items() if name not in DRAWN):
        path = address(name, parameters_of()[name], values)
        for role in ("participant", "member"):
            client: Any = people.browsers[role] if name in PAGES else people.api[role]
            if "GET" in methods:
                head = client.head(path)
                shown = (
                    methods["GET"].split()[ROLES.index(role)]
                    if role == "member" or not inside(name)
                    else "404"
                )
                assert (str(head.status_code), body_of(head)) == (shown, b""), (name, role)
            refused = client.options(path)
            assert refused.status_code in (401, 405), (name, role)


@pytest.mark.slow
def test_what_is_hidden_is_answered_as_what_is_not_there(
    people: People, values: dict[str, Any]
) -> None:
    """Every method of every address of a private collection, and of one that nobody has: the same, but for the name."""
    Collection.objects.update(visibility="private")
    nobody = "00000000-0000-4000-8000-000000000000"
    absent = {**values, "collection": "two", "slug": "two"} | dict.fromkeys(
        ("run", "run_id", "session_set", "comparison"), nobody
    )
    hidden = {
        str(values[name]): str(absent[name])
        for name in ("collection", "run", "session_set", "comparison")
    }
    for name, parameters in (
        (name, names) for name, names in parameters_of().items() if inside(name)
    ):
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"):
            for role in ("participant", "anonymous")[: 2 if method == "GET" else 1]:
                client: Any = people.browsers[role] if name in PAGES else people.api[role]
                told = []
                for names in (values, absent):
                    answer = client.generic(method, address(name, parameters, names))
                    text = unquote(html.unescape(body_of(answer).decode()))
                    for known, instead in hidden.items():
                        text = re.sub(rf"\b{known}\b", instead, text)
                    told.append((answer.status_code, CSRF.sub("", text)))
                assert told[0] == told[1], (method, name, role)


@pytest.mark.slow
@pytest.mark.queries
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


def test_an_open_collection_tells_nothing_of_what_is_queued_in_a_blind_one(people: People) -> None:
    """Twin worlds by the queue: places, counts, tags and waits, before and while everything blind is evaluated anew."""
    add_qrels(people, make_collection(people, "dark", blind=True))
    for number, team in enumerate(("guests", "lab", "others")):
        role = ("participant", "member", "other")[number]
        assert (
            submit_form(people.api[role], "dark", GOOD, team=team, tag="hidden").status_code == 202
        )
    evaluate_all()
    add_qrels(people, make_collection(people, "one"))
    for number, content in enumerate((GOOD, POOR, GOOD)):
        assert (
            submit_form(
                people.api["participant"], "one", content, team="guests", tag=f"r{number}"
            ).status_code
            == 202
        )
        if number < 2:
            evaluate_all()
    waiting = Evaluation.objects.filter(run__collection__slug="one", state="queued")
    assert waiting.count() == 1

    def read() -> dict[str, Any]:
        found = {}
        for name in (
            name
            for name in MATRIX
            if "GET" in MATRIX[name] and name not in (*DRAWN, *EVERYWHERE_THE_SAME)
        ):
            # Whoever has submitted sees the most; nobody has the pages that the most people see.
            for role in ("participant", "anonymous")[: 2 if name in PAGES else 1]:
                client: Any = people.browsers[role] if name in PAGES else people.api[role]
                found[f"{name} as {role}"] = seen(
                    client.get(address(name, parameters_of()[name], values))
                )
        assert '"position":1' in found["run as participant"][2]
        return {
            asked: (
                status,
                [one for one in headers if one[0] != "Content-Length"],
                WAITED.sub("<waited>", text),
            )
            for asked, (status, headers, text) in found.items()
        }

    values = {**arguments(people, "one", run_ids("one")[2]), "key": "00000000"}
    # Each browser has its cookie from here on.
    for role in ("participant", "anonymous"):
        people.browsers[role].get("/login/")
    before = read()
    add_qrels(people, "dark", "1 0 b 1\n2 0 a 1\n")
    # Ahead of what waits in the open, and for longer.
    earlier = timezone.now() - timedelta(minutes=5)
    blind = Evaluation.objects.filter(run__collection__slug="dark", state="queued")
    assert blind.update(created_at=earlier, since=earlier) == 3
    SessionEvaluation.objects.filter(session_set__collection__slug="dark").update(
        created_at=earlier
    )
    after = read()
    assert after.keys() == before.keys()
    assert len(before) > 80
    assert [asked for asked in before if before[asked] != after[asked]] == []
