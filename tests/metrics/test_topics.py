"""Topics over all runs: difficulty, spread and disagreement, one topic, and the heat map, in API and pages."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.engine.measures.grammar import parse_measure
from metrics.models import MetricVector
from metrics.services.boards.topics import read_topic_values
from runs.models import Collection, Qrels, Run, Topic, User
from tests.conftest import GOOD, POOR
from tests.metrics.boards import make_board
from tests.metrics.scored import make_scored, simulated

pytestmark = pytest.mark.words
API = "/api/v1/collections/"
N = math.nan
# Four runs, four topics: easy and agreed; almost turned round; one value missing; no run above 0.
VALUES = np.array(
    [[0.9, 0.1, 0.6, 0.0], [0.8, 0.3, N, 0.0], [0.7, 0.5, 0.2, 0.0], [0.75, 0.7, 0.1, 0.0]]
)


@pytest.fixture
def board(alice: User) -> Collection:
    return make_board(alice.personal_team, {"AP": VALUES})


def difficulty(client: APIClient, slug: str = "board", **query: Any) -> dict[str, Any]:
    answer = client.get(f"{API}{slug}/difficulty/", query)
    assert answer.status_code == 200, answer.content
    payload: dict[str, Any] = answer.json()
    return payload


def ids(answer: dict[str, Any]) -> list[str]:
    return [row["topic_id"] for row in answer["results"]]


def test_the_numbers_of_a_topic_are_those_of_its_runs(
    anonymous: APIClient, board: Collection
) -> None:
    answer = difficulty(anonymous, sort="topic")
    assert (answer["measure"], answer["runs"], answer["count"], answer["qrels"]) == ("AP", 4, 4, 1)
    for topic, row in enumerate(answer["results"]):
        values = [value for value in VALUES[:, topic] if not math.isnan(value)]
        numbers = row["numbers"]
        assert numbers["runs"] == len(values)
        assert numbers["mean"] == pytest.approx(statistics.fmean(values))
        assert numbers["spread"] == pytest.approx(statistics.stdev(values))
        assert (numbers["best"], numbers["worst"]) == (max(values), min(values))
    # Ranked are r0, r3 and r2: r1 has a value on fewer topics.
    assert [row["numbers"]["disagreement"] for row in answer["results"]] == [0, 2 / 3, 1 / 3, None]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["3", "2", "1", "0"]),
        ({"order": "asc"}, ["0", "1", "2", "3"]),
        ({"sort": "spread"}, ["2", "1", "0", "3"]),
        ({"sort": "best"}, ["3", "2", "1", "0"]),
        ({"sort": "best", "order": "desc"}, ["0", "1", "2", "3"]),
        ({"sort": "disagreement"}, ["1", "2", "0", "3"]),
        ({"sort": "disagreement", "order": "asc"}, ["0", "2", "1", "3"]),
        ({"sort": "topic", "limit": 2, "offset": 1}, ["1", "2"]),
    ],
)
def test_topics_are_sorted(
    anonymous: APIClient, board: Collection, query: dict[str, Any], expected: list[str]
) -> None:
    assert ids(difficulty(anonymous, **query)) == expected


def test_lower_is_better_turns_what_is_difficult(alice: User) -> None:
    board = make_board(alice.personal_team, {"ASL": np.array([[1.0, 9.0], [3.0, 5.0]])})
    topics = read_topic_values(collection=board, measure=parse_measure("ASL"))
    assert topics.order("difficulty") == [1, 0]
    assert (topics.table.best.tolist(), topics.table.worst.tolist()) == ([1.0, 5.0], [3.0, 9.0])
    assert [(run.tag, run.rank, run.mean) for run in topics.runs] == [
        ("r1", 1, 4.0),
        ("r0", 2, 5.0),
    ]
    assert (topics.ranks_on(0), topics.ranks_on(1)) == ([2, 1], [1, 2])


def test_pages_of_topics_lead_on(anonymous: APIClient, board: Collection) -> None:
    first = difficulty(anonymous, limit=3)
    assert first["previous"] is None
    rest = anonymous.get(first["next"]).json()
    assert (ids(rest), rest["next"]) == (["0"], None)
    assert ids(anonymous.get(rest["previous"]).json()) == ids(first)


def test_damaged_values_are_not_shown(anonymous: APIClient, submit: Callable[..., Run]) -> None:
    submit(GOOD)
    before = difficulty(anonymous, "small", measure="AP")
    row = MetricVector.objects.get(measure="AP")
    MetricVector.objects.filter(pk=row.pk).update(content=b"\x01" + bytes(row.content)[1:])
    assert difficulty(anonymous, "small", measure="AP", limit=50)["results"] == before["results"]
    assert bytes(MetricVector.objects.get(pk=row.pk).content) == bytes(row.content)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("difficulty/?sort=size", 400, "invalid"),
        ("difficulty/?measure=nDCG(norm='average')", 400, "pooled_measure"),
        ("difficulty/?limit=201", 400, "invalid"),
        ("topic/", 400, "required"),
        ("topic/?topic=zzz", 404, "unknown_topic"),
    ],
)
def test_what_cannot_be_answered_says_why(
    anonymous: APIClient, submit: Callable[..., Run], path: str, status: int, code: str
) -> None:
    submit(GOOD)
    answer = anonymous.get(f"{API}small/{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_one_topic_has_its_text_its_judgements_and_every_run(
    anonymous: APIClient, submit: Callable[..., Run]
) -> None:
    good, poor = submit(GOOD), submit(POOR)
    fields = {"description": "what is <asked>"}
    topic = Topic.objects.create(
        collection=good.collection, topic_id="1", position=0, title="first", fields=fields
    )
    answer = anonymous.get(f"{API}small/topic/", {"topic": "1", "measure": "AP"}).json()
    assert (answer["title"], answer["fields"]) == (topic.title, topic.fields)
    assert (answer["judged"], answer["relevant"]) == (3, 2)
    assert [(line["level"], line["judgements"]) for line in answer["levels"]] == [
        (2, 1),
        (1, 1),
        (0, 1),
    ]
    values = {
        str(run.pk): anonymous.get(f"/api/v1/runs/{run.pk}/values/?measures=AP").json()["topics"][
            0
        ]["values"]["AP"]
        for run in (good, poor)
    }
    assert [(row["run"]["id"], row["value"], row["rank"], row["leaderboard_rank"]) for row in answer["results"]] == [
        (str(good.pk), values[str(good.pk)], 1, 1), (str(poor.pk), values[str(poor.pk)], 2, 2),
    ]  # fmt: skip
    page = Client().get("/collections/small/topics/1/?measure=AP").content.decode()
    assert "what is &lt;asked&gt;" in page
    assert page.index(good.tag) < page.index(f'/runs/{poor.pk}/"')
    # A topic may be listed and not judged.
    Topic.objects.create(
        collection=topic.collection, topic_id="unjudged", position=9, title="alone"
    )
    details = anonymous.get(f"{API}small/topic/", {"topic": "unjudged"}).json()
    assert (details["listed"], details["numbers"], details["results"]) == (True, None, [])
    assert (
        "no active judgements"
        in Client().get("/collections/small/topics/unjudged/").content.decode()
    )
    assert Client().get("/collections/small/topics/none/").status_code == 404


@pytest.mark.parametrize(
    "topic", ["a/b", "/", "//x/", "..", ".", "a b", "ä?#%2F&+", "'\"><", "101"]
)
def test_every_id_has_an_address(alice: User, topic: str) -> None:
    """A browser resolves dots and slashes of a path before it asks."""
    board = make_board(alice.personal_team, {"AP": VALUES[:, :2]})
    Qrels.objects.filter(collection=board).delete()
    browser = Client()
    Topic.objects.create(
        collection=board, topic_id=topic, position=0, title="the one that is meant"
    )
    html = browser.get("/collections/board/topics/").content.decode()
    (address,) = re.findall(r'<h2><a href="([^"]*)"', html)
    path = unescape(address).partition("?")[0]
    assert not set(path.split("/")) & {".", ".."}
    assert "//" not in path
    assert "the one that is meant" in browser.get(unescape(address)).content.decode()
    if topic not in (".", ".."):
        assert (
            "the one that is meant"
            in browser.get(f"/collections/board/topics/{quote(topic)}/").content.decode()
        )


def test_while_blind_participants_see_texts_alone(alice: User, bob: User) -> None:
    make_board(alice.personal_team, {"AP": VALUES})
    Collection.objects.update(blind=True)
    Topic.objects.create(
        collection=Collection.objects.get(), topic_id="0", position=0, title="listed and judged"
    )
    guest, organiser = Client(), Client()
    guest.force_login(bob)
    organiser.force_login(alice)
    for path in ("", "0/"):
        html = guest.get(f"/collections/board/topics/{path}").content.decode()
        assert "listed and judged" in html
        assert "release them" in html
        assert "0.7875" not in html
    # A judged topic that is not listed is no other than one that there is not.
    unlisted, unknown = (guest.get(f"/collections/board/topics/{topic}/") for topic in ("1", "9"))
    assert unlisted.status_code == unknown.status_code == 404
    masked = [
        re.sub(rb'[19]|Token" value="\w+', b"", answer.content, flags=re.IGNORECASE)
        for answer in (unlisted, unknown)
    ]
    assert masked[0] == masked[1]
    assert "0.7875" in organiser.get("/collections/board/topics/").content.decode()


def test_the_page_sorts_and_leads_to_every_topic(board: Collection) -> None:
    html = Client().get("/collections/board/topics/", {"sort": "best"}).content.decode()
    assert re.findall(r'<a href="/collections/board/topics/(\w)/">', html) == ["3", "2", "1", "0"]
    assert len(re.findall(r'aria-sort="ascending"', html)) == 1
    assert "1 topic" in " ".join(html.split())
    hardest = Client().get("/collections/board/topics/").content.decode()
    assert re.search(r'title="of all runs"\s+aria-sort="ascending"', hardest)


def test_a_page_of_a_thousand_runs_asks_as_often_as_one_of_ten(alice: User) -> None:
    counts = []
    for runs in (10, 60):
        make_scored(f"of-{runs}", alice.personal_team, simulated(runs, 20))
        for path in ("topics/", "topics/7/"):
            with CaptureQueriesContext(connection) as queries:
                assert Client().get(f"/collections/of-{runs}/{path}").status_code in (200, 500)
            counts.append(len(queries))
    assert counts[:2] == counts[2:]
    assert max(counts) <= 13
