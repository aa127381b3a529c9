"""The board of systems, and systems compared by the design that their sessions have; figures against SciPy and
statsmodels."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import AnovaRM, anova_lm

from runs.models import Collection, SessionSet
from tests.conftest import SESSIONS, evaluate_all, upload
from tests.web.test_pages import text_of

pytestmark = pytest.mark.words
LOG, BOARD = "collections/small/sessions/", "/api/v1/collections/small/session-leaderboard/"
COMPARISON = "/api/v1/collections/small/session-comparison/"
MEASURE = "sDCG(b=2,bq=4)@10"
Row = tuple[str, str, str]


def log(rows: Iterable[Row], rng: np.random.Generator) -> str:
    """A session for each (topic, searcher, system): its one query returns some of the documents of topic t."""
    lines = []
    for number, (topic, searcher, system) in enumerate(rows):
        documents = [f"d{document}" for document in rng.permutation(12)[:6].tolist()]
        names = {"topic_id": topic, "searcher": searcher, "system": system}
        lines.append(
            json.dumps({"session_id": f"s{number}", **names, "queries": [{"documents": documents}]})
            + "\n"
        )
    return "".join(lines)


SQUARE = [(f"t{t}", f"u{u}", "AB"[(t + u) % 2]) for t in range(4) for u in range(4)]
PAIRED = [(f"t{t}", f"u{u}", system) for t in range(4) for u in range(2) for system in "ABC"]
TWO_WAY = [(f"t{t}", f"u{t}{system}", system) for t in range(6) for system in "AB"]
UNPAIRED = [(f"t{t}", f"u{t}", "A" if t < 3 else "B") for t in range(8)]


@pytest.fixture
def compare(api: APIClient, collection: str) -> Callable[..., dict[str, Any]]:
    """Upload a log of these sessions, evaluate it and compare its systems; the values are in the answer as well."""
    rng = np.random.default_rng(7)
    lines = [
        f"t{t} 0 d{document} {rng.integers(0, 4)}\n" for t in range(8) for document in range(12)
    ]
    assert upload(api, "collections/small/qrels/", "".join(lines)).status_code == 201

    def ask(rows: list[Row], **query: Any) -> dict[str, Any]:
        response = upload(api, LOG, log(rows, rng), tag=f"log{SessionSet.objects.count()}")
        assert response.status_code == 202, response.content
        evaluate_all()
        answer = api.get(COMPARISON, {"measure": MEASURE, "sets": response.json()["id"], **query})
        assert answer.status_code == 200, answer.content
        sessions = api.get(
            f"/api/v1/session-sets/{response.json()['id']}/values/", {"measures": MEASURE}
        ).json()["sessions"]
        return {**answer.json(), "values": sessions}

    return ask


def frame(answer: dict[str, Any]) -> pd.DataFrame:
    rows = [{**row, "value": row["values"][MEASURE]} for row in answer["values"]]
    return pd.DataFrame(rows)[["topic_id", "searcher", "system", "value"]]


def signs(answer: dict[str, Any], first: str, second: str) -> tuple[dict[str, Any], float]:
    """The pair of two systems, and -1 where it is the other way round."""
    for pair in answer["pairs"]:
        names = [pair[side].partition(":")[2] for side in "ab"]
        if set(names) == {first, second}:
            return pair, 1.0 if names[0] == first else -1.0
    raise AssertionError(answer["pairs"])


def test_a_paired_design_is_paired_by_topic_and_searcher(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare(PAIRED, correction="none")
    assert answer["design"] == {
        "recognised": "paired",
        "reason": "every searcher who searched a topic used every system on it",
        "used": "paired",
    }
    assert (answer["cells"], answer["test"], answer["family"]) == (8, "paired_t", 3)
    table = frame(answer).pivot(index=["topic_id", "searcher"], columns="system", values="value")
    for first, second in (("A", "B"), ("A", "C"), ("B", "C")):
        expected = stats.ttest_rel(table[first], table[second])
        pair, sign = signs(answer, first, second)
        assert pair["p_value"] == pytest.approx(expected.pvalue)
        assert pair["statistic"] == pytest.approx(sign * expected.statistic)
        assert pair["difference"] == pytest.approx(
            sign * float((table[first] - table[second]).mean())
        )
    assert set(answer["omnibus"]) == {"anova", "friedman"}
    friedman = stats.friedmanchisquare(*(table[name] for name in "ABC"))
    assert answer["omnibus"]["friedman"]["statistic"] == pytest.approx(friedman.statistic)
    means = [system["mean"] for system in answer["systems"]]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize(
    ("rows", "factor", "design", "cells", "index"),
    [
        (PAIRED, "searchers", "paired", 12, ["topic_id", "system"]),
        (SQUARE, "searchers", "two_way", 4, ["topic_id"]),
        (SQUARE, "topics", "two_way", 4, ["searcher"]),
        (PAIRED, "topics", "paired", 6, ["searcher", "system"]),
    ],
)
def test_searchers_and_topics_are_compared_like_systems(
    compare: Callable[..., dict[str, Any]],
    rows: list[Row],
    factor: str,
    design: str,
    cells: int,
    index: list[str],
) -> None:
    answer = compare(rows, compare=factor, correction="none")
    assert (answer["compare"], answer["design"]["used"], answer["cells"]) == (factor, design, cells)
    column = "searcher" if factor == "searchers" else "topic_id"
    table = frame(answer).pivot_table(index=index, columns=column, values="value")
    assert {line["name"] for line in answer["systems"]} == set(table.columns)
    assert {line["session_set"] for line in answer["systems"]} == {None}
    for pair in answer["pairs"]:
        expected = stats.ttest_rel(table[pair["a"]], table[pair["b"]])
        assert pair["p_value"] == pytest.approx(expected.pvalue)
        assert pair["difference"] == pytest.approx((table[pair["a"]] - table[pair["b"]]).mean())
    # The words of cautions are those of what is compared and of its cells.
    text = " ".join(caution["message"] for caution in answer["cautions"])
    units = {"searchers": "topic and system", "topics": "searcher and system"}[factor]
    assert (f"pairs of {units}" in text) == (design == "paired")


def test_searchers_of_one_system_with_a_baseline(compare: Callable[..., dict[str, Any]]) -> None:
    answer = compare(PAIRED, compare="searchers", systems="B", baseline="u1")
    assert [(pair["a"], pair["b"]) for pair in answer["pairs"]] == [("u0", "u1")]
    assert [line["sessions"] for line in answer["systems"]] == [4, 4]


def test_what_cannot_be_compared_says_why(
    compare: Callable[..., dict[str, Any]], api: APIClient
) -> None:
    compare(PAIRED)
    for query, message in (
        ({"compare": "people"}, "compare"),
        ({"compare": "searchers", "design": "crossed"}, "paired, two_way and unpaired"),
        ({"compare": "topics", "baseline": "u1"}, "is not one of the compared topics"),
    ):
        answer = api.get(COMPARISON, query)
        assert answer.status_code == 400
        assert message in answer.json()["detail"]

    session = {"session_id": "s", "topic_id": "t1", "system": "A"}
    nameless = json.dumps({**session, "queries": [{"documents": ["d1"]}]})
    assert upload(api, LOG, nameless + "\n", tag="nameless").status_code == 202
    evaluate_all()
    detail = api.get(COMPARISON, {"compare": "searchers"}).json()["detail"]
    assert "do not name their searcher" in detail


@pytest.fixture
def second(api: APIClient) -> str:
    """A second collection with other judgements of the same topics and documents."""
    assert (
        api.post(
            "/api/v1/collections/", {"slug": "second", "name": "Second", "measures": ["AP"]}
        ).status_code
        == 201
    )
    rng = np.random.default_rng(11)
    lines = [
        f"t{t} 0 d{document} {rng.integers(0, 3)}\n" for t in range(8) for document in range(12)
    ]
    assert upload(api, "collections/second/qrels/", "".join(lines)).status_code == 201
    return "second"


@pytest.mark.parametrize(
    ("rows", "again", "design", "cells", "index"),
    [
        (PAIRED, PAIRED, "paired", 6, ["searcher", "system"]),
        (UNPAIRED, [("t1", row[1], "A") for row in UNPAIRED], "two_way", 8, ["searcher"]),
        # One searcher did not come back.
        (UNPAIRED, UNPAIRED[1:], "unpaired", 15, []),
    ],
)
def test_collections_are_compared_by_their_searchers(
    compare: Callable[..., dict[str, Any]],
    second: str,
    api: APIClient,
    rows: list[Row],
    again: list[Row],
    design: str,
    cells: int,
    index: list[str],
) -> None:
    small = frame(compare(rows)).assign(collection="small")
    content = log(again, np.random.default_rng(23))
    sent = upload(api, f"collections/{second}/sessions/", content, tag="log0").json()
    evaluate_all()
    values = api.get(f"/api/v1/session-sets/{sent['id']}/values/", {"measures": MEASURE}).json()
    both = pd.concat([small, frame({"values": values["sessions"]}).assign(collection=second)])

    query = {"compare": "collections", "collections": second, "measure": MEASURE}
    answer = api.get(COMPARISON, query).json()

    assert (answer["compare"], answer["qrels"]) == ("collections", None)
    assert (answer["design"]["used"], answer["cells"]) == (design, cells)
    means = both.groupby("collection")["value"].mean().to_dict()
    assert {system["name"]: system["mean"] for system in answer["systems"]} == pytest.approx(means)
    (pair,) = answer["pairs"]
    if index:
        table = both.pivot_table(index=index, columns="collection", values="value")
        expected = stats.ttest_rel(table[pair["a"]], table[pair["b"]])
    else:
        groups = dict(list(both.groupby("collection")["value"]))
        expected = stats.ttest_ind(groups[pair["a"]], groups[pair["b"]], equal_var=False)
    assert pair["p_value"] == pytest.approx(expected.pvalue)


def test_one_system_is_compared_in_two_collections(
    compare: Callable[..., dict[str, Any]], second: str, api: APIClient
) -> None:
    compare(PAIRED)
    content = log(PAIRED, np.random.default_rng(23))
    upload(api, f"collections/{second}/sessions/", content, tag="log0")
    evaluate_all()
    query = {"compare": "collections", "collections": second}
    answer = api.get(COMPARISON, {**query, "systems": "B", "baseline": "small"}).json()
    assert [(pair["a"], pair["b"]) for pair in answer["pairs"]] == [(second, "small")]
    assert [system["sessions"] for system in answer["systems"]] == [8, 8]


def test_collections_that_cannot_be_compared_say_why(
    compare: Callable[..., dict[str, Any]],
    second: str,
    api: APIClient,
    anonymous: APIClient,
) -> None:
    compare(PAIRED)
    for named, status, message in (
        ("", 400, "name the collections"),
        ("small", 400, "name the collections"),
        (second, 400, "no session set of second is evaluated"),
        ("unknown", 404, "unknown"),
        (",".join(f"c{number}" for number in range(50)), 400, "at most 50 collections"),
    ):
        answer = api.get(COMPARISON, {"compare": "collections", "collections": named})
        assert (answer.status_code, message in answer.json()["detail"]) == (status, True), named

    # Other comparisons are of one collection, and so are files and the page.
    for factor in ("systems", "searchers"):
        answer = api.get(COMPARISON, {"compare": factor, "collections": second})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "collections")
    for path in (f"{COMPARISON}export/csv/", "/collections/small/sessions/"):
        assert "collections" in api.get(path, {"collections": second}).content.decode()
        assert api.get(path, {"collections": second}).status_code == 400
        assert api.get(path, {"compare": "searchers"}).status_code == 400

    # Who may not see the scores of one of them may not see how it compares.
    Collection.objects.filter(slug=second).update(visibility="private")
    query = {"compare": "collections", "collections": second}
    assert anonymous.get(COMPARISON, query).status_code == 404


CROSSED = [(f"t{t}", f"u{u}", system) for t in range(5) for u in range(6) for system in "ABC"]


def test_searchers_and_topics_that_recur_are_crossed(
    compare: Callable[..., dict[str, Any]], api: APIClient
) -> None:
    answer = compare(CROSSED, correction="none")
    assert answer["design"] == {
        "recognised": "crossed",
        "reason": "searchers used all systems, topics were searched with all systems, and both have several sessions",
        "used": "crossed",
    }
    assert (answer["cells"], answer["test"], answer["family"], list(answer["omnibus"])) == (
        90,
        "min_f",
        3,
        ["crossed"],
    )
    table = frame(answer)
    for some, test in [
        ("ABC", answer["omnibus"]["crossed"]),
        *((p, signs(answer, *p)[0]) for p in ("AB", "BC", "AC")),
    ]:
        part, f = table[table.system.isin(list(some))], []
        by = test.get("sources") or [{}, test["by_searchers"], test["by_topics"]]
        for unit, source in (("searcher", by[1]), ("topic_id", by[2])):
            theirs = (
                AnovaRM(part, "value", unit, within=["system"], aggregate_func="mean")
                .fit()
                .anova_table.iloc[0]
            )
            f.append(theirs["F Value"])
            assert (source["statistic"], source["p_value"]) == pytest.approx(
                (theirs["F Value"], theirs["Pr > F"])
            )
        n1, n2 = (len(some) - 1) * 5, (len(some) - 1) * 4
        freedom = [len(some) - 1, sum(f) ** 2 / (f[0] ** 2 / n2 + f[1] ** 2 / n1)]
        assert test["statistic"] == pytest.approx(f[0] * f[1] / sum(f))
        assert test["freedom"] == pytest.approx(freedom)
        assert test["p_value"] == pytest.approx(stats.f.sf(test["statistic"], *freedom))
    pair, sign = signs(answer, "A", "B")
    means = table.groupby("system").value.mean()
    assert pair["difference"] == pytest.approx(sign * (means["A"] - means["B"]))
    margin = (
        stats.t.ppf(0.975, pair["freedom"][1]) * abs(pair["difference"]) / pair["statistic"] ** 0.5
    )
    assert (pair["low"], pair["high"]) == pytest.approx(
        (pair["difference"] - margin, pair["difference"] + margin)
    )
    more = stats.t.ppf(0.8, pair["freedom"][1]) / stats.t.ppf(0.975, pair["freedom"][1])
    assert pair["detectable"] == pytest.approx(margin * (1 + more))
    assert pair["cohen_d"] is pair["cliff_delta"] is None
    for row in api.get(COMPARISON, {"measure": MEASURE, "baseline": "A"}).json()["pairs"]:
        pair, sign = signs(answer, row["a"].partition(":")[2], "A")
        assert (row["difference"], row["p_value"]) == pytest.approx(
            (sign * pair["difference"], pair["p_value"])
        )
    assert "dependent_cells" not in codes(answer)


def test_a_test_of_another_design_takes_that_design(
    compare: Callable[..., dict[str, Any]], api: APIClient, collection: str
) -> None:
    answer = compare(CROSSED, test="wilcoxon", systems="A,B")
    assert (answer["design"]["recognised"], answer["design"]["used"], answer["cells"]) == (
        "crossed",
        "paired",
        30,
    )
    assert "design=crossed" in codes(answer)["dependent_cells"]
    assert (answer["pairs"][0]["freedom"], answer["pairs"][0]["by_topics"]) == (None, None)
    query = {"measure": MEASURE, "systems": "A,B"}
    page = (
        Client()
        .get(f"/collections/{collection}/sessions/", {**query, "design": "paired"})
        .content.decode()
    )
    assert "Compare by searchers and topics</a>" in page
    (pair,) = api.get(COMPARISON, query).json()["pairs"]
    html = text_of(Client().get(f"/collections/{collection}/sessions/", query).content.decode())
    f1, f2 = (
        f"F{n}(1, {m}) = {pair[of]['statistic']:.4g}"
        for n, m, of in ((1, 5, "by_searchers"), (2, 4, "by_topics"))
    )
    assert (
        f"by searchers {f1}, p = {pair['by_searchers']['p_value']:.4f}; by topics {f2}, p" in html
    )
    (row,) = csv.DictReader(
        io.StringIO(api.get(f"{COMPARISON}export/csv/", query).content.decode())
    )
    assert [float(row[name]) for name in ("statistic", "freedom", "by_searchers_f", "by_topics_p")] == [
        pair["statistic"], pair["freedom"][1], pair["by_searchers"]["statistic"], pair["by_topics"]["p_value"]
    ]  # fmt: skip
    table = api.get(f"{COMPARISON}export/md/", query).content.decode()
    assert (
        "Design: crossed by searchers and topics, 60 sessions. Test: min F' by searchers and topics, a single"
        in table
    )


def test_a_latin_square_has_its_analysis_of_variance(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare(SQUARE, design="latin_square")
    assert (answer["design"]["recognised"], answer["test"], answer["cells"]) == (
        "crossed",
        "latin_square",
        16,
    )
    assert codes(answer)["dependent_cells"].startswith(
        "the 16 sessions are not independent, as 4 topics (t0, t1, t2 and"
    )
    table = anova_lm(
        ols("value ~ C(system) + C(topic_id) + C(searcher)", frame(answer)).fit(), typ=2
    )
    analysis = answer["omnibus"]["latin_square"]
    assert analysis["statistic"] == pytest.approx(table.loc["C(system)", "F"])
    assert analysis["p_value"] == pytest.approx(table.loc["C(system)", "PR(>F)"])
    assert [source["name"] for source in analysis["sources"]] == [
        "systems",
        "topics",
        "searchers",
        "residual",
    ]
    (pair,) = answer["pairs"]
    assert pair["p_value"] == analysis["p_value"]
    _, sign = signs(answer, "A", "B")
    fit = ols(
        "value ~ first + C(topic_id) + C(searcher)",
        frame(answer).assign(first=lambda f: f.system == "A"),
    ).fit()
    low, high = sorted(sign * fit.conf_int().loc["first[T.True]"])
    assert pair["difference"] == pytest.approx(sign * fit.params["first[T.True]"])
    assert (pair["low"], pair["high"]) == pytest.approx((low, high))


def test_topics_searched_with_every_system_are_paired_by_topic(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare(TWO_WAY, test="wilcoxon")
    assert (answer["design"]["recognised"], answer["cells"], answer["test"]) == (
        "two_way",
        6,
        "wilcoxon",
    )
    table = frame(answer).pivot(index="topic_id", columns="system", values="value")
    assert answer["pairs"][0]["p_value"] == pytest.approx(
        stats.wilcoxon(table["A"], table["B"]).pvalue
    )


def test_a_drawn_comparison_is_made_again_from_its_answer(
    compare: Callable[..., dict[str, Any]], api: APIClient
) -> None:
    drawn = compare(TWO_WAY * 3, test="randomised_tukey_hsd")
    assert (drawn["resamples"], drawn["seed"], drawn["qrels"]) == (100_000, 0, 2)
    query = {
        name: drawn[name]
        for name in ("measure", "test", "resamples", "seed", "confidence", "alpha", "judged_by")
    }
    again = api.get(COMPARISON, {**query, "design": drawn["design"]["used"]}).json()
    assert again == {name: value for name, value in drawn.items() if name != "values"}
    other = api.get(COMPARISON, {**query, "seed": 7, "resamples": 200}).json()
    assert (other["resamples"], other["seed"]) == (200, 7)
    assert other["pairs"][0]["p_value"] != drawn["pairs"][0]["p_value"]


def codes(answer: dict[str, Any]) -> dict[str, str]:
    return {caution["code"]: caution["message"] for caution in answer["cautions"]}


def test_cautions_count_cells_where_cells_are_compared(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare(
        [(f"t{t}", f"u{u}", system) for t in range(3) for u in range(8) for system in "ABC"],
        design="paired",
    )
    cautions = codes(answer)
    assert cautions["few_cells"].startswith("only 24 pairs of topic and searcher: ")
    assert cautions["dependent_cells"].startswith(
        "the 24 pairs of topic and searcher are not independent, as 3 topics (t0,"
    )
    assert "few_topics" not in cautions
    for result in answer["omnibus"].values():
        assert {caution["code"] for caution in result["cautions"]} == {"few_cells"}


def test_cells_that_share_neither_topic_nor_searcher_are_independent(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare([(f"t{t}", f"u{t}", system) for t in range(8) for system in "AB"])
    assert answer["design"]["recognised"] == "paired"
    assert set(codes(answer)) == {"few_cells"}
    by_topic = codes(compare(TWO_WAY))
    assert by_topic["few_topics"].startswith("only 6 topics")


def test_cautions_count_degrees_of_freedom_under_a_latin_square(
    compare: Callable[..., dict[str, Any]],
) -> None:
    few = compare(SQUARE, design="latin_square")
    freedom = int(few["omnibus"]["latin_square"]["freedom"][1])
    assert codes(few)["few_degrees_of_freedom"].startswith(f"only {freedom} degrees of freedom")
    many = compare(
        [(f"t{t}", f"u{u}", "AB"[(t + u) % 2]) for t in range(4) for u in range(40)],
        design="latin_square",
    )
    assert (many["design"]["used"], many["omnibus"]["latin_square"]["freedom"][1]) == (
        "latin_square",
        116,
    )
    assert set(codes(many)) == {"dependent_cells"}


def test_cautions_count_sessions_of_unpaired_samples(
    compare: Callable[..., dict[str, Any]],
) -> None:
    cautions = codes(compare(UNPAIRED))
    assert cautions["few_sessions"].startswith("only 3 sessions of a system: ")


def test_anything_else_is_compared_by_welchs_test(compare: Callable[..., dict[str, Any]]) -> None:
    answer = compare(UNPAIRED)
    assert (answer["design"]["recognised"], answer["test"], answer["cells"]) == (
        "unpaired",
        "welch_t",
        8,
    )
    data = frame(answer)
    a, b = (data[data.system == name].value for name in "AB")
    expected = stats.ttest_ind(a, b, equal_var=False)
    pair, sign = signs(answer, "A", "B")
    assert (pair["p_value"], pair["statistic"]) == pytest.approx(
        (expected.pvalue, sign * expected.statistic)
    )


def test_another_design_may_be_asked_for(compare: Callable[..., dict[str, Any]]) -> None:
    answer = compare(PAIRED, design="unpaired", systems="A,B")
    assert (answer["design"]["recognised"], answer["design"]["used"]) == ("paired", "unpaired")
    assert (answer["test"], len(answer["systems"])) == ("welch_t", 2)


def test_a_baseline_is_held_against_every_other_system(
    compare: Callable[..., dict[str, Any]],
) -> None:
    answer = compare(PAIRED, baseline="C")
    assert (answer["family"], {pair["b"].partition(":")[2] for pair in answer["pairs"]}) == (
        2,
        {"C"},
    )


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"measure": "nDCG"}, "unknown_measure", "measure"),
        ({"systems": "A"}, "too_few_systems", "systems"),
        ({"systems": "A,Z"}, "unknown_system", "systems"),
        ({"baseline": "Z"}, "unknown_system", "baseline"),
        ({"sets": "x"}, "invalid", "sets"),
        ({"sets": "00000000-0000-4000-8000-000000000000"}, "unknown_session_set", "sets"),
        ({"design": "square"}, "invalid", "design"),
        ({"test": "welch_t"}, "unknown_test", "test"),
        ({"design": "unpaired", "test": "paired_t"}, "unknown_test", "test"),
        ({"design": "crossed"}, "not_crossed", "design"),
        ({"correction": "x"}, "unknown_correction", "correction"),
        ({"judged_by": "x"}, "invalid", "judged_by"),
    ],
)
def test_what_cannot_be_compared_names_its_parameter(
    api: APIClient, collection: str, query: dict[str, str], code: str, pointer: str
) -> None:
    assert upload(api, LOG, SESSIONS).status_code == 202
    evaluate_all()
    answer = api.get(COMPARISON, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code), answer.content
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_the_board_ranks_the_systems_of_all_sets(api: APIClient, collection: str) -> None:
    unnamed = SESSIONS.replace(', "system": "A"', "").replace(', "system": "B"', "")
    for tag, content in (("both", SESSIONS), ("one", unnamed)):
        assert upload(api, LOG, content, tag=tag).status_code == 202
    assert upload(api, LOG, SESSIONS, tag="other", judged_by="session").status_code == 202
    evaluate_all()
    board = api.get(BOARD, {"measures": "sDCG,nsDCG(b=2,bq=4)@3"}).json()
    assert [(row["rank"], row["name"], row["system"]) for row in board["results"]] == [
        (1, "alice/both:A", "A"),
        (2, "alice/one", ""),
        (3, "alice/both:B", "B"),
    ]
    assert (board["judged_by"], board["states"], board["judged_otherwise"]) == (
        "topic",
        {"evaluated": 2},
        1,
    )
    assert board["measures"] == ["sDCG(b=2,bq=4)@10", "nsDCG(b=2,bq=4)@3"]
    assert [row["values"]["sDCG(b=2,bq=4)@10"]["sessions"] for row in board["results"]] == [2, 4, 2]
    worst = api.get(BOARD, {"sort": "sDCG", "order": "asc", "limit": 1}).json()
    assert [row["name"] for row in worst["results"]] == ["alice/both:B"]
    assert "offset=1" in worst["next"]
    others = api.get(BOARD, {"judged_by": "session"}).json()
    assert [row["rank"] for row in others["results"]] == [None, None]


def test_a_board_without_sets_says_so(api: APIClient, collection: str) -> None:
    answer = api.get(BOARD)
    assert (answer.status_code, answer.json()["code"]) == (404, "no_session_sets")


def test_a_board_of_usual_measures_reads_no_view(api: APIClient, collection: str) -> None:
    upload(api, LOG, SESSIONS)
    evaluate_all()
    with CaptureQueriesContext(connection) as queries:
        assert api.get(BOARD).status_code == 200
    assert not [query for query in queries if "sessionview" in query["sql"]]
