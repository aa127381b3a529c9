"""Versions of sampled pools: their strata, further pools, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from rest_framework.test import APIClient

from evalhub.pools.models import Pool
from evalhub.pools.services import merging
from evalhub.pools.services.pool_file import read_topics, read_undrawn
from tests.conftest import evaluate_all, upload
from tests.pools import naive
from tests.pools.test_judging import address, lines_of, send
from tests.pools.test_pools import make, pool_of, runs

__all__ = ["runs"]
pytestmark = pytest.mark.django_db
STRATA = [{"ranks": [1, 2], "rate": 1.0}, {"ranks": [3, 20], "rate": 0.5}]
BOARD = "/api/v1/collections/small/leaderboard/"


def frozen(api: APIClient, **recipe: Any) -> Pool:
    pool = pool_of(make(api, **recipe))
    assert api.post(address(pool, "freeze/")).status_code == 200
    pool.refresh_from_db()
    return pool


def sample(api: APIClient, **recipe: Any) -> Pool:
    return frozen(api, **{"method": "sample", "strata": STRATA, "seed": 3, **recipe})


def judge(api: APIClient, pool: Pool, lines: str | None = None, **fields: Any) -> None:
    text = lines_of(pool, lambda topic, doc: 1) if lines is None else lines
    answer = send(api, pool, text, assessor="ann", **fields)
    assert answer.status_code == 201, answer.content


def version_of(api: APIClient, pool: Pool, **fields: Any) -> Any:
    return api.post(address(pool, "qrels/"), fields, format="json")


def rows_of(api: APIClient, answer: Any) -> Iterable[list[str]]:
    assert answer.status_code == 201, answer.content
    content = api.get(f"{answer.json()['url']}file/").streaming_content
    return [line.split() for line in b"".join(content).decode().splitlines()]


def sampling_of(api: APIClient, answer: Any) -> tuple[str, bool]:
    version = api.get(answer.json()["url"]).json()
    return version["sampling"], version["ignore_sampling"]


@pytest.fixture
def estimates(api: APIClient, runs: dict[str, str]) -> dict[str, str]:
    change = {"measures": ["statAP", "infNDCG"]}
    assert api.patch("/api/v1/collections/small/", change, format="json").status_code == 200
    return runs


def test_a_version_has_the_strata_of_its_pool(api: APIClient, estimates: dict[str, str]) -> None:
    pool = sample(api, extra=[{"topic_id": "2", "doc_id": "added"}])
    best = naive.best_ranks([naive.rank(text) for text in estimates.values()], 20)
    expected = {pair: f"pool1-{1 if rank <= 2 else 2}" for pair, rank in best.items()}
    expected["2", "added"] = "chosen"

    # Of topic 1 one document of the second stratum is not judged, and another one could not be.
    drawn = {(topic, row.doc_id): row for topic, rows in read_topics(pool) for row in rows}
    left, unclear = [pair for pair in drawn if pair[0] == "1" and drawn[pair].stratum == 2][:2]
    levels = {pair: 1 for pair in drawn if pair != left} | {unclear: -2}
    judge(api, pool, "".join(f"{topic} 0 {doc} {n}\n" for (topic, doc), n in levels.items()))

    answer = version_of(api, pool)
    rows = rows_of(api, answer)
    assert {(topic, doc): stratum for topic, stratum, doc, _ in rows} == expected
    assert {(topic, doc): int(level) for topic, _, doc, level in rows} == {
        pair: levels.get(pair, -1) for pair in expected
    }
    assert sampling_of(api, answer) == ("strata", False)
    evaluate_all()
    board = api.get(BOARD, {"measures": "xinfAP,statAP"}).json()
    assert {row["values"]["xinfAP"]["mean"] > 0 for row in board["results"]} == {True}
    assert api.get(BOARD, {"measures": "AP"}).status_code == 400

    assert version_of(api, pool).json()["version"] == answer.json()["version"]
    ignored = version_of(api, pool, ignore_sampling=True)
    assert sampling_of(api, ignored) == ("strata", True)
    evaluate_all()
    assert api.get(BOARD, {"measures": "AP"}).status_code == 200


def test_a_pool_that_does_not_list_what_was_not_drawn_has_probabilities(
    api: APIClient, estimates: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = sample(api)
    judged = {}
    for topic, rows in read_topics(pool):
        left = next(row for row in rows if row.stratum == 2)
        number = sum(row.stratum == 2 for row in rows)
        for row in rows:
            share = (number - 1) / number if row.stratum == 2 else 1
            judged[topic, row.doc_id] = row.probability * share
        del judged[topic, left.doc_id]

    # As files of earlier releases are.
    monkeypatch.setattr(merging, "read_undrawn", lambda _: {})
    judge(api, pool, "".join(f"{topic} 0 {doc} 1\n" for topic, doc in judged))
    answer = version_of(api, pool)
    assert sampling_of(api, answer) == ("probabilities", False)
    written = {(topic, doc): float(p) for topic, _, doc, _, p in rows_of(api, answer)}
    assert written == pytest.approx(judged)


@pytest.mark.parametrize("lists_undrawn", [True, False])
def test_a_stratum_that_nobody_judged_leaves_the_version_sampled(
    api: APIClient, runs: dict[str, str], monkeypatch: pytest.MonkeyPatch, lists_undrawn: bool
) -> None:
    pool = sample(api)
    if not lists_undrawn:
        monkeypatch.setattr(merging, "read_undrawn", lambda _: {})
    first = ((topic, row) for topic, rows in read_topics(pool) for row in rows if row.stratum == 1)
    judge(api, pool, "".join(f"{topic} 0 {row.doc_id} 1\n" for topic, row in first))
    refused = version_of(api, pool)
    assert (refused.status_code, refused.json()["code"]) == (409, "sampled_judgements")
    assert "takes documents outside the sample" in refused.json()["detail"]


def test_documents_that_a_sample_stands_for_are_not_judged_on_top_of_it(
    api: APIClient, estimates: dict[str, str]
) -> None:
    pool = sample(api, topics=["1", "2"])
    judge(api, pool)
    assert version_of(api, pool).status_code == 201

    # Another topic is a sample of its own, which a third one adds to.
    other = sample(api, topics=["3"], only_new=True)
    judge(api, other)
    both = version_of(api, other)
    assert {row[1] for row in rows_of(api, both)} == {
        f"pool{number}-{stratum}" for number in (1, 2) for stratum in (1, 2)
    }
    more = frozen(api, method="depth", k=9, only_new=True)
    judge(api, more)
    refused = version_of(api, more)
    assert (refused.status_code, refused.json()["code"]) == (409, "sampled_judgements")
    assert "documents of topic 1 and 2 more were judged" in refused.json()["detail"]
    ignored = version_of(api, more, ignore_sampling=True)
    assert sampling_of(api, ignored) == ("strata", True)
    assert len({(row[0], row[2]) for row in rows_of(api, ignored)}) == len(
        list(rows_of(api, ignored))
    )

    # Nor is a document that its own sample left out.
    topic, doc = next((topic, doc) for topic, docs in read_undrawn(pool).items() for doc in docs)
    judge(api, pool, f"{topic} 0 {doc} 1\n", allow_outside=True)
    assert version_of(api, pool).status_code == 409


@pytest.mark.parametrize("ignore_sampling", [False, True])
def test_new_documents_are_added_to_a_sample_even_if_it_is_ignored(
    api: APIClient, estimates: dict[str, str], ignore_sampling: bool
) -> None:
    pool = sample(api)
    judge(api, pool)
    first = version_of(api, pool, ignore_sampling=ignore_sampling)
    late = "".join(f"{topic} Q0 late{n} {n} {9 - n} late\n" for topic in "123" for n in range(3))
    assert upload(api, "collections/small/runs/", late, tag="late").status_code == 202
    run = api.get("/api/v1/collections/small/runs/").json()["results"]
    (late_id,) = (row["id"] for row in run if row["tag"] == "late")
    more = frozen(api, method="depth", k=3, only_new=True, runs=[late_id])
    judge(api, more)
    version = version_of(api, more)
    assert sampling_of(api, version) == ("strata", False)
    strata = {(row[0], row[2]): row[1] for row in rows_of(api, version)}
    before = {(row[0], row[2]): row[1] for row in rows_of(api, first)}
    assert {pair for pair, stratum in strata.items() if stratum == "chosen"} == (
        strata.keys() - before.keys()
    )
    assert strata.items() >= before.items()


def test_uploaded_strata_stay_where_a_pool_adds_documents(
    api: APIClient, estimates: dict[str, str]
) -> None:
    lines = "1 top x1 1\n1 rest x2 1\n1 rest x3 -1\n2 rest x4 1\n2 rest x5 -1\n"
    uploaded = upload(api, "collections/small/qrels/", lines, sampling="strata")
    assert uploaded.status_code == 201, uploaded.content
    number = uploaded.json()["version"]
    pool = frozen(api, method="depth", k=2, only_new=True)
    judge(api, pool)
    rows = {row[2]: (row[1], row[3]) for row in rows_of(api, version_of(api, pool))}
    assert {doc: row for doc, row in rows.items() if doc[0] == "x"} == {
        "x1": (f"version{number}-1", "1"),
        "x2": (f"version{number}-2", "1"),
        "x3": (f"version{number}-2", "-1"),
        "x4": (f"version{number}-1", "1"),
        "x5": (f"version{number}-1", "-1"),
    }
    assert {row[0] for doc, row in rows.items() if doc[0] != "x"} == {"chosen"}
