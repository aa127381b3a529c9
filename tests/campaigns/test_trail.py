"""Everything that happens in a campaign leaves an event in the audit trail."""

from __future__ import annotations

from datetime import timedelta

from rest_framework.test import APIClient

from runs.models import AuditEvent
from tests.campaigns.worlds import CAMPAIGN, CLOSES, LATE, OPENS, PHASE, Clock, enter, make_campaign, register
from tests.conftest import evaluate_all
from tests.runs.test_audit import OF_CAMPAIGNS


def later(days: int) -> dict[str, str]:
    return {"closes_at": (CLOSES + timedelta(days=days)).isoformat(), "reason": "x"}


def test_every_act_leaves_its_event(people: dict[str, APIClient], clock: Clock) -> None:
    olga, ann, abe = people["olga"], people["ann"], people["abe"]
    olga.post("/api/v1/campaigns/", {"slug": "other", "name": "Other", "team": "lab"}, format="json")
    olga.delete("/api/v1/campaigns/other/")
    make_campaign(olga)
    olga.patch(CAMPAIGN, {"summary": "x"}, format="json")
    olga.patch(PHASE, {"name": "x"}, format="json")
    terms = olga.post(f"{CAMPAIGN}agreements/", {"title": "x", "text": "x"}, format="json").json()["sha256"]
    register(ann, "apples")
    ann.post(f"{CAMPAIGN}agreements/{terms}/sign/", {"typed_name": "Ann"}, format="json")
    ann.patch(f"{CAMPAIGN}teams/apples/", {"name": "Pears"}, format="json")
    abe.post(f"{CAMPAIGN}teams/apples/members/")
    abe.delete(f"{CAMPAIGN}teams/apples/members/abe/")
    clock.now = OPENS
    olga.post(f"{PHASE}pause/", {"reason": "x"}, format="json")
    olga.post(f"{PHASE}resume/")
    made = enter(ann, "x").json()
    ann.post(f"{made['url']}withdraw/")
    ann.post(f"{PHASE}entries/", {"run": made["run"]}, format="json")
    enter(ann, "y")
    ann.put(f"{PHASE}priorities/", {"order": ["y", "x"]}, format="json")
    olga.post(f"{made['url']}disqualify/", {"reason": "x"}, format="json")
    assert olga.post(f"{PHASE}extend/", later(1), format="json").json()["extensions"][0]["values_seen_since"] is None
    seen = clock.now
    # Written once for a person and a phase, wherever the values are read.
    for path in (f"{PHASE}board/", "/api/v1/collections/dark/leaderboard/", f"{PHASE}board/"):
        assert olga.get(path).status_code == 200
        clock.now += timedelta(hours=1)
    assert AuditEvent.objects.filter(action="values.read").count() == 1
    told = olga.post(f"{PHASE}extend/", later(2), format="json").json()["extensions"]
    assert [one["values_seen_since"] for one in told] == [None, seen.isoformat().replace("+00:00", "Z")]
    assert ann.get(PHASE).json()["extensions"] == told
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
    shown = events.get(action="agreement.signed")
    assert (shown.actor, shown.after["name"], bool(shown.request_id)) == ("ann", "Ann", True)
