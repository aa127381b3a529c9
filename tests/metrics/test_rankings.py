"""Single rankings: the stored file in the order it was judged in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from metrics.charts.values.rankings import ranking_figure
from metrics.engine.judgement.gains import GainMap
from metrics.services.values.judged_views import load_view
from metrics.services.values.rankings import MAX_SUMS, read_ranking
from metrics.services.values.values import find_evaluation
from runs.models import Run
from tests.conftest import GOOD, POOR
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
Submit = Callable[..., Run]
# Ties everywhere, lines out of order, topics interleaved, ids of several lengths.
TIED = "".join(
    f"{topic} Q0 {doc} 1 {score} tied\n"
    for doc, score in [
        ("a", 1),
        ("c", 2),
        ("aa", 2),
        ("b", 2),
        ("u", 1),
        ("uu", 3),
        ("x", 1),
        ("y", 1),
        ("z", 1),
    ]
    for topic in ("1", "2")
)


def test_a_ranking_has_levels_gains_and_sums(submit: Submit) -> None:
    ranking = read_ranking(evaluation=find_evaluation(run=submit(POOR)), topic_id="1")
    assert [(d.rank, d.doc_id, d.score, d.level, d.gain) for d in ranking.documents] == [
        (1, "b", 3.0, 0, 0.0),
        (2, "u", 2.5, None, 0.0),
        (3, "c", 2.0, 1, 1.0),
    ]
    assert ranking.cumulated == [0.0, 0.0, 1.0]
    assert ranking.ideal == [2.0, 3.0, 3.0]


def test_the_order_is_the_one_that_was_judged(submit: Submit) -> None:
    run = submit(TIED)
    assert not run.grouped
    evaluation = find_evaluation(run=run)
    ranking = read_ranking(evaluation=evaluation, topic_id="1")
    assert [d.doc_id for d in ranking.documents] == ["uu", "c", "b", "aa", "z", "y", "x", "u", "a"]
    assert [d.tied for d in ranking.documents] == [False] + [True] * 8
    view = load_view(evaluation)
    own = view.topic == 0
    judged = set(zip(view.rank[own].tolist(), view.level[own].tolist(), strict=True))
    assert judged == {(d.rank, d.level) for d in ranking.documents if d.level is not None}
    assert {d.doc_id: d.level for d in ranking.documents if d.level is not None} == {
        "a": 2,
        "b": 0,
        "c": 1,
    }


def test_sums_are_the_cumulated_gain_of_the_api(anonymous: APIClient, submit: Submit) -> None:
    run = submit(TIED)
    curves = anonymous.get(
        f"/api/v1/runs/{run.pk}/curve/",
        {"measures": "CG(gains='exp')", "depth": 9, "per_topic": "true"},
    ).json()["curves"][0]
    for topic in curves["topics"]:
        ranking = read_ranking(
            evaluation=find_evaluation(run=run),
            topic_id=topic["topic_id"],
            gains=GainMap.parse("exp"),
        )
        if ranking.documents:
            assert ranking.cumulated == pytest.approx(topic["values"][: len(ranking.cumulated)])


def test_float32_scores_tie_where_doubles_do_not(api: APIClient, submit: Submit) -> None:
    run = submit("1 Q0 a 1 1.00000001 close\n1 Q0 b 2 1.0 close\n")
    assert [
        d.doc_id for d in read_ranking(evaluation=find_evaluation(run=run), topic_id="1").documents
    ] == ["a", "b"]
    evaluation = find_evaluation(run=run)
    evaluation.scores = "float32"
    ranking = read_ranking(evaluation=evaluation, topic_id="1")
    assert [(d.doc_id, d.tied) for d in ranking.documents] == [("b", True), ("a", True)]


def test_the_api_answers_pages_of_a_ranking(anonymous: APIClient, submit: Submit) -> None:
    run = submit(POOR)
    path = f"/api/v1/runs/{run.pk}/ranking/"
    answer = anonymous.get(path, {"topic": "1", "offset": 1, "limit": 1}).json()
    assert (answer["topic_id"], answer["count"], answer["qrels"]) == ("1", 3, 1)
    document = {
        "rank": 2,
        "doc_id": "u",
        "title": "",
        "score": 2.5,
        "level": None,
        "gain": 0.0,
        "sum": 0.0,
        "tied": False,
    }
    assert answer["documents"] == [document]
    unanswered = anonymous.get(path, {"topic": "3"}).json()
    assert (unanswered["count"], unanswered["documents"]) == (0, [])


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({}, 400, "required"),
        ({"topic": "77"}, 404, "unknown_topic"),
        ({"topic": "1", "limit": "0"}, 400, "invalid"),
        ({"topic": "1", "gains": "x"}, 400, "bad_parameter"),
    ],
)
def test_a_ranking_that_cannot_be_read_says_why(
    anonymous: APIClient, submit: Submit, query: dict[str, str], status: int, code: str
) -> None:
    answer = anonymous.get(f"/api/v1/runs/{submit(GOOD).pk}/ranking/", query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_long_ranking_is_drawn_to_where_its_sums_end(
    anonymous: APIClient, submit: Submit
) -> None:
    fill = [f"1 Q0 u{rank} 1 {2000 - rank} long\n" for rank in range(MAX_SUMS + 20)]
    run = submit("".join([*fill[:5], "1 Q0 c 1 1995.5 long\n", *fill[5:], "1 Q0 a 1 0 long\n"]))
    ranking = read_ranking(evaluation=find_evaluation(run=run), topic_id="1")
    assert [(d.rank, d.doc_id) for d in ranking.documents if d.gain] == [
        (6, "c"),
        (MAX_SUMS + 22, "a"),
    ]
    figure = ranking_figure(ranking, run="long")
    assert [row[:2] for row in figure.rows] == [["6", "c"]]
    assert f"ranks 1 to {MAX_SUMS} of long: 1 documents with a gain add up to 1;" in figure.caption
    assert (
        b"<svg"
        in anonymous.get(f"/api/v1/runs/{run.pk}/charts/ranking.svg", {"topic": "1"}).content
    )
    assert (
        anonymous.get(f"/runs/{run.pk}/ranking/", {"topic": "1", "offset": MAX_SUMS}).status_code
        == 200
    )
