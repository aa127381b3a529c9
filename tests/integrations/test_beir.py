"""BEIR: EvaluateRetrieval's own numbers beside EvalHub's, with and without documents of the query's own id."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from beir.retrieval.evaluation import EvaluateRetrieval
from beir.retrieval.search.dense import DenseRetrievalExactSearch
from evalhub_client import UploadWarning

K = [1, 3, 10]
MEASURES = {"NDCG": "nDCG", "MAP": "AP", "Recall": "R", "P": "P"}
# As in ArguAna each query is a document of the corpus, and its counterpart is relevant.
CORPUS = {f"d{number}": {"title": "", "text": str(number)} for number in range(60)}
QUERIES = {f"d{number}": CORPUS[f"d{number}"]["text"] for number in range(0, 40, 2)}
QRELS = {query: {f"d{int(query[1:]) + 1}": 1} for query in QUERIES}


class Encoder:
    """Vectors of numbers: those next to each other are near."""

    def encode_queries(self, queries: list[str], **options: Any) -> Any:
        return self._encoded(queries)

    def encode_corpus(self, corpus: list[dict[str, str]], **options: Any) -> Any:
        return self._encoded([document["text"] for document in corpus])

    def _encoded(self, texts: list[str]) -> Any:
        numbers = np.array([float(text) for text in texts])
        angle = (numbers + np.sin(numbers * 7)) / 30
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, float]]:
    """What a retriever of BEIR finds, with the query's own document at its first rank."""
    search = EvaluateRetrieval(
        DenseRetrievalExactSearch(Encoder(), batch_size=16), k_values=K, score_function="cos_sim"
    )
    results: dict[str, dict[str, float]] = search.retrieve(CORPUS, QUERIES)
    return {query: {**ranking, query: 1.0} for query, ranking in results.items()}


def theirs(results: dict[str, dict[str, float]], **options: Any) -> dict[str, float]:
    """What BEIR prints; it takes documents out of the dictionary that it is given."""
    values = EvaluateRetrieval.evaluate(QRELS, copy.deepcopy(results), K, **options)
    return {name: value for part in values for name, value in part.items()}


def named(means: Any) -> dict[str, float]:
    """Our means under BEIR's names, rounded as it rounds."""
    names = {f"{name}@{k}": f"{ours}@{k}" for name, ours in MEASURES.items() for k in K}
    values = means(*names.values())
    return {name: round(values[ours], 5) for name, ours in names.items()}


def test_without_identical_ids_the_numbers_are_those_of_beir(
    collection_of: Callable[..., Any],
    results: dict[str, dict[str, float]],
) -> None:
    collection = collection_of(QRELS)
    dropped = collection.submit(results, tag="dropped", drop_identical=True).wait(60)
    assert dropped.metadata == {"dropped_identical": len(QUERIES)}
    assert named(dropped.means) == theirs(results)
    own = f"{len(QUERIES)} topics retrieve the document of their own id"
    with pytest.warns(UploadWarning, match=own):
        filtered = collection.submit(results, tag="kept").wait(60)
    assert named(filtered.means) == theirs(results, ignore_identical_ids=False)
    assert filtered.means("nDCG@10")["nDCG@10"] < dropped.means("nDCG@10")["nDCG@10"]


def test_topics_without_an_answer_are_what_is_between_the_means(
    collection_of: Callable[..., Any], results: dict[str, dict[str, float]]
) -> None:
    part = {query: results[query] for query in random.Random(1).sample(sorted(results), 15)}
    run = collection_of(QRELS).submit(part, tag="part", drop_identical=True).wait(60)
    printed = theirs(part)
    (row,) = run.coverage("nDCG@10").rows()
    assert round(row["mean_of_answered"], 5) == printed["NDCG@10"]
    assert row["mean"] == pytest.approx(row["mean_of_answered"] * 15 / 20, abs=1e-12)
    assert str(run.coverage("nDCG@10")) == (
        f"part: BEIR would print nDCG@10 {printed['NDCG@10']:.4f} (15 topics), EvalHub {row['mean']:.4f} (20)"
    )
    assert str(run.coverage()).count("\n") >= 5


def test_a_topic_that_found_its_own_document_only(collection_of: Callable[..., Any]) -> None:
    """BEIR leaves an empty ranking in the dictionary: see what becomes of it."""
    few = {"d0": {"d0": 1.0}, "d2": {"d3": 1.0}}
    run = (
        collection_of({query: QRELS[query] for query in few})
        .submit(few, tag="few", drop_identical=True)
        .wait(60)
    )
    (row,) = run.coverage("nDCG@10").rows()
    assert (row["answered"], row["judged"], row["mean"]) == (1, 2, 0.5)
    printed = EvaluateRetrieval.evaluate(
        {query: QRELS[query] for query in few}, copy.deepcopy(few), [10]
    )[0]
    assert printed["NDCG@10"] in (row["mean"], row["mean_of_answered"])


def test_the_page_says_what_happens(follow: Callable[[str], None]) -> None:
    follow("beir.md")
