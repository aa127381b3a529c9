"""The leaderboard of a collection with a phase: official entries alone are ranked, and the others say what they are."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from runs.models import AuditEvent, Entry, Run, User
from runs.services.submissions.sweeping import is_named
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    Clients,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
    run_of,
)
from tests.conftest import GOOD, evaluate_all, upload

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = pytest.mark.django_db
BOARD = "/api/v1/collections/dark/leaderboard/"


def statuses(client: APIClient, **parameters: Any) -> dict[str, tuple[str, int | None]]:
    """The status and rank of each row, by tag."""
    answer = client.get(BOARD, parameters)
    assert answer.status_code == 200, answer.content
    return {
        row["run"]["tag"]: (row["entry_status"], row["rank"]) for row in answer.json()["results"]
    }


def official(client: APIClient) -> list[tuple[str, int]]:
    rows = client.get(f"{PHASE}board/").json()["results"]
    return [(row["run"]["tag"], row["rank"]) for row in rows if row["rank"]]


def file_status(client: APIClient, run: Run) -> int:
    answer = client.get(f"/api/v1/runs/{run.pk}/file/")
    # To close it would end the connection of the test, which is in a transaction.
    if answer.streaming:
        b"".join(answer.streaming_content)
    return answer.status_code


def entry_of(tag: str) -> Entry:
    return Entry.objects.get(run__tag=tag)


@pytest.fixture(scope="module")
def ended(people: Clients, module_clock: Clock) -> Clients:
    """A phase that is over and public, with an entry of each kind; the best file is that of a copy."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga, feedback="none")
    stray = upload(people["eve"], "collections/dark/runs/", run_of("stray"), tag="stray")
    assert stray.status_code == 202
    for who, team in ((ann, "apples"), (ben, "berries")):
        assert register(who, team).status_code == 201
    module_clock.now = OPENS
    for who, tag in ((ann, "first"), (ann, "gone"), (ben, "second"), (ben, "copy")):
        content = GOOD.replace("good", tag) if tag == "copy" else run_of(tag)
        assert enter(who, tag, content).status_code == 201
    base = SimpleUploadedFile("run", run_of("base").encode())
    answer = olga.post(
        f"{PHASE}entries/",
        {"file": base, "tag": "base", "role": "baseline", "label": "BM25"},
        format="multipart",
    )
    assert answer.status_code == 201, answer.content
    gone = ann.post(f"/api/v1/entries/{entry_of('gone').pk}/withdraw/", {}, format="json")
    assert gone.status_code == 200, gone.content
    barred = olga.post(
        f"/api/v1/entries/{entry_of('copy').pk}/disqualify/", {"reason": "a copy"}, format="json"
    )
    assert barred.status_code == 200, barred.content
    module_clock.now = CLOSES + timedelta(hours=1)
    assert enter(ann, "tardy").status_code == 201
    evaluate_all()
    return people


@pytest.fixture
def world(ended: Clients, clock: Clock) -> Clients:
    clock.now = LATE
    return ended


def release(people: Clients, **fields: Any) -> None:
    planned = people["olga"].post(
        f"{PHASE}releases/", {"audience": "public", **fields}, format="json"
    )
    assert planned.status_code == 201, planned.content
    done = people["olga"].post(f"{planned.json()['url']}now/", {}, format="json")
    assert done.status_code == 200, done.content


KINDS = {
    "first": "official",
    "second": "official",
    "copy": "disqualified",
    "gone": "withdrawn",
    "base": "baseline",
    "tardy": "late",
    "stray": "not_entered",
}


def test_official_entries_are_ranked_alone_and_others_say_what_they_are(world: Clients) -> None:
    olga, nobody = world["olga"], APIClient()
    assert list(statuses(olga).items()) == [
        (tag, ("official", rank)) for tag, rank in official(olga)
    ]
    release(world)
    answer = nobody.get(BOARD).json()
    assert answer["entries"] == {"shown": "official", "official": 2, "others": 5}
    assert (answer["count"], answer["ranked"]) == (2, 2)
    assert list(statuses(nobody).items()) == [
        (tag, ("official", rank)) for tag, rank in official(nobody)
    ]
    shown_statuses = statuses(nobody, entries="all")
    assert {tag: status for tag, (status, _) in shown_statuses.items()} == KINDS
    assert {tag for tag, (_, rank) in shown_statuses.items() if rank is None} == {"copy", "gone"}
    (copy,) = (
        row for row in nobody.get(BOARD, {"entries": "all"}).json()["results"]
        if row["run"]["tag"] == "copy"
    )  # fmt: skip
    assert (copy["code"], copy["reason"]) == ("disqualified", "its entry was disqualified")
    assert (copy["entry_phase"], copy["entry_number"]) == ("cup/task", entry_of("copy").number)
    assert code_of(nobody.get(BOARD, {"entries": "some"})) == (400, "invalid")


def test_families_charts_and_files_follow_the_board(world: Clients) -> None:
    release(world)
    nobody, path = APIClient(), "/api/v1/collections/dark/"
    ids = {run.tag: str(run.pk) for run in Run.objects.all()}
    two = {"first", "second"}

    tested = nobody.get(BOARD, {"statistics": "tiers", "entries": "all"}).json()
    assert tested["statistics"]["runs"] == 5
    refused = nobody.get(BOARD, {"entries": "all", "baseline": ids["copy"]})
    assert code_of(refused) == (400, "unknown_run")
    assert {run["tag"] for run in nobody.get(f"{path}comparison/").json()["runs"]} == two
    orders = nobody.get(f"{path}orders/", {"measures": "nDCG@10,AP"}).json()
    assert len(orders["runs"]) == 2
    assert {run["tag"] for run in nobody.get(f"{path}values/").json()["runs"]} == two
    assert nobody.get(f"{path}heat-map/export/csv/").content.count(b"stray") == 0
    rows = list(csv.DictReader(io.StringIO(nobody.get(f"{BOARD}export/csv/").content.decode())))
    assert {row["tag"]: row["entry_status"] for row in rows} == dict.fromkeys(two, "official")
    rows = list(
        csv.DictReader(io.StringIO(nobody.get(f"{BOARD}export/csv/?entries=all").content.decode()))
    )
    assert {row["tag"]: row["entry_status"] for row in rows} == KINDS
    table = nobody.get(f"{BOARD}export/md/").content.decode()
    assert "Official entries alone; 5 other runs of the collection are left out." in table
    # Both can still be compared by name.
    named = nobody.get(f"{path}comparison/", {"runs": f"{ids['first']},{ids['copy']}"})
    assert named.status_code == 200


def test_the_page_has_the_switch(world: Clients) -> None:
    release(world)
    page = Client().get("/collections/dark/").content.decode()
    assert 'id="entries-all"' in page
    assert "stray" not in page
    every = Client().get("/collections/dark/", {"entries": "all"}).content.decode()
    assert 'id="entries-official"' in every
    assert "not entered" in every
    assert "its entry was disqualified" in every


def test_a_new_state_of_an_entry_is_on_the_board_at_once(world: Clients) -> None:
    release(world)
    nobody = APIClient()
    before = nobody.get(BOARD)
    assert nobody.get(BOARD, headers={"If-None-Match": before["ETag"]}).status_code == 304
    barred = world["olga"].post(
        f"/api/v1/entries/{entry_of('second').pk}/disqualify/", {"reason": "two"}, format="json"
    )
    assert barred.status_code == 200, barred.content
    after = nobody.get(BOARD, headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert statuses(nobody) == {"first": ("official", 1)}


def test_files_of_withdrawn_and_disqualified_entries_stay_closed(world: Clients) -> None:
    release(world, with_run_files=True)
    nobody = APIClient()
    files = {run.tag: file_status(nobody, run) for run in Run.objects.all()}
    assert files == {tag: 403 if tag in ("copy", "gone") else 200 for tag in KINDS}
    gone = Run.objects.get(tag="gone")
    assert (file_status(world["ann"], gone), file_status(world["olga"], gone)) == (200, 200)


def test_organisers_take_a_run_out_and_put_it_back(world: Clients) -> None:
    release(world)
    olga, eve, nobody = world["olga"], world["eve"], APIClient()
    stray = f"/api/v1/runs/{Run.objects.get(tag='stray').pk}/"
    assert code_of(olga.delete(stray)) == (403, "not_allowed")
    assert code_of(olga.delete(f"{stray}?reason=")) == (400, "invalid")
    assert code_of(world["ann"].delete(f"{stray}?reason=spam")) == (403, "not_allowed")
    first = Run.objects.get(tag="first")
    refused = olga.delete(f"/api/v1/runs/{first.pk}/?reason=spam")
    assert code_of(refused) == (409, "entered_in_phase")

    assert olga.delete(f"{stray}?reason=spam").status_code == 204
    assert "stray" not in statuses(nobody, entries="all")
    assert nobody.get(stray).status_code == 404
    event = AuditEvent.objects.get(action="run.deleted")
    assert (event.actor, event.after) == ("olga", {"reason": "spam"})
    refused = eve.post(f"{stray}restore/")
    assert code_of(refused) == (403, "not_allowed")
    assert "spam" in refused.json()["detail"]
    again = upload(eve, "collections/dark/runs/", run_of("stray"), tag="other")
    assert code_of(again) == (409, "run_removed")

    assert olga.post(f"{stray}restore/").status_code == 200
    evaluate_all()
    assert statuses(nobody, entries="all")["stray"][0] == "not_entered"
    # A disqualified run can be taken out, too.
    copy = Run.objects.get(tag="copy")
    assert olga.delete(f"/api/v1/runs/{copy.pk}/?reason=copied").status_code == 204
    assert nobody.get(BOARD).json()["entries"]["others"] == 4


def test_the_file_of_a_removed_run_stays(world: Clients) -> None:
    run = Run.objects.get(tag="stray")
    assert world["olga"].delete(f"/api/v1/runs/{run.pk}/?reason=spam").status_code == 204
    Run.objects.filter(pk=run.pk).update(deleted_at=run.created_at - timedelta(days=9))
    assert is_named(run.sha256)
    assert world["olga"].post(f"/api/v1/runs/{run.pk}/restore/").status_code == 200
    Run.objects.filter(pk=run.pk).update(deleted_at=run.created_at - timedelta(days=9))
    assert not is_named(run.sha256)


def test_organisers_take_a_run_out_on_a_page(world: Clients) -> None:
    desk = Client()
    desk.force_login(User.objects.get(username="olga"))
    stray, address = Run.objects.get(tag="stray"), "/collections/dark/manage/withdrawn/"
    assert f"{address}?run={stray.pk}#remove" in desk.get(f"/runs/{stray.pk}/").content.decode()
    assert str(stray.pk) in desk.get(address, {"run": str(stray.pk)}).content.decode()
    form = {"action": "remove", "run": str(stray.pk), "reason": ""}
    assert desk.post(address, form).status_code == 400
    assert desk.post(address, {**form, "reason": "spam"}).status_code in (302, 303)
    assert "spam" in desk.get(address).content.decode()
    assert desk.post(address, {"kind": "run", "id": str(stray.pk)}).status_code in (302, 303)
    stray.refresh_from_db()
    assert (stray.deleted_at, stray.removal_reason) == (None, "")
