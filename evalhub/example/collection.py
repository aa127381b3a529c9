"""The files of the example collection: runs, judgements and sessions, made the same way every time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from evalhub.example import systems
from evalhub.example.runs import BASELINE_ENTRY, ENTRIES
from evalhub.example.systems import Index
from metrics.engine.arrays import Floats

DOCUMENTS, TOPICS, OPEN_TOPICS, RELEVANT = "documents.tsv", "topics-1.jsonl", "topics-2.jsonl", "relevant.qrels"  # fmt: skip
ATTRIBUTES = "attributes-1.tsv"
MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@50", "Judged@10"]
LABELS = {"0": "not relevant", "1": "mentions it", "2": "partly answers", "3": "answers"}
_FOLDER = Path(__file__).parent
# Documents of a run for each topic; those of each entry that were judged.
_DEPTH, _POOL_DEPTH = 50, 10
# In a session: the documents that a searcher sees for each query.
_PAGE = 10
_TITLE, _LONG = "title", "title+description"

# The queries of searchers, each tried when the one before was not enough.
_QUERIES = {
    "1": ("salt sea", "salty water", "salt of the sea where from", "minerals rivers salt sea"),
    "3": ("big waves", "waves ships danger", "flood storm waves coast", "tsunami storm surge warning"),
    "4": ("navigation", "position ship", "star sun position ship", "longitude latitude sextant"),
    "8": ("light animals", "glow sea", "animals that glow", "bioluminescence luminous bait"),
    "10": ("fishing", "fish gone", "overfishing recovery", "stocks fishery closed quotas recover"),
    "16": ("ship accidents", "safety rules", "safety at sea convention", "load line ice patrol boats"),
    "18": ("coast protection", "dikes floods", "erosion beach walls", "dunes groynes barriers floods"),
    "24": ("sailing wind", "trade wind", "winds of sailing routes", "monsoon trade winds westerlies"),
}  # fmt: skip
_SEARCHERS = 8
_SESSION_SYSTEMS: dict[str, dict[str, Any]] = {
    "bm25": {"model": "BM25", "stemmer": False, "bm25": {"k1": 1.2, "b": 0.75}},
    "fusion": {"model": "BM25 + LSA", "stemmer": True, "title_weight": 3,
               "bm25": {"k1": 1.2, "b": 0.75}, "lsa": {"dimensions": 100}, "seed": 1},
}  # fmt: skip


def read_file(name: str) -> str:
    """Return the content of a file of the example."""
    return (_FOLDER / name).read_text("utf-8")


@dataclass(frozen=True)
class Corpus:
    """The documents, and the topics of a round with their judged levels (topics, documents)."""

    doc_ids: list[str]
    texts: list[tuple[str, str]]
    topics: list[dict[str, str]]
    levels: Floats

    @cached_property
    def indexes(self) -> dict[bool, Index]:
        """Return the index with stems and the one without."""
        return {
            stemmed: systems.make_index(self.texts, stemmed=stemmed) for stemmed in (False, True)
        }

    def run(self, tag: str, parameters: Mapping[str, Any]) -> str:
        """Return the TREC run of the system with these parameters."""
        queries = [
            f"{topic['title']} {topic['description']}"
            if parameters.get("query") == _LONG
            else topic["title"]
            for topic in self.topics
        ]
        scores = self.scores(queries, parameters)
        lines = []

        for topic, row in zip(self.topics, scores, strict=True):
            ranked = [number for number in _order(row)[:_DEPTH] if np.isfinite(row[number])]
            lines += [
                f"{topic['_id']} Q0 {self.doc_ids[number]} {rank} {row[number]:.6f} {tag}\n"
                for rank, number in enumerate(ranked, 1)
            ]

        return "".join(lines)

    def scores(self, texts: list[str], parameters: Mapping[str, Any]) -> Floats:
        """Return the scores (queries, documents); -inf where no term of a query is matched."""
        index = self.indexes[bool(parameters.get("stemmer"))]
        counts = index.counts(parameters.get("title_weight", 1))
        queries = np.array([index.query(text) for text in texts])
        scores = _score(self, queries, counts, parameters)

        if "LSA" in parameters["model"] or "RM3" in parameters["model"]:
            return scores
        return np.where(systems.overlap(queries, counts) > 0, scores, -np.inf)


def read_corpus(topics: str = TOPICS) -> Corpus:
    """Return the documents with the topics of a round."""
    rows = [line.split("\t") for line in read_file(DOCUMENTS).splitlines()]
    doc_ids = [row[0] for row in rows]
    listed = [json.loads(line) for line in read_file(topics).splitlines()]

    topic_places = {topic["_id"]: place for place, topic in enumerate(listed)}
    doc_places = {doc_id: place for place, doc_id in enumerate(doc_ids)}
    levels = np.zeros((len(listed), len(doc_ids)))
    for line in read_file(RELEVANT).splitlines():
        topic, _, doc_id, level = line.split()
        if topic in topic_places:
            levels[topic_places[topic], doc_places[doc_id]] = int(level)

    return Corpus(doc_ids, [(row[1], row[2]) for row in rows], listed, levels)


def pooled_qrels(corpus: Corpus) -> str:
    """Return the relevant documents, and with level 0 all others of the pool.

    The pool has the first documents of every entry of the first round.
    """
    pooled = corpus.levels > 0
    for _, _, parameters in [*ENTRIES, BASELINE_ENTRY]:
        run = corpus.run("pool", parameters)
        places = {topic["_id"]: place for place, topic in enumerate(corpus.topics)}
        numbers = {doc_id: place for place, doc_id in enumerate(corpus.doc_ids)}
        for line in run.splitlines():
            topic, _, doc_id, rank, *_ = line.split()
            if int(rank) <= _POOL_DEPTH:
                pooled[places[topic], numbers[doc_id]] = True

    return "".join(
        f"{topic['_id']} 0 {corpus.doc_ids[number]} {corpus.levels[place, number]:.0f}\n"
        for place, topic in enumerate(corpus.topics)
        for number in np.flatnonzero(pooled[place])
    )


def simulate_sessions(corpus: Corpus) -> str:
    """Return a session log: every searcher works on every topic, with systems in a Latin square.

    The queries and rankings are real; searchers are simulated: they stop when they have seen
    enough, and differ in what they call enough.
    """
    rng = np.random.default_rng(20080330)
    places = {topic["_id"]: place for place, topic in enumerate(corpus.topics)}
    names = list(_SESSION_SYSTEMS)
    texts = [text for queries in _QUERIES.values() for text in queries]
    scores = {
        name: dict(zip(texts, corpus.scores(texts, parameters), strict=True))
        for name, parameters in _SESSION_SYSTEMS.items()
    }

    lines = []
    for searcher, (column, topic) in product(range(_SEARCHERS), enumerate(_QUERIES)):
        system = names[(searcher + column) % len(names)]
        enough = rng.integers(5, 14)
        seen: set[int] = set()
        queries = []
        for text in _QUERIES[topic]:
            row = scores[system][text]
            page = [number for number in _order(row)[:_PAGE] if np.isfinite(row[number])]
            queries.append({"text": text, "documents": [corpus.doc_ids[place] for place in page]})
            seen.update(page)
            if corpus.levels[places[topic], list(seen)].sum() >= enough:
                break

        session = {
            "session_id": f"u{searcher + 1}-{topic}",
            "topic_id": topic,
            "searcher": f"u{searcher + 1}",
            "system": system,
            "queries": queries,
        }
        lines.append(json.dumps(session) + "\n")

    return "".join(lines)


def _order(scores: Floats) -> list[int]:
    return [int(number) for number in np.argsort(-scores, kind="stable")]


def _score(
    corpus: Corpus, queries: Floats, counts: Floats, parameters: Mapping[str, Any]
) -> Floats:
    """Return the scores (queries, documents) of the model that the parameters name."""
    model = parameters["model"]
    if model == "overlap":
        scores = systems.overlap(queries, counts)
    elif model == "TF-IDF":
        scores = systems.tf_idf(queries, counts)
    elif model == "QL Dirichlet":
        scores = systems.dirichlet(queries, counts, mu=parameters["mu"])
    elif model == "QL Jelinek-Mercer":
        scores = systems.jelinek_mercer(queries, counts, weight=parameters["smoothing"])
    elif model == "LSA":
        scores = systems.lsa(queries, counts, **parameters["lsa"], seed=parameters["seed"])
    elif model == "BM25":
        scores = systems.bm25(queries, counts, **parameters["bm25"])
    elif model == "BM25 + RM3":
        first = systems.bm25(queries, counts, **parameters["bm25"])
        expanded = systems.rm3(queries, counts, first, **parameters["rm3"])
        scores = systems.bm25(expanded, counts, **parameters["bm25"])
    else:
        bm25 = systems.bm25(queries, counts, **parameters["bm25"])
        lsa = systems.lsa(queries, counts, **parameters["lsa"], seed=parameters["seed"])
        scores = systems.fuse([bm25, lsa])
        if model == "reranker":
            scores = _rerank(corpus, scores, [bm25, lsa], parameters)

    return scores


def _rerank(
    corpus: Corpus, first: Floats, features: list[Floats], parameters: Mapping[str, Any]
) -> Floats:
    """Rerank by these features, and by how many terms of the topic's title a title has."""
    index = corpus.indexes[bool(parameters["stemmer"])]
    titles = np.array([index.query(topic["title"]) for topic in corpus.topics])
    matches = systems.overlap(titles, index.titles)

    return systems.rerank(
        first,
        [*features, matches],
        corpus.levels,
        **parameters["reranker"],
        seed=parameters["seed"],
    )
