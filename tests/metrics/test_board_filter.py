"""A filter of a leaderboard: it chooses rows, and ranks, tiers and statistics stay those of the whole board."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.models import Evaluation
from runs.models import Collection, Membership, Qrels, Run, Team, User
from tests.conftest import client_of
from tests.metrics.boards import add_runs, add_version, make_board, make_run, simulated
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

BOARD = "/api/v1/collections/board/leaderboard/"
FIRST = datetime(2026, 1, 10, 12, tzinfo=UTC)
# Tags, teams and descriptions of the ranked runs, submitted on ten days one after another from 10
# January on.
RUNS = (
    ("bm25", "lab", "Plain BM25, k1 = 0.9"),
    ("bm25-rm3", "lab", "With feedback"),
    ("dense_v1", "guests", ""),
    ("dense-v1", "guests", "100% dense"),
    ("splade", "lab-2", "Änderung: learned (sparse)"),
    ("a.b", "lab-2", r"back\slash"),
)
TAGS = [tag for tag, _, _ in RUNS]


@pytest.fixture
def board(alice: User, bob: User) -> Collection:
    """Six ranked runs of three teams, and one of each kind that has no rank."""
    teams = {slug: Team.objects.create(slug=slug, name=name) for slug, name in
             (("lab", "The Laboratory"), ("lab-2", "Second"), ("guests", "Guests of Honour"))}  # fmt: skip
    Membership.objects.create(team=teams["guests"], user=bob, role="member")
    collection = make_board(
        alice.personal_team, {"AP": simulated(7, 30), "P@10": simulated(7, 30, seed=9)}
    )
    described = dict(zip(Run.objects.order_by("created_at"), RUNS, strict=False))
    qrels = add_version(collection, 2, [str(topic) for topic in range(30)])
    add_runs(qrels, list(described), {"AP": simulated(6, 30), "P@10": simulated(6, 30, seed=9)})
    Run.objects.filter(tag="r6").update(tag="old")
    for day, (run, (tag, team, text)) in enumerate(described.items()):
        changes = {
            "tag": tag,
            "team": teams[team],
            "description": text,
            "created_at": FIRST + timedelta(days=day),
        }
        Run.objects.filter(pk=run.pk).update(**changes)
    for state in ("queued", "evaluating", "failed"):
        add_unranked(qrels, state)
    make_run(collection, "unasked")
    return collection


def add_unranked(qrels: Qrels, state: str) -> None:
    lease = {"lease_token": "0" * 32, "lease_until": FIRST} if state == "evaluating" else {}
    Evaluation.objects.create(
        run=make_run(qrels.collection, state), qrels=qrels, scores="float64", state=state,
        error_code="stored_file_corrupt" if state == "failed" else "",
        error_message="the file is gone" if state == "failed" else "", **lease,
    )  # fmt: skip


def body_of(client: APIClient, **query: Any) -> Any:
    answer = client.get(BOARD, {name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    return answer.json()


def tags(client: APIClient, text: str, **query: Any) -> list[str]:
    return sorted(row["run"]["tag"] for row in body_of(client, filter=text, **query)["results"])


UNRANKED = ["old", "queued", "evaluating", "failed", "unasked"]
FOUND = {
    "bm25": ["bm25", "bm25-rm3"],
    "BM25 rm3": ["bm25-rm3"],
    # Of a team's full name nobody learns anything.
    "laboratory": [],
    'team:"guests of honour"': [],
    '"guests"': ["dense_v1", "dense-v1"],
    "feedback OR sparse": ["bm25-rm3", "splade"],
    "bm25 -feedback": ["bm25"],
    "-(lab OR guests) -team:alice": [],
    "lab* -feedback": ["bm25", "splade", "a.b"],
    # What has a meaning in SQL's patterns has none here.
    "dense_": ["dense_v1"],
    "100%": ["dense-v1"],
    "%": ["dense-v1"],
    r"back\slash": ["a.b"],
    "'": [],
    "d*v1": ["dense_v1", "dense-v1"],
    "tag:*3": ["bm25-rm3"],
    "tag:feedback": [],
    "tag:RM3,splade": ["bm25-rm3", "splade"],
    "team:lab": ["bm25", "bm25-rm3"],
    "team:la": [],
    "team:LAB*": ["bm25", "bm25-rm3", "splade", "a.b"],
    'team:"guests",lab-2': ["dense_v1", "dense-v1", "splade", "a.b"],
    "-team:alice,lab": ["dense_v1", "dense-v1", "splade", "a.b"],
    "status:ranked": TAGS,
    "status:stale": ["old"],
    "status:queued": ["queued", "unasked"],
    "status:evaluating,failed": ["evaluating", "failed"],
    "-status:ranked": UNRANKED,
    "status:failed OR bm25": ["failed", "bm25", "bm25-rm3"],
    "after:2026-01-12 before:2026-01-14": ["dense_v1", "dense-v1"],
    "before:2026-01-11": ["bm25"],
    "before:0001-01-01": [],
    "after:9999-12-31": [],
    "team:guests (dense OR splade) -after:2026-01-13": ["dense_v1"],
    "own:yes": [],
    "own:no": TAGS + UNRANKED,
    "": TAGS + UNRANKED,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("text", "matching"), FOUND.items(), ids=list(FOUND))
def test_a_filter_shows_what_it_says(
    anonymous: APIClient, board: Collection, text: str, matching: list[str]
) -> None:
    assert tags(anonymous, text) == sorted(matching)
    assert body_of(anonymous, filter=text, limit=1)["count"] == len(matching)


def test_own_runs_are_the_readers_own(
    anonymous: APIClient, alice: User, bob: User, board: Collection
) -> None:
    """Asked by one address, so that nothing that was remembered for one reader reaches another."""
    readers = (anonymous, client_of(alice), client_of(bob)) * 2
    expected = ([], sorted(UNRANKED), ["dense-v1", "dense_v1"]) * 2
    assert [tags(reader, "own:yes") for reader in readers] == list(expected)
    labels = [reader.get(BOARD, {"filter": "own:yes"})["ETag"] for reader in readers]
    assert len(set(labels)) == 3
    assert labels[:3] == labels[3:]


def test_a_filter_changes_no_rank_and_no_statistic(anonymous: APIClient, board: Collection) -> None:
    baseline = str(Run.objects.get(tag="bm25").pk)
    for query in (
        {},
        {"sort": "P@10", "order": "asc"},
        {"statistics": "all", "baseline": baseline, "resamples": 500},
    ):
        whole = body_of(anonymous, **query)
        some = body_of(anonymous, filter="dense OR status:stale OR rm3", **query)
        rows = [
            row
            for row in whole["results"]
            if row["run"]["tag"] in ("dense_v1", "dense-v1", "bm25-rm3", "old")
        ]
        assert some["results"] == rows
        assert (some["count"], some["ranked"], whole["count"]) == (4, 6, 11)
        assert some["states"] == whole["states"]
        assert some.get("statistics") == whole.get("statistics")


def test_a_filtered_board_has_pages(anonymous: APIClient, board: Collection) -> None:
    whole = body_of(anonymous, filter="-bm25")["results"]
    paged, url = [], f"{BOARD}?filter=-bm25&limit=3"
    while url:
        page = anonymous.get(url).json()
        paged += page["results"]
        url = page["next"]
    assert paged == whole
    assert len(paged) == 9
    assert body_of(anonymous, filter="-bm25", offset=100)["results"] == []


def test_a_filter_is_part_of_the_sql(anonymous: APIClient, board: Collection) -> None:
    """One question for the ranked rows and those of the others, with every condition in it."""
    with CaptureQueriesContext(connection) as queries:
        body_of(anonymous, filter="bm25 OR -team:lab")
    statements = [query["sql"] for query in queries if "LIKE" in query["sql"]]
    assert statements
    for sql in statements:
        assert sql.count("LIKE") == 4
        assert " OR " in sql
        assert "NOT (" in sql


@pytest.mark.parametrize(
    "text", ["bm25", "status:failed", "-(bm25 OR team:lab,x) own:yes after:2026-01-01"]
)
def test_more_runs_need_no_more_queries(
    anonymous: APIClient, alice: User, board: Collection, text: str
) -> None:
    counts = []
    for number in (0, 12):
        qrels = Qrels.objects.get(active=True)
        runs = [make_run(board, f"bm25-{number}-{index}") for index in range(number)]
        add_runs(
            qrels,
            runs,
            {"AP": simulated(max(number, 1), 30), "P@10": simulated(max(number, 1), 30)},
        )
        for index in range(number):
            add_unranked_with_tag(qrels, f"late-{index}")
        with CaptureQueriesContext(connection) as queries:
            body_of(anonymous, filter=text)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


def add_unranked_with_tag(qrels: Qrels, tag: str) -> None:
    Evaluation.objects.create(
        run=make_run(qrels.collection, tag), qrels=qrels, scores="float64", state="failed"
    )


def test_an_answer_is_never_remembered_beyond_what_it_depends_on(
    anonymous: APIClient, board: Collection
) -> None:
    """A description changes without any move of an evaluation."""
    assert tags(anonymous, "neural") == []
    known = anonymous.get(BOARD, {"filter": "neural"})["ETag"]
    again = anonymous.get(BOARD, {"filter": "neural"}, headers={"If-None-Match": known})
    assert again.status_code == 304
    Run.objects.filter(tag="splade").update(description="neural")
    changed = anonymous.get(BOARD, {"filter": "neural"}, headers={"If-None-Match": known})
    assert (changed.status_code, changed["ETag"] == known) == (200, False)
    assert tags(anonymous, "neural") == ["splade"]
    Team.objects.filter(slug="guests").update(slug="neural")
    assert tags(anonymous, "neural") == ["dense-v1", "dense_v1", "splade"]


@pytest.mark.parametrize(
    ("text", "detail"),
    [("foo:x", "filter, character 1: there is no field foo: here"), ("a status:done", "filter, character 10"),
     ("a " * 501, "at most 1,000 are read"), ("(" * 400, "at most 5 deep"), ("a\x1b", "control character")],
)  # fmt: skip
def test_what_cannot_be_read_is_a_problem_of_the_filter(
    anonymous: APIClient, board: Collection, text: str, detail: str
) -> None:
    answer = anonymous.get(BOARD, {"filter": text})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["code"] == "bad_filter"
    assert answer.json()["errors"][0]["pointer"] == "filter"
    assert detail in answer.json()["detail"]
    page = anonymous.get("/collections/board/", {"filter": text})
    assert page.status_code == 400
    assert 'role="alert"' in page.content.decode()


def test_the_page_takes_the_filter(anonymous: APIClient, board: Collection) -> None:
    html = anonymous.get("/collections/board/", {"filter": "status:failed OR rm3"}).content.decode()
    tags = [tag for tag in TAGS + UNRANKED if f">{tag}</a>" in html]
    assert tags == ["bm25-rm3", "failed"]


def test_a_blind_board_says_nothing_whatever_the_filter(
    anonymous: APIClient, board: Collection
) -> None:
    Collection.objects.update(blind=True)
    answers = [
        anonymous.get(BOARD, {"filter": text})
        for text in ("", "bm25", "foo:x", "status:failed", "(")
    ]
    assert {
        (answer.status_code, answer.json()["code"], answer.json()["detail"]) for answer in answers
    } == {(403, "blind", answers[0].json()["detail"])}
    assert not any("ETag" in answer for answer in answers)


def test_a_filter_needs_judgements_as_the_board_does(api: APIClient) -> None:
    api.post("/api/v1/collections/", {"slug": "empty", "name": "Empty"})
    answer = api.get("/api/v1/collections/empty/leaderboard/", {"filter": "status:failed"})
    assert (answer.status_code, answer.json()["code"]) == (404, "no_active_qrels")
    assert api.get("/collections/empty/", {"filter": "a"}).status_code == 200


def test_a_run_without_a_mean_is_unranked_and_found(
    anonymous: APIClient, board: Collection
) -> None:
    nothing = {"AP": np.full((1, 30), np.nan), "P@10": np.full((1, 30), np.nan)}
    add_runs(Qrels.objects.get(active=True), [make_run(board, "empty")], nothing)
    (row,) = body_of(anonymous, filter="tag:empty status:unranked")["results"]
    assert (row["rank"], row["state"], row["code"]) == (None, "unranked", "no_value")
    assert body_of(anonymous, filter="tag:empty status:ranked")["results"] == []


def test_long_descriptions_are_searched_at_once(board: Collection, anonymous: APIClient) -> None:
    Run.objects.update(description="a" * 1_990 + "beginning" + "a" * 18_000 + "end")
    texts = ["a" * 99 + "z", *["a*" * 5 + "z"] * 25]
    began = time.process_time()
    assert anonymous.get(BOARD, {"filter": " OR ".join(texts)}).json()["count"] == 0
    assert time.process_time() - began < 5
    assert anonymous.get(BOARD, {"filter": "begin"}).json()["count"] > 0
    assert anonymous.get(BOARD, {"filter": "end"}).json()["count"] == 0
    answer = anonymous.get(BOARD, {"filter": "a" * 101})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_filter")
    assert "at most 100 characters" in answer.json()["detail"]
