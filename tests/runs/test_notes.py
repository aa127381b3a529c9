"""Notes: read by whoever sees what they are about, changed by their authors."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from runs.models import AuditEvent, Collection, Experiment, Membership, Note, Run, Team, User
from runs.models.tracking.notes import SUBJECTS
from runs.pages.tracking.notes import PAGES as NOTES_PAGES
from tests.conftest import client_of
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

API = "/api/v1/"


@pytest.fixture
def lab(alice: User, bob: User) -> Team:
    """Alice's and Bob's team, which Alice owns."""
    team = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=team, user=alice, role="owner")
    Membership.objects.create(team=team, user=bob)
    return team


@pytest.fixture
def runs(lab: Team) -> list[str]:
    return make_scored("board", lab, simulated(2, 5))


def write(client: APIClient, path: str, text: str = "seen") -> Any:
    return client.post(f"{API}{path}notes/", {"text": text}, format="json")


def test_a_note_is_written_changed_and_deleted_by_its_author(
    api: APIClient, runs: list[str], bob: User
) -> None:
    path = f"runs/{runs[0]}/"
    answer = write(api, path, "the index was broken")
    assert (answer.status_code, answer.json()["author"], answer.json()["own"]) == (
        201,
        "alice",
        True,
    )
    member = client_of(bob)
    sent = write(member, path, "it was not")
    assert sent.status_code == 201
    member_note = sent.json()["id"]
    note = f"{API}notes/{answer.json()['id']}/"
    for refused in (member.patch(note, {"text": "x"}), member.delete(note)):
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    changed = api.patch(note, {"text": "the index was old"}).json()
    assert (changed["text"], changed["edited_at"] is None) == ("the index was old", False)
    listed = member.get(f"{API}{path}notes/").json()["results"]
    assert [(note["text"], note["own"]) for note in listed] == [
        ("it was not", True),
        ("the index was old", False),
    ]
    # Who wrote it is told to the team.
    anonymous = client_of(None).get(f"{API}{path}notes/").json()["results"]
    assert {(note["author"], note["own"]) for note in anonymous} == {(None, False)}
    rows = api.get("/api/v1/collections/board/leaderboard/", {"filter": "has:notes"}).json()[
        "results"
    ]
    assert [row["run"]["tag"] for row in rows] == ["r0"]
    # Staff delete what should not be there, and write nothing in another's name.
    other = f"{API}notes/{member_note}/"
    User.objects.create_user("stan", is_staff=True)
    staff = client_of(User.objects.get(username="stan"))
    assert staff.patch(other, {"text": "x"}).status_code == 403
    assert staff.delete(other).status_code == 204
    assert api.delete(note).status_code == 204
    events = AuditEvent.objects.filter(object_type="note").order_by("pk")
    assert [event.action for event in events] == [
        "note.written",
        "note.written",
        "note.changed",
        "note.deleted",
        "note.deleted",
    ]
    assert (events[3].actor, events[3].before) == ("stan", {"text": "it was not"})
    assert (events[2].before["text"], events[2].after["text"]) == (
        "the index was broken",
        "the index was old",
    )
    assert {event.collection and event.collection.slug for event in events} == {"board"}


def test_who_writes_about_what(api: APIClient, runs: list[str], lab: Team, bob: User) -> None:
    """Of a run its team, of a collection its organisers, of an experiment those who may change it."""
    study = Experiment.objects.create(team=lab, slug="study", name="Study")
    paths = {
        "run": f"runs/{runs[0]}/",
        "collection": "collections/board/",
        "experiment": f"experiments/{study.pk}/",
    }
    assert set(paths) == set(SUBJECTS)
    outsider, member = client_of(User.objects.create_user("carol")), client_of(bob)
    codes = {name: [write(client, path).status_code for client in (api, member, outsider, client_of(None))]
             for name, path in paths.items()}  # fmt: skip
    assert codes == {
        "run": [201, 201, 403, 401], "collection": [201, 403, 403, 401], "experiment": [201, 201, 404, 401],
    }  # fmt: skip
    for name, path in paths.items():
        assert write(client_of(bob, ["read"]), path).json()["code"] == "missing_scope", name
        for text in ("", "a\x07", "x" * 10_001):
            assert write(api, path, text).status_code == 400
    # A note about what one does not see is not there.
    note = Note.objects.filter(experiment=study).first()
    assert note
    assert outsider.delete(f"{API}notes/{note.pk}/").status_code == 404
    # Nor may somebody who left the team rewrite what is public.
    Membership.objects.filter(user=bob).delete()
    own = Note.objects.get(run=runs[0], author=bob)
    assert member.patch(f"{API}notes/{own.pk}/", {"text": "x"}).status_code == 403


def test_notes_are_blind_with_their_runs(api: APIClient, runs: list[str], bob: User) -> None:
    carol = User.objects.create_user("carol")
    Membership.objects.create(team=Team.objects.create(slug="guests", name="Guests"), user=carol)
    write(api, f"runs/{runs[0]}/", "secret")
    Collection.objects.update(blind=True)
    note = Note.objects.get()
    for client in (client_of(carol), client_of(None)):
        assert client.get(f"{API}runs/{runs[0]}/notes/").status_code == 404
    assert client_of(carol).patch(f"{API}notes/{note.pk}/", {"text": "x"}).status_code == 404
    assert client_of(bob).get(f"{API}runs/{runs[0]}/notes/").json()["count"] == 1


def test_a_note_is_about_one_thing_and_there_are_not_too_many(
    api: APIClient, runs: list[str], alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, collection = Run.objects.get(pk=runs[0]), Collection.objects.get()
    for about in ({}, {"run": run, "collection": collection}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Note.objects.create(author=alice, text="x", **about)
    monkeypatch.setattr("runs.services.tracking.notes.MAX_NOTES", 1)
    assert write(api, f"runs/{runs[0]}/").status_code == 201
    assert write(api, f"runs/{runs[0]}/").json()["code"] == "too_many_notes"
    key = {"HTTP_IDEMPOTENCY_KEY": "once"}
    sent = [
        api.post(f"{API}runs/{runs[1]}/notes/", {"text": "x"}, **key).json()["id"] for _ in range(2)
    ]
    assert (len(set(sent)), Note.objects.filter(run=runs[1]).count()) == (1, 1)
    # The author goes, the note stays; whoever deletes the team's experiment takes its notes along.
    assert set(NOTES_PAGES) == set(SUBJECTS)
    alice.delete()
    assert list(Note.objects.values_list("author", flat=True)) == [None, None]
