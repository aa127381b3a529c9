"""What organisers take out of a phase: all packets, all entries, and values by topic."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from evalhub.campaigns.services import results
from runs.models import AuditEvent, Collection, Disclosure, Packet, Team, User
from runs.services.collections.collections import disclose
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.worlds import (
    CLOSES,
    OPENS,
    PHASE,
    Clients,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import GOOD, POOR, evaluate_all

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
FORM = [
    {"key": "stages", "type": "number", "label": "Stages", "required": True},
    {"key": "kinds", "type": "choices", "label": "Kinds", "choices": ["dense", "sparse"]},
    {"key": "note", "type": "text", "label": "Note", "public": False},
]


def body(answer: Any) -> bytes:
    assert answer.status_code == 200, getattr(answer, "content", "")
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


@pytest.fixture(scope="module")
def world(people: Clients, module_clock: Clock) -> Clients:
    """Two runs of each of two teams and a baseline, evaluated, the phase over."""
    make_campaign(people["olga"], measures=["nDCG@10", "AP", "NumRet"], form=FORM)
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    module_clock.now = OPENS
    for number in range(2):
        for name, text in (("ann", GOOD), ("ben", POOR)):
            tag = f"{name}{number}"
            content = text.replace("good", tag).replace("poor", tag)
            content += f"2 Q0 y{number} 9 0.5 {tag}\n"
            fields = {
                "answers": '{"stages": 2, "kinds": ["dense", "sparse"], "note": "=1+1"}',
                "metadata": f'{{"model": "@{name}", "k": {number}}}',
            }
            assert enter(people[name], tag, content, **fields).status_code == 201
    content = POOR.replace("poor", "bm25") + "3 Q0 z 1 1.0 bm25\n"
    entered = enter(people["olga"], "bm25", content, role="baseline", answers='{"stages": 1}')
    assert entered.status_code == 201, entered.content
    evaluate_all()
    module_clock.now = CLOSES + timedelta(days=8)
    return people


def test_all_packets_are_those_that_teams_get(
    world: Clients, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = CLOSES + timedelta(days=8)
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.PARTICIPANTS)
    own = {name: world[name].get(f"{PHASE}packet/") for name in ("ann", "ben")}
    archive = zipfile.ZipFile(io.BytesIO(body(world["olga"].get(f"{PHASE}packets/"))))
    assert archive.testzip() is None
    *packets, sums = archive.namelist()
    assert packets == ["cup-task-apples-v1.zip", "cup-task-berries-v1.zip"]
    for name, packet in zip(("ann", "ben"), packets, strict=True):
        assert archive.read(packet) == own[name].content
    expected = [f"{hashlib.sha256(archive.read(name)).hexdigest()}  {name}" for name in packets]
    assert archive.read(sums).decode().splitlines() == expected
    assert world["ann"].get(f"{PHASE}packets/").status_code == 403

    # Packets that are made together read the values of the phase once, and are the same.
    read, reads = results.read_entry_values, []

    def counted(**of: Any) -> Any:
        reads.append(of)
        return read(**of)

    Packet.objects.all().delete()
    monkeypatch.setattr(results, "read_entry_values", counted)
    together = zipfile.ZipFile(io.BytesIO(body(world["olga"].get(f"{PHASE}packets/"))))
    assert [together.read(name) for name in together.namelist()] == [
        archive.read(name) for name in archive.namelist()
    ]
    assert len(reads) == 1


def test_organisers_read_values_by_topic_before_a_release(world: Clients, clock: Clock) -> None:
    clock.now = CLOSES + timedelta(days=8)
    olga = world["olga"]
    readings = AuditEvent.objects.filter(action=AuditEvent.Action.VALUES_READ)
    assert readings.count() == 0
    answer = olga.get(f"{PHASE}topics/").json()
    assert readings.count() == 1
    (runs,) = answer["sets"]
    assert runs["runs"] == 4
    # From the values of each run, without the baseline's.
    results = {
        team: olga.get(f"{PHASE}results/?team={team}").json()["entries"]
        for team in ("apples", "berries")
    }
    assert sum(len(entries) for entries in results.values()) == 4
    for measure in ("nDCG@10", "AP"):
        values = np.array(
            [entry["values"][measure] for entries in results.values() for entry in entries], float
        )
        figures = runs["by_topic"][measure]
        for name, function in (("min", np.min), ("max", np.max), ("mean", np.mean)):
            np.testing.assert_allclose(figures[name], function(values, axis=0), rtol=1e-12)
        np.testing.assert_allclose(figures["median"], np.median(values, axis=0), rtol=1e-12)
        assert figures["n"] == [4] * len(answer["topics"])

    rows = list(csv.DictReader(body(olga.get(f"{PHASE}topics/?format=csv")).decode().splitlines()))
    lines = {(row["measure"], row["topic"]): row for row in rows}
    for index, topic in enumerate(answer["topics"]):
        for name in ("min", "median", "median_upper", "max", "mean"):
            assert float(lines["AP", topic][name]) == runs["by_topic"]["AP"][name][index]
    best = olga.get(f"{PHASE}topics/?reference=best_of_team").json()["sets"][0]["runs"]
    assert best == 2
    browser = Client()
    browser.force_login(User.objects.get(username="olga"))
    page = browser.get("/campaigns/cup/desk/phases/task/topics/").content.decode()
    assert page.count("<tr") == 1 + len(rows)
    desk = browser.get("/campaigns/cup/desk/").content.decode()
    for address in ("packets/", "entries/?format=csv", "desk/phases/task/topics/"):
        assert address in desk


def test_nobody_else_reads_them(world: Clients, clock: Clock) -> None:
    clock.now = CLOSES + timedelta(days=8)
    for path in ("topics/", "packets/"):
        assert [world[name].get(f"{PHASE}{path}").status_code for name in ("ann", "eve")] == [
            403,
            403,
        ]
    # Organisers of the campaign need not be organisers of the collection.
    Team.objects.create(slug="others", name="others")
    Collection.objects.update(team=Team.objects.get(slug="others"))
    for path in ("topics/", "packets/"):
        answer = world["olga"].get(f"{PHASE}{path}")
        assert (answer.status_code, answer.json()["code"]) == (403, "blind")
    assert body(world["olga"].get(f"{PHASE}entries/?format=csv"))


def test_entries_are_a_file_with_their_answers_and_parameters(world: Clients) -> None:
    text = body(world["olga"].get(f"{PHASE}entries/?format=csv")).decode()
    rows = {row["tag"]: row for row in csv.DictReader(io.StringIO(text))}
    assert set(rows) == {"ann0", "ann1", "ben0", "ben1", "bm25"}
    ann = rows["ann1"]
    assert (ann["team"], ann["evaluation"], ann["late"]) == ("apples", "evaluated", "false")
    assert (ann["answer:stages"], ann["answer:kinds"]) == ("2", "dense; sparse")
    assert ann["arrived_at"].startswith("2027-04-02T12:00:00")
    # A spreadsheet runs none of it.
    assert (ann["answer:note"], ann["param:model"], ann["param:k"]) == ("'=1+1", "'@ann", "1")
    assert (rows["bm25"]["team"], rows["bm25"]["role"]) == ("", "baseline")
    own = body(world["ann"].get(f"{PHASE}entries/?format=csv")).decode()
    assert {row["tag"] for row in csv.DictReader(io.StringIO(own))} == {"ann0", "ann1"}
    assert world["olga"].get(f"{PHASE}entries/?format=xml").status_code == 400
