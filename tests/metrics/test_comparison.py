"""Comparisons over the API: every number against SciPy, statsmodels or the engine's own tested functions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rest_framework.test import APIClient
from scipy import stats
from statsmodels.stats.multitest import multipletests

from metrics.engine.judgement.steps import Matrix
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.effect_sizes import READINGS, effect_sizes
from metrics.engine.significance.pairs import Options, all_pairs, baseline_pairs
from metrics.engine.significance.tiers import tiers
from metrics.models import Evaluation
from metrics.services.values.evaluate import evaluate
from runs.models import Run, Team, User
from tests.conftest import GOOD, evaluate_all, upload
from tests.metrics.scored import make_scored, simulated
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
SMALL = "/api/v1/collections/small/comparison/"
SCORED = "/api/v1/collections/scored/comparison/"
OTHER = "/api/v1/collections/other/comparison/"
RUNS, TOPICS = 6, 30
B = 2_000


@pytest.fixture(scope="module")
def team(alice: User) -> Team:
    return Team.objects.get(personal_of=alice)


def sorted_values(values: Matrix) -> Matrix:
    return values[np.argsort(-values.mean(axis=1), kind="stable")]


@pytest.fixture(scope="module")
def values(team: Team) -> Matrix:
    """Of the runs of the collection `scored`, best first."""
    drawn = simulated(RUNS, TOPICS)
    make_scored("scored", team, drawn)
    return sorted_values(drawn)


def many(api: APIClient, number: int) -> None:
    """Runs r0, r1, ... where every third one equals the one before."""
    for index in range(number):
        scores = {"a": 3.0 - 0.1 * (index - index // 3), "c": 2.0, "b": 1.0, "u": 2.5}
        lines = "".join(f"1 Q0 {doc} 0 {score} r{index}\n" for doc, score in scores.items())
        upload(api, "collections/small/runs/", lines)
    evaluate_all()


def ask(api: APIClient, path: str = SCORED, **query: Any) -> Any:
    answer = api.get(path, {name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.content
    return answer.json()


def column(measure: Any, test: str, name: str) -> list[Any]:
    return [pair["tests"][test][name] for pair in measure["pairs"]]


@pytest.mark.parametrize("test", list(TESTS))
def test_every_test_answers_what_the_engine_computes(
    api: APIClient, values: Matrix, test: str
) -> None:
    answer = ask(api, tests=test, resamples=B, seed=3, confidence=0.9)
    (measure,) = answer["measures"]
    expected = TESTS[test].compare(
        values, *all_pairs(RUNS), Options(confidence=0.9, resamples=B, seed=3)
    )
    for name in ("low", "high", "statistic", "p_value", "exact"):
        assert column(measure, test, name) == getattr(expected, name).tolist(), name
    adjusted = (
        expected.p_value if TESTS[test].simultaneous else CORRECTIONS["holm"](expected.p_value)
    )
    assert column(measure, test, "p_adjusted") == adjusted.tolist()
    assert column(measure, test, "significant") == (adjusted < 0.05).tolist()
    family = measure["tests"][test]
    assert (family["family"], family["significant"]) == (15, int((adjusted < 0.05).sum()))
    assert family["correction"] == (None if TESTS[test].simultaneous else "holm")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "theirs"), [("paired_t", stats.ttest_rel), ("wilcoxon", stats.wilcoxon)]
)
@pytest.mark.parametrize(
    ("ours", "correction"),
    [("holm", "holm"), ("hochberg", "simes-hochberg"), ("bonferroni", "bonferroni"), ("benjamini_hochberg", "fdr_bh"),
     ("benjamini_yekutieli", "fdr_by")],
)  # fmt: skip
def test_against_scipy_and_statsmodels(
    api: APIClient,
    values: Matrix,
    test: str,
    theirs: Callable[..., Any],
    ours: str,
    correction: str,
) -> None:
    (measure,) = ask(api, tests=test, correction=ours)["measures"]
    expected = [theirs(values[i], values[j]).pvalue for i, j in zip(*all_pairs(RUNS), strict=True)]
    np.testing.assert_allclose(column(measure, test, "p_value"), expected, rtol=1e-9)
    adjusted = multipletests(expected, method=correction)[1]
    np.testing.assert_allclose(column(measure, test, "p_adjusted"), adjusted, rtol=1e-9)


def test_effect_sizes_and_means_are_those_of_the_engine(api: APIClient, values: Matrix) -> None:
    (measure,) = ask(api, min_difference=0.01)["measures"]
    assert [entry["mean"] for entry in measure["means"]] == values.mean(axis=1).tolist()
    sizes = effect_sizes(values, *all_pairs(RUNS), Options(min_difference=0.01))
    pairs = measure["pairs"]
    assert [pair["difference"] for pair in pairs] == sizes.difference.tolist()
    assert [pair["relative_difference"] for pair in pairs] == sizes.relative.tolist()
    assert [pair["reading"] for pair in pairs] == [READINGS[reading] for reading in sizes.reading]
    for name, estimate in (
        ("cohen_d", sizes.cohen_d), ("hedges_g", sizes.hedges_g), ("standardised_difference", sizes.standardised),
        ("cliff_delta", sizes.cliff_delta), ("probability_better", sizes.probability_better),
    ):  # fmt: skip
        for end in ("value", "low", "high"):
            assert [pair[name][end] for pair in pairs] == getattr(estimate, end).tolist(), (
                name,
                end,
            )
    assert [[pair["wins"], pair["ties"], pair["losses"]] for pair in pairs] == np.transpose(
        [sizes.wins, sizes.ties, sizes.losses]
    ).tolist()


def test_the_omnibus_tests_against_scipy_and_by_hand(api: APIClient, values: Matrix) -> None:
    (measure,) = ask(api, tests="paired_t,mann_whitney")["measures"]
    assert set(measure["omnibus"]) == {"anova", "friedman", "kruskal_wallis"}
    friedman, kruskal = stats.friedmanchisquare(*values), stats.kruskal(*values)
    assert measure["omnibus"]["friedman"]["p_value"] == pytest.approx(friedman.pvalue, rel=1e-9)
    assert measure["omnibus"]["kruskal_wallis"]["p_value"] == pytest.approx(
        kruskal.pvalue, rel=1e-9
    )
    anova = measure["omnibus"]["anova"]
    between = TOPICS * ((values.mean(axis=1) - values.mean()) ** 2).sum()
    rest = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    statistic = between / (RUNS - 1) / ((rest**2).sum() / ((RUNS - 1) * (TOPICS - 1)))
    assert (anova["freedom"], anova["statistic"]) == ([5, 145], pytest.approx(statistic))
    assert [source["name"] for source in anova["sources"]] == ["runs", "topics", "residual"]


def test_tiers_and_letters_follow_from_the_verdicts(api: APIClient, values: Matrix) -> None:
    (measure,) = ask(api)["measures"]
    significant = np.array(column(measure, "t_and_tukey", "significant"))
    expected = tiers(values.mean(axis=1), *all_pairs(RUNS), significant)
    groups = measure["tests"]["t_and_tukey"]["groups"]
    assert [entry["run"] for entry in groups] == [entry["run"] for entry in measure["means"]]
    assert [entry["tier"] for entry in groups] == expected.tier.tolist()
    letters = {entry["run"]: set(entry["letters"]) for entry in groups}
    for pair in measure["pairs"]:
        apart = not letters[pair["a"]] & letters[pair["b"]]
        assert apart == pair["tests"]["t_and_tukey"]["significant"]
    assert 1 < significant.sum() < 15


def test_a_baseline_makes_a_family_of_its_own(api: APIClient, values: Matrix) -> None:
    whole = ask(api)
    baseline = whole["measures"][0]["means"][2]["run"]
    answer = ask(api, baseline=baseline, tests="paired_t,tukey_hsd")
    assert answer["family"] == {"kind": "baseline", "baseline": baseline, "runs": 6, "pairs": 5}
    (measure,) = answer["measures"]
    first, second = baseline_pairs(RUNS, [2])
    expected = CORRECTIONS["holm"](
        TESTS["paired_t"].compare(values, first, second, Options()).p_value
    )
    assert column(measure, "paired_t", "p_adjusted") == expected.tolist()
    assert {pair["b"] for pair in measure["pairs"]} == {baseline}
    assert measure["tests"]["paired_t"]["family"] == 5
    # Tukey's p counts for all pairs, whichever are shown.
    assert measure["tests"]["tukey_hsd"]["family"] == 15
    assert measure["tests"]["paired_t"]["groups"] is None


def test_several_baselines_are_one_family(api: APIClient, values: Matrix) -> None:
    best_first = [mean["run"] for mean in ask(api)["measures"][0]["means"]]
    fourth, first = best_first[3], best_first[0]
    answer = ask(api, baseline=f"{fourth},{first}", tests="paired_t")
    family = {"kind": "baselines", "baseline": None, "runs": 6, "pairs": 9}
    assert answer["family"] == {**family, "baselines": [fourth, first]}

    (measure,) = answer["measures"]
    places = baseline_pairs(RUNS, [3, 0])
    compared = [(pair["a"], pair["b"]) for pair in measure["pairs"]]
    assert compared == [(best_first[a], best_first[b]) for a, b in zip(*places, strict=True)]
    expected = CORRECTIONS["holm"](TESTS["paired_t"].compare(values, *places, Options()).p_value)
    assert column(measure, "paired_t", "p_adjusted") == expected.tolist()
    assert (measure["tests"]["paired_t"]["family"], measure["tests"]["paired_t"]["groups"]) == (
        9,
        None,
    )

    # Named twice, a run is one baseline; some of the runs keep the p of the family.
    assert ask(api, baseline=f"{first},{first}")["family"]["kind"] == "baseline"
    some = ask(
        api, baseline=f"{fourth},{first}", tests="paired_t", runs=best_first[5], family="all"
    )
    shown = some["measures"][0]["pairs"]
    assert [(pair["a"], pair["b"], pair["tests"]) for pair in shown] == [
        (pair["a"], pair["b"], pair["tests"])
        for pair in measure["pairs"]
        if pair["a"] in (best_first[5], first)
    ]


def test_too_many_baselines_and_an_unknown_one_are_refused(api: APIClient, values: Matrix) -> None:
    best = ask(api)["measures"][0]["means"][0]["run"]
    unknown = str(uuid.uuid4())
    for baseline, code in (
        (f"{best},{unknown}", "unknown_run"),
        (",".join(str(uuid.uuid4()) for _ in range(11)), "too_many_runs"),
        (f"{best},x", "invalid"),
        (",", "invalid"),
    ):
        refused = api.get(SCORED, {"baseline": baseline})
        assert (refused.status_code, refused.json()["code"]) == (400, code)
        assert refused.json()["errors"][0]["pointer"] == "baseline"


def test_the_answer_states_everything_that_makes_its_figures_again(
    api: APIClient, values: Matrix
) -> None:
    query = {
        "tests": ["randomisation"], "correction": "none", "alpha": 0.01, "confidence": 0.9, "resamples": B, "seed": 5,
        "zeros": "pratt", "ties": "rounded", "min_difference": 0.5,
    }  # fmt: skip
    answer = ask(api, **{**query, "tests": "randomisation"})
    assert {name: answer[name] for name in query} == query
    assert (answer["qrels"], answer["scores"], answer["engine_version"]) == (1, "float64", "1")
    assert answer["comparison"] is None
    again = ask(api, **{**query, "tests": "randomisation"})
    assert again == answer
    other = ask(api, tests="randomisation", resamples=B, seed=6)
    pick = column(answer["measures"][0], "randomisation", "p_value")
    assert pick != column(other["measures"][0], "randomisation", "p_value")


@pytest.mark.parametrize("test", ["randomisation", "bootstrap", "randomised_tukey_hsd", "paired_t"])
def test_a_p_is_made_again_from_what_the_api_gives(
    api: APIClient, collection: str, test: str
) -> None:
    """As docs/statistics.md says: values per topic, the topics of every run, the best run first, B and the seed."""
    many(api, 5)
    answer = ask(api, SMALL, measure="nDCG@10", tests=test, resamples=B, seed=17)
    (measure,) = answer["measures"]
    rows = []
    for entry in measure["means"]:
        read = ask(
            api, f"/api/v1/runs/{entry['run']}/values/", measures="nDCG@10", qrels=answer["qrels"]
        )
        rows.append([topic["values"]["nDCG@10"] for topic in read["topics"]])
    options = Options(resamples=answer["resamples"], seed=answer["seed"])
    again = TESTS[test].compare(np.array(rows), *all_pairs(len(rows)), options)
    assert column(measure, test, "p_value") == again.p_value.tolist()


def test_the_order_in_which_runs_are_named_changes_nothing(api: APIClient, values: Matrix) -> None:
    ids = [run["id"] for run in ask(api)["runs"]]
    query = {"tests": "randomised_tukey_hsd,bootstrap", "resamples": B}
    assert ask(api, runs=",".join(ids), **query) == ask(api, runs=",".join(reversed(ids)), **query)


def test_topics_without_a_value_of_every_run_are_left_out_and_counted(
    api: APIClient, team: Team
) -> None:
    values = simulated(3, 12)
    values[0, 4] = values[1, 4] = values[2, 9] = np.nan
    make_scored("other", team, values)
    (measure,) = ask(api, OTHER)["measures"]
    assert measure["topics"] == {
        "used": 10, "left_out": 2,
        "reasons": [{"topic_id": "5", "runs_without_value": 2}, {"topic_id": "10", "runs_without_value": 1}],
    }  # fmt: skip
    assert [caution["code"] for caution in measure["cautions"]] == ["topics_left_out"]
    common = sorted_values(np.delete(values, [4, 9], axis=1))
    expected = TESTS["t_and_tukey"].compare(common, *all_pairs(3), Options()).p_value
    assert column(measure, "t_and_tukey", "p_value") == expected.tolist()


def test_fewer_than_two_common_topics_are_refused(api: APIClient, team: Team) -> None:
    values = simulated(2, 3)
    values[0, 0] = values[1, 1] = np.nan
    make_scored("other", team, values)
    answer = api.get(OTHER)
    assert (answer.status_code, answer.json()["code"]) == (400, "too_few_topics")
    assert "AP: a comparison needs at least 2 topics" in answer.json()["detail"]


def test_several_measures_each_have_an_order_of_their_own(api: APIClient, team: Team) -> None:
    values = np.stack([simulated(4, 30), simulated(4, 30, seed=8)])
    make_scored("other", team, values, ["AP", "RR"])
    answer = ask(api, OTHER, measures="RR,AP")
    assert [measure["measure"] for measure in answer["measures"]] == ["RR", "AP"]
    for measure, expected in zip(answer["measures"], values[::-1], strict=True):
        assert [entry["mean"] for entry in measure["means"]] == sorted_values(expected).mean(
            axis=1
        ).tolist()
    assert answer["measures"][0] == ask(api, OTHER, measure="RR")["measures"][0]


def bool_sum_ssyn() -> Matrix:
    """Three query types as in table 1 of Tampere RN-2002-2: one gains much on few topics, and little is lost on many.

    The mean is then significantly higher or not by a t test, where ranks say the opposite.
    """
    rng = np.random.default_rng(1)
    base = rng.uniform(0.2, 0.4, 30)
    often = base + np.where(np.arange(30) < 25, rng.uniform(0.001, 0.004, 30), -0.15)
    rarely = base + np.where(np.arange(30) < 12, rng.uniform(0.2, 0.4, 30), -0.01)
    return np.stack([base, often, rarely]).round(6)


def test_tests_side_by_side_say_where_their_verdicts_part(api: APIClient, team: Team) -> None:
    values = bool_sum_ssyn()
    ids = make_scored("other", team, values)
    (measure,) = ask(api, OTHER, tests="paired_t,wilcoxon,sign")["measures"]
    assert {name: family["about"] for name, family in measure["tests"].items()} == {
        "paired_t": "means", "wilcoxon": "ranks", "sign": "ranks",
    }  # fmt: skip
    split = [
        pair
        for pair in measure["pairs"]
        if any(
            pair["tests"]["paired_t"]["significant"] != pair["tests"][t]["significant"]
            or pair["tests"][t]["withheld"] == "other_direction"
            for t in ("wilcoxon", "sign")
        )
    ]
    assert measure["disagreements"]["count"] == len(split) > 0
    for row, pair in zip(measure["disagreements"]["pairs"], split, strict=True):
        assert row == {name: pair[name] for name in row}
    omnibus = measure["omnibus"]
    assert (omnibus["anova"]["p_value"] < 0.05) != (omnibus["friedman"]["p_value"] < 0.05)
    assert "omnibus_tests_disagree" in [caution["code"] for caution in measure["cautions"]]
    # The mean of the second is lower than the base's, and it is better on 25 of 30 topics.
    (odd,) = (
        pair for pair in measure["disagreements"]["pairs"] if {pair["a"], pair["b"]} == set(ids[:2])
    )
    assert odd["tests"]["wilcoxon"]["p_value"] != odd["tests"]["paired_t"]["p_value"]
    assert (odd["a"], odd["losses"], odd["tests"]["sign"]["p_adjusted"] < 0.05) == (
        ids[0],
        25,
        True,
    )
    assert (odd["tests"]["sign"]["significant"], odd["tests"]["sign"]["withheld"]) == (
        False,
        "other_direction",
    )
    assert (
        ask(api, OTHER, tests="paired_t,randomisation", resamples=B)["measures"][0]["disagreements"]
        is None
    )


def test_pairs_come_in_pages_sorted_and_of_one_run(api: APIClient, values: Matrix) -> None:
    whole = ask(api)["measures"][0]["pairs"]
    pages, url = [], f"{SCORED}?limit=4"
    while url:
        answer = api.get(url).json()
        pages += answer["measures"][0]["pairs"]
        assert answer["measures"][0]["count"] == 15
        url = answer["next"]
    assert pages == whole
    by_p = ask(api, sort="p_value")["measures"][0]["pairs"]
    p_values = [pair["tests"]["t_and_tukey"]["p_value"] for pair in by_p]
    assert p_values == sorted(p_values)
    by_size = [
        abs(pair["difference"])
        for pair in ask(api, sort="difference", limit=5)["measures"][0]["pairs"]
    ]
    assert by_size == sorted((abs(pair["difference"]) for pair in whole), reverse=True)[:5]
    run = whole[0]["b"]
    (measure,) = ask(api, run=run)["measures"]
    assert measure["pairs"] == [pair for pair in whole if run in (pair["a"], pair["b"])]
    # A page shows fewer pairs, and corrects over all of them.
    assert measure["tests"]["t_and_tukey"]["family"] == 15


def test_identical_runs_have_p_one(api: APIClient, submit: Callable[..., Run]) -> None:
    submit(GOOD, tag="one")
    submit(GOOD, tag="two")
    (measure,) = ask(api, SMALL, tests=",".join(TESTS), resamples=100)["measures"]
    (pair,) = measure["pairs"]
    assert (pair["difference"], pair["wins"], pair["reading"]) == (0.0, 0, "none")
    for verdict in pair["tests"].values():
        assert (verdict["p_value"], verdict["p_adjusted"], verdict["significant"]) == (
            1.0,
            1.0,
            False,
        )


@pytest.mark.parametrize("test", list(TESTS))
def test_every_test_compares_runs(api: APIClient, collection: str, test: str) -> None:
    many(api, 4)
    answer = ask(api, SMALL, measure="AP", test=test)
    (measure,) = answer["measures"]
    assert (answer["tests"], answer["family"]["pairs"], measure["topics"]["used"]) == ([test], 6, 3)
    assert "few_topics" in [caution["code"] for caution in measure["tests"][test]["cautions"]]
    for pair in measure["pairs"]:
        verdict = pair["tests"][test]
        assert verdict["low"] <= pair["difference"] <= verdict["high"]
        assert 0 <= verdict["p_value"] <= verdict["p_adjusted"] <= 1


def test_p_values_that_count_for_all_pairs_are_not_corrected_again(
    api: APIClient, values: Matrix
) -> None:
    for correction, noted in (("holm", True), ("none", False)):
        (measure,) = ask(api, test="tukey_hsd", correction=correction)["measures"]
        assert column(measure, "tukey_hsd", "p_value") == column(measure, "tukey_hsd", "p_adjusted")
        codes = [caution["code"] for caution in measure["tests"]["tukey_hsd"]["cautions"]]
        assert ("not_corrected_again" in codes) is noted


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({}, "too_few_runs", None),
        ({"test": "wishful"}, "unknown_test", "test"),
        ({"tests": "paired_t,wishful"}, "unknown_test", "test"),
        ({"correction": "wishful"}, "unknown_correction", "correction"),
        ({"alpha": "2"}, "invalid", "alpha"),
        ({"alpha": "nan"}, "invalid", "alpha"),
        ({"confidence": "0.9999999999999999"}, "invalid", "confidence"),
        ({"resamples": "0"}, "invalid", "resamples"),
        ({"resamples": "10000001"}, "invalid", "resamples"),
        ({"seed": "-1"}, "invalid", "seed"),
        ({"zeros": "keep"}, "invalid", "zeros"),
        ({"ties": "keep"}, "invalid", "ties"),
        ({"min_difference": "-0.1"}, "invalid", "min_difference"),
        ({"min_difference": "inf"}, "invalid", "min_difference"),
        ({"sort": "name"}, "invalid", "sort"),
        ({"limit": "0"}, "invalid", "limit"),
        (
            {"limit": "5000", "tests": "paired_t,sign,wilcoxon,conover,nemenyi"},
            "too_many_values",
            "limit",
        ),
        ({"run": "x"}, "invalid", "run"),
        ({"runs": "17"}, "invalid", "runs"),
        ({"runs": "7b2d1a52-8a52-4b0e-9d5b-0d5f8f0f0f0f"}, "unknown_run", "runs"),
        ({"measure": "foo"}, "unknown_measure", "measure"),
        ({"measures": "AP,foo"}, "unknown_measure", "measures"),
        ({"measures": ",".join(f"P@{k}" for k in range(1, 22))}, "too_many_measures", "measures"),
    ],
)
def test_a_comparison_without_an_answer_says_why(
    api: APIClient,
    submit: Callable[..., Run],
    query: dict[str, str],
    code: str,
    pointer: str | None,
) -> None:
    submit(GOOD)
    answer = api.get(SMALL, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [entry["pointer"] for entry in answer.json()["errors"]] == ([pointer] if pointer else [])


@pytest.mark.queries
def test_values_of_two_versions_of_the_judgements_never_meet(
    api: APIClient, submit: Callable[..., Run]
) -> None:
    for tag in ("one", "two"):
        submit(GOOD, tag=tag)
    upload(api, "collections/small/qrels/", "1 0 b 3\n2 0 y 1\n")
    waiting = Evaluation.objects.filter(state="queued").order_by("pk")
    assert evaluate(evaluation_id=waiting[0].pk)
    # One run is judged by the new version, the other by the old one only.
    assert api.get(SMALL).json()["code"] == "too_few_runs"
    evaluate_all()
    answer = ask(api, SMALL)
    assert (answer["qrels"], answer["stale"], len(answer["runs"])) == (2, False, 2)
