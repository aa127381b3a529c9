"""sentence-transformers: an evaluation during training is a run on the board, with the evaluator's own numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evalhub_client as evh
import pytest
from datasets import Dataset
from evalhub_client import cli
from evalhub_client.sentence_transformers import HubEvaluator
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["apple", "banana", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "juniper"]
# The first word twice: no two documents of another relevance have the same words, and so the same
# score.
CORPUS = {
    f"d{number}": " ".join([WORDS[number % 10]] * 2 + [WORDS[(3 * number + 1) % 10]])
    for number in range(30)
}
QUERIES = {f"q{number}": WORDS[number] for number in range(8)}
RELEVANT = {
    query: {doc for doc, text in CORPUS.items() if text.startswith(word)}
    for query, word in QUERIES.items()
}
QRELS = {query: dict.fromkeys(sorted(docs), 1) for query, docs in RELEVANT.items()}
MEASURES = {
    "cosine_ndcg@10": "nDCG@10", "cosine_mrr@10": "RR@10", "cosine_map@100": "AP@100", "cosine_accuracy@1": "Success@1",
    "cosine_precision@3": "P@3", "cosine_recall@5": "R@5",
}  # fmt: skip


@pytest.fixture
def model() -> SentenceTransformer:
    """Random vectors of ten words."""
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(["[UNK]", *WORDS])}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)], device="cpu")


def evaluator(**options: Any) -> InformationRetrievalEvaluator:
    return InformationRetrievalEvaluator(QUERIES, CORPUS, RELEVANT, **options)


def trainer(model: SentenceTransformer, evaluator: Any, folder: Path) -> SentenceTransformerTrainer:
    pairs = Dataset.from_dict(
        {"anchor": list(QUERIES.values()), "positive": [f"{word} fig" for word in QUERIES.values()]}
    )
    arguments = SentenceTransformerTrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=4, eval_strategy="epoch", save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    return SentenceTransformerTrainer(
        model,
        args=arguments,
        train_dataset=pairs,
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )


def test_every_evaluation_of_a_training_is_a_run(
    collection_of: Callable[..., Any], model: SentenceTransformer, tmp_path: Path
) -> None:
    collection = collection_of(QRELS)
    evaluator_here = HubEvaluator(evaluator(), collection.slug, name="static")
    trained = trainer(model, evaluator_here, tmp_path)
    trained.train()
    assert [run.tag for run in evaluator_here.runs] == ["static-1-2", "static-2-4"]
    logged = [entry for entry in trained.state.log_history if "eval_cosine_ndcg@10" in entry]
    for run, entry in zip(evaluator_here.runs, logged, strict=True):
        ours = run.wait(60).means(*MEASURES.values())
        theirs = {name: entry[f"eval_{name}"] for name in MEASURES}
        assert {name: ours[MEASURES[name]] for name in MEASURES} == pytest.approx(theirs, abs=1e-9)
        assert run.metadata["steps"] == entry["step"]
    assert not list(tmp_path.rglob("*predictions*"))


def test_a_training_goes_on_where_the_server_is_away(
    model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = evh.connect("http://127.0.0.1:9", "evh_x_y", retry_for=0.2)
    evaluator_here = HubEvaluator(evaluator(), "dev", hub=away)
    trainer(model, evaluator_here, tmp_path).train()
    assert evaluator_here.runs == []
    (message,) = [
        record.getMessage() for record in caplog.records if record.name == "evalhub_client"
    ]
    assert message.startswith("the evaluation was not sent to EvalHub")


def test_the_scores_are_those_of_the_inner_evaluator(
    collection_of: Callable[..., Any],
    model: SentenceTransformer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    collection = collection_of(QRELS)
    plain = evaluator(name="dev", write_predictions=True)
    theirs = plain(model, output_path=str(tmp_path))
    assert HubEvaluator(evaluator(name="dev"), collection.slug, name="m")(model) == theirs
    (path,) = tmp_path.glob("*predictions*.jsonl")
    sent = [
        "submit",
        collection.slug,
        str(path),
        "--from",
        "st",
        "--tag",
        "by-file",
        "--wait",
        "--format",
        "json",
    ]
    assert cli.run(sent) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["nDCG@10"] == pytest.approx(theirs["dev_cosine_ndcg@10"], abs=1e-9)


def test_the_page_says_what_happens(follow: Callable[[str], None]) -> None:
    follow("sentence-transformers.md")
