"""Qrels with subtopics from the upload to the values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.conftest import GOOD, evaluate_all, upload
from tests.shared_data import alice, api, module_data

__all__ = ["alice", "api", "module_data"]

pytestmark = pytest.mark.words
# Subtopics history and prices of topic 1; topic 2 has one, and so does topic 3, without a relevant
# document.
QRELS = """\
1 history d1 1
1 history d2 1
1 prices d2 0
1 prices d3 2
2 uses d1 1
3 uses d1 0
"""
RUN = """\
1 Q0 d1 1 4.0 web
1 Q0 d2 2 3.0 web
1 Q0 d9 3 2.0 web
1 Q0 d3 4 1.0 web
2 Q0 d9 1 2.0 web
2 Q0 d1 2 1.0 web
"""
STORED, ASKED = ["alpha_nDCG@10", "StRecall@2", "AP"], "ERR-IA@2,nNRBP,P_IA@2"
LOG3, LOG5 = math.log2(3), math.log2(5)
EXPECTED = {
    "alpha_nDCG@10": [(1 + 0.5 / LOG3 + 1 / LOG5) / (1 + 1 / LOG3 + 0.5 / 2), 1 / LOG3, 0],
    "StRecall@2": [1 / 2, 1, 0],
    "AP": [(1 + 1 + 3 / 4) / 3, 1 / 2, 0],
    "ERR_IA@2": [(1 + 0.5 / 2) / (2 * (1 + 0.5 / 2)), 0.5 / (1 + 0.5 / 2), 0],
    "nNRBP": [(1 + 0.5 / 2 + 1 / 8) / (1 + 1 / 2 + 0.5 / 4), 1 / 2, 0],
    "P_IA@2": [(2 / 2 + 0) / 2, 1 / 2, 0],
}


@pytest.fixture(scope="module")
def web(api: APIClient) -> dict[str, Any]:
    """A collection with subtopics; returns what the upload of its judgements answered."""
    api.post("/api/v1/collections/", {"slug": "web", "name": "Web", "measures": STORED})
    answer = upload(api, "collections/web/qrels/", QRELS)
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def submitted(api: APIClient) -> str:
    answer = upload(api, "collections/web/runs/", RUN)
    evaluate_all()
    pk: str = answer.json()["id"]
    return pk


def values_of(api: APIClient, run: str, measures: str) -> dict[str, list[float]]:
    answer = api.get(f"/api/v1/runs/{run}/values/", {"measures": measures})
    assert answer.status_code == 200, answer.content
    rows = [topic["values"] for topic in answer.json()["topics"]]
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_the_upload_says_how_many_subtopics_there_are(api: APIClient, web: dict[str, Any]) -> None:
    assert (web["judgements"], web["topics"], web["levels"]) == (5, 3, {"0": 1, "1": 3, "2": 1})
    assert web["warnings"]["counts"] == {
        "subtopics": 4,
        "several_iterations": 1,
        "nothing_relevant": 1,
    }
    tried = upload(api, "collections/web/qrels/", QRELS, dry_run=True).json()
    assert tried["counts"] == web["warnings"]["counts"]


@pytest.mark.parametrize("measures", [",".join(STORED), ASKED])
def test_values_come_out_stored_or_computed_from_the_stored_view(
    api: APIClient, web: dict[str, Any], measures: str
) -> None:
    answered = values_of(api, submitted(api), measures)
    assert len(answered) == 3
    for name, values in answered.items():
        assert values == pytest.approx(EXPECTED[name]), name


def test_the_leaderboard_ranks_by_a_measure_of_subtopics(
    api: APIClient, web: dict[str, Any]
) -> None:
    submitted(api)
    body = api.get(
        "/api/v1/collections/web/leaderboard/", {"measures": "strec@2", "sort": "strec@2"}
    ).json()
    assert body["results"][0]["values"] == {"StRecall@2": {"mean": pytest.approx(0.5), "topics": 3}}


# Judgements whose iterations are no subtopics

ROUNDS = "1 0.5 a 1\n1 1 b 2\n2 1 a 1\n3 0.5 a 1\n3 1 c 0\n"
BY_SUBTOPIC = "1 one a 1\n1 two a 0\n1 two b 2\n2 one a 1\n3 one a 1\n"
WEB = "collections/unnamed/qrels/"


@pytest.fixture(scope="module")
def unnamed(api: APIClient) -> str:
    fields = {"slug": "unnamed", "name": "Unnamed", "measures": ["StRecall@10", "AP"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    return "unnamed"


ANSWERS = "1 Q0 a 1 3 t\n1 Q0 x 2 2 t\n2 Q0 a 1 3 t\n3 Q0 a 1 3 t\n"


def answer_of(api: APIClient, run: str) -> dict[str, Any]:
    evaluate_all()
    body: dict[str, Any] = api.get(f"/api/v1/runs/{run}/values/").json()
    return body


def test_measures_of_subtopics_answer_by_what_the_column_was_taken_for(
    api: APIClient, unnamed: str
) -> None:
    upload(api, WEB, ROUNDS)
    run = upload(api, "collections/unnamed/runs/", ANSWERS).json()["id"]
    warning = {
        "code": "no_subtopics",
        "message": "StRecall@10: qrels v1 have no subtopics, so each topic counts as one subtopic",
    }
    body = answer_of(api, run)
    assert (body["means"]["StRecall@10"]["mean"], body["cautions"]) == (1.0, [warning])
    upload(api, WEB, ROUNDS, iteration="subtopic")
    body = answer_of(api, run)
    assert (body["means"]["StRecall@10"]["mean"], body["cautions"]) == (
        pytest.approx((1 / 2 + 1 + 1) / 3),
        [],
    )
    assert body["means"]["AP"]["mean"] == pytest.approx((1 / 2 + 1 + 1) / 3)


@pytest.mark.slow
@pytest.mark.parametrize(("content", "cautioned"), [(ROUNDS, True), (BY_SUBTOPIC, False)])
def test_boards_comparisons_and_pages_say_that_there_are_no_subtopics(
    api: APIClient, unnamed: str, content: str, cautioned: bool
) -> None:
    upload(api, WEB, content)
    runs = [
        upload(api, "collections/unnamed/runs/", text, tag=tag).json()["id"]
        for tag, text in (("a", ANSWERS), ("b", GOOD))
    ]
    evaluate_all()
    base = "/api/v1/collections/unnamed"
    board = api.get(f"{base}/leaderboard/", {"measures": "AP,StRecall@10"}).json()["cautions"]
    (compared,) = api.get(f"{base}/comparison/", {"measures": "StRecall@10"}).json()["measures"]
    orders = api.get(f"{base}/orders/", {"measures": "StRecall@10,AP"}).json()["cautions"]
    (design,) = api.get(f"{base}/design/", {"measures": "StRecall@10"}).json()["measures"]
    for cautions in (board, compared["cautions"], orders, design["cautions"]):
        assert ("no_subtopics" in {caution["code"] for caution in cautions}) is cautioned
    for page in (
        "/collections/unnamed/",
        f"/runs/{runs[0]}/",
        "/collections/unnamed/comparison/?measure=StRecall@10",
    ):
        assert ("have no subtopics" in api.get(page).content.decode()) is cautioned, page
    (other,) = api.get(f"{base}/comparison/", {"measures": "AP"}).json()["measures"]
    assert "no_subtopics" not in {caution["code"] for caution in other["cautions"]}
