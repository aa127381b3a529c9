"""Suites in the client: what its commands write, folders of runs, and the benchmarks of ir_datasets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from rest_framework.test import APIClient

from evalhub.client import cli, commands
from evalhub.client import ir_datasets as importing
from evalhub.client.benchmarks import BENCHMARKS
from evalhub.client.errors import WrongOption
from evalhub.client.suites import match_files
from runs.models import Collection, Run, User
from tests.client.inside import hub_inside
from tests.conftest import GOOD, POOR, QRELS, evaluate_all, upload
from tests.reliability.servers import ROOT

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]
SCHEMAS: dict[str, Any] = json.loads((ROOT / "docs/client.schema.json").read_text())["$defs"]


class Query(NamedTuple):
    query_id: str
    text: str

    def default_text(self) -> str:
        return self.text


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class Dataset:
    """A dataset with judgements of three queries, as far as it is asked."""

    def has_queries(self) -> bool:
        return True

    has_qrels = has_queries

    def queries_iter(self) -> Any:
        yield from (Query(str(number), f"query {number}") for number in (1, 2, 3))

    def qrels_iter(self) -> Any:
        for line in QRELS.splitlines():
            query, iteration, document, level = line.split()
            yield Qrel(query, document, int(level), iteration)

    def qrels_cls(self) -> Any:
        return Qrel

    def qrels_defs(self) -> dict[int, str]:
        return {1: "relevant"}


@pytest.fixture
def evh(alice: User, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Run a command; return its rows, checked by docs/client.schema.json, and what it says."""
    validators = pytest.importorskip("jsonschema")
    monkeypatch.setattr(commands, "hub_of", lambda args: hub_inside(alice))

    def run(name: str, *options: str, status: int = 0) -> tuple[list[dict[str, Any]], str]:
        assert cli.run([*name.split(), *options, "--format", "json"]) == status
        out, err = capsys.readouterr()
        if out and name in SCHEMAS:
            schema = {"$defs": SCHEMAS, **SCHEMAS[name]}
            validators.Draft202012Validator(schema).validate(json.loads(out))
        return json.loads(out) if out else [], err

    return run


@pytest.fixture
def collections(api: APIClient) -> None:
    for slug in ("fiqa", "fiqa-dev"):
        fields = {"slug": slug, "name": slug, "measures": ["nDCG@10", "AP"]}
        assert api.post("/api/v1/collections/", fields).status_code == 201
        assert upload(api, f"collections/{slug}/qrels/", QRELS).status_code == 201


def test_a_folder_is_sent_to_the_collections_of_a_suite(
    collections: None, evh: Any, tmp_path: Path
) -> None:
    lines = ("fiqa AP 2", "fiqa-dev AP")
    rows, text = evh("suite make", "two", *lines, "--name", "Two", "--note", "first")
    assert [(row["collection"], row["weight"]) for row in rows] == [("fiqa", 2), ("fiqa-dev", 1)]
    assert "Version 1: " in text
    assert [row["slug"] for row in evh("suite list")[0]] == ["two"]

    for system, text in (("dense", GOOD), ("sparse", POOR)):
        folder = tmp_path / system
        folder.mkdir()
        (folder / "fiqa.run").write_text(text)
        (folder / "fiqa-dev.run").write_text(text)
        if system == "sparse":
            (folder / "notes.md").write_text("x")
            _, said = evh("submit --suite two", str(folder), status=2)
            assert "notes.md: no collection of the suite has this name" in said
            (folder / "notes.md").unlink()
            (folder / "fiqa.run").unlink()
            _, said = evh("submit --suite two", str(folder))
            assert "Without a file, so that the system has no rank: fiqa." in said
        else:
            assert len(evh("submit --suite two", str(folder), "--dry-run")[0]) == 2
            assert not Run.objects.exists()
            evh("submit --suite two", str(folder))

    # A folder with the name of a collection has runs of several systems.
    mixed = tmp_path / "mixed" / "fiqa"
    mixed.mkdir(parents=True)
    (mixed / "any.run").write_text(POOR.replace(" poor", " sparse"))
    evh("submit --suite two", str(mixed.parent))
    assert sorted(Run.objects.values_list("collection__slug", "tag")) == [
        ("fiqa", "dense"), ("fiqa", "sparse"), ("fiqa-dev", "dense"), ("fiqa-dev", "sparse"),
    ]  # fmt: skip

    evaluate_all()
    board, text = evh("suite board", "two", "--resamples", "100")
    assert board[0]["borda_low"] == board[0]["borda_high"] == 2
    assert [(row["rank"], row["system"]) for row in board] == [
        (1, "alice/dense"), (2, "alice/sparse"),
    ]  # fmt: skip
    assert "Differences of the mean from dense, each tested alone" in text
    pair, text = evh("suite compare", "two", "alice/dense", "alice/sparse")
    assert [row["collection"] for row in pair][:4] == [
        "fiqa", "fiqa-dev", "(other topics)", "(other collections)",
    ]  # fmt: skip
    assert "dense is ahead of sparse by" in text

    rows, text = evh("suite make", "two", "fiqa@1")
    assert "Version 2: " in text
    assert rows[0]["qrels"] == 1
    assert len(evh("suite show", "two", "--suite-version", "1")[0]) == 2
    assert "digest" in evh("suite show", "two")[1]
    assert "write a collection" in evh("suite make", "two", "fiqa AP x", status=2)[1]
    assert "a file of them with --file" in evh("suite make", "two", status=2)[1]
    assert "deleted suite two" in evh("suite delete", "two")[1]
    assert evh("suite list") == ([], "")


@pytest.mark.parametrize("name", ["beir", "nanobeir"])
def test_a_benchmark_is_a_suite_after_one_command(
    evh: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    benchmark = BENCHMARKS[name]
    datasets = {dataset: Dataset() for _, dataset, _, _ in benchmark.datasets}
    library = ModuleType("ir_datasets")
    library.load = datasets.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", library)
    monkeypatch.setattr(importing.metadata, "version", lambda name: "0.6.3")

    assert "has no 'robust04'" in evh(f"suite {name}", "--only", "robust04", status=2)[1]
    some = ("--only", "scifact", "--only", "fiqa")
    rows, _ = evh(f"suite {name}", *some)
    assert [row["collection"] for row in rows] == [f"{name}-fiqa", f"{name}-scifact"]
    assert {row["uploaded"] for row in rows} == {"topics and judgements"}
    rows, text = evh(f"suite {name}", *some)
    assert {row["uploaded"] for row in rows} == {"nothing"}
    assert "Version 1: " in text

    # Members that are there keep their place, their weight and their judgements.
    lines = (f"{name}-fiqa@v1 AP 2 mine", f"{name}-scifact AP 1 mine")
    evh("suite make", name, *lines)
    assert "Version 3: " in evh(f"suite {name}", "--only", "quora")[1]
    assert [
        (row["collection"], row["measure"], row["weight"], row["qrels"])
        for row in evh("suite show", name)[0]
    ] == [
        (f"{name}-fiqa", "AP", 2, 1), (f"{name}-scifact", "AP", 1, None),
        (f"{name}-quora", "nDCG@10", 1, None),
    ]  # fmt: skip

    if name == "beir":
        # All of it: a new version, with the forums of CQADupStack as one dataset.
        assert "Version 4: " in evh("suite beir")[1]
        members, _ = evh("suite show", "beir")
        assert Collection.objects.count() == len(members) == 14 + 12
        forums = [row for row in members if row["collection"].startswith("beir-cqadupstack-")]
        assert sum(row["weight"] for row in forums) == pytest.approx(1)
        assert {row["measure"] for row in members[2:]} == {"nDCG@10"}


def test_names_of_collections_without_what_all_begin_with(tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    folder.mkdir()
    for name in ("climate-fever.run.gz", "beir-fever.run"):
        (folder / name).touch()
    files = match_files(["beir-fever", "beir-climate-fever"], folder)
    assert [(file.collection, file.path.name) for file in files] == [
        ("beir-fever", "beir-fever.run"), ("beir-climate-fever", "climate-fever.run.gz"),
    ]  # fmt: skip


def test_a_whole_name_is_not_the_short_name_of_another_collection(tmp_path: Path) -> None:
    folder = tmp_path / "dense"
    folder.mkdir()
    (folder / "beir-fiqa.run").touch()
    for collections in (["beir-fiqa", "beir-beir-fiqa"], ["beir-beir-fiqa", "beir-fiqa"]):
        assert match_files(collections, folder)[0].collection == "beir-fiqa"


def test_what_is_no_folder_of_a_suite(tmp_path: Path) -> None:
    (tmp_path / "fiqa.run").touch()
    with pytest.raises(WrongOption, match="is not a folder"):
        match_files(["fiqa"], tmp_path / "fiqa.run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongOption, match="has no files"):
        match_files(["fiqa"], tmp_path / "empty")
