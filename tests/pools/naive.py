"""A naive reading of runs and of the definitions of pools: dictionaries and sorted lists only."""

from __future__ import annotations

import math
from collections import defaultdict

# By topic, the documents of a run from rank 1 on.
Ranking = dict[str, list[str]]


def rank(text: str, *, single: bool = False) -> Ranking:
    """Order each topic by score, then by document id, both descending; the rank column counts for nothing."""
    import numpy as np

    scored: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in text.splitlines():
        topic, _, doc_id, _, score, _ = line.split()
        value = float(np.float32(score)) if single else float(score)
        scored[topic].append((value, doc_id))
    return {topic: [doc for _, doc in sorted(rows, reverse=True)] for topic, rows in scored.items()}


def depth(runs: list[Ranking], k: int) -> set[tuple[str, str]]:
    return {(topic, doc) for run in runs for topic, docs in run.items() for doc in docs[:k]}


def within_budget(rounds: list[list[Ranking]], k: int, budget: int) -> set[tuple[str, str]]:
    """Add rank after rank, run after run, round after round, until a step would be too many."""
    pool: set[tuple[str, str]] = set()
    for runs in rounds:
        for place in range(k):
            for run in runs:
                step = {(topic, docs[place]) for topic, docs in run.items() if place < len(docs)}
                if len(pool | step) > budget:
                    return pool
                pool |= step
    return pool


def take(runs: list[Ranking], n: int, k: int, p: float | None = None) -> set[tuple[str, str]]:
    """Take the n best of each topic by reciprocal rank fusion, or with `p` by rank-biased precision."""
    terms: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for topic, docs in run.items():
            for place, doc in enumerate(docs[:k], 1):
                term = 1 / (60 + place) if p is None else (1 - p) * p ** (place - 1)
                terms[topic][doc].append(term)
    pool = set()
    for topic, of_docs in terms.items():
        sums = {doc: math.fsum(values) for doc, values in of_docs.items()}
        best = sorted(sums, key=lambda doc: (round(sums[doc], 14), doc), reverse=True)
        pool |= {(topic, doc) for doc in best[:n]}
    return pool


def best_ranks(runs: list[Ranking], k: int) -> dict[tuple[str, str], int]:
    best: dict[tuple[str, str], int] = {}
    for run in runs:
        for topic, docs in run.items():
            for place, doc in enumerate(docs[:k], 1):
                best[topic, doc] = min(place, best.get((topic, doc), place))
    return best
