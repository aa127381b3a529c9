"""Rank the example's documents: TF-IDF, BM25, query likelihood, RM3, LSA, fusion and a reranker.

Each function returns scores (topics, documents). All arrays are small: 200 documents, 3,000 terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints

_STOP_TEXT = """
a about after all an and are as at be been before but by can did do does for from had has have how
i if in into is it its more most no not of off on one only or other out over so some than that the
their them then there these they this to up was were what when where which while who why will with
without
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_ENDINGS = ("ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "s", "y", "e")
_SHORTEST_STEM = 3
# Of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
_FUSION_CONSTANT = 60


@dataclass(frozen=True)
class Index:
    """Term counts of titles and texts (documents, terms), and the numbers of the terms."""

    titles: Floats
    texts: Floats
    numbers: dict[str, int]
    stemmed: bool

    def counts(self, title_weight: float = 1.0) -> Floats:
        """Return term counts in which a term of the title counts `title_weight` times."""
        return title_weight * self.titles + self.texts

    def query(self, text: str) -> Floats:
        """Return the counts (terms,) of a query; terms that no document has are left out."""
        counts: Floats = _count([text], self.numbers, self.stemmed)[0]
        return counts


def make_index(documents: Sequence[tuple[str, str]], *, stemmed: bool) -> Index:
    """Return the index of documents, each a title and a text."""
    terms = sorted(
        {term for title, text in documents for term in split_terms(f"{title} {text}", stemmed)}
    )
    numbers = {term: number for number, term in enumerate(terms)}

    return Index(
        titles=_count([title for title, _ in documents], numbers, stemmed),
        texts=_count([text for _, text in documents], numbers, stemmed),
        numbers=numbers,
        stemmed=stemmed,
    )


def split_terms(text: str, stemmed: bool) -> list[str]:
    """Return the terms of a text in lower case, without stop words."""
    words = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in _STOP_WORDS]
    return [_stem(word) for word in words] if stemmed else words


def _stem(word: str) -> str:
    """Return a word without the first ending that leaves a stem, doubled consonants made single."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            stem = word.removesuffix(ending)
            return stem[:-1] if stem[-1] == stem[-2] and stem[-1] not in "aeiouls" else stem

    return word


def _count(texts: Iterable[str], numbers: dict[str, int], stemmed: bool) -> Floats:
    rows = []
    for text in texts:
        row = np.zeros(len(numbers))
        for term in split_terms(text, stemmed):
            if term in numbers:
                row[numbers[term]] += 1
        rows.append(row)

    return np.array(rows)


def overlap(queries: Floats, counts: Floats) -> Floats:
    """Count the terms of the query that a document has."""
    return queries.clip(max=1) @ (counts > 0).T


def tf_idf(queries: Floats, counts: Floats) -> Floats:
    """Return the cosine of vectors of (1 + log tf) · log(N / df)."""
    weights = np.log1p(counts) * _idf(counts)
    return _unit(queries * _idf(counts)) @ _unit(weights).T


def bm25(queries: Floats, counts: Floats, *, k1: float, b: float) -> Floats:
    """Return BM25 (Robertson and Zaragoza, 2009)."""
    lengths = counts.sum(axis=1, keepdims=True)
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    frequencies = (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(counts) - frequencies + 0.5) / (frequencies + 0.5))

    scores: Floats = queries @ (idf * counts * (k1 + 1) / (counts + norm)).T
    return scores


def dirichlet(queries: Floats, counts: Floats, *, mu: float) -> Floats:
    """Return the log-likelihood of the query with Dirichlet smoothing (Zhai and Lafferty, 2004)."""
    collection = counts.sum(axis=0) / counts.sum()
    lengths = counts.sum(axis=1, keepdims=True)
    scores: Floats = queries @ np.log((counts + mu * collection) / (lengths + mu)).T
    return scores


def jelinek_mercer(queries: Floats, counts: Floats, *, weight: float) -> Floats:
    """Return the log-likelihood with `weight` of the collection's model mixed in."""
    collection = counts.sum(axis=0) / counts.sum()
    models = counts / counts.sum(axis=1, keepdims=True)
    scores: Floats = queries @ np.log((1 - weight) * models + weight * collection).T
    return scores


def rm3(
    queries: Floats, counts: Floats, scores: Floats, *, documents: int, terms: int, weight: float
) -> Floats:
    """Return queries expanded by the relevance model of the best documents (Lavrenko and Croft).

    `weight` is that of the original query.
    """
    models = counts / counts.sum(axis=1, keepdims=True)
    expanded = np.zeros_like(queries)

    for row, query in enumerate(queries):
        best = np.argsort(-scores[row], kind="stable")[:documents]
        likelihood = scores[row, best] / scores[row, best].sum()
        model = (likelihood @ models[best]) * _idf(counts)
        model[np.argsort(-model, kind="stable")[terms:]] = 0
        expanded[row] = weight * query / query.sum() + (1 - weight) * model / model.sum()

    return expanded


def lsa(queries: Floats, counts: Floats, *, dimensions: int, seed: int) -> Floats:
    """Return cosines in a space of latent dimensions (Deerwester et al., 1990).

    The space comes from a randomised decomposition (Halko et al., 2011), which `seed` starts.
    """
    weights = _unit(np.log1p(counts) * _idf(counts))
    start = np.random.default_rng(seed).normal(size=(weights.shape[1], dimensions))
    basis, _ = np.linalg.qr(weights @ start)
    _, _, components = np.linalg.svd(basis.T @ weights, full_matrices=False)

    return _unit(queries * _idf(counts) @ components.T) @ _unit(weights @ components.T).T


def fuse(rankings: Iterable[Floats]) -> Floats:
    """Return the sum of reciprocal ranks of several scores."""
    scores: Floats = np.sum(
        [1 / (_FUSION_CONSTANT + ranks_of(scores)) for scores in rankings], axis=0
    )
    return scores


def rerank(
    first: Floats,
    features: Sequence[Floats],
    levels: Floats,
    *,
    depth: int,
    penalty: float,
    folds: int,
    seed: int,
) -> Floats:
    """Order the first `depth` documents of each topic by a linear model of `features`.

    The model is a ridge regression of `levels` that never saw the topic: topics are split into
    `folds`, in an order that `seed` draws, and each fold is scored by a model of the others.
    """
    ranks = ranks_of(first)
    rows = np.stack([_standard(feature) for feature in [*features, -np.log(ranks)]], axis=-1)
    scores = -ranks.astype(float)
    order = np.random.default_rng(seed).permutation(len(first))

    for fold in range(folds):
        unseen = order[fold::folds]
        seen = np.setdiff1d(order, unseen)
        near_top = ranks[seen] <= depth
        inputs, outputs = rows[seen][near_top], levels[seen][near_top]
        inputs = inputs - inputs.mean(axis=0)
        gram = inputs.T @ inputs + penalty * np.eye(inputs.shape[1])
        weights = np.linalg.solve(gram, inputs.T @ (outputs - outputs.mean()))

        for topic in unseen:
            best = ranks[topic] <= depth
            predicted = rows[topic][best] @ weights
            scores[topic, best] = predicted - predicted.min() + 1

    return scores


def ranks_of(scores: Floats) -> Ints:
    """Return ranks from 1, the best first, ties in the order of the documents."""
    order = np.argsort(-scores, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[None, :], axis=1)
    return ranks


def _idf(counts: Floats) -> Floats:
    idf: Floats = np.log(len(counts) / np.maximum((counts > 0).sum(axis=0), 1))
    return idf


def _unit(rows: Floats) -> Floats:
    scaled: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _standard(scores: Floats) -> Floats:
    """Return scores with mean 0 and deviation 1 within each topic."""
    deviation = np.maximum(scores.std(axis=1, keepdims=True), 1e-12)
    standard: Floats = (scores - scores.mean(axis=1, keepdims=True)) / deviation
    return standard
