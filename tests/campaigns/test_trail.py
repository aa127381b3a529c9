"""Everything that happens in a campaign leaves an event in the audit trail."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from evalhub.campaigns.services.trail import ACTIONS
from runs.models import AuditEvent
from tests.campaigns.test_board import browser
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import evaluate_all
from tests.runs.test_audit import OF_CAMPAIGNS
from tests.web.test_pages import page

# Acts with snapshots, which this campaign has none of, and the deletion of another.
NOT_HERE = {"snapshot.made", "snapshot.changed", "snapshot.withdrawn", "campaign.deleted"}


def later(days: int) -> dict[str, str]:
    return {"closes_at": (CLOSES + timedelta(days=days)).isoformat(), "reason": "x"}


def test_every_act_leaves_its_event(people: dict[str, APIClient], clock: Clock) -> None:
    olga, ann, abe = people["olga"], people["ann"], people["abe"]
    olga.post(
        "/api/v1/campaigns/", {"slug": "other", "name": "Other", "team": "lab"}, format="json"
    )
    olga.delete("/api/v1/campaigns/other/")
    make_campaign(olga)
    olga.patch(CAMPAIGN, {"summary": "x"}, format="json")
    olga.patch(PHASE, {"name": "x"}, format="json")
    terms = olga.post(f"{CAMPAIGN}agreements/", {"title": "x", "text": "x"}, format="json").json()[
        "sha256"
    ]
    register(ann, "apples")
    ann.post(f"{CAMPAIGN}agreements/{terms}/sign/", {"typed_name": "Ann"}, format="json")
    ann.patch(f"{CAMPAIGN}teams/apples/", {"name": "Pears"}, format="json")
    abe.post(f"{CAMPAIGN}teams/apples/members/")
    abe.delete(f"{CAMPAIGN}teams/apples/members/abe/")
    clock.now = OPENS
    olga.post(f"{PHASE}pause/", {"reason": "x"}, format="json")
    olga.post(f"{PHASE}resume/")
    entry = enter(ann, "x").json()
    ann.post(f"{entry['url']}withdraw/")
    ann.post(f"{PHASE}entries/", {"run": entry["run"]}, format="json")
    enter(ann, "y")
    ann.put(f"{PHASE}priorities/", {"order": ["y", "x"]}, format="json")
    olga.post(f"{entry['url']}disqualify/", {"reason": "x"}, format="json")
    assert (
        olga.post(f"{PHASE}extend/", later(1), format="json").json()["extensions"][0][
            "values_seen_since"
        ]
        is None
    )
    seen = clock.now
    # Written once for a person and a phase, wherever the values are read.
    for path in (f"{PHASE}board/", "/api/v1/collections/dark/leaderboard/", f"{PHASE}board/"):
        assert olga.get(path).status_code == 200
        clock.now += timedelta(hours=1)
    assert AuditEvent.objects.filter(action="values.read").count() == 1
    extensions = olga.post(f"{PHASE}extend/", later(2), format="json").json()["extensions"]
    assert [extension["values_seen_since"] for extension in extensions] == [
        None,
        seen.isoformat().replace("+00:00", "Z"),
    ]
    assert ann.get(PHASE).json()["extensions"] == extensions
    query = f"closes_at={quote(later(2)['closes_at'])}&reason=x"
    assert olga.delete(f"{PHASE}extend/?{query}").status_code == 204
    clock.now = LATE + timedelta(days=1)
    planned = olga.post(f"{PHASE}releases/", {"audience": "teams"}, format="json").json()
    assert olga.delete(planned["url"]).status_code == 204
    planned = olga.post(f"{PHASE}releases/", {"audience": "teams"}, format="json").json()
    evaluate_all()
    assert olga.post(f"{planned['url']}now/").status_code == 200
    olga.post(f"{CAMPAIGN}notices/", {"title": "x", "text": "x"}, format="json")
    olga.post(f"{CAMPAIGN}archive/")
    events = AuditEvent.objects.filter(actor__in=("olga", "ann", "abe"))
    every = {action for action in AuditEvent.Action.values if action.startswith(OF_CAMPAIGNS)}
    assert {event.action for event in events} & every == every
    answer = events.get(action="agreement.signed")
    assert (answer.actor, answer.after["name"], bool(answer.request_id)) == ("ann", "Ann", True)
    check_the_trail_of_the_campaign(people)


def check_the_trail_of_the_campaign(people: dict[str, APIClient]) -> None:
    """Organisers find all of it, newest first, and nobody else any."""
    olga, trail = people["olga"], f"{CAMPAIGN}audit/"
    assert [people[name].get(trail).status_code for name in ("ann", "ben")] == [403, 403]
    assert APIClient().get(trail).status_code == 401

    def events_of(**query: str) -> list[dict[str, Any]]:
        answer = olga.get(trail, {"limit": "200", **query})
        assert answer.status_code == 200, answer.content
        return answer.json()["results"]  # type: ignore[no-any-return]

    every = events_of()
    assert {row["action"] for row in every} == set(ACTIONS) - NOT_HERE
    assert [row["time"] for row in every] == sorted((row["time"] for row in every), reverse=True)
    assert not {"address", "token"} & set(every[0])
    (renamed,) = [row for row in events_of(team="apples") if row["after"].get("name") == "Pears"]
    assert (renamed["actor"], renamed["about"], renamed["before"]["name"]) == (
        "ann",
        "team apples",
        "apples",
    )
    entered = events_of(team="apples", phase="task")
    assert {row["about"] for row in entered} == {"entry 1 of task, x", "entry 2 of task, y"}
    assert {row["action"] for row in events_of(actor="abe")} == {
        "participant.joined",
        "participant.left",
    }
    assert events_of(phase="nothing") == events_of(after="2999-01-01T00:00:00Z") == []
    assert olga.get(trail, {"action": "user.created"}).json()["code"] == "invalid"
    assert olga.get(trail, {"format": "xml"}).json()["code"] == "bad_parameter"
    lines = list(csv.DictReader(io.StringIO(olga.get(trail, {"format": "csv"}).content.decode())))
    assert [line["action"] for line in lines] == [row["action"] for row in every]
    assert [json.loads(line["after"]) for line in lines] == [row["after"] for row in every]
    html = page(browser("olga"), "/campaigns/cup/desk/audit/", action="phase.extended")
    assert html.count("<code>phase.extended</code>") == 2
    assert browser("ann").get("/campaigns/cup/desk/audit/").status_code == 403


def test_a_deleted_draft_of_the_same_name_is_another_campaign(
    people: dict[str, APIClient], clock: Clock
) -> None:
    olga, fields = people["olga"], {"slug": "cup", "name": "Old", "team": "lab"}
    assert olga.post("/api/v1/campaigns/", fields, format="json").status_code == 201
    assert olga.delete(CAMPAIGN).status_code == 204
    make_campaign(olga)
    rows = olga.get(f"{CAMPAIGN}audit/").json()["results"]
    assert [row["action"] for row in rows].count("campaign.created") == 1
    assert "campaign.deleted" not in {row["action"] for row in rows}


def test_the_trail_asks_no_more_for_more_events(people: dict[str, APIClient], clock: Clock) -> None:
    olga = people["olga"]
    make_campaign(olga)
    queries = []
    for number in range(2):
        olga.patch(CAMPAIGN, {"summary": f"{number}"}, format="json")
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(f"{CAMPAIGN}audit/").status_code == 200
        queries.append(len(captured))
    assert queries[0] == queries[1] <= 16, queries


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("get", "parameters/", {"filter": "measure:nDCG@10>0.1"}),
        ("get", "configurations/", {"filter": "status:ranked"}),
        ("patch", "runs/metadata/", {"filter": "measure:nDCG@10>0.1", "metadata": {"a": 1}}),
    ],
)
def test_filters_by_means_are_readings_of_values(
    people: dict[str, APIClient], clock: Clock, method: str, path: str, body: dict[str, Any]
) -> None:
    olga, read = people["olga"], AuditEvent.objects.filter(action="values.read")
    make_campaign(olga)
    register(people["ann"], "apples")
    clock.now = OPENS
    for tag in ("x", "y"):
        assert enter(people["ann"], tag).status_code == 201
    evaluate_all()
    ask, address = getattr(olga, method), f"/api/v1/collections/dark/{path}"
    ask(address, {**body, "filter": "tag:x"}, format="json")
    assert not read.exists()
    answer = ask(address, body, format="json")
    assert answer.status_code == 200, answer.content
    assert read.count() == 1
