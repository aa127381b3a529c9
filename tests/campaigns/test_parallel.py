"""Limits under entries that come at once, and any sequence of acts against a short model."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from runs.models import Entry, Run
from runs.services.submissions.sweeping import young_strangers
from tests.campaigns.worlds import OPENS, PHASE, Clock, enter, make_campaign, make_team, register

SLOTS, TRIES = 3, 200
# Who enters for which team.
TEAMS = {"ann": "apples", "ben": "berries", "cat": "cherries"}
Clients = dict[str, APIClient]


@pytest.mark.django_db(transaction=True)
def test_of_many_entries_at_once_exactly_the_slots_are_stored(
    people: Clients, clock: Clock
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip(
            "the tests' SQLite is in memory; tests/reliability/test_entries.py does this with a real one"
        )
    make_campaign(people["olga"], slots=SLOTS)
    register(people["ann"], "apples")
    clock.now = OPENS
    codes: list[Any] = []

    def send(first: int) -> None:
        for number in range(first, TRIES, 8):
            answer = enter(people["ann"], f"run-{number}")
            codes.append((answer.status_code, answer.json().get("code")))
        connections.close_all()

    threads = [threading.Thread(target=send, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(codes) == {(201, None): SLOTS, (409, "no_slot_left"): TRIES - SLOTS}
    assert sorted(Entry.objects.values_list("priority", flat=True)) == [1, 2, 3]
    assert Run.objects.count() == SLOTS
    assert list(young_strangers()) == []


class Model:
    """What a phase with 2 slots and 4 attempts, 3 of them on one day, takes from each team, in the fewest words."""

    def __init__(self) -> None:
        self.order: dict[str, list[str]] = {who: [] for who in TEAMS}
        self.gone: dict[str, set[str]] = {who: set() for who in TEAMS}
        self.days: dict[str, list[int]] = {who: [] for who in TEAMS}
        self.late: set[str] = set()

    def enter(self, who: str, tag: str, hour: int) -> bool:
        order, gone = self.order[who], self.gone[who]
        if tag in order:
            # Sent again it is the same entry, as long as the phase takes any.
            return hour < 96
        if not 24 <= hour < 96:
            return False
        late, day = hour >= 72, (hour + 12) // 24
        if len(order) >= 2 or (tag in gone and late):
            return False
        if tag not in gone:
            if len(self.days[who]) >= 4 or self.days[who].count(day) >= 3:
                return False
            self.days[who].append(day)
            self.late |= {tag} if late else set()
        gone.discard(tag)
        order.append(tag)
        return True

    def withdraw(self, who: str, tag: str, hour: int) -> bool:
        if tag not in self.order[who]:
            return False
        self.order[who].remove(tag)
        self.gone[who].add(tag)
        return True

    def reverse(self, who: str, tag: str, hour: int) -> bool:
        if not 24 <= hour < 72:
            return False
        self.order[who].reverse()
        return True


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "enter", "withdraw", "reverse"]),
        st.sampled_from([*TEAMS]),
        st.integers(0, 5),
        st.integers(0, 12),
    ),
    max_size=14,
)


def act(client: APIClient, what: str, tag: str) -> bool:
    entries = {row["tag"]: row for row in client.get(f"{PHASE}entries/").json()["results"]}
    if what == "enter":
        return bool(enter(client, tag).status_code in (200, 201))
    if what == "withdraw":
        return tag in entries and client.post(f"{entries[tag]['url']}withdraw/").status_code == 200
    present = sorted(
        (entry for entry in entries.values() if entry["priority"]),
        key=lambda entry: -entry["priority"],
    )
    order = [entry["tag"] for entry in present]
    return bool(
        client.put(f"{PHASE}priorities/", {"order": order}, format="json").status_code == 200
    )


@given(acts=ACTS)
@settings(max_examples=10)
@pytest.mark.django_db
def test_any_sequence_of_acts_ends_as_in_the_model(acts: list[tuple[str, str, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        clock, model, hour = Clock(), Model(), 20
        patch.setattr("runs.services.clock.database_now", clock)
        people = make_team("lab", "olga")
        closes, late = (OPENS + timedelta(hours=hours) for hours in (48, 72))
        times = {"closes_at": closes.isoformat(), "late_closes_at": late.isoformat()}
        make_campaign(people["olga"], slots=2, attempts_total=4, attempts_daily=3, **times)
        for who, team in TEAMS.items():
            people |= make_team(team, who)
            register(people[who], team)
        for what, who, number, hours in acts:
            hour += hours
            clock.now, tag = OPENS + timedelta(hours=hour - 24), f"{who}-{number}"
            assert act(people[who], what, tag) == getattr(model, what)(who, tag, hour), (
                what,
                tag,
                hour,
            )
        entries = (
            Entry.objects.filter(state="entered")
            .order_by("priority")
            .values_list("run__tag", "priority", "late")
        )
        for who, order in model.order.items():
            own = [row for row in entries if row[0].startswith(who)]
            assert own == [(tag, place, tag in model.late) for place, tag in enumerate(order, 1)]
        assert Entry.objects.count() == sum(map(len, model.days.values()))
        transaction.set_rollback(True)
