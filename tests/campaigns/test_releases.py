"""Releases: planned, done by the clock or at once, one time only, and never of mixed judgements."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from rest_framework.test import APIClient

from evalhub.campaigns.services import releasing
from evalhub.campaigns.services.integrity import find_in_campaigns
from evalhub.campaigns.services.releasing import release_due
from runs.models import AuditEvent, Collection, Mail, Release, User
from tests.campaigns.worlds import (
    LATE,
    OPENS,
    PHASE,
    TICK,
    Clock,
    code_of,
    enter,
    make_campaign,
    register,
    run_of,
)
from tests.conftest import POOR, QRELS, evaluate_all, upload

Clients = dict[str, APIClient]
RELEASES = f"{PHASE}releases/"
DESK = "/campaigns/cup/desk/"
AT = LATE + timedelta(days=1)


def hold(people: Clients, clock: Clock, **phase: Any) -> None:
    """The campaign after its end; Ann entered two runs, Ben one."""
    make_campaign(people["olga"], **phase)
    for name, team in (("ann", "apples"), ("ben", "berries")):
        register(people[name], team)
    clock.now = OPENS
    for who, tag, content in (("ann", "a1", POOR.replace("poor", "a1")), ("ann", "a2", run_of("a2")),
                              ("ben", "b1", run_of("b1"))):  # fmt: skip
        assert enter(people[who], tag, content).status_code == 201
    clock.now = LATE


def plan(client: APIClient, **fields: Any) -> Any:
    return client.post(RELEASES, {"audience": "teams", **fields}, format="json")


def state_of(client: APIClient) -> list[tuple[str, str | None]]:
    return [(row["state"], row["waits_for"]) for row in client.get(RELEASES).json()["results"]]


def test_a_planned_release_is_done_at_its_instant_when_everything_is_evaluated(
    people: Clients, clock: Clock
) -> None:
    hold(people, clock, selection="best")
    olga, dark = people["olga"], Collection.objects.get(slug="dark")
    assert plan(olga, at=AT.isoformat()).status_code == 201
    clock.now = AT - TICK
    assert (release_due(), state_of(olga)) == (0, [("planned", None)])
    clock.now = AT
    assert (release_due(), state_of(olga)) == (0, [("waiting", "evaluations")])
    row = olga.get(RELEASES).json()["results"][0]
    assert (row["waiting_for_evaluations"], row["qrels"]) == (3, None)
    evaluate_all()
    # Other judgements meanwhile: the old values do not count.
    assert upload(olga, "collections/dark/qrels/", QRELS + "9 0 z 1\n").status_code == 201
    assert (release_due(), state_of(olga)) == (0, [("waiting", "evaluations")])
    assert people["ann"].get(RELEASES).json()["count"] == 0
    evaluate_all()
    assert (release_due(), release_due(), state_of(olga)) == (1, 0, [("done", None)])
    dark.refresh_from_db()
    assert dark.disclosure.label == "teams"
    done = Release.objects.get()
    assert done.qrels is not None
    assert (done.qrels.version, done.done_at, len(done.official)) == (2, AT, 2)
    best = people["olga"].get(f"{PHASE}entries/").json()["results"]
    assert {run["tag"] for run in best if run["id"] in done.official} == {"a2", "b1"}
    event = AuditEvent.objects.get(action="release.done")
    assert (event.actor, event.after["qrels"], event.after["sha256"]) == (
        "olga",
        2,
        done.qrels.sha256,
    )
    assert AuditEvent.objects.filter(action="collection.disclosed").count() == 1
    # Its audience sees it now, and who takes part in nothing does not.
    seen = people["ann"].get(RELEASES).json()["results"]
    assert [(row["state"], row["qrels"], row["waiting_for_evaluations"]) for row in seen] == [
        ("done", 2, None)
    ]
    assert people["eve"].get(RELEASES).json()["count"] == 0
    assert people["eve"].get(f"/api/v1/releases/{done.pk}/").status_code == 404


def test_a_release_at_once_waits_unless_it_is_forced(people: Clients, clock: Clock) -> None:
    hold(people, clock)
    olga = people["olga"]
    url = plan(olga).json()["url"]
    assert code_of(olga.post(f"{url}now/")) == (409, "evaluations_running")
    assert olga.post(f"{url}now/", {"force": True}, format="json").status_code == 400
    assert code_of(people["ann"].post(f"{url}now/"))[0] == 404
    forced = olga.post(
        f"{url}now/", {"force": True, "reason": "one worker is broken"}, format="json"
    )
    assert (forced.status_code, forced.json()["state"]) == (200, "done")
    after = AuditEvent.objects.get(action="release.done").after
    assert (after["forced"], after["running"]) == ("one worker is broken", 3)
    assert (
        code_of(olga.post(f"{url}now/")) == code_of(olga.delete(url)) == (409, "already_released")
    )
    assert code_of(plan(olga)) == (409, "already_released")
    # A larger audience is another release; it may skip a step.
    assert olga.post(f"{plan(olga, audience='public').json()['url']}now/", {"force": True, "reason": "x"},
                     format="json").json()["audience"] == "public"  # fmt: skip
    assert not Collection.objects.get(slug="dark").blind
    assert code_of(plan(olga, audience="participants")) == (409, "already_released")
    assert people["eve"].get(RELEASES).json()["count"] == 1


def test_a_release_names_the_judgements_that_are_active(people: Clients, clock: Clock) -> None:
    hold(people, clock)
    olga, dark = people["olga"], Collection.objects.get(slug="dark")
    evaluate_all()
    planned = plan(olga, qrels=1).json()
    dark.qrels.update(active=False)
    refused = olga.post(f"{planned['url']}now/", {}, format="json")
    assert code_of(refused) == (409, "release_needs_qrels")
    assert Collection.objects.get(slug="dark").blind
    dark.qrels.update(active=True)
    assert olga.post(f"{planned['url']}now/", {}, format="json").status_code == 200


def test_results_are_released_again_by_newer_judgements(people: Clients, clock: Clock) -> None:
    hold(people, clock)
    olga, ann = people["olga"], people["ann"]
    evaluate_all()
    for audience in ("teams", "public"):
        release = plan(olga, audience=audience)
        assert olga.post(f"{release.json()['url']}now/").status_code == 200
    same = plan(olga, audience="public")
    assert code_of(same) == (409, "already_released")
    assert "activate these" in same.json()["detail"]
    first = ann.get(f"{PHASE}packet/")
    newer = upload(olga, "collections/dark/qrels/", f"{QRELS}3 0 y 1\n", activate="true")
    assert newer.status_code == 201, newer.content
    evaluate_all()
    clock.now += TICK
    # What was released stays until it is released again.
    assert ann.get(f"{PHASE}packet/")["X-SHA256"] == first["X-SHA256"]
    assert code_of(plan(olga, audience="teams")) == (409, "already_released")
    desk = Client()
    desk.force_login(User.objects.get(username="olga"))
    assert "Release to public again, by newer judgements" in desk.get(DESK).content.decode()
    again = plan(olga, audience="public").json()["url"]
    assert code_of(plan(olga, audience="public")) == (409, "already_planned")
    assert olga.post(f"{again}now/").json()["qrels"] == 2
    assert state_of(olga) == [("done", None)] * 3
    assert ann.get(f"{PHASE}packet/")["X-SHA256"] != first["X-SHA256"]
    assert Mail.objects.filter(subject__contains="again, by newer judgements").exists()
    assert not list(find_in_campaigns())
    assert "again, by newer" not in desk.get(DESK).content.decode()


def test_what_cannot_be_planned(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    olga = people["olga"]
    clock.now = OPENS
    assert code_of(plan(olga, at=OPENS.isoformat())) == (409, "release_in_the_past")
    assert code_of(plan(olga, at=(LATE - TICK).isoformat())) == (409, "phase_not_over")
    assert code_of(plan(olga, qrels=7)) == (400, "invalid")
    assert code_of(plan(people["ann"])) == (403, "not_allowed")
    # A day begins in its zone.
    first = plan(olga, at="2027-06-01", zone="AoE").json()
    assert first["planned_at"] == "2027-06-01T12:00:00Z"
    assert code_of(plan(olga)) == (409, "already_planned")
    assert olga.delete(first["url"]).status_code == 204
    assert code_of(olga.post(f"{first['url']}now/")) == (409, "release_cancelled")
    # Now it is another plan, which follows an extension, and judgements that are not the active
    # ones.
    second = plan(olga, at=LATE.isoformat(), qrels=1).json()
    later = (LATE + timedelta(days=2)).isoformat()
    olga.post(f"{PHASE}extend/", {"closes_at": later, "reason": "power cut"}, format="json")
    clock.now = LATE + TICK
    assert (release_due(), state_of(olga)[1]) == (0, ("waiting", "phase"))
    assert code_of(olga.post(f"{second['url']}now/")) == (409, "phase_not_over")
    assert upload(olga, "collections/dark/qrels/", "1 0 a 1\n").status_code == 201
    clock.now = LATE + timedelta(days=3)
    assert (release_due(), state_of(olga)[1]) == (0, ("waiting", "qrels"))
    assert olga.post("/api/v1/collections/dark/qrels/1/activate/").status_code == 200
    assert release_due() == 1


def test_a_release_that_is_killed_has_done_nothing(
    people: Clients, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(people, clock)
    evaluate_all()
    plan(people["olga"], at=AT.isoformat())
    clock.now = AT

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(releasing, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            release_due()
    assert Collection.objects.get(slug="dark").disclosure.label == "organisers"
    assert not AuditEvent.objects.filter(action="collection.disclosed").exists()
    assert (state_of(people["olga"]), release_due()) == ([("planned", None)], 1)


@pytest.mark.django_db(transaction=True)
def test_two_dispatchers_release_once(people: Clients, clock: Clock) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("the tests' SQLite is in memory, which threads do not share")
    hold(people, clock)
    evaluate_all()
    plan(people["olga"], at=AT.isoformat())
    clock.now = AT
    start, done = threading.Barrier(4), list[int]()

    def dispatch() -> None:
        start.wait()
        done.append(release_due())
        connections.close_all()

    threads = [threading.Thread(target=dispatch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 0, 0, 1]
    assert AuditEvent.objects.filter(action="release.done").count() == 1
