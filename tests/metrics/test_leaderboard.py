"""Leaderboards over the API."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.answer_store import forget_all
from metrics.services.queue.queueing import queue_missing
from runs.models import Collection, Run
from tests.conftest import GOOD, POOR, QRELS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words

BOARD = "/api/v1/collections/small/leaderboard/"


def tags(board: dict[str, Any]) -> list[tuple[int | None, str]]:
    return [(row["rank"], row["run"]["tag"]) for row in board["results"]]


def many(api: APIClient, number: int) -> None:
    """Runs r0, r1, ... where every third one equals the one before."""
    for index in range(number):
        scores = {"a": 3.0 - 0.1 * (index - index // 3), "c": 2.0, "b": 1.0, "u": 2.5}
        lines = "".join(f"1 Q0 {doc} 0 {score} r{index}\n" for doc, score in scores.items())
        upload(api, "collections/small/runs/", lines)
    evaluate_all()


def test_equal_means_share_a_rank_and_earlier_runs_come_first(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(POOR, tag="first-poor")
    submit(GOOD, tag="first")
    submit(GOOD, tag="second")
    submit(POOR, tag="second-poor")
    board = api.get(BOARD).json()
    assert tags(board) == [(1, "first"), (1, "second"), (3, "first-poor"), (3, "second-poor")]


def test_pages_continue_the_ranks(api: APIClient, collection: str) -> None:
    many(api, 9)
    whole = tags(api.get(BOARD, {"sort": "AP", "limit": 200}).json())
    paged = []
    url: str | None = BOARD + "?sort=AP&limit=2"
    while url:
        page = api.get(url).json()
        paged += tags(page)
        url = page["next"]
    assert paged == whole
    assert page["previous"]


@pytest.mark.parametrize("measure", ["nDCG@10", "DCG@3"])
def test_a_stored_and_a_computed_measure_sort_alike(
    api: APIClient, collection: str, measure: str
) -> None:
    many(api, 6)
    down = api.get(BOARD, {"measures": measure, "sort": measure}).json()["results"]
    means = [row["values"][measure]["mean"] for row in down]
    assert means == sorted(means, reverse=True)
    up = api.get(BOARD, {"measures": measure, "sort": measure, "order": "asc"}).json()["results"]
    assert [row["values"][measure]["mean"] for row in up] == sorted(means)
    assert up[0]["rank"] == 1


def test_the_best_run_comes_first_where_lower_is_better(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(POOR)
    submit(GOOD)
    board = api.get(BOARD, {"measures": "SearchLength"}).json()
    assert [row["run"]["tag"] for row in board["results"]] == ["good", "poor"]
    assert board["order"] == "asc"
    # POOR finds nothing for topic 3: its value there is undefined, and the mean says over how many
    # topics it is.
    assert [row["values"]["SearchLength"]["topics"] for row in board["results"]] == [3, 2]
    compared = api.get("/api/v1/collections/small/comparison/", {"measure": "SearchLength"}).json()
    assert [run["tag"] for run in compared["runs"]] == ["good", "poor"]


def test_an_odd_measure_is_computed_and_not_stored(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    before = MetricVector.objects.count()
    board = api.get(BOARD, {"measures": "P(rel=2)@1, map"}).json()
    assert board["measures"] == ["P(rel=2)@1", "AP"]
    assert board["results"][0]["values"]["P(rel=2)@1"]["mean"] == pytest.approx(2 / 3)
    assert MetricVector.objects.count() == before


def test_a_measure_added_to_the_collection_is_stored_by_a_worker(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    answer = api.patch("/api/v1/collections/small/", {"measures": ["nDCG@10", "AP", "recip_rank"]})
    assert answer.json()["measures"] == ["nDCG@10", "AP", "RR"]
    api.get(BOARD)
    assert not MetricVector.objects.filter(measure="RR").exists()
    evaluate_all()
    assert MetricVector.objects.filter(measure="RR").count() == 1


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_rows(api: APIClient, collection: str) -> None:
    counts = []
    for number in (3, 9):
        many(api, number)
        api.get(BOARD)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            api.get(BOARD)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12


@pytest.mark.queries
def test_failed_queued_and_deleted_runs_are_not_ranked(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    gone = submit(POOR, tag="gone")
    api.delete(f"/api/v1/runs/{gone.pk}/")
    failed = submit(POOR, tag="failed")
    reason = {"error_code": "evaluation_crashed", "error_message": "the worker died"}
    Evaluation.objects.filter(run=failed).update(state="failed", topics_answered=None, **reason)
    upload(api, "collections/small/runs/", POOR, tag="waiting")
    board = api.get(BOARD).json()
    assert tags(board) == [(1, "good"), (None, "failed"), (None, "waiting")]
    assert board["states"] == {"evaluated": 1, "failed": 1, "queued": 1}
    assert (board["count"], board["ranked"]) == (3, 1)
    ranked, fallen, waiting = board["results"]
    assert [row["state"] for row in board["results"]] == ["ranked", "failed", "queued"]
    assert (ranked["code"], fallen["code"], fallen["reason"]) == (
        "",
        "evaluation_crashed",
        "the worker died",
    )
    for row in (fallen, waiting):
        assert row["coverage"] == {"answered": None, "judged": 3}
        assert row["values"] == {name: {"mean": None, "topics": 0} for name in ("nDCG@10", "AP")}
        assert (row["stale"], row["judged_at_10"]) == (False, None)
    status = api.get(f"/api/v1/runs/{failed.pk}/").json()["status"]
    assert (status["code"], status["reason"]) == (fallen["code"], fallen["reason"])


@pytest.mark.queries
def test_the_stale_rows_come_before_those_without_values(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(POOR, tag="first")
    upload(api, "collections/small/runs/", GOOD, tag="never")
    upload(api, "collections/small/qrels/", QRELS.replace("a 2", "a 1"))
    Evaluation.objects.filter(run__tag="never").update(state="failed")
    submit(GOOD, tag="new")
    Evaluation.objects.filter(run__tag="first", qrels__version=2).delete()
    Evaluation.objects.filter(run__tag="never", qrels__version=2).update(
        state="failed", topics_answered=None
    )
    MetricVector.objects.filter(evaluation__run__tag="never").delete()
    board = api.get(BOARD).json()
    assert tags(board) == [(1, "new"), (None, "first"), (None, "never")]
    assert [row["state"] for row in board["results"]] == ["ranked", "stale", "failed"]
    assert [row["judged_at_10"] is None for row in board["results"]] == [False, False, True]
    pages = [tags(api.get(BOARD, {"limit": 1, "offset": offset}).json()) for offset in range(4)]
    assert pages == [[entry] for entry in tags(board)] + [[]]


def test_every_row_says_how_much_of_it_is_judged(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    """Judged@10 of POOR: 2 of 3 documents, 2 of 2, and nothing retrieved for the third topic."""
    submit(GOOD)
    submit(POOR)
    rows = api.get(BOARD, {"measures": "AP"}).json()["results"]
    assert [row["judged_at_10"] for row in rows] == [1.0, pytest.approx((2 / 3 + 1) / 3)]
    assert [row["coverage"] for row in rows] == [
        {"answered": 3, "judged": 3},
        {"answered": 2, "judged": 3},
    ]
    assert set(rows[0]["values"]) == {"AP"}
    listed = api.get(BOARD, {"measures": "Judged@10"}).json()["results"]
    assert [row["values"]["Judged@10"]["mean"] for row in listed] == [
        row["judged_at_10"] for row in listed
    ]


@pytest.mark.queries
def test_judged_at_10_of_an_earlier_evaluation_is_stored_by_a_worker(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(POOR)
    expected = api.get(BOARD).json()["results"][0]["judged_at_10"]
    stored = MetricVector.objects.filter(measure="Judged@10")
    assert stored.count() == 1
    stored.delete()
    forget_all()
    assert api.get(BOARD).json()["results"][0]["judged_at_10"] == expected
    assert stored.count() == 0
    queue_missing()
    evaluate_all()
    assert stored.count() == 1
    cache.clear()
    # Without a judged view there is nothing to make it from.
    stored.delete()
    JudgedView.objects.all().delete()
    forget_all()
    assert api.get(BOARD).json()["results"][0]["judged_at_10"] is None


def test_ranks_are_those_of_the_runs_that_are_there(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    """A24: every run stands for itself, there is no best or last one of a team; each deletion moves up who is below."""
    contents = {
        f"run-{number}": (GOOD, POOR)[number % 2] + f"3 Q0 y{number} 9 0.{number} t\n"
        for number in range(6)
    }
    runs = {tag: submit(content, tag=tag) for tag, content in contents.items()}
    order = list(runs)
    random.Random(1).shuffle(order)
    for gone in order[:-1]:
        assert api.delete(f"/api/v1/runs/{runs.pop(gone).pk}/").status_code == 204
        values = {tag: api.get(f"/api/v1/runs/{run.pk}/values/").json()["means"]["nDCG@10"]["mean"] for tag, run in
                  runs.items()}  # fmt: skip
        expected = [
            (1 + sum(other > mean for other in values.values()), tag)
            for tag, mean in values.items()
        ]
        board = api.get("/api/v1/collections/small/leaderboard/?sort=nDCG@10").json()["results"]
        assert [(row["rank"], row["run"]["tag"]) for row in board] == sorted(
            expected, key=lambda entry: entry[0]
        )


def test_a_collection_without_judgements_says_so(api: APIClient) -> None:
    api.post("/api/v1/collections/", {"slug": "empty", "name": "Empty"})
    answer = api.get("/api/v1/collections/empty/leaderboard/")
    assert (answer.status_code, answer.json()["code"]) == (404, "no_active_qrels")


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"measures": "nDCG@10,foo"}, "unknown_measure", "measures"),
        ({"sort": "P"}, "bad_parameter", "sort"),
        ({"measures": ",".join(f"P@{k}" for k in range(1, 102))}, "too_many_measures", "measures"),
        ({"limit": "0"}, "invalid", "limit"),
        ({"offset": "-1"}, "invalid", "offset"),
        ({"offset": str(2**70)}, "invalid", "offset"),
        ({"order": "up"}, "invalid", "order"),
        ({"scores": "float16"}, "invalid", "scores"),
    ],
)
def test_a_bad_parameter_is_named(
    api: APIClient, collection: str, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = api.get(BOARD, query)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == code
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.queries
def test_other_scores_are_evaluated_on_request(api: APIClient, submit: Callable[..., Run]) -> None:
    run = submit("1 Q0 a 1 16777217 big\n1 Q0 b 2 16777216 big\n")
    values = f"/api/v1/runs/{run.pk}/values/"
    assert api.get(values, {"scores": "float32"}).json()["code"] == "not_evaluated"
    assert api.post("/api/v1/collections/small/evaluations/", {"scores": "float32"}).json() == {
        "queued": 1
    }
    evaluate_all()
    assert api.get(values, {"measures": "RR"}).json()["topics"][0]["values"]["RR"] == 1.0
    assert (
        api.get(values, {"measures": "RR", "scores": "float32"}).json()["topics"][0]["values"]["RR"]
        == 0.5
    )
    assert api.get(BOARD, {"scores": "float32"}).json()["ranked"] == 1


def test_measures_are_described(anonymous: APIClient) -> None:
    listed = anonymous.get("/api/v1/measures/").json()
    assert {"nDCG", "AP", "Judged"} <= {measure["name"] for measure in listed}
    one_measure = anonymous.get("/api/v1/measures/ndcg_cut_10/").json()
    assert (one_measure["name"], one_measure["trec_eval"]) == ("nDCG", "ndcg")
    assert "DCG@k of the ideal" in one_measure["formula"]
    assert anonymous.get("/api/v1/measures/foo/").status_code == 400


@pytest.mark.queries
def test_a_measure_written_as_an_earlier_release_wrote_it_is_stored_by_its_name(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    submit(GOOD)
    Collection.objects.update(measures=["AvgPos@5"])
    board = api.get(BOARD).json()
    assert board["measures"] == ["AvgPos(of='nDCG')@5"]
    queue_missing()
    evaluate_all()
    stored = MetricVector.objects.filter(measure__startswith="AvgPos").values_list(
        "measure", "mean"
    )
    assert list(stored) == [
        ("AvgPos(of='nDCG')@5", board["results"][0]["values"]["AvgPos(of='nDCG')@5"]["mean"])
    ]
