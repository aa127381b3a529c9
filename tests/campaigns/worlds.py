"""A campaign to test with: the lab's, on a blind collection, in which two teams take part."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from runs.models import Campaign, Membership, Team, User
from tests.conftest import GOOD, QRELS, client_of, upload

START = datetime(2027, 4, 1, 12, tzinfo=UTC)
OPENS, CLOSES, LATE = (
    START + timedelta(days=1),
    START + timedelta(days=31),
    START + timedelta(days=38),
)
TICK = timedelta(microseconds=1)
CAMPAIGN = "/api/v1/campaigns/cup/"
PHASE = f"{CAMPAIGN}phases/task/"
# The names of the people in these tests, with a client of each.
Clients = dict[str, APIClient]


class Clock:
    """The time that the database has in a test."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def stop_clock(patch: pytest.MonkeyPatch) -> Clock:
    """Stop the clock of the database at the start; return it."""
    clock = Clock()
    patch.setattr("runs.services.clock.database_now", clock)
    patch.setattr("runs.models.collections.disclosure.now", clock)
    return clock


def make_team(slug: str, owner: str, *members: str) -> Clients:
    """A team with its owner and members, and a client of each."""
    team = Team.objects.create(slug=slug, name=slug)
    clients = {}
    for place, name in enumerate((owner, *members)):
        user = User.objects.create_user(name)
        Membership.objects.create(team=team, user=user, role="member" if place else "owner")
        clients[name] = client_of(user)
    return clients


def make_people() -> Clients:
    """Olga organises for the lab; Ann and Abe are in team apples, Ben in team berries, Eve in none."""
    return {
        **make_team("lab", "olga"),
        **make_team("apples", "ann", "abe"),
        **make_team("berries", "ben"),
        **make_team("eves", "eve"),
    }


def make_campaign(organiser: APIClient, *, publish: bool = True, **phase: Any) -> None:
    """The campaign `cup` of the lab, with the phase `task` on the blind collection `dark`."""
    fields = {
        "slug": "dark",
        "name": "Dark",
        "team": "lab",
        "blind": True,
        "measures": ["nDCG@10", "AP"],
    }
    assert organiser.post("/api/v1/collections/", fields, format="json").status_code == 201
    assert upload(organiser, "collections/dark/qrels/", QRELS).status_code == 201
    answer = organiser.post(
        "/api/v1/campaigns/",
        {"slug": "cup", "name": "Cup", "team": "lab", "registration": "open"},
        format="json",
    )
    assert answer.status_code == 201, answer.content
    times = {
        "opens_at": OPENS.isoformat(),
        "closes_at": CLOSES.isoformat(),
        "late_closes_at": LATE.isoformat(),
    }
    answer = organiser.post(
        f"{CAMPAIGN}phases/",
        {
            "slug": "task",
            "name": "Task",
            "collection": "dark",
            "measures": ["nDCG@10"],
            **times,
            **phase,
        },
        format="json",
    )
    assert answer.status_code == 201, answer.content
    if publish:
        assert organiser.post(f"{CAMPAIGN}publish/").status_code == 200


def register(client: APIClient, team: str) -> Any:
    return client.post(f"{CAMPAIGN}teams/", {"team": team}, format="json")


def run_of(tag: str) -> str:
    """The text of a run with a tag, different from that of every other."""
    return GOOD.replace("good", tag).replace("3.0", f"{3 + len(tag)}.0")


def enter(client: APIClient, tag: str, content: str | None = None, **fields: Any) -> Any:
    """Enter a run with a file of its own."""
    file = SimpleUploadedFile("run", (content or run_of(tag)).encode())
    return client.post(f"{PHASE}entries/", {"file": file, "tag": tag, **fields}, format="multipart")


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


def campaign() -> Campaign:
    return Campaign.objects.get(slug="cup")
