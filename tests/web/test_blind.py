"""Blind judgements: what is told to whom, and how they are released (cases A3 and A4).

tests/web/access asks every address of worlds that differ in nothing but their judgements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction

from metrics.services.queue.notices import announce_done
from runs.models import AuditEvent, Collection, Delivery, Qrels, Team, Webhook
from tests.conftest import GOOD, QRELS, client_of, evaluate_all, upload
from tests.metrics.webhooks import make_webhook
from tests.test_architecture import imports, modules
from tests.web.access.blind import LATE, masked, run_world_a, run_world_b, run_world_c, seen
from tests.web.worlds import (
    KNOWN,
    People,
    add_qrels,
    body_of,
    make_collection,
    run_ids,
    submit_form,
)


@pytest.fixture
def blind(people: People) -> str:
    run_world_a(people)
    return "world-a"


def deliveries_of(people: People, make: Callable[[People], None]) -> dict[str, Any]:
    """What webhooks are told while a world is made: by team, what was written for it and how its owner reads it."""
    teams = {
        slug: make_webhook(team=Team.objects.get(slug=slug)) for slug in ("guests", "others", "lab")
    }
    make(people)
    announce_done()
    Webhook.objects.update(enabled=False)
    deliveries: dict[str, Any] = {}
    for slug, webhook in teams.items():
        written = webhook.deliveries.order_by("created_at").values_list(
            "event", "body", "state", "attempts"
        )
        deliveries[slug] = [tuple(masked(str(part)) for part in row) for row in written]
    read = people.api["other"].get(f"/api/v1/webhooks/{teams['others'].pk}/deliveries/")
    return {**deliveries, "read": seen(read)}


def test_deliveries_of_worlds_with_different_judgements_are_the_same(
    people: People, settings: Any
) -> None:
    """A3: the same number, order and bytes. The organisers' own webhook sees that much happened."""
    settings.EVALHUB_WEBHOOKS = True
    makers = (run_world_a, run_world_b, run_world_c)
    first, *others = [deliveries_of(people, make) for make in makers]
    assert others == [first, first]
    for slug, number in (("guests", 5), ("others", 4), ("lab", 3)):
        assert [row[0] for row in first[slug]] == ["run.submitted"] * number
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
        assert board["ranked"] == 9 + 2, role
        assert client.get("/api/v1/collections/world-a/").json()["active_qrels"] == 1
        assert (
            len(client.get("/api/v1/collections/world-a/runs/?status=evaluated").json()["results"])
            == 9 + 3 + 2
        )
        assert (
            b"".join(client.get("/api/v1/collections/world-a/qrels/1/file/").streaming_content)
            == QRELS.encode()
        )


def test_a_submitter_sees_a_run_as_received_and_nobody_elses(people: People, blind: str) -> None:
    listed = people.api["participant"].get("/api/v1/collections/world-a/runs/").json()["results"]
    assert [run["tag"] for run in listed] == [
        "seeds-r2",
        "seeds",
        "seeds-r1",
        "run-2",
        "run-1",
        "run-0",
    ]
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
    assert listed[3]["warnings"]["counts"] == {"topic_outside": 1, "tag_differs": 1}
    for kind, number in (("runs", 6), ("sessions", 0)):
        received = (
            people.api["participant"]
            .get(f"/api/v1/collections/world-a/{kind}/?status=received")
            .json()
        )
        assert received["count"] == number, kind
    assert people.api["participant"].get("/api/v1/collections/world-a/").json()["runs"] == 4
    assert people.api["anonymous"].get("/api/v1/collections/world-a/").json()["runs"] == 0


def test_a_release_is_one_audited_step_for_good(people: People, blind: str) -> None:
    owner, guest = people.api["owner"], people.api["participant"]
    digest = Qrels.objects.get(collection__slug="world-a").sha256
    answer = owner.post("/api/v1/collections/world-a/release/")
    assert (answer.status_code, answer.json()["blind"]) == (200, False)
    event = AuditEvent.objects.get(action="collection.released")
    assert (event.actor, event.after["sha256"], event.after["qrels"]) == ("owner", digest, 1)
    assert answer.json()["released_at"][:22] == event.after["released_at"][:22]
    assert guest.get("/api/v1/collections/world-a/leaderboard/").json()["ranked"] == 9 + 2
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
    see them too, each of the runs that they see. Both leave out the means by themselves. So are
    declarations of measures, and values that a team reported of its own runs; other values of tables
    are checked by check_scores.
    """
    checked = {
        "metrics.api.tracking.configurations",
        "metrics.api.tracking.parameters",
        "metrics.api.values.value_tables",
    }
    for module in {name for name in modules() if name.startswith("metrics.api")} - checked:
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
