"""Curves over ranks and over recall, through the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy import stats

from metrics.api.values import curves as curve_api
from runs.models import Run
from tests.conftest import GOOD, POOR, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


@pytest.fixture(scope="module")
def pair(submit: Callable[..., Run]) -> tuple[Run, Run]:
    return submit(GOOD), submit(POOR)


@pytest.fixture(scope="module")
def ask(pair: tuple[Run, Run]) -> Callable[..., Any]:
    """Ask for the curves of POOR: of three topics it finds c of the first and x of the second."""
    run = pair[1]

    def get(kind: str = "curve", **query: str) -> Any:
        return APIClient().get(f"/api/v1/runs/{run.pk}/{kind}/", query)

    return get


def test_a_curve_has_a_mean_an_interval_and_an_ideal(ask: Callable[..., Any]) -> None:
    body = ask(measures="CG", depth="4", per_topic="true").json()
    (curve,) = body["curves"]
    assert curve["mean"] == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    assert curve["ideal"] == pytest.approx([2, 7 / 3, 7 / 3, 7 / 3])
    assert curve["topics"][0] == {"topic_id": "1", "values": [0, 0, 1, 1]}
    assert [topic["values"][3] for topic in curve["topics"]] == [1, 1, 0]
    interval = stats.ttest_1samp([1, 1, 0], 0).confidence_interval(0.95)
    assert (curve["low"][3], curve["high"][3]) == pytest.approx((interval.low, interval.high))
    assert (body["depth"], body["confidence"], body["coverage"]) == (
        4,
        0.95,
        {"answered": 2, "judged": 3},
    )


def test_several_measures_come_in_one_answer(ask: Callable[..., Any]) -> None:
    text = "nDCG(norm='average'),CG,P(rel=2),R,nDCG@5"
    body = ask(measures=text, depth="5").json()
    assert [curve["measure"] for curve in body["curves"]] == [
        "nDCG(norm='average')",
        "CG",
        "P(rel=2)",
        "R",
        "nDCG",
    ]
    assert all(
        len(curve[line]) == 5
        for curve in body["curves"]
        for line in ("mean", "low", "high", "ideal")
    )
    assert "topics" not in body["curves"][0]
    for name in ("measure", "measures"):
        assert ask(**{name: "P"}).json()["curves"][0]["measure"] == "P"
    assert ask().json()["curves"][0]["measure"] == "nDCG"


def test_curves_are_read_across_and_down_where_asked(ask: Callable[..., Any]) -> None:
    across, falling = (
        curve["readings"] for curve in ask(measures="R,P", depth="4", readings="1").json()["curves"]
    )
    # The ideal has all of topics 2 and 3 and half of topic 1 at once: 5/6 on average; POOR ends at
    # 1.5 of 3 topics.
    assert across["needed"] == [None] * 4
    assert across["missed"] == pytest.approx([5 / 6, 2 / 3, 1 / 2, 1 / 2])
    assert across["missed_percent"] == pytest.approx([100, 200 / 3, 50, 50])
    assert across["ideal_horizontal_from"] == 2
    assert (falling["needed"], falling["ideal_horizontal_from"]) == (None, None)


def test_one_topic_has_a_curve_without_an_interval(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    upload(api, "collections/small/qrels/", "1 0 a 1\n1 0 b 2\n")
    run = submit(GOOD, tag="one-topic")
    for kind in ("curve", "precision-recall"):
        (curve,) = api.get(f"/api/v1/runs/{run.pk}/{kind}/").json()["curves"]
        assert (curve["low"], curve["high"]) == (None, None)


def test_precision_over_recall_has_a_curve_for_every_level_that_occurs(
    ask: Callable[..., Any],
) -> None:
    body = ask("precision-recall", rel="all", per_topic="true").json()
    assert body["recall"] == [step / 10 for step in range(11)]
    assert [curve["rel"] for curve in body["curves"]] == [1, 2, 3]
    lowest = body["curves"][0]
    # Topic 1: c, one of two, at rank 3; topic 2: x, the only one, at rank 2. 0.7 of two documents
    # are rounded to one.
    assert lowest["topics"][0]["values"] == pytest.approx([1 / 3] * 8 + [0] * 3)
    assert lowest["mean"][:2] == pytest.approx([5 / 18, 5 / 18])
    assert [curve["mean"][0] for curve in body["curves"]] == pytest.approx([5 / 18, 0, 0])


def test_the_points_of_recall_and_the_interpolation_are_chosen(ask: Callable[..., Any]) -> None:
    body = ask(
        "precision-recall", points="3", interp="interval", rel="1,2", confidence="0.5"
    ).json()
    assert (body["recall"], body["interp"], body["rounding"]) == ([0, 0.5, 1], "interval", None)
    assert body["curves"][0]["mean"] == pytest.approx(
        [(1 / 3 + 0) / 3, (1 / 3 + 1 / 2) / 3, (1 / 2) / 3]
    )
    exact = ask("precision-recall", points="101", rounding="exact").json()
    assert (len(exact["recall"]), exact["rounding"]) == (101, "exact")
    assert np.isfinite(exact["curves"][0]["low"]).all()


def test_levels_by_themselves_stand_beside_levels_and_all_above(ask: Callable[..., Any]) -> None:
    both = ask("precision-recall", rel="1", level="all").json()["curves"]
    assert [(curve.get("rel"), curve.get("level")) for curve in both] == [
        (1, None),
        (None, 1),
        (None, 2),
        (None, 3),
    ]
    (alone,) = ask("precision-recall", level="2").json()["curves"]
    assert alone["mean"] == both[2]["mean"]
    assert "rel" not in alone
    # The highest level has nothing above it.
    exact, generalised, steep = ask(
        "precision-recall", rel="1", gains="binary;0-1-10-100", rounding="exact"
    ).json()["curves"]
    assert (generalised["gains"], steep["gains"]) == ("binary", "0-1-10-100")
    assert generalised["mean"] == pytest.approx(exact["mean"], rel=1e-12)
    assert steep["mean"] != exact["mean"]

    (highest,) = ask("precision-recall", rel="3").json()["curves"]
    assert highest["mean"] == both[3]["mean"]
    assert both[1]["mean"] != both[0]["mean"]


def test_levels_may_all_be_below_1(api: APIClient, submit: Callable[..., Run]) -> None:
    upload(api, "collections/small/qrels/", "1 0 a 0\n2 0 b -1\n")
    run = submit(GOOD, tag="nothing")
    assert (
        api.get(f"/api/v1/runs/{run.pk}/precision-recall/", {"rel": "all"}).json()["curves"] == []
    )
    read = api.get(
        f"/api/v1/runs/{run.pk}/curve/", {"measures": "CG", "depth": "2", "readings": "true"}
    ).json()
    assert read["curves"][0]["readings"]["missed_percent"] == [None, None]


def test_more_levels_than_curves_at_once_are_refused(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    upload(
        api,
        "collections/small/qrels/",
        "".join(f"1 0 d{level} {level}\n" for level in range(1, 22)),
    )
    run = submit(GOOD, tag="levels")
    answer = api.get(f"/api/v1/runs/{run.pk}/precision-recall/", {"rel": "all"})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_levels")


@pytest.mark.parametrize(
    ("kind", "query", "code", "pointer"),
    [
        ("curve", {"measures": "P,AP"}, "no_curve", "measures"),
        ("curve", {"measures": "nDCG,foo"}, "unknown_measure", "measures"),
        ("curve", {"measure": "foo@1"}, "unknown_measure", "measure"),
        ("curve", {"measures": "nDCG(norm='both')"}, "bad_parameter", "measures"),
        (
            "curve",
            {"measures": ",".join(f"P(rel={rel})" for rel in range(21))},
            "too_many_measures",
            "measures",
        ),
        ("curve", {"measures": "P," * 200}, "too_many_measures", "measures"),
        ("curve", {"measures": "x" * 30_000}, "too_many_measures", "measures"),
        ("curve", {"depth": "0"}, "invalid", "depth"),
        ("curve", {"depth": "1001"}, "invalid", "depth"),
        ("curve", {"confidence": "1"}, "invalid", "confidence"),
        ("curve", {"confidence": "nan"}, "invalid", "confidence"),
        ("curve", {"readings": "perhaps"}, "invalid", "readings"),
        ("curve", {"per_topic": "yes"}, "invalid", "per_topic"),
        ("curve", {"qrels": "one"}, "invalid", "qrels"),
        ("precision-recall", {"points": "1"}, "invalid", "points"),
        ("precision-recall", {"points": "102"}, "invalid", "points"),
        ("precision-recall", {"gains": "steep"}, "bad_parameter", "gains"),
        ("precision-recall", {"gains": "exp", "interp": "interval"}, "bad_parameter", "interp"),
        ("precision-recall", {"rel": "1,high"}, "bad_parameter", "rel"),
        ("precision-recall", {"rel": "99999"}, "bad_parameter", "rel"),
        ("precision-recall", {"rel": ",".join(map(str, range(99)))}, "too_many_values", "rel"),
        ("precision-recall", {"rel": ",".join(map(str, range(30)))}, "too_many_levels", "rel"),
        ("precision-recall", {"level": "0"}, "bad_parameter", "level"),
        (
            "precision-recall",
            {"level": ",".join(map(str, range(1, 30)))},
            "too_many_levels",
            "level",
        ),
        ("precision-recall", {"interp": "linear"}, "bad_parameter", "interp"),
        ("precision-recall", {"rounding": "11"}, "bad_parameter", "rounding"),
        ("precision-recall", {"interp": "interval", "rounding": "9"}, "bad_parameter", "rounding"),
        ("precision-recall", {"confidence": "0"}, "invalid", "confidence"),
    ],
)
def test_a_bad_parameter_is_named(
    ask: Callable[..., Any], kind: str, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = ask(kind, **query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.parametrize("kind", ["curve", "precision-recall"])
def test_too_many_values_of_single_topics_are_refused(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(curve_api, "MAX_VALUES", 32)
    number = "depth" if kind == "curve" else "points"
    assert ask(kind, per_topic="true", **{number: "10"}).status_code == 200
    answer = ask(kind, per_topic="true", **{number: "11"})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_values")
    assert ask(kind, **{number: "11"}).status_code == 200


@pytest.mark.parametrize("kind", ["curve", "precision-recall"])
def test_a_run_that_is_not_evaluated_has_no_curves(
    api: APIClient, collection: str, kind: str
) -> None:
    run = upload(api, "collections/small/runs/", GOOD, tag="queued").json()["id"]
    answer = api.get(f"/api/v1/runs/{run}/{kind}/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_evaluated")


@pytest.fixture(scope="module")
def together(pair: tuple[Run, Run]) -> Callable[..., Any]:
    """Ask for the curves of GOOD and POOR in one answer; `{0}` and `{1}` stand for their ids."""
    runs = [str(run.pk) for run in pair]

    def get(kind: str = "curves", **query: str) -> Any:
        query = {name: text.format(*runs) for name, text in query.items()}
        return APIClient().get(f"/api/v1/collections/small/{kind}/", query)

    return get


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("curve", {"measures": "DCG,nDCG(norm='average'),P,F", "depth": "4", "confidence": "0.9"}),
        ("curve", {"measures": "CG", "depth": "4", "ranks": "1,3"}),
        ("precision-recall", {"rel": "all", "level": "1", "points": "5", "rounding": "exact"}),
        ("precision-recall", {"interp": "interval"}),
    ],
)
def test_curves_of_several_runs_are_those_of_each(
    anonymous: APIClient, together: Callable[..., Any], kind: str, query: dict[str, str]
) -> None:
    several = "curves" if kind == "curve" else kind
    for order in ("{1},{0}", "{0}", ""):
        body = together(several, runs=order, **query).json()
        assert len(body["runs"]) == (order.count(",") + 1 if order else 2)
        for run in body["runs"]:
            alone = anonymous.get(f"/api/v1/runs/{run['id']}/{kind}/", query).json()
            assert (run["curves"], run["coverage"]) == (alone["curves"], alone["coverage"])
            assert {
                name: body[name] for name in ("qrels", "scores", "confidence")
            }.items() <= alone.items()
            assert body.get("recall") == alone.get("recall")
    tags = [run["tag"] for run in together(several, runs="{1},{0}").json()["runs"]]
    assert tags == ["poor", "good"]


def test_several_runs_are_read_against_the_ideal_and_the_best_of_them(
    together: Callable[..., Any],
) -> None:
    body = together(measures="CG,nDCG", ranks="3,1,2", readings="true").json()
    assert (body["ranks"], body["depth"]) == ([1, 2, 3], 100)
    good, poor = body["runs"]
    across, falling = body["best"]
    means = [np.array(run["curves"][0]["mean"]) for run in (good, poor)]
    assert (means[0] > means[1]).all()
    assert across == {"measure": "CG", "runs": [good["id"]] * 3}
    assert falling == {"measure": "nDCG", "runs": None}
    assert good["curves"][0]["readings"]["needed_for_best"] == [1, 2, 2]
    # POOR ends at 2/3; GOOD has more than that from rank 1 on.
    assert poor["curves"][0]["readings"]["needed_for_best"] == [None] * 3
    assert good["curves"][0]["readings"]["missed_of_best"] == [0, 0, 0]
    assert poor["curves"][0]["readings"]["missed_of_best"] == pytest.approx(means[0] - means[1])
    assert poor["curves"][1]["readings"]["missed_of_best"] is None
    for run in (good, poor):
        read = run["curves"][0]["readings"]
        assert np.allclose(
            read["missed"], np.array(run["curves"][0]["ideal"]) - run["curves"][0]["mean"]
        )
        assert (
            run["curves"][1]["readings"]["needed"],
            run["curves"][1]["readings"]["needed_for_best"],
        ) == (None, None)
    assert "best" not in together(measures="CG").json()


@pytest.mark.queries
def test_a_filter_of_the_leaderboard_chooses_the_runs(
    api: APIClient, together: Callable[..., Any]
) -> None:
    for kind in ("curves", "precision-recall"):
        assert [run["tag"] for run in together(kind, filter="tag:oo -tag:good").json()["runs"]] == [
            "poor"
        ]
        for query, code, pointer in (
            ({"filter": "tag:none"}, "nothing_to_draw", "filter"),
            ({"filter": "x=1"}, "bad_filter", "filter"),
            ({"filter": "good", "runs": "{0}"}, "repeated_parameter", "filter"),
        ):
            answer = together(kind, **query)
            assert (answer.status_code, answer.json()["code"]) == (400, code)
            assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    # An answer about one's own runs is not another reader's.
    small = "/api/v1/collections/small/curves/"
    own = api.get(small, {"filter": "own:yes"})
    assert len(own.json()["runs"]) == 2
    assert together(filter="own:yes").json()["code"] == "nothing_to_draw"


def test_ratios_of_averaged_vectors_are_called_so(together: Callable[..., Any]) -> None:
    (run, _) = together(measures="nDCG,nDCG(norm='average')", ranks="2").json()["runs"]
    assert [curve["aggregate"] for curve in run["curves"]] == ["mean", "pooled ratio"]


@pytest.mark.parametrize(
    ("kind", "query", "code", "pointer"),
    [
        ("curves", {"measures": "AP"}, "no_curve", "measures"),
        ("curves", {"ranks": "0"}, "invalid", "ranks"),
        ("curves", {"ranks": "1,x"}, "invalid", "ranks"),
        ("curves", {"ranks": "1001"}, "invalid", "ranks"),
        ("curves", {"ranks": "5,20", "depth": "10"}, "invalid", "ranks"),
        ("curves", {"runs": "x"}, "invalid", "runs"),
        ("curves", {"runs": "00000000-0000-4000-8000-000000000000"}, "unknown_run", "runs"),
        ("precision-recall", {"interp": "interval", "rounding": "9"}, "bad_parameter", "rounding"),
        ("precision-recall", {"rel": ",".join(map(str, range(30)))}, "too_many_levels", "rel"),
    ],
)
def test_curves_of_several_runs_that_cannot_be_made_say_why(
    together: Callable[..., Any], kind: str, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = together(kind, **query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_long_answers_about_many_runs_are_refused(
    together: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve_api, "MAX_VALUES", 80)
    assert together(depth="10").status_code == 200
    answer = together(depth="11")
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many_values")
    assert together(depth="10", readings="true").json()["code"] == "too_many_values"
    monkeypatch.setattr("metrics.api.values.curves_together.MAX_RUNS", 1)
    assert (
        together(depth="2").json()["code"]
        == together("precision-recall").json()["code"]
        == "too_many_runs"
    )
