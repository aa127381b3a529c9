"""Two runs looked at closely keep the family they were found in: over the API, for what is made at once or stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient

from metrics.engine.judgement.steps import Matrix
from metrics.models import Comparison
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare
from runs.models import Team, User
from tests.metrics.scored import make_scored

pytestmark = pytest.mark.words
SCORED = "/api/v1/collections/scored/comparison/"
RUNS, TOPICS = 12, 50
PAIRS = RUNS * (RUNS - 1) // 2


def alike(runs: int = RUNS, topics: int = TOPICS) -> Matrix:
    """Runs without a true difference: some of their pairs have a small p, and none after a correction."""
    rng = np.random.default_rng(3)
    drawn: Matrix = np.clip(
        rng.beta(2, 3, topics) + rng.normal(0, 0.1, (runs, topics)), 0, 1
    ).round(6)
    return drawn


@pytest.fixture
def scored(alice: User) -> list[str]:
    return make_scored("scored", Team.objects.get(personal_of=alice), alike())


def ask(api: APIClient, path: str = SCORED, status: int = 200, **query: Any) -> Any:
    # A test whose correction depends on the family.
    usual = {"tests": "paired_t"} if path == SCORED else {}
    answer = api.get(path, {name: str(value) for name, value in {**usual, **query}.items()})
    assert answer.status_code == status, answer.content
    return answer.json()


def chance_pair(api: APIClient, **query: Any) -> dict[str, Any]:
    """The pair with the smallest p of all: below 0.05 alone, and not once it is corrected."""
    pair: dict[str, Any] = ask(api, sort="p_value", limit=1, **query)["measures"][0]["pairs"][0]
    test = pair["tests"]["paired_t"]
    assert test["p_value"] < 0.05 <= test["p_adjusted"]
    return pair


def test_a_pair_keeps_the_family_it_was_found_in(api: APIClient, scored: list[str]) -> None:
    response = chance_pair(api)
    answer = ask(api, runs=f"{response['a']},{response['b']}", family="all")
    assert answer["family"] == {"kind": "all_pairs", "baseline": None, "runs": RUNS, "pairs": PAIRS}
    assert [run["id"] for run in answer["runs"]] == [response["a"], response["b"]]
    (measure,) = answer["measures"]
    (pair,) = measure["pairs"]
    assert pair["tests"] == response["tests"]
    assert not pair["tests"]["paired_t"]["significant"]
    assert (
        measure["tests"]["paired_t"]["family"],
        measure["tests"]["paired_t"]["significant"],
    ) == (PAIRS, 0)
    assert answer["cautions"] == []


def test_a_family_of_named_runs_is_of_these(api: APIClient, scored: list[str]) -> None:
    few = ask(api, runs=",".join(scored[:4]), tests="paired_t,wilcoxon,tukey_hsd")
    expected = next(
        pair
        for pair in few["measures"][0]["pairs"]
        if {pair["a"], pair["b"]} == {scored[0], scored[2]}
    )
    answer = ask(
        api,
        runs=f"{scored[0]},{scored[2]}",
        family=",".join(scored[1:4]),
        tests="paired_t,wilcoxon,tukey_hsd",
    )
    assert (answer["family"]["runs"], answer["family"]["pairs"]) == (4, 6)
    assert answer["measures"][0]["pairs"][0]["tests"] == expected["tests"]


def test_a_pair_of_a_baseline_keeps_the_family_of_the_baseline(
    api: APIClient, scored: list[str]
) -> None:
    whole = ask(api, baseline=scored[5])["measures"][0]["pairs"]
    expected = next(pair for pair in whole if pair["a"] == scored[2])
    answer = ask(api, runs=f"{scored[5]},{scored[2]}", baseline=scored[5], family="all")
    assert answer["family"] == {
        "kind": "baseline",
        "baseline": scored[5],
        "runs": RUNS,
        "pairs": RUNS - 1,
    }
    assert answer["measures"][0]["pairs"][0]["tests"] == expected["tests"]


def test_several_runs_keep_their_letters_and_tiers(api: APIClient, alice: User) -> None:
    values = alike()
    values[:6] = np.clip(values[:6] - 0.2, 0, 1)
    runs = make_scored("scored", Team.objects.get(personal_of=alice), values)
    whole = ask(api)["measures"][0]["tests"]["paired_t"]["groups"]
    some = {runs[0], runs[3], runs[8]}
    answer = ask(api, runs=",".join(some), family="all")
    groups = answer["measures"][0]["tests"]["paired_t"]["groups"]
    assert [(entry["run"], entry["tier"], entry["groups"]) for entry in groups] == [
        (entry["run"], entry["tier"], entry["groups"]) for entry in whole if entry["run"] in some
    ]
    assert len(answer["measures"][0]["pairs"]) == 3


@pytest.mark.queries
def test_two_runs_of_many_without_a_family_come_with_a_caution(
    api: APIClient, scored: list[str]
) -> None:
    answer = ask(api, runs=",".join(scored[:2]))
    (caution,) = answer["cautions"]
    assert caution["code"] == "one_of_many_pairs"
    assert caution["message"].startswith(
        f"one of {PAIRS} pairs of {RUNS} runs that could have been chosen"
    )
    assert answer["family"]["pairs"] == 1
    assert ask(api, runs=",".join(scored[:3]))["cautions"] == []


def test_two_runs_that_are_all_there_are_need_no_caution(api: APIClient, alice: User) -> None:
    make_scored("scored", Team.objects.get(personal_of=alice), alike(2))
    assert ask(api)["cautions"] == []


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"family": "x"}, "family"),
        ({"runs": "", "family": "{0}"}, "family"),
        ({"family": "{unknown}"}, "runs"),
    ],
)
def test_a_family_that_means_nothing_is_refused(
    api: APIClient, scored: list[str], query: dict[str, str], pointer: str
) -> None:
    filled = {name: text.format(*scored, unknown="0" * 32) for name, text in query.items()}
    problem = ask(api, status=400, **{"runs": ",".join(scored[:2]), **filled})
    assert problem["errors"][0]["pointer"] == pointer


def test_a_family_that_a_worker_made_is_found_from_each_of_its_pairs(
    api: APIClient, scored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    response = chance_pair(api)
    both = f"{response['a']},{response['b']}"
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    waiting = ask(api, status=202, runs=both, family="all")["comparison"]
    assert compare(comparison_id=waiting["id"])
    for answer in (
        ask(api, runs=both, family="all"),
        ask(api, f"/api/v1/comparisons/{waiting['id']}/", runs=both),
    ):
        assert answer["comparison"]["id"] == waiting["id"]
        assert answer["measures"][0]["pairs"][0]["tests"] == response["tests"]
        assert answer["family"]["pairs"] == PAIRS
    assert Comparison.objects.count() == 1
    rows = b"".join(
        api.get(
            f"/api/v1/comparisons/{waiting['id']}/export/csv/", {"runs": both}
        ).streaming_content
    )
    assert rows.count(b"\r\n") == 2
    problem = ask(api, f"/api/v1/comparisons/{waiting['id']}/", 400, runs="0" * 32)
    assert problem["code"] == "unknown_run"


def test_a_posted_question_may_name_its_family(api: APIClient, scored: list[str]) -> None:
    answer = api.post(SCORED, {"runs": scored[:2], "family": ["all"]}, format="json")
    assert answer.status_code == 202, answer.content
    assert len(Comparison.objects.get().query["evaluations"]) == RUNS


@pytest.mark.parametrize("test", ["anova", "friedman", "kruskal_wallis"])
def test_a_test_of_all_runs_is_not_asked_for_and_the_refusal_says_how_it_comes(
    api: APIClient, scored: list[str], test: str
) -> None:
    for query in ({"tests": test}, {"tests": f"paired_t,{test}"}):
        problem = ask(api, status=400, **query)
        assert problem["code"] == "unknown_test"
        assert (
            "anova and friedman come with every comparison of 3 runs or more" in problem["detail"]
        )
    board = ask(api, "/api/v1/collections/scored/leaderboard/", 400, statistics="tiers", test=test)
    assert (board["code"], test in board["detail"]) == ("unknown_test", True)
