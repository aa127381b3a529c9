"""Acts in campaigns with an Idempotency-Key: sent again, they are done once."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from runs.models import CampaignNotice, Entry, Extension, Mail, Membership, Release, Team, User
from tests.campaigns.worlds import (
    CAMPAIGN,
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
)
from tests.conftest import evaluate_all

pytestmark = pytest.mark.sqlite


def test_every_act_in_a_campaign_takes_a_key(db: None) -> None:
    """All but invitations, whose links are shown once and stored nowhere."""
    schema = Client().get("/api/v1/schema/?format=json").json()
    of_campaigns = re.compile(r"/api/v1/(campaigns|entries|releases|snapshots)/")
    without = [
        path
        for path, acts in schema["paths"].items()
        if of_campaigns.match(path) and "post" in acts
        if "Idempotency-Key"
        not in [parameter["name"] for parameter in acts["post"].get("parameters", [])]
    ]
    assert without == [
        "/api/v1/campaigns/{campaign}/links/",
        "/api/v1/campaigns/{campaign}/teams/{entrant}/invitations/",
    ]


def test_an_act_that_is_sent_again_is_done_once(people: Clients, clock: Clock) -> None:
    olga, ann = people["olga"], people["ann"]

    def twice(client: Any, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        key = {"Idempotency-Key": path}
        first, second = (
            client.post(path, body or {}, format="json", headers=key) for _ in range(2)
        )
        assert first.status_code in (200, 201), first.content
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert second["Idempotent-Replayed"] == "true"
        assert "Idempotent-Replayed" not in first
        return dict(first.json())

    make_campaign(olga, publish=False)
    twice(olga, f"{CAMPAIGN}publish/")
    terms = twice(olga, f"{CAMPAIGN}agreements/", {"title": "Terms", "text": "Be fair."})
    register(ann, "apples")
    twice(ann, f"{CAMPAIGN}agreements/{terms['sha256']}/sign/", {"typed_name": "Ann"})
    twice(people["abe"], f"{CAMPAIGN}teams/apples/members/")
    twice(olga, f"{CAMPAIGN}notices/", {"title": "Hello", "text": "All is well."})
    assert CampaignNotice.objects.count() == 1
    assert Mail.objects.filter(event="notice.posted").count() == 3
    clock.now = OPENS
    twice(olga, f"{PHASE}pause/", {"reason": "a flood"})
    twice(olga, f"{PHASE}resume/")
    entries = [enter(ann, tag).json()["url"] for tag in ("a1", "a2", "a3")]
    twice(ann, f"{entries[0]}withdraw/")
    twice(olga, f"{entries[1]}disqualify/", {"reason": "of another team"})
    assert [entry.state for entry in Entry.objects.order_by("number")] == [
        "withdrawn",
        "disqualified",
        "entered",
    ]
    later = {"closes_at": (CLOSES + timedelta(days=1)).isoformat(), "reason": "power cut"}
    twice(olga, f"{PHASE}extend/", later)
    assert Extension.objects.count() == 1
    clock.now = LATE + timedelta(days=1)
    evaluate_all()
    release = twice(olga, f"{PHASE}releases/", {"audience": "public"})
    twice(olga, f"{release['url']}now/")
    assert Release.objects.count() == 1
    twice(olga, f"{CAMPAIGN}archive/")


def test_who_is_no_organiser_any_more_gets_the_answer_without_the_key(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    body, key = {"title": "Hello", "text": "All is well."}, {"Idempotency-Key": "k"}
    path = f"{CAMPAIGN}notices/"
    assert people["olga"].post(path, body, format="json", headers=key).status_code == 201
    Membership.objects.create(
        team=Team.objects.get(slug="lab"), user=User.objects.get(username="eve"), role="owner"
    )
    Membership.objects.filter(team__slug="lab", user__username="olga").delete()
    assert code_of(people["olga"].post(path, body, format="json", headers=key)) == (
        403,
        "not_allowed",
    )
    assert CampaignNotice.objects.count() == 1
