"""ir_datasets: topics and judgements as collections, twice without sending them twice; measures of ir_measures."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import evalhub_client as evh
import ir_datasets
import ir_measures
import pytest
from evalhub_client import cli
from evalhub_client.benchmarks import BENCHMARKS
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseQrels, BaseQueries, TrecQrel, TrecQrels, TrecQuery, TrecSubQrel
from ir_datasets.util import LocalDownload

QUERIES = (
    TrecQuery("1", "black bear attacks", "It has been reported.", "Relevant are attacks."),
    TrecQuery("2", "mirjana markovic", "A woman.", ""),
)
DEFINITIONS = {2: "highly relevant", 1: "relevant", 0: "not relevant"}


class Queries(BaseQueries):
    def queries_iter(self) -> Iterator[Any]:
        yield from QUERIES

    def queries_cls(self) -> Any:
        return TrecQuery


class Subtopics(BaseQrels):
    def qrels_iter(self) -> Iterator[Any]:
        for subtopic in ("1", "2"):
            yield TrecSubQrel("1", f"d{subtopic}", 1, subtopic)
            yield TrecSubQrel("1", "d3", int(subtopic == "2"), subtopic)

    def qrels_cls(self) -> Any:
        return TrecSubQrel

    def qrels_defs(self) -> dict[int, str]:
        return {}


@pytest.fixture
def dataset_of(tmp_path: Path) -> Callable[..., str]:
    """Registers a dataset of a file of judgements in the columns of TREC; returns its name."""

    def make(lines: str) -> str:
        name = f"lab/{uuid.uuid4().hex[:8]}"
        path = tmp_path / "qrels"
        path.write_text(lines)
        ir_datasets.registry.register(
            name, Dataset(Queries(), TrecQrels(LocalDownload(path), DEFINITIONS))
        )
        return name

    return make


def imported(capsys: Any, *arguments: str) -> dict[str, Any]:
    assert cli.run(["collections", "import", *arguments, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    return dict(row)


def test_a_dataset_is_a_collection_after_one_command(
    hub: evh.Hub, dataset_of: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, slug = dataset_of("1 0 d1 2\n1 0 d2 0\n2 0 d1 1\n"), f"c-{uuid.uuid4().hex[:8]}"
    words = imported(capsys, slug, "--ir-datasets", name)
    assert (words["topics"], words["judgements"], words["uploaded"]) == (
        2,
        3,
        "topics and judgements",
    )
    collection = hub.collection(slug)
    topics = hub.request("GET", f"collections/{slug}/topics/").json()["results"]
    assert topics[0] == {
        "topic_id": "1",
        "title": "black bear attacks",
        "fields": {"description": "It has been reported.", "narrative": "Relevant are attacks."},
    }
    assert [(topic["topic_id"], topic["title"]) for topic in topics] == [
        ("1", QUERIES[0].title),
        ("2", QUERIES[1].title),
    ]
    assert collection.qrels_file(1) == b"1 0 d1 2\n1 0 d2 0\n2 0 d1 1\n"
    assert collection.info().level_labels == {
        str(level): text for level, text in DEFINITIONS.items()
    }
    assert imported(capsys, slug, "--ir-datasets", name)["uploaded"] == "nothing"
    assert len(collection.qrels().rows()) == 1
    # Its own measures and runs, as objects and scored documents.
    run = collection.submit(
        [ir_measures.ScoredDoc("1", "d1", 2.0), ir_measures.ScoredDoc("2", "d2", 1.0)], tag="bm25"
    )
    run.wait(60)
    theirs = ir_measures.calc_aggregate(
        [ir_measures.AP, ir_measures.nDCG @ 10],
        ir_datasets.load(name).qrels_iter(),
        [ir_measures.ScoredDoc("1", "d1", 2.0), ir_measures.ScoredDoc("2", "d2", 1.0)],
    )
    assert {measure: run.means(measure)[measure] for measure in theirs} == pytest.approx(
        theirs, abs=1e-12
    )


def test_benchmarks_name_datasets_with_topics_and_judgements() -> None:
    """Their registry alone is read: nothing is downloaded."""
    for benchmark in BENCHMARKS.values():
        for _, name, _, _ in benchmark.datasets:
            dataset = ir_datasets.load(name)
            assert dataset.has_queries(), name
            assert dataset.has_qrels(), name


def test_subtopics_rounds_and_what_is_missing(
    hub: evh.Hub, dataset_of: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    ir_datasets.registry.register(
        name := f"lab/{uuid.uuid4().hex[:8]}", Dataset(Queries(), Subtopics())
    )
    slug = f"c-{uuid.uuid4().hex[:8]}"
    assert imported(capsys, slug, "--ir-datasets", name)["iteration"] == "subtopic"
    assert hub.collection(slug).qrels().rows()[0]["iteration"] == "subtopic"
    run = hub.collection(slug).submit({"1": {"d1": 2.0, "d3": 1.0}}, tag="r").wait(60)
    assert run.means("StRecall@1", "StRecall@2") == {"StRecall@1": 0.5, "StRecall@2": 1.0}
    assert cli.run(["collections", "import", slug, "--ir-datasets", "no/such"]) == 5
    assert "ir_datasets has no dataset 'no/such'" in capsys.readouterr().err
    # Known to ir_datasets, and not to be had without the network or a licence.
    assert (
        cli.run(["collections", "import", slug, "--ir-datasets", "disks45/nocr/trec-robust-2004"])
        == 5
    )
    assert "cannot read disks45/nocr/trec-robust-2004" in capsys.readouterr().err


def test_rounds_of_judging_are_no_subtopics(
    hub: evh.Hub, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Rounds(BaseQrels):
        def qrels_iter(self) -> Iterator[Any]:
            yield from (
                TrecQrel("1", "d1", 1, "0.5"),
                TrecQrel("1", "d2", 2, "1"),
                TrecQrel("1", "d1", 2, "1"),
            )

        def qrels_cls(self) -> Any:
            return TrecQrel

        def qrels_defs(self) -> dict[int, str]:
            return DEFINITIONS

    name = f"cord19/trec-covid/{uuid.uuid4().hex[:8]}"
    ir_datasets.registry.register(name, Dataset(Queries(), Rounds()))
    slug = f"c-{uuid.uuid4().hex[:8]}"
    assert imported(capsys, slug, "--ir-datasets", name)["iteration"] == "round"
    (version,) = hub.collection(slug).qrels().rows()
    assert (version["iteration"], version["warnings"]["counts"]["rounds"]) == ("round", 2)


def test_the_page_says_what_happens(follow: Callable[[str], None]) -> None:
    follow("ir-datasets.md")
