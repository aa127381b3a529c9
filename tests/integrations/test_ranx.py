"""ranx both ways: its runs and files on the leaderboard with its own numbers, runs and judgements as its objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import pytest
from evalhub_client.ranx import to_ranx, to_ranx_qrels
from ranx import Qrels, Run, evaluate

QRELS = {"1": {"a": 1, "b": 0, "d": 2}, "2": {"c": 2}, "3": {"q": 1}}
BM25 = {"1": {"a": 3.0, "b": 2.0, "d": 1.0}, "2": {"x": 3.0, "c": 2.0}, "3": {"z": 1.0}}
# What ranx calls a measure, and the name here.
MEASURES = {
    "map": "AP", "map@2": "AP@2", "ndcg@10": "nDCG@10", "ndcg_burges@10": "nDCG(gains='exp')@10", "mrr": "RR",
    "precision@2": "P@2", "recall@2": "R@2", "hit_rate@1": "Success@1", "r-precision": "Rprec",
}  # fmt: skip


def test_a_run_has_the_means_of_ranx(collection_of: Callable[..., Any]) -> None:
    run = Run(BM25, name="bm25")
    theirs = evaluate(Qrels(QRELS), run, list(MEASURES))
    sent = collection_of(QRELS).submit(run).wait(60)
    assert sent.tag == "bm25"
    ours = sent.means(*MEASURES.values())
    assert {name: ours[MEASURES[name]] for name in MEASURES} == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("ending", ["json", "lz4", "parquet", "trec"])
def test_its_files_are_read(collection_of: Callable[..., Any], tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"dense.{ending}"
    run = Run(BM25, name="ranx")
    run.to_dataframe().to_parquet(path) if ending == "parquet" else run.save(str(path))
    sent = collection_of(QRELS).submit(path).wait(60)
    assert sent.tag == "dense"
    assert sent.means("AP")["AP"] == pytest.approx(
        evaluate(Qrels(QRELS), Run(BM25), "map"), abs=1e-12
    )


def test_runs_and_judgements_come_back_as_its_objects(
    collection_of: Callable[..., Any], hub: evh.Hub
) -> None:
    collection = collection_of({**QRELS, "4": {"e": -1, "f": 1}})
    sent = collection.submit(BM25, tag="bm25").wait(60)
    run, qrels = to_ranx(hub.run(sent.id)), to_ranx_qrels(collection)
    assert (run.name, run.to_dict()) == ("bm25", BM25)
    assert qrels.to_dict() == {**QRELS, "4": {"f": 1, "e": 0}}
    # Topic 4 has no answer: both count 0 for it.
    theirs = evaluate(qrels, run, ["map", "ndcg@10"], make_comparable=True)
    ours = sent.means("AP", "nDCG@10")
    assert list(ours.values()) == pytest.approx(list(theirs.values()), abs=1e-12)
    with pytest.raises(evh.EvalHubError, match="shows no judgements"):
        to_ranx_qrels(hub.create_collection(f"{collection.slug}-empty"))


def test_the_page_says_what_happens(follow: Callable[[str], None]) -> None:
    follow("ranx.md")
