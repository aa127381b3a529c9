"""How far orders of runs agree, through the API: against SciPy and against counting one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient
from scipy import stats

from metrics.engine.significance.pairs import Matrix
from metrics.engine.significance.resampling import draw_weights
from metrics.models import Evaluation
from metrics.services.comparisons import orders
from runs.models import Collection, Run, User
from tests.conftest import GOOD, POOR, QRELS, client_of, evaluate_all, upload
from tests.metrics.boards import add_runs, add_version, make_board, make_run, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

pytestmark = pytest.mark.words
ORDERS = "/api/v1/collections/board/orders/"
NOBODY = "7b2d1a52-8a52-4b0e-9d5b-0d5f8f0f0f0f"
RUNS, TOPICS, RESAMPLES = 8, 25, 300


@pytest.fixture
def values() -> dict[str, Matrix]:
    """Three measures of the same runs, the second near the first one."""
    first = simulated(RUNS, TOPICS)
    rng = np.random.default_rng(1)
    near = first + rng.normal(0, 0.05, first.shape)
    return {"AP": first, "nDCG@10": near, "SearchLength": 1 + 10 * simulated(RUNS, TOPICS, seed=9)}


@pytest.fixture
def board(alice: User, values: dict[str, Matrix]) -> Collection:
    return make_board(alice.personal_team, values)


def naive_tau_ap(truth: list[float], estimate: list[float]) -> float:
    """By the definition, for values without ties where higher is better."""
    order = sorted(range(len(estimate)), key=lambda run: -estimate[run])
    shares = [
        sum(truth[above] > truth[run] for above in order[:place]) / place
        for place, run in enumerate(order) if place
    ]  # fmt: skip
    return 2 * sum(shares) / len(shares) - 1


def naive_rbo(a: list[float], b: list[float], p: float = 0.9) -> float:
    """Rank by rank, for values without ties."""
    first, second = (sorted(range(len(of)), key=lambda run: -of[run]) for of in (a, b))
    shared = [
        len(set(first[:depth]) & set(second[:depth])) / depth for depth in range(1, len(a) + 1)
    ]
    return shared[-1] * p ** len(a) + (1 - p) * sum(
        share * p**depth for depth, share in enumerate(shared)
    )


def resampled_means(values: Matrix) -> Matrix:
    """The means of the runs on the same draws of topics; shape (resamples, runs)."""
    weights = (
        draw_weights(0, 0, values.shape[1])
        .transpose(0, 2, 1)
        .reshape(-1, values.shape[1])[:RESAMPLES]
    )
    return weights @ values.T / values.shape[1]


def ends(value: float, drawn: list[float], least: float) -> list[float]:
    """Of the middle 95 per cent, and of the same mirrored at what was observed."""
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf").tolist()
    return [min(low, max(least, 2 * value - high)), max(high, min(1.0, 2 * value - low))]


def pair_of(body: dict[str, Any], a: tuple[str, int], b: tuple[str, int]) -> dict[str, Any]:
    names = [(order["measure"], order["qrels"]) for order in body["orders"]]
    (match,) = [pair for pair in body["pairs"] if (names[pair["a"]], names[pair["b"]]) == (a, b)]
    return match


@pytest.mark.slow
def test_orders_by_measures_against_scipy_and_one_by_one(
    anonymous: APIClient, board: Collection, values: dict[str, Matrix]
) -> None:
    body = anonymous.get(ORDERS, {"resamples": RESAMPLES}).json()
    assert (len(body["orders"]), len(body["pairs"]), body["topics"], body["resamples"]) == (
        3,
        3,
        TOPICS,
        RESAMPLES,
    )
    signs = {"AP": 1.0, "nDCG@10": 1.0, "SearchLength": -1.0}
    for measure, other in (("AP", "nDCG@10"), ("AP", "SearchLength"), ("nDCG@10", "SearchLength")):
        pair = pair_of(body, (measure, 1), (other, 1))
        a, b = (signs[name] * values[name].mean(axis=1) for name in (measure, other))
        drawn = list(
            zip(
                *(signs[name] * resampled_means(values[name]) for name in (measure, other)),
                strict=True,
            )
        )
        for name, compare in (
            ("tau", lambda x, y: float(stats.kendalltau(x, y).statistic)),
            ("tau_ap", lambda x, y: naive_tau_ap(list(x), list(y))),
            ("tau_ap_reversed", lambda x, y: naive_tau_ap(list(y), list(x))),
            (
                "symmetric_tau_ap",
                lambda x, y: (naive_tau_ap(list(x), list(y)) + naive_tau_ap(list(y), list(x))) / 2,
            ),
            ("rbo", lambda x, y: naive_rbo(list(x), list(y))),
        ):
            assert pair[name]["value"] == pytest.approx(compare(a, b)), name
            expected = ends(
                compare(a, b), [compare(x, y) for x, y in drawn], 0.0 if name == "rbo" else -1.0
            )
            assert [pair[name]["low"], pair[name]["high"]] == pytest.approx(expected), name


def test_ranks_and_their_changes(
    anonymous: APIClient, board: Collection, values: dict[str, Matrix]
) -> None:
    body = anonymous.get(ORDERS, {"measures": "AP,SearchLength"}).json()
    assert [run["tag"] for run in body["runs"]] == [f"r{index}" for index in range(RUNS)]
    first, second = body["orders"]
    assert first["ranks"] == stats.rankdata(-values["AP"].mean(axis=1), "min").tolist()
    assert second["ranks"] == stats.rankdata(values["SearchLength"].mean(axis=1), "min").tolist()
    assert first["means"] == pytest.approx(values["AP"].mean(axis=1))
    (pair,) = body["pairs"]
    assert pair["changes"] == [b - a for a, b in zip(first["ranks"], second["ranks"], strict=True)]
    assert pair["moved"] == sum(change != 0 for change in pair["changes"]) > 0
    for order in body["orders"]:
        rows = anonymous.get(
            "/api/v1/collections/board/leaderboard/", {"measures": order["measure"]}
        ).json()["results"]
        ranks = {row["run"]["id"]: row["rank"] for row in rows}
        assert [ranks[run["id"]] for run in body["runs"]] == order["ranks"]


def test_an_order_agrees_with_itself(
    anonymous: APIClient, alice: User, values: dict[str, Matrix]
) -> None:
    make_board(alice.personal_team, {"AP": values["AP"], "P@10": values["AP"]})
    (pair,) = anonymous.get(ORDERS).json()["pairs"]
    for name in ("tau", "tau_ap", "tau_ap_reversed", "symmetric_tau_ap", "rbo"):
        assert pair[name] == pytest.approx({"value": 1.0, "low": 1.0, "high": 1.0})
    assert (pair["moved"], pair["changes"]) == (0, [0] * RUNS)


def test_an_order_that_is_one_tie_agrees_with_nothing(anonymous: APIClient, alice: User) -> None:
    make_board(alice.personal_team, {"AP": simulated(3, 10), "P@10": np.full((3, 10), 0.5)})
    body = anonymous.get(ORDERS).json()
    assert [order["ties"] for order in body["orders"]] == [False, True]
    assert body["pairs"][0]["tau"] == {"value": None, "low": None, "high": None}
    assert [caution["code"] for caution in body["cautions"]] == ["few_topics"]


def test_orders_under_two_versions_are_of_their_own_evaluations(
    anonymous: APIClient, board: Collection, values: dict[str, Matrix]
) -> None:
    """The second version judges another order of topics, one more, and not all runs."""
    runs = list(Run.objects.order_by("created_at"))
    names = [*(str(topic) for topic in reversed(range(TOPICS))), "new"]
    later = {name: np.hstack([1 - of[:, ::-1], np.ones((RUNS, 1))]) for name, of in values.items()}
    qrels = add_version(board, 2, names)
    add_runs(qrels, runs[:6], later)
    add_runs(qrels, [make_run(board, "late")], later)
    body = anonymous.get(
        ORDERS, {"qrels": "1,2", "measures": "AP,nDCG@10", "resamples": RESAMPLES}
    ).json()
    assert [run["tag"] for run in body["runs"]] == [f"r{index}" for index in range(6)]
    kinds = [(order["measure"], order["qrels"]) for order in body["orders"]]
    assert kinds == [("AP", 1), ("nDCG@10", 1), ("AP", 2), ("nDCG@10", 2)]
    assert [(pair["a"], pair["b"]) for pair in body["pairs"]] == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert body["topics"] == TOPICS
    assert [caution["code"] for caution in body["cautions"]] == ["topics_left_out"]
    pair = pair_of(body, ("AP", 1), ("AP", 2))
    # Every value was turned round: so is the order.
    assert (pair["tau"]["value"], pair["tau_ap"]["value"]) == pytest.approx((-1.0, -1.0))
    assert body["orders"][2]["means"] == pytest.approx(1 - values["AP"][:6].mean(axis=1))
    assert (
        anonymous.get(ORDERS, {"qrels": ["1", "2"], "measures": "AP"}).json()["pairs"][0]["a"] == 0
    )
    assert len(anonymous.get(ORDERS, {"measures": "AP,nDCG@10"}).json()["runs"]) == 7


def test_new_judgements_of_the_same_runs(api: APIClient, submit: Callable[..., Run]) -> None:
    submit(GOOD, tag="good")
    submit(POOR, tag="poor")
    turned = "1 0 a 0\n1 0 b 2\n1 0 u 1\n2 0 y 1\n3 0 q 3\n"
    assert upload(api, "collections/small/qrels/", turned).status_code == 201
    small = "/api/v1/collections/small/orders/"
    waiting = api.get(small, {"qrels": "1,2"})
    assert (waiting.status_code, waiting.json()["code"]) == (400, "too_few_runs")
    evaluate_all()
    body = api.get(small, {"qrels": "1,2", "measures": "AP"}).json()
    assert [order["ranks"] for order in body["orders"]] == [[1, 2], [2, 1]]
    assert (body["pairs"][0]["tau"]["value"], body["pairs"][0]["changes"]) == (-1.0, [1, -1])


def test_dimensions_of_relevance_are_versions_that_every_run_is_evaluated_against(
    api: APIClient, submit: Callable[..., Run], bob: User
) -> None:
    submit(GOOD, tag="good")
    credibility = "1 0 a 0\n1 0 b 2\n1 0 u 1\n2 0 y 1\n3 0 q 3\n"
    assert upload(api, "collections/small/qrels/", credibility).status_code == 201
    # This one is submitted when the first dimension is no longer the active one.
    late = submit(POOR, tag="poor")
    values = f"/api/v1/runs/{late.pk}/values/?measures=AP&qrels=1"
    assert api.get(values).json()["code"] == "not_evaluated"

    path = "/api/v1/collections/small/evaluations/"
    assert client_of(bob).post(path, {"qrels": 1}).status_code == 403
    unknown = api.post(path, {"qrels": 3})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_qrels")
    assert api.post(path, {"qrels": 1}).json() == {"queued": 1}
    progress = api.get(path, {"qrels": 1}).json()
    assert (progress["qrels"], progress["evaluated"], progress["done"]) == (1, 1, False)
    evaluate_all()
    assert api.get(path, {"qrels": 1}).json()["done"]
    assert api.get(path).json()["qrels"] == 2
    assert api.get(path, {"qrels": 3}).json()["code"] == "unknown_qrels"

    # The same values as in a collection that has these judgements alone.
    fields = {"slug": "topicality", "name": "Topicality", "measures": ["AP"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert upload(api, "collections/topicality/qrels/", QRELS).status_code == 201
    alone = upload(api, "collections/topicality/runs/", POOR, tag="poor").json()["id"]
    evaluate_all()
    expected = api.get(f"/api/v1/runs/{alone}/values/?measures=AP").json()
    assert api.get(values).json()["topics"] == expected["topics"]
    orders = api.get("/api/v1/collections/small/orders/", {"qrels": "1,2", "measures": "AP"})
    assert [order["ranks"] for order in orders.json()["orders"]] == [[1, 2], [2, 1]]

    # A single run, by its team.
    other = submit("1 Q0 b 1 1 other\n", tag="other")
    request = api.post(f"/api/v1/runs/{other.pk}/evaluations/", {"qrels": 1})
    assert (request.status_code, request.json()["qrels"]) == (202, 1)
    evaluate_all()
    assert api.get(f"/api/v1/runs/{other.pk}/values/?qrels=1").status_code == 200


@pytest.mark.queries
def test_stale_deleted_and_foreign_runs_take_no_part(
    api: APIClient, anonymous: APIClient, board: Collection, values: dict[str, Matrix], alice: User
) -> None:
    make_board(alice.personal_team, values, "other")
    foreign = Run.objects.filter(collection__slug="other").first()
    first, second, third, *_ = Run.objects.filter(collection=board).order_by("created_at")
    assert api.delete(f"/api/v1/runs/{first.pk}/").status_code == 204
    Evaluation.objects.filter(run=second).update(engine_version="0")
    assert [run["tag"] for run in anonymous.get(ORDERS).json()["runs"]] == [
        f"r{index}" for index in range(2, RUNS)
    ]
    for run in (first, second, foreign):
        assert run is not None
        answer = anonymous.get(ORDERS, {"runs": f"{third.pk},{run.pk}"})
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_run")


def test_orders_ask_as_many_queries_for_any_number_of_measures(
    anonymous: APIClient, board: Collection, values: dict[str, Matrix]
) -> None:
    add_runs(
        add_version(board, 2, [str(topic) for topic in range(TOPICS)]),
        list(Run.objects.all()),
        values,
    )
    for query in ({"measures": "AP,nDCG@10"}, {"qrels": "1,2"}):
        with CaptureQueriesContext(connection) as queries:
            assert anonymous.get(ORDERS, query).status_code == 200
        assert len(queries) <= 9


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"measures": "AP"}, "too_few_orders", "measures"),
        ({"measures": ",".join(f"P@{k}" for k in range(1, 22))}, "too_many_orders", "measures"),
        ({"measures": "foo"}, "unknown_measure", "measures"),
        ({"qrels": "1,7"}, "unknown_qrels", "qrels"),
        ({"qrels": "x"}, "invalid", "qrels"),
        ({"runs": "17"}, "invalid", "runs"),
        ({"runs": NOBODY}, "unknown_run", "runs"),
        ({"resamples": "1"}, "invalid", "resamples"),
        ({"confidence": "1"}, "invalid", "confidence"),
        ({"seed": "x"}, "invalid", "seed"),
        ({"scores": "float16"}, "invalid", "scores"),
    ],
)
@pytest.mark.queries
def test_orders_without_a_meaning_are_refused(
    anonymous: APIClient, board: Collection, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = anonymous.get(ORDERS, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_orders_that_would_take_too_long_say_what_to_narrow(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.EVALHUB_WORK_SECONDS = 1e-6
    answer = anonymous.get(ORDERS)
    assert (answer.status_code, answer.json()["code"]) == (400, "too_much_work")
    assert "fewer measures" in answer.json()["detail"]
    monkeypatch.setattr(orders, "MAX_RUNS", RUNS - 1)
    assert anonymous.get(ORDERS).json()["code"] == "too_many_runs"
