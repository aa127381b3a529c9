"""Changes that a reader does not see leave every answer as it was, with all of its headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from metrics.models import Evaluation
from metrics.questions import answer_cache
from metrics.services.answer_store import forget_all
from metrics.services.queue.lifecycle import claim, fail
from runs.models import Campaign, Collection, Disclosure, Participation, User
from runs.services.collections.collections import disclose
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    TICK,
    Clients,
    Clock,
    enter,
    make_campaign,
    register,
)
from tests.conftest import evaluate_all
from tests.web.worlds import body_of

pytestmark = [pytest.mark.words, pytest.mark.usefixtures("answers_kept")]
BOARD, PAGE = f"{PHASE}board/", "/campaigns/cup/phases/task/"
PATHS = (
    BOARD,
    f"{BOARD}?statistics=all&view=all",
    f"{BOARD}export/csv/",
    f"{BOARD}export/md/",
    PHASE,
    f"{CAMPAIGN}phases/",
    f"{PAGE}?statistics=all",
    PAGE,
)
LIFTED = LATE + timedelta(days=30)
# It differs each time.
_TOKEN = re.compile(rb'csrfmiddlewaretoken" value="\w+')
Answer = tuple[int, bytes, dict[str, str]]


def read(client: Client, paths: tuple[str, ...]) -> Iterator[tuple[str, Answer]]:
    """Read each address when nothing is cached, again from the cache, and with its tag."""
    # A page with a form sets a cookie with it, on which its tag depends.
    client.get(PAGE)
    forget_all()
    for path in paths:
        tag = ""
        for how in ("computed", "cached", "conditional"):
            headers = {"If-None-Match": tag} if how == "conditional" else {}
            answer: Any = client.get(path, headers=headers)
            fields = {name: text for name, text in answer.items() if name != "X-Request-ID"}
            tag = fields.get("ETag", "")
            body = _TOKEN.sub(b"", body_of(answer))
            yield f"{path}, {how}", (answer.status_code, body, fields)


def browser(name: str = "") -> Client:
    client = Client()
    if name:
        client.force_login(User.objects.get(username=name))
    return client


def test_hidden_teams_change_no_answer(people: Clients, clock: Clock) -> None:
    """Labels, names and the instant at which a name is shown, of a team under a pseudonym."""
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    make_campaign(olga)
    for client, team in ((ann, "apples"), (ben, "berries")):
        register(client, team)
    clock.now = OPENS
    runs = [enter(ann, tag).json()["run"] for tag in ("a1", "a22")]
    assert enter(ben, "b333").status_code == 201
    evaluate_all()
    clock.now = LATE
    Campaign.objects.update(anonymous_until=LIFTED)
    disclose(collection=Collection.objects.get(), to=Disclosure.PUBLIC)
    snapshot = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json").json()
    snapshots = f"{CAMPAIGN}snapshots/"
    paths = (*PATHS, snapshots, snapshot["url"], f"/s/{snapshot['code']}/")
    label = "/api/v1/collections/dark/labels/main/"

    def change_label(method: str, run: str = "") -> None:
        body = {"run": run} if run else {}
        answer = getattr(ann, method)(label, body, format="json")
        assert answer.status_code in {200, 201, 204}, answer.content

    def change_team(client: Any, **fields: Any) -> None:
        answer = client.patch(f"{CAMPAIGN}teams/apples/", fields, format="json")
        assert answer.status_code == 200, answer.content

    later = (LIFTED + timedelta(days=1)).isoformat()
    # A later change takes nothing back of those that it comes with.
    changes: tuple[tuple[Callable[[], None], ...], ...] = (
        (lambda: change_label("put", runs[0]), lambda: change_team(ann, name="Pears")),
        (
            lambda: change_label("put", runs[1]),
            lambda: change_team(olga, anonymous_until=later),
        ),
        (lambda: change_label("delete"),),
    )
    readers = {name: browser(name) for name in ("", "ben")}
    before = {name: dict(read(client, paths)) for name, client in readers.items()}
    for place, together in enumerate(changes):
        for change in together:
            change()
        for name, client in readers.items():
            for path, answer in read(client, paths):
                assert answer == before[name][path], (place, name, path)
    assert before[""][f"{BOARD}, conditional"][0] == 304
    assert before[""][f"{PAGE}, conditional"][0] == 304


@pytest.mark.queries
def test_later_entries_change_no_answer_of_a_frozen_leaderboard(
    people: Clients, clock: Clock, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither do their evaluation, withdrawal and disqualification, also where an old leaderboard would be returned
    while runs are evaluated."""
    settings.EVALHUB_BOARD_SECONDS = 3600
    monkeypatch.setattr(answer_cache, "_SLOW_SECONDS", 0.0)
    olga, ann, ben = people["olga"], people["ann"], people["ben"]
    frozen = CLOSES - timedelta(days=3)
    make_campaign(olga, kind="development", feedback="board", freeze_board_at=frozen.isoformat())
    for client, team in ((ann, "apples"), (ben, "berries")):
        register(client, team)
    clock.now = frozen - TICK
    for client, tag in ((ann, "a1"), (ann, "a22"), (ben, "b333")):
        assert enter(client, tag).status_code == 201
    evaluate_all()
    clock.now = frozen
    entries: list[str] = []

    def add() -> None:
        for tag in ("a4444", "a55555", "a666666"):
            answer = enter(ann, tag)
            assert answer.status_code == 201
            entries.append(answer.json()["url"])

    def fail_first() -> None:
        lease = claim(Evaluation.objects.filter(state="queued").earliest("pk").pk)
        assert lease
        assert fail(lease, code="evaluation_timeout", message="too long")

    def take_away(client: Any, entry: str, how: str) -> None:
        answer = client.post(f"{entry}{how}/", {"reason": "a mistake"}, format="json")
        assert answer.status_code == 200, answer.content

    def take_two_away() -> None:
        take_away(ann, entries[0], "withdraw")
        take_away(olga, entries[1], "disqualify")

    changes: dict[str, Callable[[], object]] = {
        "entries": add,
        "failed, others queued": fail_first,
        "evaluated": evaluate_all,
        "withdrawn and disqualified": take_two_away,
    }
    reader = browser("ben")
    before = dict(read(reader, PATHS))
    received = ben.get(f"{BOARD}?statistics=intervals").json()["statistics"]["received"]
    assert (received["runs"], received["teams"], received["withdrawn"]) == (3, 2, 0)
    assert (ben.get(PHASE).json()["entries"], Participation.objects.count()) == (3, 2)
    for what, change in changes.items():
        change()
        assert "Age" not in reader.get(BOARD), what
        for path, answer in read(reader, PATHS):
            assert answer == before[path], (what, path)
    # Organisers and the team itself see its entries.
    for client in (olga, ann):
        received = client.get(f"{BOARD}?statistics=intervals").json()["statistics"]["received"]
        assert (received["runs"], received["withdrawn"]) == (6, 1)
        assert client.get(PHASE).json()["entries"] == 6
