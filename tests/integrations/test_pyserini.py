"""Pyserini and Anserini: run files as they write them, and trec_eval's own library beside EvalHub's values.

Pyserini itself needs Java 21 and is not installed; what it wrote is on its page.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval

PAGES = Path(__file__).parents[2] / "docs/integrations"
QRELS = {"1": {"a": 2, "b": 1, "c": 0}, "2": {"a": 1, "d": 2}, "3": {"e": 1}}
# Ties, a topic without an answer, and levels of which only 2 is relevant to MS MARCO.
RUN = {"1": {"b": 3.0, "a": 3.0, "c": 3.0, "x": 1.0}, "2": {"a": 2.0, "d": 1.0}}


def file_of(run: dict[str, dict[str, float]], tag: str) -> str:
    """The file of a run in the order of its dictionaries, as a searcher writes it."""
    ranked = [(topic, enumerate(ranking.items(), 1)) for topic, ranking in run.items()]
    return "".join(
        f"{topic} Q0 {doc} {rank} {score:.6f} {tag}\n"
        for topic, rows in ranked
        for rank, (doc, score) in rows
    )


def test_what_pyserini_wrote(collection_of: Callable[..., Any], tmp_path: Path) -> None:
    """The lines of the page: bears attack in d1 and d4, honey is in d2."""
    lines = re.findall(r"^\d Q0 .* Anserini\n", (PAGES / "pyserini.md").read_text(), re.MULTILINE)
    assert len(lines) == 5
    path = tmp_path / "run.bears.bm25.txt"
    path.write_text("".join(lines))
    run = collection_of({"1": {"d1": 1, "d4": 1}, "2": {"d2": 1}}).submit(path).wait(60)
    assert (run.tag, dict(run.means("AP", "NumRet"))) == (
        "run.bears.bm25",
        {"AP": 1.0, "NumRet": 5.0},
    )


def test_two_runs_of_one_generic_tag_are_two_runs(
    collection_of: Callable[..., Any], tmp_path: Path
) -> None:
    """What Pyserini writes with --output has the tag Anserini, whatever was searched."""
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "run.robust.bm25.txt").write_text(file_of(RUN, "Anserini"))
    (runs / "run.robust.bm25-rm3.txt.gz").write_bytes(
        gzip.compress(file_of({"1": {"a": 1.0}}, "Anserini").encode())
    )
    batch = collection_of(QRELS).submit_all(runs, journal=None, timeout=60)
    assert [run.tag for run in batch.runs] == ["run.robust.bm25", "run.robust.bm25-rm3"]


def test_the_three_causes(collection_of: Callable[..., Any]) -> None:
    """Coverage, ties and the level of relevance, each against trec_eval's code."""
    collection = collection_of(QRELS)
    run = collection.submit(file_of(RUN, "Anserini").encode(), tag="bm25").wait(60)
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut.10"}).evaluate(RUN)
    ours = run.values("AP", "nDCG@10")
    for topic, values in theirs.items():
        assert (ours.of("AP")[topic], ours.of("nDCG@10")[topic]) == pytest.approx(
            (values["map"], values["ndcg_cut_10"]), abs=1e-12
        )
    (row,) = run.coverage("AP").rows()
    assert row["mean_of_answered"] == pytest.approx(
        sum(values["map"] for values in theirs.values()) / 2, abs=1e-12
    )
    assert row["mean"] == pytest.approx(
        sum(values["map"] for values in theirs.values()) / 3, abs=1e-12
    )
    strict = pytrec_eval.RelevanceEvaluator(QRELS, {"map"}, relevance_level=2).evaluate(RUN)
    level = run.values("AP(rel=2)")
    assert {topic: level[topic] for topic in strict} == pytest.approx(
        {topic: values["map"] for topic, values in strict.items()}
    )
    # In the order of the file b is first, in trec_eval's c.
    ranked = {
        topic: {doc: -float(rank) for rank, doc in enumerate(ranking)}
        for topic, ranking in RUN.items()
    }
    assert collection.submit(ranked, tag="as-written").wait(60).values("RR")["1"] == 1.0
    assert run.values("RR")["1"] == 0.5


def test_the_page_says_what_happens(follow: Callable[[str], None]) -> None:
    follow("pyserini.md")
