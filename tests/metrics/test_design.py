"""What a collection tells apart, through the API: against SciPy and against counting one by one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient
from scipy import stats

from metrics.charts.comparisons.charts import COMPARED_CHARTS
from metrics.charts.look import Look
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Matrix, Options, all_pairs
from metrics.services.comparisons import design
from metrics.services.values import effort
from runs.models import Collection, Run, User
from tests.metrics.boards import add_runs, add_version, make_board, simulated
from tests.shared_data import alice, module_data

__all__ = ["alice", "module_data"]

pytestmark = pytest.mark.words
DESIGN = "/api/v1/collections/board/design/"
NOBODY = "7b2d1a52-8a52-4b0e-9d5b-0d5f8f0f0f0f"
RUNS, TOPICS = 7, 40


@pytest.fixture
def values() -> Matrix:
    return simulated(RUNS, TOPICS)


@pytest.fixture
def board(alice: User, values: Matrix) -> Collection:
    return make_board(alice.personal_team, {"AP": values, "P@10": simulated(RUNS, TOPICS, seed=8)})


def naive_variance(values: Matrix) -> float:
    """The residual mean square of runs and topics, cell by cell."""
    runs, topics = values.shape
    grand = values.sum() / values.size
    total = 0.0
    for i in range(runs):
        for t in range(topics):
            total += (
                values[i, t] - values[i].sum() / topics - values[:, t].sum() / runs + grand
            ) ** 2
    return total / ((runs - 1) * (topics - 1))


def power_by_scipy(topics: int, difference: float, variance: float, alpha: float = 0.05) -> float:
    bound = stats.t.ppf(1 - alpha / 2, topics - 1)
    shift = difference * np.sqrt(topics / (2 * variance))
    return float(stats.nct.sf(bound, topics - 1, shift) + stats.nct.cdf(-bound, topics - 1, shift))


def width_by_scipy(topics: int, variance: float, confidence: float = 0.95) -> float:
    """What an interval is expected to be wide: the standard deviation falls short of sigma by c4 (the chi's mean)."""
    short = stats.chi(topics - 1).mean() / np.sqrt(topics - 1)
    return float(
        2 * stats.t.ppf((1 + confidence) / 2, topics - 1) * short * np.sqrt(2 * variance / topics)
    )


def test_discriminative_power_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    body = anonymous.get(DESIGN, {"measures": "AP", "alpha": 0.1}).json()
    power = body["measures"][0]["discriminative_power"]
    pairs = list(combinations(range(RUNS), 2))
    tests = [stats.ttest_rel(values[i], values[j]) for i, j in pairs]
    p_values = sorted((float(test.pvalue) for test in tests), reverse=True)
    assert power["pairs"] == len(pairs)
    assert power["curve"]["pair"] == list(range(1, len(pairs) + 1))
    assert power["curve"]["p_value"] == pytest.approx(p_values)
    assert power["share"] == pytest.approx(sum(p < 0.1 for p in p_values) / len(pairs))
    margins = [stats.sem(values[i] - values[j]) * stats.t.ppf(0.95, TOPICS - 1) for i, j in pairs]
    assert (power["needed"], power["typical"]) == pytest.approx((max(margins), np.median(margins)))
    assert (body["test"], body["resamples"], body["alpha"]) == ("paired_t", None, 0.1)


def test_another_test_draws_as_often_as_is_stated(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    query = {"measures": "AP", "test": "randomised_tukey_hsd", "resamples": 2000, "seed": 4}
    body = anonymous.get(DESIGN, query).json()
    expected = TESTS["randomised_tukey_hsd"].compare(
        values, *all_pairs(RUNS), Options(resamples=2000, seed=4)
    )
    p_value = body["measures"][0]["discriminative_power"]["curve"]["p_value"]
    assert p_value == sorted(expected.p_value.tolist(), reverse=True)
    assert (body["resamples"], body["seed"]) == (2000, 4)


def test_topic_set_sizes_against_scipy(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    body = anonymous.get(
        DESIGN, {"measures": "AP", "differences": "0.05,0.2,0.000001", "power": 0.9}
    ).json()
    sizes = body["measures"][0]["topic_set_size"]
    variance = naive_variance(values)
    assert sizes["variance"] == pytest.approx(variance)
    assert power_by_scipy(TOPICS, sizes["detectable"], variance) == pytest.approx(0.9)
    for detection in sizes["detections"][:2]:
        needed = detection["topics_t"]
        assert detection["power_t"] == pytest.approx(
            power_by_scipy(TOPICS, detection["difference"], variance)
        )
        assert power_by_scipy(needed, detection["difference"], variance) >= 0.9
        assert power_by_scipy(needed - 1, detection["difference"], variance) < 0.9
        narrow = detection["topics_interval"]
        assert (
            width_by_scipy(narrow, variance)
            <= detection["difference"]
            < width_by_scipy(narrow - 1, variance)
        )
        anova = detection["topics_anova"]
        for topics, enough in ((anova, True), (anova - 1, False)):
            bound = stats.f.ppf(0.95, RUNS - 1, (RUNS - 1) * (topics - 1))
            shift = topics * detection["difference"] ** 2 / (2 * variance)
            assert (
                stats.ncf.sf(bound, RUNS - 1, (RUNS - 1) * (topics - 1), shift) >= 0.9
            ) is np.bool_(enough)
    assert sizes["detections"][2]["topics_t"] is sizes["detections"][2]["topics_anova"] is None
    assert sizes["detections"][2]["topics_interval"] is None


def test_plans_to_show_that_a_difference_is_small(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    query = {"measures": "AP", "differences": "0.05,0.2,0.000001", "power": 0.9}
    detections = anonymous.get(DESIGN, query).json()["measures"][0]["topic_set_size"]["detections"]
    deviation = np.sqrt(2 * naive_variance(values))
    pairs = [values[i] - values[j] for i, j in combinations(range(RUNS), 2)]
    for margin, plan in zip(
        (0.05, 0.2), (detection["smallness"] for detection in detections), strict=False
    ):
        equivalent = [
            max(stats.ttest_1samp(d, -margin, alternative="greater").pvalue,
                stats.ttest_1samp(d, margin, alternative="less").pvalue) < 0.05
            for d in pairs
        ]  # fmt: skip
        assert plan["share"] == pytest.approx(np.mean(equivalent))
        for topics, chance in ((TOPICS, plan["power_not_worse"]), (plan["topics_not_worse"], None)):
            shift = margin / deviation * np.sqrt(topics)
            expected = stats.nct.sf(stats.t.ppf(0.95, topics - 1), topics - 1, shift)
            assert expected == pytest.approx(chance) if chance else expected >= 0.9
        assert plan["topics_not_worse"] <= plan["topics_equivalent"]
        assert (plan["power_equivalent"] >= 0.9) is (plan["topics_equivalent"] <= TOPICS)
    assert (
        detections[2]["smallness"]["topics_not_worse"]
        is detections[2]["smallness"]["topics_equivalent"]
        is None
    )
    query = {"measures": "AP", "alpha": 0.6, "power": 0.9}
    detections = anonymous.get(DESIGN, query).json()["measures"][0]["topic_set_size"]["detections"]
    assert [detection["smallness"] for detection in detections] == [None, None]


def naive_swaps(values: Matrix, size: int, trials: int, seed: int) -> tuple[list[int], list[int]]:
    """Every comparison, pair by pair, from the same draws."""
    compared, swapped = [0] * 21, [0] * 21
    for trial in range(trials):
        order = np.random.default_rng((seed, trial)).permutation(values.shape[1])
        first, other = (
            values[:, order[:size]].mean(axis=1),
            values[:, order[size : 2 * size]].mean(axis=1),
        )
        for i, j in combinations(range(len(values)), 2):
            before, after = first[i] - first[j], other[i] - other[j]
            if abs(before) > 1e-12:
                place = min(int(abs(before) / 0.01), 20)
                compared[place] += 1
                swapped[place] += bool(before * after < 0 and abs(after) > 1e-12)
    return compared, swapped


def test_swap_rates_are_those_of_counting_one_by_one(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    query = {"measures": "AP", "sizes": "7,20", "trials": 12, "seed": 5}
    rates = anonymous.get(DESIGN, query).json()["measures"][0]["swap_rates"]
    assert rates["edges"] == pytest.approx([0.01 * place for place in range(21)])
    for size, row in zip((7, 20), rates["sizes"], strict=True):
        compared, swapped = naive_swaps(values, size, 12, 5)
        assert (row["topics"], row["compared"], row["swapped"]) == (size, compared, swapped)
        assert row["rate"] == pytest.approx(sum(swapped) / sum(compared))
        shares = [
            None if not of else turned / of for of, turned in zip(compared, swapped, strict=True)
        ]
        assert row["rates"] == shares
        often = [place for place, share in enumerate(shares) if share is not None and share > 0.05]
        assert row["needed"] == pytest.approx(0.01 * (often[-1] + 1))


def test_fewer_topics_turn_more_round(anonymous: APIClient, board: Collection) -> None:
    sizes = anonymous.get(DESIGN, {"trials": 200}).json()["measures"][0]["swap_rates"]["sizes"]
    assert [row["topics"] for row in sizes] == [4, 8, 12, 16, 20]
    assert sizes[0]["rate"] > sizes[-1]["rate"] > 0


def test_a_long_curve_is_thinned_from_end_to_end(anonymous: APIClient, alice: User) -> None:
    make_board(alice.personal_team, {"AP": simulated(40, 12)})
    measure = anonymous.get(DESIGN).json()["measures"][0]
    curve = measure["discriminative_power"]["curve"]
    assert (len(curve["pair"]), curve["pair"][0], curve["pair"][-1]) == (500, 1, 780)
    assert curve["p_value"] == sorted(curve["p_value"], reverse=True)
    assert [caution["code"] for caution in measure["cautions"]] == ["few_topics"]


def test_runs_that_do_not_differ_leave_nothing_to_plan_for(
    anonymous: APIClient, alice: User
) -> None:
    make_board(alice.personal_team, {"AP": np.tile(simulated(1, 12), (3, 1))})
    measure = anonymous.get(DESIGN).json()["measures"][0]
    assert measure["topic_set_size"] is None
    assert measure["discriminative_power"]["share"] == 0
    assert [row["rate"] for row in measure["swap_rates"]["sizes"]] == [None] * 5


def test_two_topics_are_enough_for_an_answer(anonymous: APIClient, alice: User) -> None:
    make_board(alice.personal_team, {"AP": np.array([[0.1, 0.5], [0.3, 0.4]])})
    measure = anonymous.get(DESIGN).json()["measures"][0]
    assert [row["topics"] for row in measure["swap_rates"]["sizes"]] == [1]
    assert measure["topic_set_size"]["detectable"] > 0


def test_stale_runs_take_no_part_in_a_design(
    anonymous: APIClient, board: Collection, values: Matrix
) -> None:
    runs = list(Run.objects.order_by("created_at"))
    add_runs(add_version(board, 2, ["a", "b", "c", "d"]), runs[:3], {"AP": values[:3, :4]})
    body = anonymous.get(DESIGN, {"measures": "AP"}).json()
    assert ([run["tag"] for run in body["runs"]], body["qrels"]) == (["r0", "r1", "r2"], 2)
    assert body["measures"][0]["topics"] == 4
    answer = anonymous.get(DESIGN, {"measures": "AP", "runs": f"{runs[0].pk},{runs[5].pk}"})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_run")


def test_a_design_asks_as_many_queries_for_any_number_of_measures(
    anonymous: APIClient, board: Collection
) -> None:
    for measures in ("AP", "AP,P@10"):
        with CaptureQueriesContext(connection) as queries:
            assert anonymous.get(DESIGN, {"measures": measures}).status_code == 200
        assert len(queries) <= 7


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"measures": "foo"}, "unknown_measure", "measures"),
        ({"test": "wishful"}, "unknown_test", "test"),
        ({"sizes": "21"}, "bad_parameter", "sizes"),
        ({"sizes": "0"}, "invalid", "sizes"),
        ({"differences": "0"}, "invalid", "differences"),
        ({"differences": "nan"}, "invalid", "differences"),
        ({"width": "-1"}, "invalid", "width"),
        ({"power": "0.04"}, "bad_parameter", "power"),
        ({"power": "1"}, "invalid", "power"),
        ({"alpha": "0"}, "invalid", "alpha"),
        ({"trials": "0"}, "invalid", "trials"),
        ({"runs": NOBODY}, "unknown_run", "runs"),
    ],
)
def test_a_design_without_a_meaning_is_refused(
    anonymous: APIClient, board: Collection, query: dict[str, str], code: str, pointer: str
) -> None:
    answer = anonymous.get(DESIGN, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.queries
def test_a_design_that_would_take_too_long_says_what_to_narrow(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    run_id = str(Run.objects.values_list("pk", flat=True)[0])
    assert anonymous.get(DESIGN, {"runs": run_id}).json()["code"] == "too_few_runs"
    monkeypatch.setattr(design, "MAX_RUNS", RUNS - 1)
    assert anonymous.get(DESIGN).json()["code"] == "too_many_runs"
    monkeypatch.undo()
    monkeypatch.setattr(effort, "MAX_VALUES", 100)
    assert anonymous.get(DESIGN).json()["code"] == "too_much_work"
    monkeypatch.undo()
    for seconds, pointer in ((1e-7, "measures"), (1e-4, "trials")):
        settings.EVALHUB_WORK_SECONDS = seconds
        answer = anonymous.get(DESIGN)
        assert (answer.status_code, answer.json()["code"]) == (400, "too_much_work")
        assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_power_that_cannot_be_computed_is_null(
    anonymous: APIClient, board: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SciPy's noncentral F distribution is NaN for some tiny differences of many runs."""
    monkeypatch.setattr(design, "power_of_anova", lambda *args: float("nan"))
    answer = anonymous.get(DESIGN, {"differences": "0.002"})
    assert answer.status_code == 200
    assert answer.json()["measures"][0]["topic_set_size"]["detections"][0]["power_anova"] is None


def test_more_measures_than_colours_have_dashes_and_judged_is_left_out(alice: User) -> None:
    """The dashes begin where the colours begin again."""
    names = [f"P@{cutoff}" for cutoff in range(1, 11)]
    columns = dict.fromkeys([*names, "Judged@10"], simulated(3, 20))
    collection = make_board(alice.personal_team, columns)
    figure = COMPARED_CHARTS["power"](collection, {})
    curves = figure.draw(Look()).to_dict()["layer"][1]["encoding"]
    assert curves["color"]["scale"]["domain"] == names
    colours, dashes = (curves[channel]["scale"]["range"] for channel in ("color", "strokeDash"))
    looks = [(colour, *dash) for colour, dash in zip(colours, dashes, strict=True)]
    assert len(set(looks)) == len(names) > len(set(colours))
