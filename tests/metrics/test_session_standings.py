"""How sure a leaderboard of systems is, unpaired systems compared, and both as files; figures against SciPy."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rest_framework.test import APIClient
from scipy import stats

from tests.conftest import SESSIONS, evaluate_all, upload
from tests.metrics.test_session_comparison import (
    BOARD,
    COMPARISON,
    LOG,
    MEASURE,
    PAIRED,
    TWO_WAY,
    codes,
    compare,
    frame,
    signs,
)
from tests.shared_data import alice, api, collection, module_data

pytestmark = pytest.mark.words
__all__ = ["alice", "api", "collection", "compare", "module_data"]

Compare = Callable[..., dict[str, Any]]
# Every topic with one system only: A has 10 sessions, B 6 and C 9.
UNPAIRED = [(f"t{t % 8}", f"u{t}", "AAABBCCC"[t % 8]) for t in range(25)]


def samples_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: part.to_numpy() for name, part in frame(answer).groupby("system").value}


def ends_of(table: pd.DataFrame) -> tuple[float, float]:
    """The interval of a system's mean, where all searchers have as many sessions, and all topics."""
    parts = [table.groupby(unit).value.mean() for unit in ("searcher", "topic_id")]
    spreads = [(stats.sem(means) ** 2, len(means) - 1) for means in parts]
    both = sum(spread for spread, _ in spreads)
    freedom = both**2 / sum(spread**2 / n for spread, n in spreads)
    low, high = stats.t.interval(0.95, freedom, table.value.mean(), both**0.5)
    return low, high


def test_unpaired_systems_are_compared_by_the_u_test(compare: Compare) -> None:
    answer = compare(UNPAIRED, test="mann_whitney", correction="none")
    assert (answer["design"]["recognised"], answer["test"]) == ("unpaired", "mann_whitney")
    values = samples_of(answer)
    for first, second in (("A", "B"), ("A", "C"), ("B", "C")):
        pair, sign = signs(answer, first, second)
        a, b = (values[name] for name in ((first, second) if sign > 0 else (second, first)))
        expected = stats.mannwhitneyu(a, b)
        assert (pair["statistic"], pair["p_value"]) == pytest.approx(
            (expected.statistic, expected.pvalue)
        )
        assert pair["cliff_delta"]["value"] == pytest.approx(
            2 * expected.statistic / (len(a) * len(b)) - 1
        )
        welch = stats.ttest_ind(a, b, equal_var=False)
        low, high = welch.confidence_interval()
        assert (pair["low"], pair["high"]) == pytest.approx((low, high))
        more = stats.t.ppf(0.8, welch.df) / stats.t.ppf(0.975, welch.df)
        assert pair["detectable"] == pytest.approx((high - low) / 2 * (1 + more))
        assert pair["relative"] == pytest.approx(a.mean() / b.mean() - 1)
        assert pair["cohen_d"] is pair["wins"] is None
    kruskal = answer["omnibus"]["kruskal_wallis"]
    expected = stats.kruskal(*values.values())
    assert (kruskal["statistic"], kruskal["p_value"]) == pytest.approx(
        (expected.statistic, expected.pvalue)
    )
    assert kruskal["effect"] == pytest.approx(
        expected.statistic / (sum(map(len, values.values())) - 1)
    )
    assert codes(answer)["few_sessions"].startswith("only 6 sessions of a system")


def test_paired_systems_have_the_effect_sizes_of_runs(compare: Compare) -> None:
    answer = compare(PAIRED)
    table = frame(answer).pivot(index=["topic_id", "searcher"], columns="system", values="value")
    pair, sign = signs(answer, "A", "B")
    differences = sign * (table["A"] - table["B"])
    assert pair["cohen_d"]["value"] == pytest.approx(differences.mean() / differences.std())
    both = stats.t.ppf([0.975, 0.8], len(differences) - 1).sum()
    assert pair["detectable"] == pytest.approx(both * differences.std() / len(differences) ** 0.5)
    assert (pair["wins"], pair["ties"], pair["losses"]) == tuple(
        int(count)
        for count in (
            (differences > 1e-9).sum(),
            (abs(differences) < 1e-9).sum(),
            (differences < -1e-9).sum(),
        )
    )
    assert pair["cliff_delta"] is None
    for system in answer["systems"]:
        ends = ends_of(frame(answer).query("system == @system['system']"))
        assert (system["low"], system["high"]) == pytest.approx(ends)


def test_a_board_of_a_single_topic_says_so(compare: Compare, api: APIClient) -> None:
    compare([("t0", f"u{n // 2}", "AB"[n % 2]) for n in range(12)])
    answer = api.get(BOARD, {"measures": MEASURE, "statistics": "intervals"}).json()
    assert [caution["code"] for caution in answer["statistics"]["cautions"]] == [
        "single_topic_or_searcher"
    ]


def test_a_board_has_intervals_tiers_and_a_baseline(compare: Compare, api: APIClient) -> None:
    answer = compare(PAIRED)
    query = {"sort": MEASURE, "measures": MEASURE, "statistics": "all", "baseline": "C"}
    board = api.get(BOARD, query).json()
    statistics, compared = board["statistics"], api.get(COMPARISON, {"measure": MEASURE}).json()
    assert statistics["parts"] == ["intervals", "tiers", "baseline"]
    assert (statistics["systems"], statistics["design"], statistics["cells"], statistics["test"]) == (
        3, compared["design"], 8, "paired_t",
    )  # fmt: skip
    assert (statistics["resamples"], statistics["seed"], statistics["tiers"]["family"]) == (
        None,
        0,
        3,
    )
    assert (statistics["baseline"]["system"], statistics["baseline"]["family"]) == ("C", 2)
    assert {caution["code"] for caution in statistics["cautions"]} >= {
        "few_cells",
        "dependent_cells",
    }
    systems = {system["name"]: system for system in compared["systems"]}
    for row in board["results"]:
        ends = ends_of(frame(answer).query("system == @row['system']"))
        assert (row["values"][MEASURE]["low"], row["values"][MEASURE]["high"]) == pytest.approx(
            ends
        )
        assert row["statistics"]["tier"] == systems[row["name"]]["tier"]
        assert row["statistics"]["groups"] == systems[row["name"]]["groups"]
    against = api.get(COMPARISON, {"measure": MEASURE, "baseline": "C"}).json()["pairs"]
    rows = {row["name"]: row["statistics"]["baseline"] for row in board["results"]}
    assert rows.pop("alice/log0:C") is None
    assert rows == {pair["a"]: {k: v for k, v in pair.items() if k not in "ab"} for pair in against}
    plain = api.get(BOARD, {"measures": MEASURE}).json()
    assert "statistics" not in plain
    assert "statistics" not in plain["results"][0]


def test_systems_that_differ_are_in_other_tiers(api: APIClient, collection: str) -> None:
    """A finds every document at once, B finds it third or fourth."""
    qrels = "".join(f"t{number} 0 d 1\n" for number in range(12))
    assert upload(api, "collections/small/qrels/", qrels).status_code == 201
    lines = (
        f'{{"session_id": "{system}{n}", "topic_id": "t{n}", "system": "{system}", '
        f'"queries": [{{"documents": {documents}}}]}}\n'
        for n in range(12)
        for system, documents in (
            ("A", '["d"]' if n % 3 else '["x", "d"]'), ("B", '["x", "y", "d"]' if n % 2 else '["x", "y", "z", "d"]')
        )
    )  # fmt: skip
    assert upload(api, LOG, "".join(lines), tag="log").status_code == 202
    evaluate_all()
    for order, tiers in (("desc", {"A": 1, "B": 2}), ("asc", {"A": 2, "B": 1})):
        rows = api.get(BOARD, {"statistics": "tiers", "order": order, "baseline": "A"}).json()[
            "results"
        ]
        assert {row["system"]: row["statistics"]["tier"] for row in rows} == tiers
        assert {row["system"]: row["statistics"]["groups"] for row in rows} == {
            "A": ["a" if order == "desc" else "b"], "B": ["b" if order == "desc" else "a"],
        }  # fmt: skip
        against = {row["system"]: row["statistics"]["baseline"] for row in rows}
        assert (against["A"], against["B"]["verdict"]) == (None, "worse")
    exported = api.get(
        f"{BOARD}export/md/", {"statistics": "tiers", "measures": "nsDCG", "baseline": "A"}
    )
    text = exported.content.decode()
    assert text.startswith("| Rank | System | nsDCG(b=2,bq=4)@10 | Sessions | Tier |")
    assert "| 1 | alice/log:A (baseline) | **" in text
    assert "↓ | 12 | 2 |" in text
    assert "Design: paired by topic, 12 topics. Test: paired t test" in text
    assert (
        exported.headers["Content-Disposition"]
        == 'attachment; filename="small-session-leaderboard.md"'
    )
    latex = api.get(f"{COMPARISON}export/tex/", {"baseline": "B"}).content.decode()
    assert r"System & nsDCG(b=2,bq=4)@10 & Sessions \\" in latex
    assert r"\textit{alice/log:B}" in latex
    assert r"$^{\uparrow}$ & 12 \\" in latex
    letters = api.get(f"{COMPARISON}export/md/").content.decode()
    assert "** a | 12 |" in letters
    assert "Systems that share a letter do not differ significantly." in letters


def rows_of(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.content
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_files_have_the_numbers_of_the_answers(compare: Compare, api: APIClient) -> None:
    compare(TWO_WAY * 2)
    query = {
        "measures": MEASURE,
        "statistics": "intervals,tiers",
        "baseline": "A",
        "test": "randomisation",
    }
    board, rows = api.get(BOARD, query).json(), rows_of(api.get(f"{BOARD}export/csv/", query))
    assert board["statistics"]["resamples"] == 100_000
    for row, written in zip(board["results"], rows, strict=True):
        assert (int(written["rank"]), written["system"]) == (row["rank"], row["system"])
        for end in ("low", "high"):
            assert float(written[f"{MEASURE} {end}"]) == row["values"][MEASURE][end]
        if row["statistics"]["baseline"]:
            assert float(written["baseline_p_value"]) == row["statistics"]["baseline"]["p_value"]
        else:
            assert written["baseline_p_value"] == ""
        assert (written["resamples"], written["seed"], written["design"]) == (
            "100000",
            "0",
            "two_way",
        )
    (pair,), (line,) = (
        api.get(COMPARISON, {"measure": MEASURE}).json()["pairs"],
        rows_of(api.get(f"{COMPARISON}export/csv/", {"measure": MEASURE})),
    )
    for name in ("difference", "low", "high", "p_value", "p_adjusted"):
        assert float(line[name]) == pair[name]
    assert (line["system_a"], line["test"], line["cells"]) == (pair["a"], "paired_t", "6")


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"statistics": "ranks"}, "bad_parameter", "statistics"),
        ({"statistics": "baseline"}, "invalid", "baseline"),
        ({"baseline": "Z"}, "unknown_system", "baseline"),
        ({"statistics": "tiers", "test": "x"}, "unknown_test", "test"),
        ({"statistics": "tiers", "design": "unpaired", "test": "paired_t"}, "unknown_test", "test"),
        ({"statistics": "tiers", "correction": "x"}, "unknown_correction", "correction"),
        ({"seed": "3"}, "required", "statistics"),
    ],
)
def test_statistics_that_cannot_be_made_name_their_parameter(
    api: APIClient, collection: str, query: dict[str, str], code: str, pointer: str
) -> None:
    assert upload(api, LOG, SESSIONS).status_code == 202
    evaluate_all()
    answer = api.get(BOARD, query)
    assert (answer.status_code, answer.json()["code"]) == (400, code), answer.content
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_board_that_cannot_be_compared_says_why(api: APIClient, collection: str) -> None:
    assert upload(api, LOG, SESSIONS.splitlines()[0] + "\n").status_code == 202
    evaluate_all()
    statistics = api.get(BOARD, {"statistics": "tiers"}).json()["statistics"]
    assert (statistics["tiers"], statistics["design"], statistics["cautions"][0]["code"]) == (
        None,
        None,
        "too_few_systems",
    )
    few = np.array(
        [row["values"] for row in api.get(BOARD, {"statistics": "intervals"}).json()["results"]]
    )
    assert all(mean["low"] is None for values in few for mean in values.values())
