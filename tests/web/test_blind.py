"""Blind judgements: two worlds that differ in nothing but them look the same (cases A3 and A4)."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import Callable, Container, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import Evaluation
from metrics.services.queue.notices import announce_done
from runs.models import AuditEvent, Collection, Delivery, Disclosure, Qrels, Run, Team, Webhook
from runs.web.parameters import parameters_read
from tests.conftest import GOOD, POOR, QRELS, client_of, evaluate_all, upload
from tests.metrics.webhooks import make_webhook
from tests.test_architecture import imports, modules
from tests.web.test_matrix import MATRIX, PAGES, parameters_of, patterns
from tests.web.worlds import (
    KNOWN,
    People,
    add_qrels,
    address,
    arguments,
    body_of,
    make_collection,
    make_session_set,
    run_ids,
    submit_form,
)

SMALL = "1 0 b 1\n3 0 q 1\n3 0 r 0\n"
LATE = "9 0 nothing 3\n" + "".join(
    f"{topic} 0 d{doc} {doc % 4}\n" for topic in range(1, 8) for doc in range(9)
)
# Nobody of these is an organiser.
OUTSIDERS = ("anonymous", "participant", "member", "other")
QUERIES = (
    "", "sort=AP&order=asc", "qrels=2", "measures=P@3,Judged@10", "measures=foo", "limit=1&offset=1",
    "measure=DCG&depth=3&per_topic=true", "statistics=all&baseline={run}", "status=evaluated", "status=failed",
    "filter=system:dense version:latest", "filter=measure:AP>0", "filter=status:failed OR run-1 own:yes",
)  # fmt: skip
MASKS = (
    (
        re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?(?: UTC)?"),
        "<time>",
    ),
    # Of pages; the list of what others did lately leaves out the year. Both are times of submission
    # or writing.
    (re.compile(r"\d{1,2} [A-Z][a-z]{2}(?: \d{4})?, \d\d:\d\d(?::\d\d)?"), "<time>"),
    # The worlds may be made before and after midnight.
    (re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}\b|\b\d{4}-\d\d-\d\d\b"), "<day>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    # Of a snapshot, which has the name of its world.
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{20}(?![0-9a-f])"), "<code>"),
    (re.compile(r"world-\w"), "<world>"),
    (re.compile(r'csrfmiddlewaretoken" value="\w+'), "<csrf>"),
    # How long it is until something ends.
    (re.compile(r"\b\d+ days(?: \d+ hours?)?\b"), "<time>"),
)
EVERYWHERE_THE_SAME = (
    "schema",
    "api-docs",
    "measures",
    "measure",
    "measures-page",
    "measure-page",
    "vega-script",
)
DIFFER_WHERE_OPEN = {
    "leaderboard", "comparison", "qrels-list", "run-values", "run-curve", "run-evaluations", "runs", "run",
    "collection", "collections", "home", "collection-page", "run-page", "ranking-page", "what-if", "what-if-page",
    "run-chart", "collection-chart",
}  # fmt: skip
# Each team sees its own third of them.
RUNS = 30
_UNVERSIONED = {"system_id": None, "version": None, "versioned_at": None}
# The length is that of the body, which is compared: until when something is, can take more or fewer
# letters.
UNCOMPARED = ("Date", "Expires", "Set-Cookie", "X-Request-ID", "Content-Length")


def make_world(people: People, slug: str, runs: int) -> str:
    """A blind collection with runs of three teams, in one order everywhere: nine sent, the others copies of these."""
    make_collection(people, slug, blind=True, documents=9)
    for index in range(3):
        for role, team in (("participant", "guests"), ("member", "lab"), ("other", "others")):
            content = (GOOD, POOR, GOOD + "7 Q0 a 1 1.0 good\n")[index].replace(
                "Q0 c", f"Q0 c{role[0]}"
            )
            form = {
                "team": team,
                "tag": f"run-{index}",
                "metadata": json.dumps({"k": index}),
                "system": "dense",
            }
            assert submit_form(people.api[role], slug, content, **form).status_code == 202
    sent = list(Run.objects.filter(collection__slug=slug).order_by("created_at"))
    # In this order whatever time the sending takes, and before all that is sent afterwards.
    last = sent[-1].created_at
    later = [last + timedelta(microseconds=number) for number in range(runs)]
    Run.objects.bulk_create(
        _copy(sent[number % 9], number, later[number]) for number in range(9, runs)
    )
    return slug


def _copy(run: Run, number: int, later: datetime) -> Run:
    known = {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}
    return Run(
        **{
            **known,
            "id": uuid.uuid4(),
            "digest": None,
            "tag": f"run-{number}",
            "created_at": later,
            **_UNVERSIONED,
        }
    )


def run_world_a(people: People, runs: int) -> None:
    """One version of judgements, everything evaluated."""
    add_qrels(people, make_world(people, "world-a", runs))
    evaluate_all()


def run_world_b(people: People, runs: int) -> None:
    """Three versions, the second active; some runs evaluated, one failed, one under way, others waiting."""
    make_world(people, "world-b", runs)
    for qrels in (LATE, SMALL, QRELS):
        add_qrels(people, "world-b", qrels)
        if qrels is LATE:
            evaluate_all()
    people.api["owner"].post("/api/v1/collections/world-b/qrels/2/activate/")
    waiting = list(
        Evaluation.objects.filter(qrels__version=2, qrels__collection__slug="world-b").order_by(
            "pk"
        )
    )
    failed = {"error_code": "stored_file_corrupt", "error_message": "gone", "since": timezone.now()}
    Evaluation.objects.filter(pk=waiting[0].pk).update(state="failed", **failed)
    Evaluation.objects.filter(pk=waiting[3].pk).update(state="cancelled", error_code="run_deleted")


def run_world_c(people: People, runs: int) -> None:
    """No judgements at all."""
    make_world(people, "world-c", runs)


@pytest.fixture
def blind(people: People) -> str:
    run_world_a(people, 9)
    return "world-a"


def only(slug: str) -> None:
    """Lists show what is visible: one world at a time."""
    Collection.objects.exclude(slug=slug).update(visibility="private")
    Collection.objects.filter(slug=slug).update(visibility="public")


def asked_of(name: str) -> tuple[str, ...]:
    """Those of QUERIES that an address reads, and the first of those that it refuses."""
    (callback,) = (pattern.callback for pattern in patterns() if pattern.name == name)
    view = getattr(callback, "cls", None)
    if view is None:
        read = set(getattr(callback, "reads", ()))
    else:
        made = view()
        made.request, made.args, made.kwargs = None, (), {}
        read = set(parameters_read(made, "GET"))
    unread = [
        query
        for query in QUERIES
        if not {part.split("=")[0] for part in query.split("&") if part} <= read
    ]
    return tuple(query for query in QUERIES if query not in unread[1:])


def reading(
    people: People,
    slug: str,
    queries: tuple[str, ...],
    roles: tuple[str, ...],
    names: Container[str] = MATRIX,
) -> Iterator[tuple[str, Any]]:
    """Every address with every query, read by everybody who is no organiser, of an own and of another's run. HEAD
    answers as GET does, and OPTIONS nothing: tests/web/test_access.py."""
    own, other = run_ids(slug)[0], run_ids(slug)[2]
    values = {run: arguments_of(people, slug, run) for run in (own, other)}
    for name, parameters in parameters_of().items():
        # What has nothing of any collection is left out.
        if "GET" not in MATRIX[name] or name in EVERYWHERE_THE_SAME or name not in names:
            continue
        own_queries = [query for query in asked_of(name) if query in queries]
        for run in (own, other) if {"run", "run_id"} & set(parameters) else (own,):
            path = address(name, parameters, values[run])
            for role in roles:
                asked_by = own_queries if role == "participant" and run == own else QUERIES[:1]
                client: Any = people.browsers[role] if name in PAGES else people.api[role]
                for query in asked_by:
                    asked = f"{path}?{query.format(run=run)}" if query else path
                    yield f"GET {name} {query} as {role}, run {run == own}", client.get(asked)


def arguments_of(people: People, slug: str, run: str) -> dict[str, Any]:
    return {**arguments(people, slug, run), "key": "00000000"}


def writing(people: People, slug: str) -> Iterator[tuple[str, Any]]:
    """What a participant may send, and what is refused."""
    guest: APIClient = people.api["participant"]
    run = run_ids(slug)[0]
    yield (
        "again",
        submit_form(guest, slug, GOOD.replace("Q0 c", "Q0 cp"), team="guests", tag="run-0"),
    )
    yield "taken", submit_form(guest, slug, POOR, team="guests", tag="run-0")
    yield "new", submit_form(guest, slug, GOOD + "3 Q0 q 2 0.5 good\n", team="guests", tag="new")
    yield "dry", submit_form(guest, slug, GOOD, team="guests", tag="dry", dry_run="true")
    yield "bad", submit_form(guest, slug, GOOD.replace("3.0", "x"), team="guests")
    yield "patch", guest.patch(f"/api/v1/runs/{run}/", {"description": "changed"})
    yield "ask", guest.post(f"/api/v1/runs/{run}/evaluations/", {"scores": "float32"})
    for path in ("release/", "evaluations/", "qrels/1/activate/", "qrels/7/activate/"):
        yield path, guest.post(f"/api/v1/collections/{slug}/{path}", {"scores": "float32"})
    log = f"/api/v1/session-sets/{make_session_set(people, slug)}/"
    yield "judge otherwise", guest.patch(log, {"judged_by": "session"})
    yield "delete sessions", guest.delete(log)
    yield "delete", guest.delete(f"/api/v1/runs/{run}/")


def masked(text: str) -> str:
    for mask, instead in MASKS:
        text = mask.sub(instead, text)
    return text


def seen(answer: Any) -> tuple[int, list[tuple[str, str]], str]:
    """An answer as far as two worlds may be told apart by it."""
    body = masked(body_of(answer).decode(errors="surrogateescape"))
    # A tag is a digest: as it is.
    headers = [
        (name, value if name == "ETag" else masked(value))
        for name, value in sorted(answer.items())
        if name not in UNCOMPARED
    ]
    return answer.status_code, headers, body


def views_of(
    people: People,
    slug: str,
    queries: tuple[str, ...] = QUERIES,
    roles: tuple[str, ...] = OUTSIDERS,
) -> dict[str, Any]:
    only(slug)
    answers = itertools.chain(reading(people, slug, queries, roles), writing(people, slug))
    return {asked: seen(answer) for asked, answer in answers}


def told(people: People, make: Callable[[People, int], None], runs: int) -> dict[str, Any]:
    """What webhooks are told while a world is made: by team, what was written for it and how its owner reads it."""
    teams = {
        slug: make_webhook(team=Team.objects.get(slug=slug)) for slug in ("guests", "others", "lab")
    }
    make(people, runs)
    announce_done()
    Webhook.objects.update(enabled=False)
    found: dict[str, Any] = {}
    for slug, webhook in teams.items():
        written = webhook.deliveries.order_by("created_at").values_list(
            "event", "body", "state", "attempts"
        )
        found[slug] = [tuple(masked(str(part)) for part in row) for row in written]
    read = people.api["other"].get(f"/api/v1/webhooks/{teams['others'].pk}/deliveries/")
    return {**found, "read": seen(read)}


def test_deliveries_of_worlds_with_different_judgements_are_the_same(
    people: People, settings: Any
) -> None:
    """A3: the same number, order and bytes. The organisers' own webhook sees that much happened."""
    settings.EVALHUB_WEBHOOKS = True
    makers = (run_world_a, run_world_b, run_world_c)
    first, *others = [told(people, make, 9) for make in makers]
    assert others == [first, first]
    for slug in ("guests", "others", "lab"):
        assert [row[0] for row in first[slug]] == ["run.submitted"] * 3
    # The same of a collection's webhook differs, and a released collection's teams are told.
    make_webhook(collection=Collection.objects.get(slug="world-a"))
    guests = make_webhook(team=Team.objects.get(slug="guests"))
    add_qrels(people, "world-a", LATE)
    evaluate_all()
    assert guests.deliveries.count() == 0
    assert set(Delivery.objects.filter(webhook__collection__slug="world-a").values_list("event", flat=True)) == {
        "qrels.activated", "run.evaluated",
    }  # fmt: skip
    assert people.api["owner"].post("/api/v1/collections/world-a/release/").status_code == 200
    assert list(guests.deliveries.values_list("event", flat=True)) == ["collection.released"]


@pytest.mark.slow
@pytest.mark.words
def test_worlds_with_different_judgements_look_the_same(people: People, settings: Any) -> None:
    """A3, A4: every address and page, byte by byte but for ids and times, and all that webhooks are told.

    Of the three worlds these two differ most: without judgements, and with several versions and
    runs in every state.
    """
    settings.EVALHUB_WEBHOOKS = True
    deliveries = [told(people, make, RUNS) for make in (run_world_b, run_world_c)]
    settings.EVALHUB_WEBHOOKS = False
    assert deliveries[0] == deliveries[1]
    assert Run.objects.count() == 2 * RUNS
    first, other = (views_of(people, slug) for slug in ("world-b", "world-c"))
    assert len(first) > 500
    assert other.keys() == first.keys()
    assert [asked for asked in first if first[asked] != other[asked]] == []


@pytest.mark.slow
@pytest.mark.words
def test_worlds_look_the_same_while_teams_see_their_own_results(people: People) -> None:
    """The general addresses open nothing to the members of a team, of whom the participant is one, but its results; to
    participants they open everything."""
    for make in (run_world_a, run_world_b):
        make(people, 9)
    Collection.objects.update(shown_to=Disclosure.TEAMS)
    first, second = (
        views_of(people, slug, QUERIES[:1], ("participant",)) for slug in ("world-a", "world-b")
    )
    assert first.keys() == second.keys()
    differ = {asked.split()[1].rstrip(",") for asked in first if first[asked] != second[asked]}
    assert differ == {"packet", "phase-results"}
    Collection.objects.update(shown_to=Disclosure.PARTICIPANTS)
    board = "/api/v1/collections/world-b/leaderboard/"
    assert {role: people.api[role].get(board).status_code for role in OUTSIDERS} == {
        "anonymous": 403, "participant": 200, "member": 403, "other": 403,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.words
def test_the_same_worlds_differ_where_they_are_open(people: People) -> None:
    """The comparison above would see a difference: these two differ in nothing but being released."""
    worlds = ("world-a", "world-b")
    for make, slug in zip((run_world_a, run_world_b), worlds, strict=True):
        make(people, 9)
        assert people.api["owner"].post(f"/api/v1/collections/{slug}/release/").status_code == 200
    found = []
    for slug in worlds:
        only(slug)
        answers = reading(people, slug, QUERIES[:1], ("anonymous",), DIFFER_WHERE_OPEN)
        found.append({asked.split()[1]: seen(answer) for asked, answer in answers})
    first, second = found
    assert {name for name in first if first[name] != second.get(name)} == DIFFER_WHERE_OPEN


def test_a_blind_answer_is_constant(people: People, blind: str) -> None:
    run = run_ids("world-a")[0]
    guest = people.api["participant"]
    paths = ["collections/world-a/leaderboard/?measures=foo", "collections/world-a/comparison/?runs=x",
             "collections/world-a/qrels/", "collections/world-a/qrels/99/", "collections/world-a/qrels/1/file/",
             f"runs/{run}/values/?qrels=7", f"runs/{run}/curve/?measure=AP", f"runs/{run}/evaluations/"]  # fmt: skip
    answers = [guest.get(f"/api/v1/{path}") for path in paths]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(403, "blind")}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert all(answer["Content-Type"] == "application/problem+json" for answer in answers)


def test_organisers_see_everything_while_it_is_blind(people: People, blind: str) -> None:
    for role in ("owner", "staff", "reader"):
        client = people.api[role]
        board = client.get("/api/v1/collections/world-a/leaderboard/").json()
        assert board["ranked"] == 9, role
        assert client.get("/api/v1/collections/world-a/").json()["active_qrels"] == 1
        assert (
            len(client.get("/api/v1/collections/world-a/runs/?status=evaluated").json()["results"])
            == 9
        )
        assert (
            b"".join(client.get("/api/v1/collections/world-a/qrels/1/file/").streaming_content)
            == QRELS.encode()
        )


def test_a_submitter_sees_a_run_as_received_and_nobody_elses(people: People, blind: str) -> None:
    listed = people.api["participant"].get("/api/v1/collections/world-a/runs/").json()["results"]
    assert [run["tag"] for run in listed] == ["run-2", "run-1", "run-0"]
    assert {run["team"] for run in listed} == {"guests"}
    for run in listed:
        assert run["status"] == {
            "state": "received",
            "since": run["created_at"],
            "qrels": None,
            "code": "",
            "reason": "",
            "queue": None,
        }
    assert listed[0]["warnings"]["counts"] == {"topic_outside": 1, "tag_differs": 1}
    for kind, number in (("runs", 3), ("sessions", 0)):
        received = (
            people.api["participant"]
            .get(f"/api/v1/collections/world-a/{kind}/?status=received")
            .json()
        )
        assert received["count"] == number, kind
    assert people.api["participant"].get("/api/v1/collections/world-a/").json()["runs"] == 3
    assert people.api["anonymous"].get("/api/v1/collections/world-a/").json()["runs"] == 0


def test_a_release_is_one_audited_step_for_good(people: People, blind: str) -> None:
    owner, guest = people.api["owner"], people.api["participant"]
    digest = Qrels.objects.get(collection__slug="world-a").sha256
    answer = owner.post("/api/v1/collections/world-a/release/")
    assert (answer.status_code, answer.json()["blind"]) == (200, False)
    event = AuditEvent.objects.get(action="collection.released")
    assert (event.actor, event.after["sha256"], event.after["qrels"]) == ("owner", digest, 1)
    assert answer.json()["released_at"][:22] == event.after["released_at"][:22]
    assert guest.get("/api/v1/collections/world-a/leaderboard/").json()["ranked"] == 9
    again = owner.post("/api/v1/collections/world-a/release/")
    assert (again.status_code, again.json()["code"]) == (409, "not_blind")
    hidden = owner.patch("/api/v1/collections/world-a/", {"blind": True})
    assert (hidden.status_code, hidden.json()["code"]) == (409, "already_released")
    assert AuditEvent.objects.filter(action="collection.released").count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        Collection.objects.filter(slug="world-a").update(blind=True)


def test_nothing_is_released_without_judgements_or_by_a_change(people: People, blind: str) -> None:
    owner = people.api["owner"]
    make_collection(people, "empty", blind=True)
    early = owner.post("/api/v1/collections/empty/release/")
    assert (early.status_code, early.json()["code"]) == (409, "nothing_to_release")
    changed = owner.patch("/api/v1/collections/world-a/", {"blind": False})
    assert (changed.status_code, changed.json()["code"]) == (409, "release_needed")
    assert Collection.objects.filter(blind=True).count() == 2
    assert not AuditEvent.objects.filter(action="collection.released").exists()


def test_what_was_open_does_not_become_blind(people: People) -> None:
    owner = people.api["owner"]
    make_collection(people, "open")
    assert owner.patch("/api/v1/collections/open/", {"blind": True}).json()["blind"]
    make_collection(people, "seen")
    add_qrels(people, "seen")
    answer = owner.patch("/api/v1/collections/seen/", {"blind": True})
    assert (answer.status_code, answer.json()["code"]) == (409, "judgements_were_open")


def test_taking_away_blind_judgements_is_audited(people: People, blind: str) -> None:
    for role in ("owner", "participant"):
        body_of(people.api[role].get("/api/v1/collections/world-a/qrels/1/file/"))
    (event,) = AuditEvent.objects.filter(action="qrels.read")
    assert (event.actor, event.object_id) == ("owner", "world-a v1")


def test_an_owner_made_now_is_an_organiser_now(people: People, blind: str) -> None:
    path = "/api/v1/collections/world-a/leaderboard/"
    member = people.api["member"]
    assert member.get(path).status_code == 403
    people.api["owner"].patch("/api/v1/teams/lab/members/member/", {"role": "owner"})
    assert member.get(path).status_code == 200
    people.api["owner"].patch("/api/v1/teams/lab/members/member/", {"role": "member"})
    assert member.get(path).status_code == 403


def test_endpoints_of_values_find_their_objects_where_blindness_is_checked() -> None:
    """What is computed depends on the judgements: metrics.api has no use for the finders that do not check.

    Parameters and configurations were given by those who submitted: readers of a blind collection
    see them too, each of the runs that they see. Both leave out the means by themselves.
    """
    given = {"metrics.api.tracking.configurations", "metrics.api.tracking.parameters"}
    for module in {name for name in modules() if name.startswith("metrics.api")} - given:
        for node, _ in imports(modules()[module]):
            names = {alias.name for alias in node.names}  # type: ignore[attr-defined]
            assert not names & {"visible_collection", "visible_run", "counted_collection"}, module


def test_an_upload_says_nothing_of_the_judgements(people: People) -> None:
    """A4: topics are compared with the public list, not with the judged ones."""
    make_collection(people, "listed", blind=True)
    add_qrels(people, "listed", "1 0 a 1\n77 0 z 1\n")
    run = submit_form(
        client_of(people.users["other"]),
        "listed",
        GOOD,
        known=SimpleUploadedFile("known", KNOWN.encode()),
    ).json()
    assert run["warnings"]["counts"] == {}
    assert "77" not in str(run["warnings"]) + str(run["known_warnings"])
    assert (
        upload(
            people.api["other"], "collections/listed/runs/", GOOD, tag="b", dry_run="true"
        ).json()["topics"]
        == 3
    )
