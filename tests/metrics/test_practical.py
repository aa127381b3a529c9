"""What a comparison may be asked beside its tests, over the API, in files, stored and on pages."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from metrics.engine.judgement.steps import Matrix
from metrics.engine.significance.equivalence import topics_for_tost
from metrics.engine.significance.pairs import Options, all_pairs
from metrics.engine.significance.posterior import POSTERIORS
from metrics.models import Comparison
from metrics.services.comparisons.stored import compare
from runs.models import Run, Team, User
from tests.metrics.scored import make_scored, simulated
from tests.metrics.test_comparison import SCORED, ask, sorted_values
from tests.shared_data import alice, api, module_data
from tests.web.comparing import answer_of, browser, ids, many
from tests.web.test_pages import page, text_of

__all__ = ["alice", "api", "browser", "many", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
RUNS, TOPICS, MARGIN = 6, 30, 0.08
PAGE = "/collections/many/comparison/"


@pytest.fixture(scope="module")
def values(alice: User) -> Matrix:
    """Of the runs of the collection `scored`, best first."""
    drawn = simulated(RUNS, TOPICS)
    make_scored("scored", Team.objects.get(personal_of=alice), drawn)
    return sorted_values(drawn)


def column(measure: Any, *names: str) -> list[Any]:
    entries = [pair["equivalence"] for pair in measure["pairs"]]
    for name in names:
        entries = [entry[name] for entry in entries]
    return entries


@pytest.mark.slow
def test_equivalence_is_that_of_statsmodels_with_holms_correction(
    api: APIClient, values: Matrix
) -> None:
    answer = ask(api, tests="tost", margin=MARGIN)
    (measure,) = answer["measures"]
    assert answer["tests"] == ["t_and_tukey"]
    assert answer["practical"]["tests"] == ["tost"]
    assert answer["practical"]["margin"] == MARGIN
    pairs = list(zip(*all_pairs(RUNS), strict=True))
    theirs = [ttost_paired(values[i], values[j], -MARGIN, MARGIN) for i, j in pairs]
    for name, expected in (
        ("equivalent", [result[0] for result in theirs]),
        ("a_not_worse", [result[1][1] for result in theirs]),
        ("b_not_worse", [result[2][1] for result in theirs]),
    ):
        np.testing.assert_allclose(column(measure, name, "p_value"), expected, rtol=1e-9)
        adjusted = multipletests(expected, method="holm")[1]
        np.testing.assert_allclose(column(measure, name, "p_adjusted"), adjusted, rtol=1e-9)
        assert column(measure, name, "holds") == (adjusted < 0.05).tolist()
    deviations = np.array([(values[i] - values[j]).std(ddof=1) for i, j in pairs])
    assert column(measure, "topics") == topics_for_tost(deviations, MARGIN).astype(int).tolist()
    counted = measure["equivalence"]
    assert (counted["family"], counted["correction"]) == (15, "holm")
    assert counted["equivalent"] == sum(column(measure, "equivalent", "holds")) > 0


def test_chances_are_those_of_the_engine(api: APIClient, values: Matrix) -> None:
    query = {"tests": "bayes_t,bayes_bootstrap,sign", "rope": 0.02, "resamples": 5_000, "seed": 3}
    answer = ask(api, **query)
    assert answer["tests"] == ["sign"]
    assert answer["practical"] == {
        "tests": ["bayes_t", "bayes_bootstrap"],
        "margin": None,
        "rope": 0.02,
    }
    (measure,) = answer["measures"]
    for name, posterior in POSTERIORS.items():
        chances = posterior(values, *all_pairs(RUNS), 0.02, Options(resamples=5_000, seed=3))
        for side, expected in (
            ("better", chances.higher),
            ("equal", chances.equal),
            ("worse", chances.lower),
        ):
            assert [pair["chances"][name][side] for pair in measure["pairs"]] == pytest.approx(
                expected, abs=3e-4
            )
    assert ask(api, tests="bayes_t")["practical"]["rope"] == 0.01
    next_page = ask(api, **query, limit=4, offset=4)["measures"][0]["pairs"]
    assert next_page == measure["pairs"][4:8]


def test_where_lower_is_better_the_lower_run_is_the_better_one(api: APIClient, alice: User) -> None:
    drawn = simulated(3, TOPICS)
    make_scored("lower", Team.objects.get(personal_of=alice), drawn, measures=("SearchLength",))
    query = {"tests": "bayes_t,tost", "rope": 0.02, "margin": 0.05}
    (measure,) = ask(api, "/api/v1/collections/lower/comparison/", **query)["measures"]
    assert measure["lower_is_better"]
    for pair in measure["pairs"]:
        assert pair["difference"] < 0
        assert pair["chances"]["bayes_t"]["better"] > pair["chances"]["bayes_t"]["worse"]
        assert (
            pair["equivalence"]["a_not_worse"]["p_value"]
            < pair["equivalence"]["b_not_worse"]["p_value"]
        )


def test_chances_in_files_and_of_stored_comparisons(api: APIClient, values: Matrix) -> None:
    query = {"tests": "bayes_t,bayes_bootstrap", "rope": "0.03", "resamples": "2000"}
    now = ask(api, **query)
    text = b"".join(
        api.get("/api/v1/collections/scored/comparison/export/csv/", query).streaming_content
    ).decode()
    for row, pair in zip(
        csv.DictReader(io.StringIO(text)), now["measures"][0]["pairs"], strict=True
    ):
        assert row["rope"] == "0.03"
        for name, chances in pair["chances"].items():
            assert {side: float(row[f"{name}_{side}"]) for side in chances} == chances
    body = {"tests": ["bayes_t", "bayes_bootstrap"], "rope": 0.03, "resamples": 2000}
    assert api.post(SCORED, body).status_code == 202
    stored = Comparison.objects.get()
    assert compare(comparison_id=str(stored.pk))
    assert {**api.get(f"/api/v1/comparisons/{stored.pk}/").json(), "comparison": None} == now


@pytest.mark.slow
def test_pages_show_the_chances_as_text_and_as_a_bar(browser: Client, many: list[Run]) -> None:
    query = {
        "measures": "AP",
        "tests": "bayes_t,bayes_bootstrap",
        "rope": "0.05",
        "resamples": "2000",
    }
    (measure,) = answer_of(browser, f"/api/v1{PAGE}", **query)["measures"]
    html = page(browser, PAGE, **query)
    assert html.count('<svg class="chances"') == 30
    assert "Student&#x27;s posterior: better, equal, worse" in text_of(html)
    for pair in measure["pairs"]:
        for chances in pair["chances"].values():
            assert (
                ", ".join(f"{100 * chances[side]:.1f}%" for side in ("better", "equal", "worse"))
                in html
            )
    html = page(browser, PAGE, **query, runs=",".join(ids(*many[:2])))
    (pair,) = answer_of(browser, f"/api/v1{PAGE}", **query, runs=",".join(ids(*many[:2])))[
        "measures"
    ][0]["pairs"]
    text = text_of(html)
    for chances in pair["chances"].values():
        assert f"{100 * chances['equal']:.1f}% practically equal: at most 0.05 AP apart" in text
        assert (
            f"{100 * chances['better']:.1f}% {many_tag(many, pair['a'])} is ahead by more than 0.05 AP"
            in text
        )
    assert "Both: they differ by less than" not in text
    assert html.count('<svg class="chances"') == 2


def many_tag(many: list[Run], pk: str) -> str:
    return next(run.tag for run in many if str(run.pk) == pk)


def test_nothing_of_it_is_told_unless_asked(api: APIClient, values: Matrix) -> None:
    answer = ask(api, tests="paired_t", margin=0.1)
    assert answer["practical"] is None
    assert answer["measures"][0]["equivalence"] is None
    assert {pair["equivalence"] for pair in answer["measures"][0]["pairs"]} == {None}


def test_the_tests_beside_it_stay_as_they_are(api: APIClient, values: Matrix) -> None:
    alone, beside = (
        ask(api, tests=tests, margin=0.1) for tests in ("wilcoxon,sign", "wilcoxon,tost,sign")
    )
    assert beside["tests"] == ["wilcoxon", "sign"]
    for name in ("tests", "omnibus", "disagreements"):
        assert beside["measures"][0][name] == alone["measures"][0][name]


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [({"tests": "tost"}, "required", "margin"), ({"tests": "tost", "margin": "0"}, "bad_parameter", "margin"),
     ({"tests": "tost", "margin": "-1"}, "invalid", "margin"), ({"tests": "tost", "margin": "x"}, "invalid", "margin"),
     ({"tests": "bayes_t", "rope": "-0.1"}, "invalid", "rope"), ({"rope": "nan"}, "invalid", "rope"),
     ({"tests": "tost", "margin": "0.1", "alpha": "0.5"}, "bad_parameter", "alpha")],
)  # fmt: skip
def test_a_request_without_a_usable_margin_says_so(
    api: APIClient, values: Matrix, query: dict[str, str], code: str, pointer: str
) -> None:
    for path in (SCORED, "/api/v1/collections/scored/comparison/export/csv/"):
        answer = api.get(path, query)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
        assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_leaderboard_has_no_such_test(api: APIClient, values: Matrix) -> None:
    answer = api.get(
        "/api/v1/collections/scored/leaderboard/", {"statistics": "all", "test": "tost"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_test")
    assert "can only be added to the tests of a comparison" in answer.content.decode()


def test_a_pair_keeps_its_family(api: APIClient, values: Matrix) -> None:
    whole = ask(api, tests="tost", margin=MARGIN)["measures"][0]
    pair = whole["pairs"][3]
    among = ask(api, tests="tost", margin=MARGIN, runs=f"{pair['a']},{pair['b']}", family="all")[
        "measures"
    ][0]
    assert among["pairs"][0]["equivalence"] == pair["equivalence"]
    assert (among["equivalence"]["family"], among["count"]) == (15, 1)
    alone = ask(api, tests="tost", margin=MARGIN, runs=f"{pair['a']},{pair['b']}")["measures"][0]
    assert alone["equivalence"]["family"] == 1


def test_a_stored_comparison_answers_the_same(api: APIClient, values: Matrix) -> None:
    now = ask(api, tests="tost,sign", margin=MARGIN)
    body = {"tests": ["tost", "sign"], "margin": MARGIN}
    assert api.post(SCORED, body).status_code == 202
    stored = Comparison.objects.get()
    assert compare(comparison_id=str(stored.pk))
    read = api.get(f"/api/v1/comparisons/{stored.pk}/").json()
    assert {**read, "comparison": None} == now
    # Another margin is another comparison, and none is asked as it was before there was any.
    for other in ({**body, "margin": 0.2}, {"tests": ["sign"]}):
        assert api.post(SCORED, other).status_code == 202
    queries = Comparison.objects.order_by("created_at").values_list("query", flat=True)
    assert ["practical" in query for query in queries] == [True, True, False]


def test_files_have_it(api: APIClient, values: Matrix) -> None:
    query = {"tests": "tost", "margin": str(MARGIN)}
    measure = ask(api, **query)["measures"][0]
    text = b"".join(
        api.get("/api/v1/collections/scored/comparison/export/csv/", query).streaming_content
    ).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    for row, pair in zip(rows, measure["pairs"], strict=True):
        entry = pair["equivalence"]
        assert float(row["equivalent_p_adjusted"]) == entry["equivalent"]["p_adjusted"]
        assert row["equivalent"] == str(entry["equivalent"]["holds"]).lower()
        assert (int(row["equivalence_topics"]), float(row["tost_low"])) == (
            entry["topics"],
            entry["low"],
        )
        assert float(row["margin"]) == MARGIN
    for kind in ("md", "tex"):
        answer = api.get(f"/api/v1/collections/scored/comparison/export/{kind}/", query)
        text = b"".join(answer.streaming_content).decode()
        counted = measure["equivalence"]["equivalent"]
        differ = "differs" if counted == 1 else "differ"
        assert f"{counted} of 15 pairs {differ} by less than 0.08 AP" in text
    plain = b"".join(
        api.get("/api/v1/collections/scored/comparison/export/csv/").streaming_content
    ).decode()
    assert "margin" not in plain


def test_the_page_of_many_runs_says_how_many_pairs_and_which(
    browser: Client, many: list[Run]
) -> None:
    html = page(browser, PAGE, measures="AP", tests="paired_t,tost", margin="0.3")
    text = text_of(html)
    assert (
        "of 15 pairs differ by less than 0.3 AP (two one-sided t tests (TOST), Holm&#x27;s correction"
        in text
    )
    assert "Within ±0.3" in text
    (measure,) = answer_of(browser, f"/api/v1{PAGE}", measures="AP", tests="tost", margin="0.3")[
        "measures"
    ]
    count = sum(pair["equivalence"]["equivalent"]["holds"] for pair in measure["pairs"])
    assert text.count("yes, p") == count > 0
    assert text.count("not shown, p") == 15 - count
    assert 'name="margin" type="text" inputmode="decimal" size="6" value="0.3"' in html
    assert "Within ±" not in text_of(page(browser, PAGE))


def test_the_page_of_two_runs_has_the_three_claims(browser: Client, many: list[Run]) -> None:
    query = {"measures": "AP", "tests": "tost", "margin": "0.08", "runs": ",".join(ids(*many[:2]))}
    html = page(browser, PAGE, **query)
    text = text_of(html)
    entry = answer_of(browser, f"/api/v1{PAGE}", **query)["measures"][0]["pairs"][0]["equivalence"]
    for part in (
        "Practical difference", "is not worse than", "Both: they differ by less than 0.08", "90% interval",
        f"{entry['topics']} topics of this spread show it in 8 of 10 samples", f"{entry['low']:+.4f} to",
        "It is not shown that they are equivalent within 0.08 (two one-sided t tests (TOST), a single pair",
    ):  # fmt: skip
        assert part in text, part
    among = text_of(page(browser, PAGE, **query, family="all"))
    assert "corrected p is below the level" in among
    refused = text_of(page(browser, PAGE, 400, tests="tost", runs=query["runs"]))
    assert "tost needs a margin" in refused
