"""Search lengths: how far a user has to look, in ranks or in non-relevant documents."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.judged import JudgedRun, Relevant, sum_by_topic
from metrics.engine.ranking import Flags, Floats, Ints

Missing = Literal["undefined", "last"]


def search_length(
    run: JudgedRun, *, cutoff: None = None, rel: int = 1, missing: Missing = "undefined", documents: int | None = None
) -> Floats:
    """Search length: the rank of the first relevant document.

    Formula: SearchLength = rank of the first relevant document; `documents`, the size of the collection, where none is
    retrieved and missing='last'
    Range: 1 and above, lower is better
    Source: Cooper, American Documentation 19(1), 1968, for one relevant document and a strict order
    Elsewhere: Cooper counts the non-relevant documents before it, one less: that is ESL
    Undefined: where no relevant document is retrieved (unless missing='last') or the topic has none
    """
    relevant = run.relevant(rel)
    first = relevant.found == 1
    length = _last(run, rel, missing, documents)
    length[relevant.topic[first]] = relevant.rank[first]
    return length


def average_search_length(
    run: JudgedRun, *, cutoff: None = None, rel: int = 1, missing: Missing = "undefined", documents: int | None = None
) -> Floats:
    """Average search length: the mean rank of the relevant documents.

    Formula: ASL = sum of the ranks of the relevant documents / R; with missing='last' one that was not retrieved has
    rank `documents`, the size of the collection
    Range: 1 and above, lower is better
    Source: Losee, Text Retrieval and Filtering, 1998
    Undefined: where a relevant document is not retrieved (unless missing='last') or the topic has none
    """
    num_rel = run.num_rel(rel)
    unseen = num_rel - run.relevant(rel).count()
    beyond = np.where(unseen > 0, unseen * _last(run, rel, missing, documents), 0.0)
    return _over(_sum_of_ranks(run, rel) + beyond, num_rel)


def expected_search_length(
    run: JudgedRun,
    *,
    cutoff: None = None,
    n: int = 1,
    rel: int = 1,
    missing: Missing = "undefined",
    documents: int | None = None,
) -> Floats:
    """Expected search length: how many non-relevant documents a user meets before the n-th relevant one.

    Formula: ESL = j + i s / (r + 1): documents of equal score are in random order; the group of equal scores that holds
    the n-th relevant document has r relevant and i non-relevant ones, s of its relevant ones are needed, and j
    non-relevant documents come before the group. Unjudged documents are non-relevant. The expected number of all
    documents looked at is ESL + n. With missing='last', `documents` - R where fewer than n are retrieved
    Range: 0 and above, lower is better
    Source: Cooper, American Documentation 19(1), 1968
    Elsewhere: one of few measures that see ties as ties, whatever rule puts the tied documents in order
    Undefined: where fewer than n relevant documents are retrieved (unless missing='last') or the topic has fewer
    """
    relevant = run.relevant(rel)
    chosen = relevant.found == n
    num_rel = run.num_rel(rel)
    length = _last(run, rel, missing, documents) - num_rel
    length[num_rel < n] = np.nan
    length[relevant.topic[chosen]] = _expected(run, rel, relevant)[chosen]
    return length


def _expected(run: JudgedRun, rel: int, relevant: Relevant) -> Floats:
    """Expected non-relevant documents before each relevant one counts as found; one entry per relevant document."""
    kept = run.level >= rel
    first, size = run.tie_first[kept], run.tie_size[kept]
    change = np.ones(len(first), np.bool_)
    change[1:] = (relevant.topic[1:] != relevant.topic[:-1]) | (first[1:] != first[:-1])
    starts = np.flatnonzero(change)
    counts = np.diff(np.append(starts, len(first)))
    found = np.repeat(relevant.found[starts], counts) - 1
    in_group = np.repeat(counts, counts)
    expected: Floats = (first - 1 - found) + (size - in_group) * (relevant.found - found) / (in_group + 1)
    return expected


def normalised_recall(
    run: JudgedRun, *, documents: int, cutoff: None = None, rel: int = 1, missing: Missing = "undefined"
) -> Floats:
    """Normalised recall: the area between the run's recall curve and the ideal one, as a share of the worst case.

    Formula: NormRecall = 1 - (sum of the ranks of the relevant documents - sum of 1..R) / (R (documents - R)); with
    missing='last' those that were not retrieved take the last ranks of the collection
    Range: 0 to 1
    Source: Rocchio, Harvard University, 1966; Salton and McGill, Introduction to Modern Information Retrieval, 1983
    Undefined: where a relevant document is not retrieved (unless missing='last'), the topic has none, or the collection
    holds nothing else
    """
    num_rel = run.num_rel(rel)
    unseen = num_rel - run.relevant(rel).count()
    last = _last(run, rel, missing, documents)
    beyond = np.where(unseen > 0, unseen * last - unseen * (unseen - 1) / 2, 0.0)
    spent = _sum_of_ranks(run, rel) + beyond - num_rel * (num_rel + 1) / 2
    return 1 - _over(spent, num_rel * np.where(_fits(run, rel, documents), documents - num_rel, 0))


def _sum_of_ranks(run: JudgedRun, rel: int) -> Floats:
    relevant = run.relevant(rel)
    return sum_by_topic(relevant.topic, relevant.rank.astype(np.float64), run.n_topics)


def _fits(run: JudgedRun, rel: int, documents: int) -> Flags:
    """Return whether a collection of this size can hold what the topic's run and recall base hold."""
    return documents >= np.maximum(run.num_ret, run.num_rel(rel))


def _last(run: JudgedRun, rel: int, missing: Missing, documents: int | None) -> Floats:
    """Return the rank a topic's missing relevant documents have, NaN where they have none; shape (topics,)."""
    if missing == "undefined" or documents is None:
        return np.full(run.n_topics, np.nan)
    known = _fits(run, rel, documents) & (run.num_rel(rel) > 0)
    return np.where(known, float(documents), np.nan)


def _over(above: Floats, below: Ints) -> Floats:
    """above / below, and NaN where below is 0."""
    result = np.full(len(below), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result
