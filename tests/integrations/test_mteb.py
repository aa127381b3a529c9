"""MTEB: the predictions of its tasks as runs, with the scores that it prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import mteb
import pytest
import torch
from datasets import Dataset
from evalhub_client import cli
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "juniper"]
CORPUS = [
    {"id": f"d{n}", "title": "", "text": f"{WORDS[n % 10]} {WORDS[(3 * n + n // 10) % 10]}"}
    for n in range(30)
]
# As in ArguAna the queries are documents: the first word's others are relevant.
QUERIES = [{"id": f"d{n}", "text": CORPUS[n]["text"]} for n in range(8)]
QRELS = {f"d{n}": {f"d{n + 10}": 1, f"d{n + 20}": 1} for n in range(8)}
MEASURES = {
    "ndcg_at_10": "nDCG@10", "map_at_10": "AP@10", "recall_at_5": "R@5", "precision_at_3": "P@3", "mrr_at_10": "RR@10",
    "hit_rate_at_1": "Success@1",
}  # fmt: skip


def task_of(name: str, **subsets: dict[str, Any]) -> Any:
    """A retrieval task of our own, of one subset or of several."""
    languages = {subset: ["eng-Latn"] for subset in subsets}
    metadata = TaskMetadata(
        name=name, description="made by a test", reference=None, dataset={"path": "lab/none", "revision": "1"},
        type="Retrieval", category="t2t", modalities=["text"], eval_splits=["test"],
        eval_langs=["eng-Latn"] if list(subsets) == ["default"] else languages, main_score="ndcg_at_10", date=None,
        domains=None, task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None,
        bibtex_citation=None,
    )  # fmt: skip

    def load_data(self: Any, **options: Any) -> None:
        self.dataset = {
            subset: {
                "test": {
                    "corpus": Dataset.from_list(CORPUS),
                    "queries": Dataset.from_list(QUERIES),
                    "relevant_docs": qrels,
                    "top_ranked": None,
                }
            }
            for subset, qrels in subsets.items()
        }
        self.data_loaded = True

    task = type(
        name,
        (AbsTaskRetrieval,),
        {"metadata": metadata, "load_data": load_data, "ignore_identical_ids": True},
    )
    return task()


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of predictions of two tasks, and the scores by task and subset."""
    folder = tmp_path_factory.mktemp("predictions")
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(["[UNK]", *WORDS])}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(7)
    model = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu"
    )
    model.model_card_data.model_name, model.model_card_data.base_model_revision = (
        "lab/static",
        "0123456789abcdef",
    )
    other = {query: dict(list(docs.items())[:1]) for query, docs in QRELS.items()}
    tasks = [task_of("LabTask", default=QRELS), task_of("LabTasks", en=QRELS, other=other)]
    outcome = mteb.evaluate(model, tasks, prediction_folder=folder, cache=None)
    scores = {
        f"{result.task_name}/{score['hf_subset']}": score
        for result in outcome.task_results
        for score in result.scores["test"]
    }
    return folder, scores


def test_each_task_is_a_run_with_the_scores_of_mteb(
    evaluated: tuple[Path, dict[str, Any]],
    collection_of: Callable[..., Any],
    hub: evh.Hub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, scores = evaluated
    first, second = collection_of(QRELS), collection_of(QRELS)
    (tmp_path / "map.toml").write_text(
        f'LabTask = "{first.slug}"\n"LabTasks/en" = "{second.slug}"\n'
    )
    command = ["submit", "--from", "mteb", str(folder), "--collections", str(tmp_path / "map.toml")]
    assert cli.run([*command, "--drop-identical", "--wait", "--format", "json"]) == 0
    text = capsys.readouterr()
    assert "so not sent: LabTasks/other/test." in text.err
    runs = {
        name: hub.run(row["id"])
        for name, row in zip(("LabTask/default", "LabTasks/en"), json.loads(text.out), strict=True)
    }
    for name, run in runs.items():
        ours = run.means(*MEASURES.values())
        assert {measure: ours[MEASURES[measure]] for measure in MEASURES} == pytest.approx(
            {measure: scores[name][measure] for measure in MEASURES}, abs=1e-5
        )
        assert (run.tag, run.metadata["revision"]) == ("lab-static-0123456", "0123456789abcdef")
        assert run.metadata["mteb_task"] == name.partition("/")[0]
        assert run.metadata["dropped_identical"] == len(QUERIES)


def test_a_name_that_means_two_runs_is_refused(
    evaluated: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "map.toml").write_text('LabTasks = "c"\n')
    assert (
        cli.run(
            [
                "submit",
                "--from",
                "mteb",
                str(evaluated[0]),
                "--collections",
                str(tmp_path / "map.toml"),
            ]
        )
        == 5
    )
    assert "LabTasks/en/test, LabTasks/other/test; name each of them" in capsys.readouterr().err


def test_the_page_says_what_happens(
    evaluated: tuple[Path, dict[str, Any]],
    hub: evh.Hub,
    tmp_path: Path,
    follow: Callable[[str], None],
) -> None:
    """Its two collections are those of the tasks above."""
    shutil.copytree(evaluated[0], tmp_path / "predictions")
    (tmp_path / "map.toml").write_text('LabTask = "lab-task"\n"LabTasks/en" = "lab-tasks-en"\n')
    qrels = "".join(f"{topic} 0 {doc} 1\n" for topic, docs in QRELS.items() for doc in docs)
    for slug in ("lab-task", "lab-tasks-en"):
        hub.create_collection(slug, measures=["nDCG@10"]).upload_qrels(qrels.encode())
    follow("mteb.md")
