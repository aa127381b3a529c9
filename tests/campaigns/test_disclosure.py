"""Who sees what depends on the judgements of a collection, from its organisers to everybody."""

from __future__ import annotations

import itertools

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Disclosure, Phase, Qrels, User, sees_own_results
from runs.services.collections.collections import disclose
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    Clock,
    code_of,
    enter,
    make_campaign,
    make_team,
    register,
)
from tests.conftest import evaluate_all

Clients = dict[str, APIClient]
BOARD = "/api/v1/collections/dark/leaderboard/"
STEPS = (Disclosure.TEAMS, Disclosure.PARTICIPANTS, Disclosure.PUBLIC)
EVERYBODY = ("olga", "ann", "abe", "ben", "cat", "eve")


@pytest.fixture
def after_end(people: Clients, clock: Clock) -> Clients:
    """The campaign after its end: Ann and Ben entered a run each; Abe is in Ann's team and did not join, Cat's team was
    removed."""
    people |= make_team("cherries", "cat")
    make_campaign(people["olga"])
    for name, team in (("ann", "apples"), ("ben", "berries"), ("cat", "cherries")):
        register(people[name], team)
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == enter(people["ben"], "two").status_code == 201
    evaluate_all()
    removal = {"state": "removed", "reason": "test"}
    people["olga"].patch("/api/v1/campaigns/cup/teams/cherries/", removal, format="json")
    clock.now = LATE
    return people


def who_sees(people: Clients) -> set[str]:
    statuses = {name: people[name].get(BOARD).status_code for name in EVERYBODY} | {
        "": APIClient().get(BOARD).status_code
    }
    assert set(statuses.values()) <= {200, 403}
    return {name for name, status in statuses.items() if status == 200}


def test_each_step_shows_it_to_more_people(after_end: Clients) -> None:
    dark, phase = Collection.objects.get(slug="dark"), Phase.objects.get()
    users = {user.username: user for user in User.objects.all()}
    assert who_sees(after_end) == {"olga"}
    assert not any(sees_own_results(users[name], phase) for name in EVERYBODY)
    qrels = Qrels.objects.get()
    for step, seeing in zip(
        STEPS, ({"olga"}, {"olga", "ann", "ben"}, {*EVERYBODY, ""}), strict=True
    ):
        assert disclose(collection=dark, to=step) == qrels
        assert who_sees(after_end) == seeing
        phase = Phase.objects.get()
        assert {name for name in EVERYBODY if sees_own_results(users[name], phase)} == {
            "ann",
            "ben",
        }
        payload = after_end["ann"].get("/api/v1/collections/dark/").json()
        assert (payload["disclosure"], payload["blind"]) == (step.label, step != Disclosure.PUBLIC)
        with pytest.raises(Conflict):
            disclose(collection=dark, to=step)
    events = AuditEvent.objects.filter(
        action__in=("collection.disclosed", "collection.released")
    ).order_by("pk")
    steps = [
        (e.before["disclosure"], e.after["disclosure"], e.after["qrels"], e.after["sha256"])
        for e in events
    ]
    labels = [step.label for step in Disclosure]
    assert steps == [(*pair, 1, qrels.sha256) for pair in itertools.pairwise(labels)]


def test_the_database_refuses_a_smaller_disclosure(after_end: Clients) -> None:
    dark = Collection.objects.get(slug="dark")
    rows = Collection.objects.filter(pk=dark.pk)
    disclose(collection=dark, to=Disclosure.PARTICIPANTS)
    rows.update(shown_to=Disclosure.PARTICIPANTS, name="Still dark")
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.update(shown_to=Disclosure.TEAMS)
    disclose(collection=dark, to=Disclosure.PUBLIC)
    for fields in ({"blind": True}, {"blind": True, "released_at": None}, {"shown_to": 3}):
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.update(**fields)
    assert (rows.get().name, rows.get().disclosure) == ("Still dark", Disclosure.PUBLIC)


def test_nobody_joins_in_time_to_see_results(after_end: Clients) -> None:
    """Results of teams and participants are for those who took part."""
    dark = Collection.objects.get(slug="dark")
    abe = "/api/v1/campaigns/cup/teams/apples/members/"
    for step in STEPS[:2]:
        disclose(collection=dark, to=step)
        assert code_of(register(after_end["eve"], "eves")) == (409, "registration_closed")
        assert code_of(after_end["abe"].post(abe)) == (409, "roster_closed")
    assert who_sees(after_end) == {"olga", "ann", "ben"}


def test_an_evaluation_needs_results_that_nobody_sees(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    dark = Collection.objects.get(slug="dark")
    clock.now = CLOSES
    with pytest.raises(Conflict) as refusal:
        disclose(collection=dark, to=Disclosure.TEAMS)
    assert refusal.value.code == "phase_not_over"
    clock.now = LATE
    disclose(collection=dark, to=Disclosure.TEAMS)
    phase = "/api/v1/campaigns/cup/phases/task/"
    later = {"late_closes_at": "2027-06-01T00:00:00Z"}
    assert code_of(people["olga"].patch(phase, later, format="json")) == (
        409,
        "evaluation_needs_blind",
    )
    assert people["olga"].patch(phase, {"name": "The task"}, format="json").status_code == 200
    times = {"opens_at": "2028-01-01T00:00:00Z", "closes_at": "2028-02-01T00:00:00Z"}
    second = {"slug": "second", "name": "Second", "collection": "dark", **times}
    answer = people["olga"].post("/api/v1/campaigns/cup/phases/", second, format="json")
    assert code_of(answer) == (409, "evaluation_needs_blind")
