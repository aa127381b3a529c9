"""Notebooks: what IPython shows of answers, and their tables in pandas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

QRELS = {str(topic): {f"d{n}": n % 3 for n in range(20)} for topic in range(1, 9)}


def ranking(step: int) -> dict[str, dict[str, float]]:
    return {
        topic: {f"d{(n * step + int(topic)) % 25}": 20.0 - n for n in range(10)} for topic in QRELS
    }


@pytest.fixture
def collection(collection_of: Callable[..., Any]) -> Any:
    collection = collection_of(QRELS, measures=["AP", "nDCG@10"])
    for tag, step in (("bm25", 3), ("dense", 7), ("sparse", 2)):
        collection.submit(ranking(step), tag=tag).wait(60)
    return collection


def display_of(thing: Any) -> dict[str, str]:
    """What a notebook is given to show, by kind."""
    data, _ = DisplayFormatter().format(thing)
    return dict(data)


def test_answers_are_tables_and_charts_are_drawn(collection: Any) -> None:
    run = collection.run("bm25")
    board = collection.leaderboard("AP", statistics="tiers")
    compared = collection.compare("bm25", "dense", measures=["AP"])
    for answer in (
        run,
        board,
        compared,
        run.means(),
        run.values("AP"),
        collection.difference("bm25", "dense", "AP"),
    ):
        assert "<table" in display_of(answer)["text/html"]
    assert "paired_t test of AP, holm correction" in display_of(board)["text/html"]
    assert (
        f"/collections/{collection.slug}/comparison/?measures=AP&amp;runs="
        in display_of(compared)["text/html"]
    )
    first = display_of(run.chart("curve", measure="DCG"))
    assert first["image/svg+xml"].startswith("<svg")
    assert first["text/plain"] == f"Chart(runs/{run.id}/charts/curve.svg)"
    for chart in (
        board.chart(),
        compared.chart(),
        compared.chart("ranks"),
        collection.chart("curves", runs=["bm25", "dense"]),
        collection.chart("rankings", runs=["bm25", "dense"], topic="1"),
        run.chart("topics", other=collection.run("dense").id),
    ):
        assert "</svg>" in display_of(chart)["image/svg+xml"]
    assert run.chart("distribution", "png").content.startswith(b"\x89PNG")


def test_tables_of_pandas_have_the_numbers_in_full(collection: Any) -> None:
    run = collection.run("bm25")
    board = collection.leaderboard("AP", "nDCG@10").to_frame()
    assert isinstance(board, pd.DataFrame)
    assert list(board["tag"]) == [
        row["tag"] for row in collection.leaderboard("AP", "nDCG@10").rows()
    ]
    assert board.set_index("tag").loc["bm25", "AP"] == run.means("AP")["AP"]
    values = run.values("AP", "nDCG@10").to_frame()
    assert list(values.columns) == ["topic", "AP", "nDCG@10"]
    assert values["AP"].mean() == pytest.approx(run.means("AP")["AP"], abs=1e-12)
    undefined = run.values("ASL").to_frame()
    assert undefined["ASL"].isna().sum() == sum(
        value is None for value in run.values("ASL").values()
    )
    compared = collection.compare(
        "bm25", "dense", measures=["AP"], tests=["paired_t", "wilcoxon"]
    ).to_frame()
    assert list(compared["test"]) == ["paired_t", "wilcoxon"]
    assert compared["difference"].dtype == float
    difference = collection.difference("bm25", "dense", "AP").to_frame()
    assert difference["difference"].sum() == pytest.approx(
        (difference["a"] - difference["b"]).sum()
    )
    assert list(run.means().to_frame()["measure"]) == ["AP", "nDCG@10"]


def test_the_page_shows_what_its_example_prints(
    check_page: Any, collection_of: Callable[..., Any]
) -> None:
    tiny = collection_of(
        {"1": {"a": 1, "b": 0}, "2": {"c": 2}, "3": {"q": 1}}, measures=["AP", "nDCG@10"]
    )
    tiny.submit({"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}, tag="bm25").wait(60)
    tiny.submit({"1": {"z": 2.0, "a": 1.0}, "2": {"c": 1.0}, "3": {"q": 1.0}}, tag="dense").wait(60)
    check_page("notebooks", tiny)
