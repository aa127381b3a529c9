"""Weights & Biases: the means of a run in the summary, without its service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import evalhub_client.wandb
import pytest
import wandb

QRELS = {"1": {"a": 1, "b": 0}, "2": {"c": 2}, "3": {"q": 1}}
BM25 = {"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}


def test_means_are_in_the_summary_under_their_own_names(
    collection_of: Callable[..., Any], tmp_path: Path
) -> None:
    run = collection_of(QRELS).submit(BM25, tag="bm25").wait(60)
    with pytest.raises(evh.BadSource, match=r"wandb\.init"):
        evalhub_client.wandb.log(run)
    with wandb.init(project="test", mode="offline", dir=tmp_path) as active:
        logged = evalhub_client.wandb.log(run, ["nDCG@10", "AP(rel=2)"], prefix="dev/")
        assert {name: active.summary[name] for name in logged} == logged
        assert set(logged) == {"dev/nDCG@10", "dev/AP(rel=2)", "dev/Judged@10", "dev/coverage"}
        assert active.config["dev/evalhub.url"] == run.page
        # The same run may be logged again, after other judgements for example.
        evalhub_client.wandb.log(run, ["nDCG@10"], prefix="dev/")
    assert logged["dev/nDCG@10"] == pytest.approx(run.means("nDCG@10")["nDCG@10"], abs=1e-12)
