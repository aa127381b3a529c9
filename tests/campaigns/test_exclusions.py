"""Topics that are taken out of the scoring of a phase."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from rest_framework.test import APIClient

from evalhub.campaigns.services.integrity import find_in_campaigns
from runs.models import AuditEvent, Collection, Disclosure, Qrels
from runs.services.collections.collections import disclose
from tests.campaigns.shared_data import clock, module_clock, module_data, people
from tests.campaigns.test_pages import ACTS, browser, send
from tests.campaigns.worlds import (
    CAMPAIGN,
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
from tests.conftest import QRELS, evaluate_all, upload
from tests.web.test_pages import page, text_of
from tests.web.worlds import body_of

__all__ = ["clock", "module_clock", "module_data", "people"]
pytestmark = pytest.mark.django_db
BOARD = f"{PHASE}board/"


@pytest.fixture(scope="module")
def world(people: Clients, module_clock: Clock) -> Clients:
    make_campaign(people["olga"], measures=["nDCG@10", "P@1"])
    register(people["ann"], "apples")
    module_clock.now = OPENS
    assert enter(people["ann"], "a1").status_code == 201
    evaluate_all()
    return people


@pytest.fixture
def after_end(world: Clients, clock: Clock) -> Clients:
    clock.now = LATE
    return world


def exclude(client: APIClient, *topics: str, reason: str = "ambiguous") -> Any:
    fields = {"excluded_topics": topics, "excluded_reason": reason}
    return client.patch(PHASE, fields, format="json")


def versions() -> list[tuple[int, bool, int, int | None]]:
    rows = Qrels.objects.order_by("version")
    return [
        (row.version, row.active, row.topics, row.reduced_from and row.reduced_from.version)
        for row in rows
    ]


def test_values_are_without_excluded_topics(after_end: Clients) -> None:
    olga, ann = after_end["olga"], after_end["ann"]
    payload = exclude(olga, "3").json()
    assert (payload["excluded_topics"], payload["excluded_reason"]) == (["3"], "ambiguous")
    # That a topic is excluded may tell of its judgements.
    assert [
        client.get(PHASE).json()["excluded_topics"] for client in (olga, ann, after_end["eve"])
    ] == [
        ["3"],
        [],
        [],
    ]
    assert versions() == [(1, False, 3, None), (2, True, 2, 1)]
    evaluate_all()
    board = olga.get(BOARD).json()
    assert board["excluded_topics"] == [{"topic_id": "3", "reason": "ambiguous"}]
    assert (board["topics"], board["results"][0]["values"]["P@1"]["topics"]) == (2, 2)
    assert "Topic 3 does not count: ambiguous" in page(
        browser("olga"), "/campaigns/cup/phases/task/"
    )
    # What is uploaded afterwards counts without them, too; the version itself stays as it is.
    assert not upload(olga, "collections/dark/qrels/", f"{QRELS}1 0 u 1\n").json()["active"]
    assert versions()[2:] == [(3, False, 3, None), (4, True, 2, 3)]
    assert olga.post("/api/v1/collections/dark/qrels/1/activate/").json()["active"] is False
    assert [row[1] for row in versions()] == [False, True, False, False]
    assert exclude(olga, "3", "1").status_code == 200
    assert versions()[4] == (5, True, 1, 1)
    assert exclude(olga).json()["excluded_reason"] == ""
    assert [row[1] for row in versions()] == [True, False, False, False, False]
    assert send(
        browser("olga"), f"{ACTS}exclude-topics/?phase=task", topics="3", reason="ambiguous"
    )
    assert [row[1] for row in versions()] == [False, True, False, False, False]
    actions = AuditEvent.objects.filter(object_id="cup/task", action="phase.changed")
    assert [event.after["excluded_topics"] for event in actions.order_by("pk")] == [
        ["3"],
        ["3", "1"],
        None,
        ["3"],
    ]

    evaluate_all()
    disclose(collection=Collection.objects.get(slug="dark"), to=Disclosure.TEAMS)
    assert code_of(exclude(olga, "2")) == (409, "already_released")
    assert [client.get(PHASE).json()["excluded_topics"] for client in (ann, after_end["eve"])] == [
        ["3"],
        [],
    ]
    results = ann.get(f"{PHASE}results/").json()
    assert (results["topics"], results["excluded_topics"][0]["topic_id"]) == (["1", "2"], "3")
    with zipfile.ZipFile(io.BytesIO(body_of(ann.get(f"{PHASE}packet/")))) as packet:
        assert "Topic 3 does not count: ambiguous" in packet.read("README.txt").decode()
    snapshot = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json").json()
    (frozen,) = olga.get(snapshot["url"]).json()["manifest"]["phases"]
    assert frozen["excluded_topics"] == [{"topic": "3", "reason": "ambiguous"}]
    assert frozen["collection"]["qrels"]["topics"] == 2
    assert not list(find_in_campaigns())


def test_what_cannot_be_excluded(after_end: Clients) -> None:
    olga = after_end["olga"]
    assert code_of(exclude(olga, "9")) == (400, "unknown_topic")
    assert code_of(exclude(olga, "3", reason="")) == (400, "required")
    assert code_of(exclude(olga, "1", "2", "3")) == (409, "conflict")
    assert code_of(exclude(after_end["ann"], "3")) == (403, "not_allowed")
    assert versions() == [(1, True, 3, None)]
    assert olga.get(PHASE).json()["excluded_topics"] == []


def test_the_desk_proposes_to_exclude_topics_without_a_relevant_document(
    after_end: Clients,
) -> None:
    olga, desk = browser("olga"), "/campaigns/cup/desk/"
    assert "no relevant document" not in text_of(page(olga, desk))
    assert (
        upload(after_end["olga"], "collections/dark/qrels/", f"{QRELS}7 0 v 0\n").status_code == 201
    )
    assert "no relevant document" not in text_of(page(olga, desk))
    evaluate_all()
    html = text_of(page(olga, desk))
    assert (
        "1 of 4 topics has no relevant document (7): measures such as AP and nDCG are 0 there for every run."
        in html
    )
    assert "Exclude it, and their means are 1.333 times as large" in html
    assert f"{ACTS}exclude-topics/?phase=task" in page(olga, desk)
    assert exclude(after_end["olga"], "7").status_code == 200
    evaluate_all()
    assert "no relevant document" not in text_of(page(olga, desk))
