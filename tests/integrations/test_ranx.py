"""ranx: its runs on the leaderboard, with its own numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ranx import Qrels, Run, evaluate

QRELS = {"1": {"a": 1, "b": 0, "d": 2}, "2": {"c": 2}, "3": {"q": 1}}
BM25 = {"1": {"a": 3.0, "b": 2.0, "d": 1.0}, "2": {"x": 3.0, "c": 2.0}, "3": {"z": 1.0}}


def test_a_run_has_the_means_of_ranx(collection_of: Callable[..., Any]) -> None:
    run = Run(BM25, name="bm25")
    theirs = evaluate(Qrels(QRELS), run, ["map", "ndcg@10", "mrr"])
    sent = collection_of(QRELS).submit(run).wait(60)
    assert sent.tag == "bm25"
    assert list(sent.means("AP", "nDCG@10", "RR").values()) == pytest.approx(list(theirs.values()), abs=1e-12)
