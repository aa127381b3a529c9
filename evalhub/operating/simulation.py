"""A seeded simulation of a test collection with good and bad systems, for demonstrations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from metrics.engine.arrays import Floats, Ints

# The measures and level labels of the collections that are made of these files.
MEASURES = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Judged@10"]
LABELS = {"0": "not relevant", "1": "marginal", "2": "fair", "3": "high"}
_LEVELS = (0, 1, 2, 3)
_SHARES = (0.62, 0.2, 0.12, 0.06)
_SUBJECTS = (
    "solar", "river", "railway", "glass", "orchard", "harbour", "violin", "granite", "lantern", "meadow"
)  # fmt: skip
_ASPECTS = ("history", "prices", "repair", "safety", "design")
_WORDS = ("overview", "causes", "since 1950", "in Europe", "statistics")
_SYSTEMS = (
    "random-walk", "title-only", "bm25-short", "bm25", "bm25-tuned", "bm25-rm3", "dirichlet",
    "sparse-v1", "dense-small", "dense-large", "hybrid", "reranked",
)  # fmt: skip


# Sessions: numbers of searchers, topics, queries and documents, and skills of two systems.
_SEARCHERS, _SESSION_TOPICS, _MAX_QUERIES, _DEPTH = 8, 8, 6, 20
_SESSION_SYSTEMS = {"bm25": 0.8, "hybrid": 1.4}


@dataclass(frozen=True)
class SimulatedCollection:
    """Files of a collection as users would upload them.

    `runs` maps tags to TREC runs, worst system first; `sessions` is a session log of two systems in
    JSON lines.
    """

    topics: str
    documents: str
    qrels: str
    runs: dict[str, str]
    sessions: str


def simulate_collection(
    *, topics: int = 50, pool: int = 400, judged: int = 150, depth: int = 200
) -> SimulatedCollection:
    """Return the same simulated collection every time.

    The score of a document is the skill of the system times the level, plus noise of the system and
    noise that all systems share, so that topics differ in difficulty and systems are similar.
    """
    rng = np.random.default_rng(20020401)
    topic_ids = [str(number) for number in range(101, 101 + topics)]
    levels = np.zeros((topics, pool), np.int64)
    levels[:, :judged] = rng.choice(_LEVELS, (topics, judged), p=_SHARES)
    shared = rng.normal(0, 0.8, (topics, pool))
    ease = rng.uniform(0.4, 1.4, (topics, 1))
    skills = np.linspace(0.15, 1.6, len(_SYSTEMS))
    runs = {}
    for tag, skill in zip(_SYSTEMS, skills.tolist(), strict=True):
        scores = ease * skill * levels + shared + rng.normal(0, 1.0, levels.shape)
        runs[tag] = _run(tag, topic_ids, scores, depth)

    return SimulatedCollection(
        _topics(topic_ids),
        _documents(levels),
        _qrels(topic_ids, levels[:, :judged]),
        runs,
        _sessions(topic_ids, levels),
    )


def _sessions(topic_ids: list[str], levels: Ints) -> str:
    """Simulate all searchers on all topics, with systems in a Latin square, until they are content."""
    rng = np.random.default_rng(20080330)
    systems = list(_SESSION_SYSTEMS)

    lines = []
    for searcher, topic in product(range(_SEARCHERS), range(min(_SESSION_TOPICS, len(topic_ids)))):
        system = systems[(searcher + topic) % len(systems)]
        queries = _queries(topic, levels[topic], _SESSION_SYSTEMS[system], rng)
        session = {
            "session_id": f"u{searcher + 1}-{topic_ids[topic]}",
            "topic_id": topic_ids[topic],
            "searcher": f"u{searcher + 1}",
            "system": system,
            "queries": queries,
        }
        lines.append(json.dumps(session) + "\n")

    return "".join(lines)


def _queries(
    topic: int, levels: Ints, skill: float, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Simulate queries, each better than the last, until one retrieves enough relevant documents."""
    title, queries = _titles()[topic % len(_titles())], []
    for number in range(1, _MAX_QUERIES + 1):
        scores = skill * (0.5 + 0.2 * number) * levels + rng.normal(0, 1.2, len(levels))
        best = np.argsort(-scores, kind="stable")[:_DEPTH].tolist()
        documents = [_doc_id(topic, document) for document in best]
        queries.append({"text": " ".join([title, *_WORDS[: number - 1]]), "documents": documents})
        if levels[best[:10]].sum() > rng.integers(8, 22):
            break

    return queries


def _titles() -> list[str]:
    return [f"{subject} {aspect}" for aspect in _ASPECTS for subject in _SUBJECTS]


def _doc_id(topic: int, document: int) -> str:
    return f"SIM-{topic:03d}-{document:04d}"


def _topics(topic_ids: list[str]) -> str:
    titles = _titles()
    lines = [
        json.dumps({"_id": topic_id, "text": titles[index % len(titles)]})
        for index, topic_id in enumerate(topic_ids)
    ]
    return "\n".join(lines) + "\n"


def _documents(levels: Ints) -> str:
    """Return titles and snippets: the higher its level, the nearer is a document to its topic."""
    lines = []
    for topic, of_topic in enumerate(levels.tolist()):
        subject, aspect = _titles()[topic % len(_titles())].split()
        for document, level in enumerate(of_topic):
            about = f"{subject} {aspect}"
            if level == 1:
                about = f"{subject} {_other(aspect, _ASPECTS, document)}"
            elif level == 0:
                about = f"{_other(subject, _SUBJECTS, document)} {_ASPECTS[document % 3]}"

            title = f"{about.capitalize()}: {_WORDS[document % len(_WORDS)]}"
            lines.append(f"{_doc_id(topic, document)}\t{title}\tA simulated text on {about}.\n")

    return "".join(lines)


def _other(word: str, words: tuple[str, ...], number: int) -> str:
    """Return one of the other words."""
    place = words.index(word) + 1 + number % (len(words) - 1)
    return words[place % len(words)]


def _qrels(topic_ids: list[str], levels: Ints) -> str:
    return "".join(
        f"{topic_id} 0 {_doc_id(index, document)} {level}\n"
        for index, topic_id in enumerate(topic_ids)
        for document, level in enumerate(levels[index].tolist())
    )


def _run(tag: str, topic_ids: list[str], scores: Floats, depth: int) -> str:
    lines = []
    for index, topic_id in enumerate(topic_ids):
        best = np.argsort(-scores[index], kind="stable")[:depth]
        for rank, document in enumerate(best.tolist(), 1):
            score = scores[index, document]
            lines.append(f"{topic_id} Q0 {_doc_id(index, document)} {rank} {score:.4f} {tag}\n")

    return "".join(lines)


TEXTBOOK_QRELS = """\
q1 0 d3 3
q1 0 d5 3
q1 0 d9 3
q1 0 d25 2
q1 0 d39 2
q1 0 d44 2
q1 0 d56 1
q1 0 d71 1
q1 0 d89 1
q1 0 d123 1
q2 0 d3 3
q2 0 d56 2
q2 0 d129 1
"""
_TEXTBOOK_RANKINGS = {
    "q1": "d123 d84 d56 d6 d8 d9 d511 d129 d187 d25 d38 d48 d250 d113 d3",
    "q2": "d425 d87 d56 d32 d124 d615 d512 d129 d4 d130 d193 d715 d810 d5 d3",
}
TEXTBOOK_RUN = "".join(
    f"{topic_id} Q0 {document} {rank} {16 - rank} textbook\n"
    for topic_id, ranking in _TEXTBOOK_RANKINGS.items()
    for rank, document in enumerate(ranking.split(), 1)
)
