"""Boards under other gains, discounts and depths, and the difference of two runs, through the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient
from scipy import stats

from metrics.services.boards import what_if
from metrics.services.values.judged_views import load_view
from metrics.services.values.values import find_evaluation
from runs.models import Run
from tests.conftest import GOOD, POOR, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
WHAT_IF = "/api/v1/collections/small/what-if/"
DIFFERENCE = "/api/v1/collections/small/difference/"
NOBODY = "7b2d1a52-8a52-4b0e-9d5b-0d5f8f0f0f0f"
# A marginal document first, the best one last; or the other way round.
BREADTH = "1 Q0 c 1 9 breadth\n1 Q0 u 2 8 breadth\n1 Q0 a 3 7 breadth\n2 Q0 x 1 9 breadth\n"
DEPTH = "1 Q0 a 1 9 depth\n1 Q0 b 2 8 depth\n3 Q0 z 1 7 depth\n"


@pytest.fixture(scope="module")
def board(submit: Callable[..., Run]) -> dict[str, Run]:
    return {
        tag: submit(text, tag=tag)
        for tag, text in {"breadth": BREADTH, "depth": DEPTH, "poor": POOR}.items()
    }


def order(body: dict[str, Any], combination: dict[str, Any]) -> list[tuple[int | None, str]]:
    tags = {run["id"]: run["tag"] for run in body["runs"]}
    return [(place["rank"], tags[place["run"]]) for place in combination["leaderboard"]]


def ids(board: dict[str, Run], *tags: str) -> str:
    return ",".join(str(board[tag].pk) for tag in tags)


def test_without_a_question_the_two_users_of_the_literature_are_asked(
    api: APIClient, board: dict[str, Run]
) -> None:
    body = api.get(WHAT_IF).json()
    assert [(c["preset"], c["measure"]) for c in body["combinations"]] == [
        ("impatient", "nDCG(gains='tenfold',dis='jk')@30"),
        ("patient", "nDCG(dis='jk',b=10)@200"),
    ]
    assert body["official"]["measure"] == "nDCG@10"
    assert (len(body["tau"]), body["official"]["tau_official"]) == (2, 1)


@pytest.mark.slow
def test_every_combination_has_the_leaderboard_of_its_measure(
    api: APIClient, board: dict[str, Run]
) -> None:
    query = {"gains": "0-1-10-100; exp;1:5", "b": "2,10", "depths": "1,all", "family": "nDCG,CG"}
    body = api.get(WHAT_IF, query).json()
    assert len(body["combinations"]) == 3 * 2 * 2 + 3 * 2
    for combination in [body["official"], *body["combinations"]]:
        rows = api.get(
            "/api/v1/collections/small/leaderboard/", {"measures": combination["measure"]}
        ).json()["results"]
        assert order(body, combination) == [(row["rank"], row["run"]["tag"]) for row in rows]
        values = [row["values"][combination["measure"]] for row in rows]
        assert [
            {"mean": place["mean"], "topics": place["topics"]}
            for place in combination["leaderboard"]
        ] == values


def test_gains_change_the_order_of_the_systems_and_tau_says_by_how_much(
    api: APIClient, board: dict[str, Run]
) -> None:
    body = api.get(
        WHAT_IF, {"family": "CG", "gains": "0-1-1-1;0-0-0-1;0-1-10-100", "depths": "3"}
    ).json()
    flat, top, steep = body["combinations"]
    assert order(body, flat) == [(1, "breadth"), (2, "depth"), (2, "poor")]
    assert order(body, top) == [(1, "depth"), (2, "breadth"), (2, "poor")]
    assert order(body, steep) == [(1, "depth"), (2, "breadth"), (3, "poor")]
    assert [c["ties"] for c in body["combinations"]] == [True, True, False]
    assert body["coefficient"] == "tau-b"
    ranks = [[1, 2, 2], [2, 1, 2], [2, 1, 3]]
    expected = [[stats.kendalltau(a, b).statistic for b in ranks] for a in ranks]
    for row, theirs in zip(body["tau"], expected, strict=True):
        assert row == pytest.approx(theirs)
    official = [
        rank for _, rank in sorted((tag, rank) for rank, tag in order(body, body["official"]))
    ]
    assert [c["tau_official"] for c in body["combinations"]] == pytest.approx(
        [stats.kendalltau(official, row).statistic for row in ranks]
    )


def test_what_is_stored_is_not_computed_again(
    api: APIClient, board: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = api.get("/api/v1/collections/small/").json()["measures"]
    monkeypatch.setattr(
        what_if, "computed_means", lambda ids, measures: pytest.fail(f"computes {measures}")
    )
    body = api.get(WHAT_IF, {"measures": ",".join(own)}).json()
    assert [c["measure"] for c in body["combinations"]] == own
    assert body["combinations"][0]["leaderboard"] == body["official"]["leaderboard"]


def test_orders_without_ties_are_told_apart_by_tau_a(api: APIClient, board: dict[str, Run]) -> None:
    api.patch("/api/v1/collections/small/", {"measures": ["AP"]})
    query = {"family": "CG", "gains": "0-1-10-100;0-0-0-1", "runs": ids(board, "breadth", "depth")}
    body = api.get(WHAT_IF, query).json()
    assert (body["coefficient"], body["tau"]) == ("tau-a", [[1, 1], [1, 1]])
    assert [c["tau_official"] for c in body["combinations"]] == [-1, -1]


def test_measures_presets_and_a_product_add_up_without_repeating(
    api: APIClient, board: dict[str, Run]
) -> None:
    query = {"measures": "AP,nDCG@10", "preset": "patient", "gains": "linear", "depths": "10,20"}
    body = api.get(WHAT_IF, query).json()
    names = [c["measure"] for c in body["combinations"]]
    assert names == ["AP", "nDCG@10", "nDCG(dis='jk',b=10)@200", "nDCG@20"]
    assert [c["preset"] for c in body["combinations"]] == [None, None, "patient", None]
    repeated = api.get(f"{WHAT_IF}?gains=0-1-10&gains=exp&dis=jk&dis=session&depths=5").json()
    assert len(repeated["combinations"]) == 4


def test_one_run_has_values_and_no_order(api: APIClient, board: dict[str, Run]) -> None:
    body = api.get(WHAT_IF, {"runs": ids(board, "poor"), "measures": "CG@3,DCG@3"}).json()
    assert body["tau"] == [[None, None], [None, None]]
    assert [order(body, c) for c in body["combinations"]] == [[(1, "poor")], [(1, "poor")]]
    view = load_view(find_evaluation(run=board["poor"]))
    assert body["combinations"][0]["leaderboard"][0]["mean"] == pytest.approx(2 / 3)
    assert view.n_topics == 3


def test_a_run_without_a_mean_is_last_and_has_no_rank(
    api: APIClient, board: dict[str, Run]
) -> None:
    upload(api, "collections/small/runs/", "9 Q0 a 1 1 lost\n")
    evaluate_all()
    (combination,) = api.get(WHAT_IF, {"measures": "SearchLength"}).json()["combinations"]
    last = combination["leaderboard"][-1]
    assert (last["rank"], last["mean"], last["topics"]) == (None, None, 0)
    # All three have two topics: breadth and poor the same, depth another one.
    assert [place["rank"] for place in combination["leaderboard"]] == [1, 2, None, None]
    why = ["mean of 2 topics that are not those of the ranked runs", "no topic has a value"]
    assert [place["reason"] for place in combination["leaderboard"]] == ["", "", *why]


def test_only_fresh_evaluations_of_live_runs_take_part(
    api: APIClient, board: dict[str, Run]
) -> None:
    api.delete(f"/api/v1/runs/{board['poor'].pk}/")
    assert {run["tag"] for run in api.get(WHAT_IF).json()["runs"]} == {"breadth", "depth"}
    upload(api, "collections/small/qrels/", "1 0 a 1\n")
    stale = api.get(WHAT_IF).json()
    assert (stale["runs"], stale["combinations"][0]["leaderboard"], stale["tau"][0][1]) == (
        [],
        [],
        None,
    )
    answer = api.get(WHAT_IF, {"runs": ids(board, "depth")})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_run")
    answer = api.get(DIFFERENCE, {"runs": ids(board, "depth", "breadth")})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_run")


def test_runs_times_combinations_are_bounded(
    api: APIClient, board: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "MAX_FIGURES", 6)
    assert api.get(WHAT_IF).status_code == 200
    for query in (
        {"depths": "1,2,3"},
        {"depths": "1,2,3", "runs": ids(board, "poor", "depth", "breadth")},
    ):
        answer = api.get(WHAT_IF, query)
        assert (answer.status_code, answer.json()["code"]) == (400, "too_many_figures")
        assert answer.json()["detail"].startswith(
            "3 combinations can be computed for at most 2 runs at once"
        )
    assert (
        api.get(WHAT_IF, {"depths": "1,2,3", "runs": ids(board, "poor", "depth")}).status_code
        == 200
    )


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_runs(
    api: APIClient, board: dict[str, Run]
) -> None:
    counts = []
    for more in (0, 12):
        for index in range(more):
            upload(api, "collections/small/runs/", BREADTH, tag=f"more-{index}")
        evaluate_all()
        with CaptureQueriesContext(connection) as queries:
            assert len(api.get(WHAT_IF, {"depths": "1,2,3,4"}).json()["runs"]) == 3 + more
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"family": "AP"}, "bad_parameter", "family"),
        ({"gains": "0-1-x"}, "bad_parameter", "gains"),
        ({"gains": "0:0'),DCG(gains='1:1"}, "bad_parameter", "gains"),
        ({"gains": "1:1e99"}, "bad_parameter", "gains"),
        ({"gains": ",".join(f"{level}:9e14" for level in range(1, 22))}, "unknown_measure", None),
        ({"dis": "log3"}, "bad_parameter", "dis"),
        ({"b": "1"}, "bad_parameter", "b"),
        ({"b": "2)@5,AP"}, "bad_parameter", "b"),
        ({"b": "2", "dis": "log2"}, "bad_parameter", "b"),
        ({"depths": "10,0"}, "bad_parameter", "depths"),
        ({"depths": "1" * 400}, "bad_parameter", "depths"),
        ({"depths": ",".join(map(str, range(1, 60)))}, "too_many_values", "depths"),
        ({"depths": "1,2,3,4,5,6,7,8", "b": "2,3,4,5,6,7,8"}, "too_many_combinations", None),
        (
            {"depths": ",".join(map(str, range(1, 51))), "measures": "AP"},
            "too_many_combinations",
            None,
        ),
        ({"preset": "hasty"}, "bad_parameter", "preset"),
        ({"measures": "nDCG,foo"}, "unknown_measure", "measures"),
        ({"runs": "17"}, "invalid", "runs"),
        ({"runs": NOBODY}, "unknown_run", "runs"),
        ({"scores": "float16"}, "invalid", "scores"),
    ],
)
def test_a_question_without_a_meaning_is_refused(
    api: APIClient, board: dict[str, Run], query: dict[str, str], code: str, pointer: str | None
) -> None:
    answer = api.get(WHAT_IF, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == ([pointer] if pointer else [])


def test_the_precision_histogram_of_two_runs(api: APIClient, board: dict[str, Run]) -> None:
    body = api.get(DIFFERENCE, {"runs": ids(board, "depth", "poor"), "measure": "Rprec"}).json()
    # Two relevant documents for topic 1, one for topics 2 and 3; depth finds a and z, poor has
    # neither at rank R.
    assert body["topics"] == [
        {"topic_id": "1", "a": 0.5, "b": 0.0, "difference": 0.5, "influence": 0.0},
        {"topic_id": "2", "a": 0.0, "b": 0.0, "difference": 0.0, "influence": 0.25},
        {"topic_id": "3", "a": 1.0, "b": 0.0, "difference": 1.0, "influence": -0.25},
    ]
    assert [body[count] for count in ("wins", "ties", "losses", "undefined")] == [2, 1, 0, 0]
    assert (body["a"]["tag"], body["a"]["mean"], body["b"]["mean"]) == ("depth", 0.5, 0.0)
    turned = api.get(
        DIFFERENCE, {"runs": ids(board, "poor", "depth"), "measure": "Rprec", "order": "difference"}
    ).json()
    assert [topic["topic_id"] for topic in turned["topics"]] == ["2", "1", "3"]
    assert (turned["wins"], turned["losses"], turned["measure"]) == (0, 2, "Rprec")


def test_topics_are_those_of_the_values_and_none_counts_where_a_value_is_missing(
    api: APIClient, board: dict[str, Run]
) -> None:
    query = {
        "runs": ids(board, "depth", "breadth"),
        "measure": "SearchLength",
        "order": "difference",
    }
    body = api.get(DIFFERENCE, query).json()
    values = api.get(
        f"/api/v1/runs/{board['depth'].pk}/values/", {"measures": "SearchLength"}
    ).json()
    ours = {topic["topic_id"]: topic["a"] for topic in body["topics"]}
    assert ours == {
        topic["topic_id"]: topic["values"]["SearchLength"] for topic in values["topics"]
    }
    assert (body["undefined"], body["wins"] + body["ties"] + body["losses"]) == (2, 1)
    assert [topic["difference"] for topic in body["topics"]][1:] == [None, None]
    assert [topic["influence"] for topic in body["topics"]] == [None, None, None]


def test_where_lower_is_better_the_lower_value_wins(api: APIClient, board: dict[str, Run]) -> None:
    body = api.get(
        DIFFERENCE, {"runs": ids(board, "breadth", "poor"), "measure": "SearchLength"}
    ).json()
    assert (body["topics"][0]["difference"], body["wins"], body["losses"]) == (-2, 2, 0)


def test_the_means_of_a_pooled_measure_are_those_of_the_leaderboard(
    api: APIClient, board: dict[str, Run]
) -> None:
    measure = "nDCG(norm='average')@3"
    rows = api.get("/api/v1/collections/small/leaderboard/", {"measures": measure}).json()[
        "results"
    ]
    means = {row["run"]["tag"]: row["values"][measure]["mean"] for row in rows}
    body = api.get(DIFFERENCE, {"runs": ids(board, "depth", "poor"), "measure": measure}).json()
    assert (body["a"]["mean"], body["b"]["mean"]) == (means["depth"], means["poor"])
    values = api.get(f"/api/v1/runs/{board['depth'].pk}/values/", {"measures": measure}).json()
    assert values["means"][measure]["mean"] == means["depth"]
    assert means["depth"] != pytest.approx(sum(t["values"][measure] for t in values["topics"]) / 3)
    # The collection's own measures are stored: read from the row, the mean is the same.
    api.patch("/api/v1/collections/small/", {"measures": [measure]})
    evaluate_all()
    for _ in range(2):
        rows = api.get("/api/v1/collections/small/leaderboard/").json()["results"]
        assert {row["run"]["tag"]: row["values"][measure]["mean"] for row in rows} == means
    values = api.get(f"/api/v1/runs/{board['depth'].pk}/values/").json()
    assert values["means"][measure]["mean"] == means["depth"]


@pytest.mark.parametrize(
    ("measure", "instead"),
    [
        (
            "nDCG(norm='average')@3",
            "use DCG@3, whose means it divides by the same average ideal for every run, or nDCG@3",
        ),
        ("nCG(gains='exp',norm='average')@2", "use CG(gains='exp')@2, whose means"),
        ("nDCG(dis='jk',ideal='retrieved',norm='average')", "use nDCG(dis='jk',ideal='retrieved')"),
        ("AvgPos(of='nCG',norm='average')@5", "use AvgPos(of='nCG')@5"),
    ],
)
def test_a_ratio_of_averages_is_not_tested_and_says_what_is(
    api: APIClient, board: dict[str, Run], measure: str, instead: str
) -> None:
    for path in (
        "comparison/",
        "comparison/export/csv/",
        "orders/",
        "design/",
        "charts/significance.json",
    ):
        answer = api.get(f"/api/v1/collections/small/{path}", {"measures": f"{measure},AP"})
        assert (answer.status_code, answer.json()["code"]) == (400, "pooled_measure"), path
        assert answer.json()["detail"].endswith(instead) or f"{instead} " in answer.json()["detail"]
        assert [error["pointer"] for error in answer.json()["errors"]] == ["measures"]
    queued = api.post(
        "/api/v1/collections/small/comparison/", {"measures": [measure], "tests": ["sign"]}, "json"
    )
    assert (queued.status_code, queued.json()["code"]) == (400, "pooled_measure")


def test_by_default_only_what_has_values_of_topics_is_tested(
    api: APIClient, board: dict[str, Run]
) -> None:
    ratio = "nDCG(norm='average')@3"
    api.patch("/api/v1/collections/small/", {"measures": [ratio, "AP", "P@1"]}, "json")
    compared = api.get("/api/v1/collections/small/comparison/").json()
    assert [measure["measure"] for measure in compared["measures"]] == ["AP"]
    assert [
        order["measure"] for order in api.get("/api/v1/collections/small/orders/").json()["orders"]
    ] == ["AP", "P@1"]
    for page in ("comparison", "orders", "design"):
        assert api.get(f"/collections/small/{page}/").status_code == 200
    api.patch("/api/v1/collections/small/", {"measures": [ratio]}, "json")
    assert api.get("/api/v1/collections/small/comparison/").json()["code"] == "pooled_measure"


def test_a_ratio_of_averages_orders_runs_as_the_averages_do(
    api: APIClient, board: dict[str, Run]
) -> None:
    """What the refusal says: under one ideal it is the mean DCG divided by one number."""
    raw, ratio = "DCG@3", "nDCG(norm='average')@3"
    rows = api.get("/api/v1/collections/small/leaderboard/", {"measures": f"{raw},{ratio}"}).json()[
        "results"
    ]
    shares = [
        row["values"][ratio]["mean"] / row["values"][raw]["mean"]
        for row in rows
        if row["values"][raw]["mean"]
    ]
    assert len(shares) > 1
    assert shares == pytest.approx([shares[0]] * len(shares))


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({}, "too_few_runs", "runs"),
        ({"runs": "{poor}"}, "too_few_runs", "runs"),
        ({"runs": "{poor},{poor}"}, "too_few_runs", "runs"),
        ({"runs": "{poor},{depth},{breadth}"}, "too_many_runs", "runs"),
        ({"runs": "{poor},{poor},{depth}"}, "too_many_runs", "runs"),
        ({"runs": f"{{poor}},{NOBODY}"}, "unknown_run", "runs"),
        ({"runs": "{poor},x' OR 1=1"}, "invalid", "runs"),
        ({"runs": "{poor},{depth}", "measure": "P"}, "bad_parameter", "measure"),
        ({"runs": "{poor},{depth}", "order": "a"}, "invalid", "order"),
        ({"runs": "{poor},{depth}", "scores": "x"}, "invalid", "scores"),
    ],
)
def test_a_difference_without_an_answer_says_why(
    api: APIClient, board: dict[str, Run], query: dict[str, str], code: str, pointer: str
) -> None:
    runs = {tag: str(run.pk) for tag, run in board.items()}
    answer = api.get(DIFFERENCE, {name: text.format(**runs) for name, text in query.items()})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("url", [WHAT_IF, DIFFERENCE])
def test_they_are_seen_as_the_leaderboard_is(
    api: APIClient, anonymous: APIClient, board: dict[str, Run], url: str
) -> None:
    query = {"runs": ids(board, "poor", "depth")}
    assert anonymous.get(url, query).status_code == 200
    api.patch("/api/v1/collections/small/", {"visibility": "team"})
    assert anonymous.get(url, query).status_code == 404
    assert api.get(url, query).status_code == 200
    assert api.get(url.replace("small", "none"), query).status_code == 404
    api.post("/api/v1/collections/", {"slug": "empty", "name": "Empty"})
    answer = api.get(url.replace("small", "empty"), query)
    assert (answer.status_code, answer.json()["code"]) == (404, "no_active_qrels")


def test_runs_of_another_collection_take_no_part(api: APIClient, board: dict[str, Run]) -> None:
    api.post("/api/v1/collections/", {"slug": "other", "name": "Other", "measures": ["AP"]})
    upload(api, "collections/other/qrels/", "1 0 a 1\n")
    other = upload(api, "collections/other/runs/", GOOD).json()["id"]
    evaluate_all()
    for url in (WHAT_IF, DIFFERENCE):
        answer = api.get(url, {"runs": f"{board['poor'].pk},{other}"})
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_run")
