"""Verdicts of boards, stored comparisons and sessions: order, families and reasons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.engine.significance import TESTS
from metrics.models import Comparison
from metrics.services.comparisons import workload
from metrics.services.comparisons.content import digest_of
from metrics.services.comparisons.stored import compare
from runs.models import Run, User
from tests.metrics.boards import make_board, simulated
from tests.metrics.scored import make_scored
from tests.metrics.test_session_comparison import MEASURE, PAIRED, UNPAIRED
from tests.metrics.test_session_comparison import compare as compare_sessions  # noqa: F401

pytestmark = pytest.mark.words
BOARD, COMPARISON = (
    "/api/v1/collections/board/leaderboard/",
    "/api/v1/collections/board/comparison/",
)
SIMULTANEOUS = [name for name, test in TESTS.items() if test.simultaneous]


def ask(client: APIClient, path: str, status: int = 200, **query: Any) -> dict[str, Any]:
    answer = client.get(path, {name: str(value) for name, value in query.items()})
    assert answer.status_code == status, answer.content
    payload: dict[str, Any] = answer.json()
    return payload


def codes(part: dict[str, Any]) -> list[str]:
    return [caution["code"] for caution in part["cautions"]]


@pytest.mark.parametrize("test", SIMULTANEOUS)
def test_a_test_of_all_pairs_counts_alike_on_board_and_comparison(
    anonymous: APIClient, alice: User, test: str
) -> None:
    make_board(alice.personal_team, {"AP": simulated(12, 30)})
    baseline = Run.objects.get(tag="r3").pk
    board = ask(anonymous, BOARD, statistics="tiers", baseline=baseline, test=test, resamples=1000)[
        "statistics"
    ]
    (compared,) = ask(anonymous, COMPARISON, baseline=baseline, tests=test, resamples=1000)[
        "measures"
    ]
    family = compared["tests"][test]
    assert (board["correction"], family["correction"]) == (None, None)
    # Against a baseline, the largest t is that of the pairs with it.
    assert (
        board["baseline"]["family"]
        == family["family"]
        == (11 if TESTS[test].of_given_pairs else 66)
    )
    assert board["tiers"]["family"] == 66
    assert board["baseline"]["intervals"] == family["intervals"] == TESTS[test].intervals
    assert family["intervals"] == ("each_pair" if test == "nemenyi" else "simultaneous")
    assert board["baseline"]["significant"] == family["significant"]
    plain = ask(anonymous, BOARD, baseline=baseline, test="paired_t")["statistics"]
    assert (plain["correction"], plain["baseline"]["family"]) == ("holm", 11)


@pytest.mark.queries
def test_tiers_follow_the_means_that_are_tested(anonymous: APIClient, alice: User) -> None:
    """By the geometric mean a run without a failure is first; by the arithmetic one, which is tested, it is last."""
    rng = np.random.default_rng(3)
    steady, high, higher = np.full(40, 0.4), np.full(40, 0.7), np.full(40, 0.8)
    high[:8], higher[:8] = 0.0, 0.0
    values = np.vstack([steady, high, higher]) + rng.uniform(0, 0.01, (3, 40))
    values[1:, :8] = 0.0
    collection = make_board(alice.personal_team, {"gm_map": values, "AP": values})
    for vector in collection.qrels.get().evaluations.values_list("pk", flat=True):
        row = collection.qrels.get().evaluations.get(pk=vector).vectors.get(measure="gm_map")
        row.mean = float(np.exp(np.log(np.maximum(row.values, 1e-5)).mean()))
        row.save()
    board = ask(anonymous, BOARD, measures="gm_map,AP", sort="gm_map", statistics="tiers,ranks")
    rows = {row["run"]["tag"]: row["statistics"] for row in board["results"]}
    assert board["results"][0]["run"]["tag"] == "r0"
    assert "other_order" in codes(board["statistics"])
    (compared,) = ask(anonymous, COMPARISON, measures="AP")["measures"]
    tags = {str(run.pk): run.tag for run in Run.objects.all()}
    tiers = {
        tags[group["run"]]: group["tier"] for group in compared["tests"]["t_and_tukey"]["groups"]
    }
    assert {tag: statistics["tier"] for tag, statistics in rows.items()} == tiers
    assert tiers["r0"] == max(tiers.values()) > 1
    assert rows["r0"]["rank"]["high"] == 3
    plain = ask(anonymous, BOARD, measures="AP", statistics="tiers")
    assert "other_order" not in codes(plain["statistics"])


def test_conover_on_a_board_tells_where_friedman_finds_nothing(
    anonymous: APIClient, alice: User
) -> None:
    make_board(alice.personal_team, {"AP": np.random.default_rng(1).random((3, 12))})
    board = ask(anonymous, BOARD, statistics="tiers", test="conover")["statistics"]
    assert "omnibus_not_significant" in codes(board["tiers"])
    (compared,) = ask(anonymous, COMPARISON, tests="conover")["measures"]
    assert "omnibus_not_significant" in codes(compared["tests"]["conover"])


def test_a_stored_comparison_says_what_one_made_at_once_says(
    api: APIClient, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = np.random.default_rng(5).random(50) / 2
    against = base + np.where(np.arange(50) < 8, 0.08, -0.01)
    make_scored(
        "board", alice.personal_team, np.vstack([against, base, base + 0.2, simulated(1, 50)[0]])
    )
    query = {"tests": "paired_t,sign,wilcoxon,conover,nemenyi,bootstrap", "resamples": 2000}
    at_once = ask(api, COMPARISON, **query)
    reasons = {
        test["withheld"]
        for pair in at_once["measures"][0]["pairs"]
        for test in pair["tests"].values()
    }
    assert reasons >= {"no_spread", "other_direction", None}
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    assert compare(comparison_id=ask(api, COMPARISON, 202, **query)["comparison"]["id"])
    stored = ask(api, COMPARISON, **query)
    assert stored["measures"] == at_once["measures"]


@pytest.mark.queries
def test_what_older_tests_left_is_asked_for_again(
    api: APIClient, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_scored("board", alice.personal_team, simulated(3, 20))
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    pk = ask(api, COMPARISON, 202)["comparison"]["id"]
    assert compare(comparison_id=pk)
    row = Comparison.objects.get(pk=pk)
    del row.query["statistics_version"]
    row.digest = digest_of(row.query)
    row.content_digest = row.digest_of_content(row.digest, bytes(row.content))
    row.save()
    assert "request it again" in ask(api, f"/api/v1/comparisons/{pk}/", 404)["detail"]


@pytest.mark.parametrize(("rows", "cells"), [(PAIRED[:9], 3), (UNPAIRED, 3)])
def test_few_sessions_have_no_verdict(compare_sessions: Any, rows: Any, cells: int) -> None:  # noqa: F811
    answer = compare_sessions(rows, alpha="0.99", correction="none")
    assert {
        (pair["significant"], pair["verdict"], pair["withheld"]) for pair in answer["pairs"]
    } == {(False, None, "too_few_topics")}
    (message,) = [
        caution["message"] for caution in answer["cautions"] if caution["code"] == "no_verdict"
    ]
    assert message.startswith(f"no verdicts: {cells} ")
    assert "topics" not in message.replace("pairs of topic and searcher", "")


def test_enough_sessions_have_their_verdict(compare_sessions: Any) -> None:  # noqa: F811
    answer = compare_sessions(PAIRED, alpha="0.99", correction="none")
    assert answer["measure"] == MEASURE
    for pair in answer["pairs"]:
        assert pair["verdict"] == (
            None if not pair["significant"] else "better" if pair["difference"] > 0 else "worse"
        )
    assert any(pair["significant"] for pair in answer["pairs"])
