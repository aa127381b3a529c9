"""What was measured of two runs: the topics they answered, the documents that are judged, and verdicts without either."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client
from rest_framework.test import APIClient
from scipy import stats

from evalhub.client import cli, commands
from metrics.engine import evaluate
from metrics.models import Comparison
from metrics.services.comparisons import workload
from metrics.services.comparisons.stored import compare
from metrics.services.values.coverage import percent
from runs.models import Run, User
from tests.client.inside import hub_inside
from tests.conftest import evaluate_all, upload
from tests.shared_data import alice, api, module_data
from tests.web.test_pages import text_of

__all__ = ["alice", "api", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]
TOPICS = range(1, 13)
WHERE = "/api/v1/collections/pool/"
DEPTH = 10


def qrels_of() -> str:
    levels = {1: 2, 2: 1}
    return "".join(
        f"{topic} 0 d{place} {levels.get(place, 0)}\n" for topic in TOPICS for place in range(1, 11)
    )


def run_of(rankings: dict[int, list[str]], tag: str) -> str:
    return "".join(
        f"{topic} Q0 {document} {rank} {100 - rank} {tag}\n"
        for topic, documents in rankings.items()
        for rank, document in enumerate(documents, 1)
    )


def ranking(topic: int, *, odd: bool) -> list[str]:
    """The ten judged documents, the second behind the third on every other topic."""
    places = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    if topic % 2 == odd:
        places[1:3] = places[2:0:-1]
    return [f"d{place}" for place in places]


DEEP = {topic: ranking(topic, odd=True) for topic in TOPICS}
# As good on judged documents, with an unjudged one before each of them.
SHALLOW = {
    topic: [name for document in ranking(topic, odd=False) for name in (f"u{document}", document)]
    for topic in TOPICS
}
UNKNOWN = {topic: [f"x{place}" for place in range(1, 11)] for topic in TOPICS}
RUNS = {
    "deep": DEEP,
    "shallow": SHALLOW,
    "unknown": UNKNOWN,
    "unknown2": UNKNOWN,
    "silent": {1: ["d3"]},
}


@pytest.fixture(scope="module")
def pool(api: APIClient) -> dict[str, str]:
    """The runs of a collection by their tags."""
    fields = {"slug": "pool", "name": "Pool", "measures": ["nDCG@10", "AP", "Bpref", "Compat"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert upload(api, "collections/pool/qrels/", qrels_of()).status_code == 201
    for tag, rankings in RUNS.items():
        answer = upload(api, "collections/pool/runs/", run_of(rankings, tag))
        assert answer.status_code == 202, answer.content
    evaluate_all()
    return {run.tag: str(run.pk) for run in Run.objects.all()}


def compared(
    api: APIClient, pool: dict[str, str], *tags: str, where: str = WHERE, **query: str
) -> Any:
    runs = ",".join(pool[tag] for tag in tags)
    answer = api.get(f"{where}comparison/", {"runs": runs, "measures": "nDCG@10", **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def codes_of(measure: Any) -> list[str]:
    return [caution["code"] for caution in measure["cautions"]]


def test_an_unevenly_judged_pair_has_the_verdict_of_judged_documents_or_none(
    api: APIClient, pool: dict[str, str]
) -> None:
    (measure,) = compared(api, pool, "deep", "shallow", tests="paired_t,wilcoxon")["measures"]
    shares = {mean["run"]: mean["coverage"] for mean in measure["means"]}
    assert shares[pool["deep"]] == {"answered": 1.0, "judged": 1.0, "k": 10}
    assert shares[pool["shallow"]] == {"answered": 1.0, "judged": 0.5, "k": 10}
    (pair,) = measure["pairs"]
    result = pair["tests"]["paired_t"]
    assert result["p_value"] < 0.001
    assert (result["verdict"], result["significant"]) == (None, False)
    assert result["withheld"] == "depends_on_judging"
    assert measure["tests"]["paired_t"]["significant"] == 0
    # The oracle: the library's values of the same measure under its own name.
    qrels = {str(topic): {f"d{place}": 0 for place in range(3, 11)} for topic in TOPICS}
    for topic in qrels.values():
        topic |= {"d1": 2, "d2": 1}
    values = [
        list(
            evaluate(
                qrels,
                {
                    str(topic): {document: float(-rank) for rank, document in enumerate(documents)}
                    for topic, documents in rankings.items()
                },
                [measure["judged_only"]],
            )
            .values[measure["judged_only"]]
            .values()
        )
        for rankings in (DEEP, SHALLOW)
    ]
    assert measure["judged_only"] == "nDCG(judged_only=True)@10"
    on_judged, difference = pair["on_judged"], np.subtract(*values)
    oracle = stats.ttest_rel(*values)
    interval = oracle.confidence_interval()
    assert on_judged["difference"] == pytest.approx(difference.mean(), abs=1e-12)
    alone = on_judged["tests"]["paired_t"]
    assert alone["p_value"] == pytest.approx(oracle.pvalue, rel=1e-9)
    assert (alone["low"], alone["high"]) == pytest.approx((interval.low, interval.high), abs=1e-12)
    assert alone["verdict"] is None
    assert "uneven_judging" in codes_of(measure)


def test_judging_does_not_matter_where_no_value_depends_on_it(
    api: APIClient, pool: dict[str, str]
) -> None:
    """Bpref leaves unjudged documents out, and so does a measure of judged documents alone."""
    measures = "Bpref,nDCG(judged_only=True)@10"
    for measure in compared(api, pool, "deep", "shallow", measures=measures)["measures"]:
        assert measure["pairs"][0]["on_judged"] is None
        assert codes_of(measure) == []


def test_a_measure_without_a_name_for_it_is_read_from_the_condensed_list(
    api: APIClient, pool: dict[str, str]
) -> None:
    (measure,) = compared(api, pool, "deep", "shallow", measures="Compat")["measures"]
    assert measure["judged_only"] is None
    assert abs(measure["pairs"][0]["on_judged"]["difference"]) < abs(
        measure["pairs"][0]["difference"]
    )


@pytest.mark.parametrize(
    ("other", "reason"), [("unknown", "nothing_judged"), ("silent", "few_topics_answered")]
)
def test_a_run_of_which_nothing_was_measured_is_neither_better_nor_worse(
    api: APIClient, pool: dict[str, str], other: str, reason: str
) -> None:
    for measure in compared(api, pool, "deep", other, measures="nDCG@10,AP")["measures"]:
        (pair,) = measure["pairs"]
        assert pair["difference"] > 0.5
        result = pair["tests"]["paired_t"]
        assert (result["verdict"], result["withheld"]) == (None, reason)
        assert reason in codes_of(measure)
    (measure,) = compared(api, pool, "unknown", "unknown2", tests="paired_t,tost", margin="0.01")[
        "measures"
    ]
    (pair,) = measure["pairs"]
    assert pair["tests"]["paired_t"]["withheld"] == "nothing_judged"
    assert pair["equivalence"]["withheld"] == "nothing_judged"
    assert not pair["equivalence"]["equivalent"]["holds"]


def test_a_stored_comparison_has_what_was_measured(
    api: APIClient, pool: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = ("deep", "shallow", "unknown")
    query = {"tests": "paired_t,sign", "measures": "nDCG@10,AP"}
    at_once = compared(api, pool, *tags, **query)
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)
    runs = ",".join(pool[tag] for tag in tags)
    assert api.get(f"{WHERE}comparison/", {"runs": runs, **query}).status_code == 202
    assert compare(comparison_id=str(Comparison.objects.get().pk))
    assert {**compared(api, pool, *tags, **query), "comparison": None} == at_once


def test_pages_and_files_say_what_was_measured(pool: dict[str, str]) -> None:
    browser, runs = Client(), f"{pool['deep']},{pool['shallow']}"
    query = {"runs": runs, "measures": "nDCG@10"}
    page = browser.get("/collections/pool/comparison/", query).content.decode()
    shares = "deep: 100% of the first 10 documents are judged; shallow: 50%."
    text = text_of(page)
    assert shares in text
    assert "On judged documents alone: " in text
    assert "not significant." in text
    assert '<span class="label warn">depends on judging</span>' in page
    for kind in ("md", "tex"):
        file = browser.get(f"{WHERE}comparison/export/{kind}/", query)
        content = b"".join(file.streaming_content).decode().replace("\\", "")  # type: ignore[attr-defined]
        assert shares in content
        assert "1 pair had no verdict, as it depends on judging" in content
    file = browser.get(f"{WHERE}comparison/export/csv/", query)
    content = b"".join(file.streaming_content).decode()  # type: ignore[attr-defined]
    (row,) = csv.DictReader(io.StringIO(content))
    assert (row["verdict"], row["withheld"]) == ("", "depends_on_judging")
    assert (row["judged_a"], row["judged_b"], row["judged_depth"]) == ("1.0", "0.5", "10")
    assert float(row["on_judged_p_value"]) > 0.05
    many = text_of(browser.get("/collections/pool/comparison/").content.decode())
    assert (
        "The shares of the first 10 documents that are judged differ by more than 10 points" in many
    )
    assert "Few topics answered (silent 8%): an unanswered topic counts 0" in many


def test_a_baseline_of_a_leaderboard_has_the_same_verdicts(
    api: APIClient, pool: dict[str, str]
) -> None:
    query = {"measures": "nDCG@10", "statistics": "baseline", "baseline": pool["deep"]}
    board = api.get(f"{WHERE}leaderboard/", query).json()
    rows = {row["run"]["tag"]: row["statistics"]["baseline"] for row in board["results"]}
    withheld = {tag: row["withheld"] for tag, row in rows.items() if row}
    assert withheld == {
        "shallow": "depends_on_judging",
        "unknown": "nothing_judged",
        "unknown2": "nothing_judged",
        "silent": "few_topics_answered",
    }
    assert {row["mark"] for row in rows.values() if row} == {None}
    family = compared(api, pool, baseline=pool["deep"])["measures"][0]
    pair = next(pair for pair in family["pairs"] if pair["a"] == pool["shallow"])
    for name in ("low", "high", "p_value", "p_adjusted"):
        expected = pair["on_judged"]["tests"]["t_and_tukey"][name]
        assert rows["shallow"]["on_judged"][name] == pytest.approx(expected, abs=1e-12)
    codes = [caution["code"] for caution in board["statistics"]["baseline"]["cautions"]]
    assert codes[:3] == ["few_topics_answered", "nothing_judged", "uneven_judging"]
    message = board["statistics"]["baseline"]["cautions"][2]["message"]
    assert message.endswith("pairs, and 1 verdict depends on judging")
    # No run is named: a campaign may not show whose it is.
    assert not any(
        "silent" in caution["message"] for caution in board["statistics"]["baseline"]["cautions"]
    )


@pytest.mark.parametrize(
    ("run", "rule", "reason"),
    [
        ("unknown", "nDCG@10 no-worse-than 0.01", "nothing judged (unknown"),
        ("unknown", "nDCG@10 no-drop", "nothing judged (unknown"),
        ("unknown", "nDCG@10 at-least 0.1", "any topic is judged"),
        ("silent", "nDCG@10 no-significant-drop", "few topics answered (silent 8%)"),
        ("silent", "nDCG@10 at-least 0", "answered 8% of the topics"),
        ("shallow", "nDCG@10 no-significant-drop", "depends on judging: worse with -0."),
        ("shallow", "nDCG@10 no-worse-than 0.2", "depends on judging: worse with -0."),
    ],
)
def test_a_gate_is_undecided_where_nothing_was_measured(
    alice: User, pool: dict[str, str], run: str, rule: str, reason: str
) -> None:
    board = hub_inside(alice).collection("pool")
    for baseline in ("deep", "unknown2") if run == "unknown" else ("deep",):
        verdict = board.gate(run, baseline, rule)
        assert verdict.undecided, verdict.lines()
        assert reason in verdict.rules[0]["reason"]
        assert reason.split(":", maxsplit=1)[0] in "\n".join(verdict.lines())
        assert json.dumps(verdict.raw)


def test_a_gate_of_measured_runs_says_how_much(alice: User, pool: dict[str, str]) -> None:
    verdict = (
        hub_inside(alice).collection("pool").gate("shallow", "deep", "nDCG@10 no-worse-than 0.9")
    )
    assert verdict.fine
    assert verdict.rules[0]["coverage"]["candidate"] == {"answered": 1.0, "judged": 0.5, "k": 10}
    assert "deep: 100% of the first 10 documents are judged; shallow: 50%" in verdict.markdown()


def test_the_gate_of_unjudged_runs_ends_as_undecided(
    alice: User, pool: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(commands, "hub_of", lambda _: hub_inside(alice))
    arguments = [
        "gate",
        "pool",
        "unknown",
        "--baseline",
        "unknown2",
        "--rule",
        "nDCG@10 no-worse-than 0.01",
    ]
    assert cli.run([*arguments, "--undecided", "fail"]) == 11
    assert "nothing_judged" in capsys.readouterr().out


def test_evh_compare_says_what_was_measured(
    alice: User, pool: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(commands, "hub_of", lambda _: hub_inside(alice))
    assert cli.run(["compare", "pool", "deep", "shallow", "-m", "nDCG@10"]) == 0
    out, err = capsys.readouterr()
    assert "depends_on_judging" in out
    assert (
        "nDCG@10: uneven_judging: deep: 100% of the first 10 documents are judged; shallow: 50%"
        in err
    )


def test_the_client_shows_shares_and_judged_documents(alice: User, pool: dict[str, str]) -> None:
    (row,) = (
        hub_inside(alice).collection("pool").compare("deep", "shallow", measures=["nDCG@10"]).rows()
    )
    assert (row["verdict"], row["withheld"]) == (None, "depends_on_judging")
    assert (row["judged_a"], row["judged_b"], row["answered_a"]) == (1.0, 0.5, 1.0)
    assert abs(row["on_judged"]) < row["difference"]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (0.001, "less than 1%"), (0.534, "53%"), (0.999, "99%"), (1.0, "100%")],
)
def test_a_share_is_whole_only_if_it_is(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.real_data
def test_two_runs_of_trec_covid(api: APIClient, real_data: Path) -> None:
    """Their difference is three times as large with the documents of the one that nobody judged."""
    folder = real_data / "trec-covid-round1"
    fields = {"slug": "covid", "name": "Round 1", "measures": ["nDCG@10"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    upload(api, "collections/covid/qrels/", (folder / "qrels/qrels-rnd1.txt").read_text())
    for tag in ("BM25R2", "IRIT_marked_base"):
        content = gzip.decompress((folder / f"runs/{tag}.gz").read_bytes())
        assert upload(api, "collections/covid/runs/", content, tag=tag).status_code == 202
    evaluate_all()
    runs = {run.tag: str(run.pk) for run in Run.objects.filter(collection__slug="covid")}
    (measure,) = compared(
        api, runs, "IRIT_marked_base", "BM25R2", where="/api/v1/collections/covid/"
    )["measures"]
    (pair,) = measure["pairs"]
    assert pair["difference"] == pytest.approx(0.2700, abs=5e-5)
    assert pair["tests"]["paired_t"]["withheld"] == "depends_on_judging"
    alone = pair["on_judged"]
    assert alone["difference"] == pytest.approx(0.0886, abs=5e-5)
    assert alone["tests"]["paired_t"]["p_value"] == pytest.approx(0.1536, abs=5e-5)
    (caution,) = (caution for caution in measure["cautions"] if caution["code"] == "uneven_judging")
    assert caution["message"] == (
        "IRIT_marked_base: 92% of the first 10 documents are judged; BM25R2: 53%, and the verdict depends on judging"
    )


@pytest.mark.real_data
def test_an_arm_that_never_ran(api: APIClient, alice: User, real_data: Path) -> None:
    folder = real_data / "field-cases/04-arm-never-ran"
    fields = {"slug": "arms", "name": "Arms", "measures": ["nDCG@10"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    upload(api, "collections/arms/qrels/", (folder / "qrels.txt").read_text())
    for tag in ("good", "fts5", "wrongids"):
        content = (folder / f"{tag}.run").read_text()
        assert upload(api, "collections/arms/runs/", content, tag=tag).status_code == 202
    evaluate_all()
    runs = {run.tag: str(run.pk) for run in Run.objects.filter(collection__slug="arms")}
    for other, reason in (("fts5", "few_topics_answered"), ("wrongids", "nothing_judged")):
        (measure,) = compared(api, runs, "good", other, where="/api/v1/collections/arms/")[
            "measures"
        ]
        assert measure["pairs"][0]["tests"]["paired_t"]["withheld"] == reason
        assert reason in codes_of(measure)
        gate = hub_inside(alice).collection("arms").gate
        assert gate("good", other, "nDCG@10 no-worse-than 0.01").undecided
        assert gate(other, "good", "nDCG@10 no-worse-than 0.01").undecided
