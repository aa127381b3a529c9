"""Requests made from the API's own description and sent over WSGI, as everybody, to a small world (case A29).

Half of them fit the description and half do not; most name objects that are there. Whatever is
sent, no answer is a server's error, every error is problem details with a stable code and leaves
everything as it was, every success is what the description says, and after every change lists,
boards and pages still answer.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from django.apps import apps
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response

from evalhub.serving.wsgi import application
from tests.conftest import GOOD, POOR, QRELS, SESSIONS
from tests.web.worlds import KNOWN, TOPICS, People

ROLES = ("anonymous", "participant", "other", "owner", "staff")
FILES = (GOOD, POOR, QRELS, TOPICS, KNOWN, GOOD.replace("good", "another"), SESSIONS)
# Asked after every accepted change, as an administrator, who sees all there is.
_OF_A_COLLECTION = (
    "", "topics/", "topic-attributes/", "documents/", "qrels/", "runs/", "sessions/", "leaderboard/", "comparison/",
    "session-leaderboard/", "session-comparison/", "evaluations/", "audit/",
)  # fmt: skip
LISTS = (
    *(f"/api/v1/collections/one/{part}" for part in _OF_A_COLLECTION),
    *(f"/api/v1/{part}/" for part in ("collections", "teams", "teams/lab/members", "invitations", "tokens", "audit")),
    "/", "/collections/one/", "/collections/one/comparison/",
)  # fmt: skip
COUNTED = (
    "Collection",
    "Topic",
    "DocumentTitle",
    "TopicAttributes",
    "ExternalMeasure",
    "ValueTable",
    "TableValues",
    "Qrels",
    "Run",
    "Label",
    "LabelMove",
    "Artifact",
    "SessionSet",
    "Team",
    "Membership",
    "Invitation",
    "ApiToken",
    "User",
    "AuditEvent",
)
CODE = re.compile(r"[a-z][a-z0-9_]{2,60}")
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
# Of the parameters and files, so many are ones that mean something.
SHARE = 0.8
_OK, _ERROR, _SERVER_ERROR = 200, 400, 500


@dataclass
class World:
    """Who is there, and the names of what is there by the parameter that takes them."""

    people: People
    names: dict[str, list[str]]

    def headers(self, role: str) -> dict[str, str]:
        """The request headers that say who asks."""
        token = self.people.api[role]._credentials.get("HTTP_AUTHORIZATION")
        return {"Accept-Encoding": "identity", **({"Authorization": token} if token else {})}

    def name_things(self, case: Case, chosen: random.Random) -> None:
        """Put names of what is there, and files that can be read, in place of what was made up."""
        for place in (case.path_parameters, case.query):
            for name in set(place or ()) & self.names.keys():
                if chosen.random() < SHARE:
                    place[name] = chosen.choice(self.names[name])
        if isinstance(case.body, dict):
            self._fill(case.body, case.media_type == "multipart/form-data", chosen)

    def _fill(self, body: dict[str, Any], form: bool, chosen: random.Random) -> None:
        for name in ("file", "known"):
            if form and name in body and chosen.random() < SHARE:
                body[name] = chosen.choice(FILES).encode()
        for name in ("team", "username"):
            if name in body and chosen.random() < SHARE:
                body[name] = chosen.choice(self.names[name])


@dataclass
class Tally:
    """What was sent and answered, and what was wrong with it."""

    sent: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)
    lists: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        roles = ", ".join(f"{count} as {role}" for role, count in sorted(self.sent.items()))
        answers = ", ".join(f"{count} times {code}" for code, count in sorted(self.answers.items()))
        return (
            f"{self.sent.total()} requests made from the description ({roles}): {answers}; "
            f"{self.lists} lists and pages asked afterwards; {len(self.faults)} faults"
        )


def _parameters(template: str, path: str) -> dict[str, str]:
    pairs = zip(template.split("/"), path.split("/"), strict=True)
    return {part.strip("{}"): text for part, text in pairs if part.startswith("{")}


def _whole_answers(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The service, whose answers are read and closed, as every server does it, in the transaction of the test."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        with contextlib.closing(application(environ, start_response)) as answer:
            return list(answer)
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


class Fuzzer:
    """Sends cases; the same seed makes the same requests."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.tally = Tally()
        self.schema = schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", _whole_answers)
        # As the description is read, an answer may have any fields beside those that it names: ours
        # have no others.
        for component in self.schema.raw_schema["components"]["schemas"].values():
            if "properties" in component:
                component["additionalProperties"] = False
        tables = [model._meta.db_table for model in apps.get_models() if model.__name__ in COUNTED]
        # Asked twice for most requests: one statement takes a tenth of the time of fourteen.
        self.counting = "SELECT " + ", ".join(
            f'(SELECT COUNT(*) FROM "{table}")' for table in tables
        )

    def run(self, cases: int, first: int = 1) -> Tally:
        strategies = [self.schema.as_strategy(generation_mode=mode) for mode in MODES]
        chosen = random.Random(first)

        @seed(first)
        @settings(
            max_examples=cases, database=None, deadline=None, phases=[Phase.generate],
            # How long a request takes to make up says nothing of the service.
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(st.one_of(strategies))
        def send(case: Case) -> None:
            # By turns and not by hypothesis, which prefers what comes first.
            self.world.name_things(case, chosen)
            self.send(case, ROLES[self.tally.sent.total() % len(ROLES)])

        send()
        return self.tally

    def ask(self, path: str, query: dict[str, str], role: str) -> None:
        """One request to an address with these parameters."""
        operation = self.schema.find_operation_by_path("GET", path)
        assert operation, path
        self.send(
            operation.Case(path_parameters=_parameters(operation.path, path), query=query), role
        )

    def send(self, case: Case, role: str) -> None:
        """One request, after which everything is as before."""
        with transaction.atomic():
            before = self._counts()
            answer = case.call(headers=self.world.headers(role))
            self.tally.sent[role] += 1
            self.tally.answers[answer.status_code] += 1
            faults = list(self._faults(case, answer, before))
            transaction.set_rollback(True)
        self.tally.faults += [f"{fault}\n    {_said(case, role)}" for fault in faults]

    def _faults(self, case: Case, answer: Response, before: tuple[int, ...]) -> Any:
        if str(answer.status_code) not in case.operation.definition.raw["responses"]:
            yield f"{answer.status_code} is not in the description"
        if answer.status_code >= _SERVER_ERROR:
            yield f"{answer.status_code}: {answer.content[:300]!r}"
        elif answer.status_code >= _ERROR:
            yield from _faults_of_a_problem(answer)
            yield from _undescribed(case, answer)
            if self._counts() != before:
                yield f"{answer.status_code}, but something was changed"
        else:
            yield from _undescribed(case, answer)
            if case.method not in ("GET", "HEAD"):
                yield from self._poisoned()

    def _poisoned(self) -> Any:
        """Lists and pages that do not answer any more."""
        staff = self.world.people
        for path in LISTS:
            client = staff.api["staff"] if path.startswith("/api/") else staff.browsers["staff"]
            status = client.get(path).status_code
            self.tally.lists += 1
            if status >= _SERVER_ERROR:
                yield f"afterwards {path} answers {status}"

    def _counts(self) -> tuple[int, ...]:
        with connection.cursor() as cursor:
            cursor.execute(self.counting)
            counts: tuple[int, ...] = cursor.fetchone()
        return counts


def _faults_of_a_problem(answer: Response) -> Any:
    if answer.headers["content-type"] != ["application/problem+json"]:
        yield f"{answer.status_code} as {answer.headers['content-type']}"
        return
    body = json.loads(answer.content)
    if body["status"] != answer.status_code or not CODE.fullmatch(body["code"]):
        yield f"{answer.status_code} with status {body['status']} and code {body['code']}"


def _undescribed(case: Case, answer: Response) -> Any:
    try:
        case.operation.validate_response(answer)
    except Exception as failure:
        yield f"{answer.status_code} is not what the description says: {str(failure)[:500]}"


def _said(case: Case, role: str) -> str:
    return f"{case.method} {case.formatted_path} as {role}: {case.query} {str(case.body)[:500]}"
