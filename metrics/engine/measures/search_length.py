"""Search lengths: how far a user has to look, in ranks or in non-relevant documents."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.judged import JudgedRun, Relevant, sum_by_topic

Missing = Literal["undefined", "ignore", "next", "random", "last"]
Count = Literal["nonrelevant", "all"]


def search_length(
    run: JudgedRun,
    *,
    cutoff: None = None,
    rel: int = 1,
    missing: Missing = "undefined",
    documents: int | None = None,
) -> Floats:
    """Search length: the rank of the first relevant document.

    Formula: SearchLength = rank of the first relevant document. Where none of the R is retrieved: n
    + 1 for missing='next', n being the number of documents retrieved; n + (documents - n + 1) / (R
    + 1) for missing='random', the mean rank of the first one if the rest of the collection follows
    in random order; `documents` for missing='last'
    Range: 1 and above, lower is better
    Source: Cooper, American Documentation 19(1), 1968, for one relevant document and a strict order
    Elsewhere: Cooper counts the non-relevant documents before it, one less: that is ESL
    Undefined: where no relevant document is retrieved (unless missing says where it is) or the
    topic has none
    """
    relevant = run.relevant(rel)
    first = relevant.ordinal == 1
    if missing == "last":
        length = _last(run, rel, documents)
    else:
        length = _nonrelevant_before(run, rel, 1, missing, documents) + 1

    length[relevant.topic[first]] = relevant.rank[first]
    return length


def average_search_length(
    run: JudgedRun,
    *,
    cutoff: None = None,
    rel: int = 1,
    missing: Missing = "undefined",
    documents: int | None = None,
) -> Floats:
    """Average search length: the mean rank of the relevant documents.

    Formula: ASL = sum of the ranks of the relevant documents / R. Those that are not retrieved are
    left out of the sum and of R for missing='ignore'; have the ranks n + 1, n + 2, ... after the n
    documents retrieved for missing='next'; each has the mean rank n + (documents - n + 1) / 2 for
    missing='random', the rest of the collection being in random order; each has rank `documents`
    for missing='last'
    Range: 1 and above, lower is better
    Source: Losee, Text Retrieval and Filtering, 1998
    Elsewhere: missing='ignore' rewards a run that retrieves less
    Undefined: where a relevant document is not retrieved (unless missing says where it is) or the
    topic has none; with missing='ignore' where none is retrieved
    """
    num_rel = run.num_rel(rel)
    if missing == "ignore":
        return _over(_sum_of_ranks(run, rel), run.relevant(rel).count())

    rank = (
        _last(run, rel, documents)
        if missing == "last"
        else _mean_rank(run, rel, missing, documents)
    )
    unseen = _unseen(run, rel)

    return _over(_sum_of_ranks(run, rel) + np.where(unseen > 0, unseen * rank, 0.0), num_rel)


def expected_search_length(
    run: JudgedRun,
    *,
    cutoff: None = None,
    n: int = 1,
    count: Count = "nonrelevant",
    rel: int = 1,
    missing: Missing = "undefined",
    documents: int | None = None,
) -> Floats:
    """Expected search length: how many documents a user examines in vain before the n-th relevant
    one, or in all.

    Formula: ESL = j + i s / (r + 1): documents of equal score are in random order; the group of
    equal scores that holds the n-th relevant document has r relevant and i non-relevant ones, s of
    its relevant ones are needed, and j non-relevant documents come before the group. Unjudged
    documents are non-relevant. count='all' adds the relevant documents examined, the n-th included:
    ESL + n. Where only m < n are retrieved: the m-th in place of the n-th for missing='ignore'; all
    non-relevant documents retrieved for missing='next'; these and i (n - m) / (r + 1) of the rest
    of the collection, which has r relevant and i other documents, for missing='random'; `documents`
    - R for missing='last'
    Range: 0 and above, lower is better
    Source: Cooper, American Documentation 19(1), 1968; Korfhage, Information Storage and Retrieval,
    1997 (count='all')
    Elsewhere: one of few measures that see ties as ties, whatever rule puts the tied documents in
    order. Järvelin and Kekäläinen (University of Tampere RN-2002-2) describe count='all'
    Undefined: where fewer than n relevant documents are retrieved (unless missing says where the
    others are) or the topic has fewer; with missing='ignore' where none is retrieved
    """
    relevant, num_rel = run.relevant(rel), run.num_rel(rel)
    retrieved = relevant.count()
    needed = np.minimum(n, retrieved) if missing == "ignore" else np.full(run.n_topics, n)
    length = _nonrelevant_before(run, rel, n, missing, documents)
    is_last = relevant.ordinal == needed[relevant.topic]
    length[relevant.topic[is_last]] = _expected(run, rel, relevant)[is_last]
    length[num_rel < n] = np.nan

    return length + needed if count == "all" else length


def _expected(run: JudgedRun, rel: int, relevant: Relevant) -> Floats:
    """Return the expected number of non-relevant documents before each relevant one; one entry per
    relevant document."""
    rows = run.level >= rel
    first, size = run.tie_first[rows], run.tie_size[rows]
    change = np.ones(len(first), np.bool_)
    change[1:] = (relevant.topic[1:] != relevant.topic[:-1]) | (first[1:] != first[:-1])
    starts = np.flatnonzero(change)
    counts = np.diff(np.append(starts, len(first)))
    above = np.repeat(relevant.ordinal[starts], counts) - 1
    in_group = np.repeat(counts, counts)
    expected: Floats = (first - 1 - above) + (size - in_group) * (relevant.ordinal - above) / (
        in_group + 1
    )

    return expected


def normalised_recall(
    run: JudgedRun,
    *,
    documents: int,
    cutoff: None = None,
    rel: int = 1,
    missing: Missing = "undefined",
) -> Floats:
    """Normalised recall: the area between the run's recall curve and the ideal one, as a share of
    the worst case.

    Formula: NormRecall = 1 - (sum of the ranks of the relevant documents - sum of 1..R) / (R
    (documents - R)). Those that are not retrieved are left out of the sum and of R for
    missing='ignore'; have the ranks after the documents retrieved for missing='next', and the last
    ranks of the collection for missing='last'; each has the mean rank of the rest of the collection
    for missing='random'
    Range: 0 to 1
    Source: Rocchio, Harvard University, 1966; Salton and McGill, Introduction to Modern Information
    Retrieval, 1983
    Undefined: where a relevant document is not retrieved (unless missing says where it is), the
    topic has none, or the collection holds nothing else; with missing='ignore' where none is
    retrieved
    """
    unseen = _unseen(run, rel)
    size = run.relevant(rel).count() if missing == "ignore" else run.num_rel(rel)
    beyond: Floats = np.zeros(run.n_topics)
    if missing == "last":
        beyond = unseen * (_last(run, rel, documents) - (unseen - 1) / 2)
    elif missing != "ignore":
        rank = _mean_rank(run, rel, missing, documents)
        rank[np.isnan(_rest(run, rel, documents))] = np.nan
        beyond = unseen * rank

    excess: Floats = (
        _sum_of_ranks(run, rel) + np.where(unseen > 0, beyond, 0.0) - size * (size + 1) / 2
    )
    return 1 - _over(excess, size * np.where(_fits(run, rel, documents), documents - size, 0))


def _sum_of_ranks(run: JudgedRun, rel: int) -> Floats:
    relevant = run.relevant(rel)
    return sum_by_topic(relevant.topic, relevant.rank.astype(np.float64), run.n_topics)


def _unseen(run: JudgedRun, rel: int) -> Ints:
    """Count the relevant documents that are not retrieved; shape (topics,)."""
    return run.num_rel(rel) - run.relevant(rel).count()


def _fits(run: JudgedRun, rel: int, documents: int) -> Flags:
    """Return whether a collection of this size can hold what the topic's run and recall base
    hold."""
    return documents >= np.maximum(run.num_ret, run.num_rel(rel))


def _last(run: JudgedRun, rel: int, documents: int | None) -> Floats:
    """Return the last rank of the collection, NaN where it is too small or nothing is relevant;
    shape (topics,)."""
    size = documents or 0
    return np.where(_fits(run, rel, size) & (run.num_rel(rel) > 0), float(size), np.nan)


def _rest(run: JudgedRun, rel: int, documents: int | None) -> Floats:
    """Count the documents of the collection that are not retrieved, NaN where it is too small;
    shape (topics,)."""
    rest = (documents or 0) - run.num_ret
    return np.where(rest >= _unseen(run, rel), rest.astype(np.float64), np.nan)


def _mean_rank(run: JudgedRun, rel: int, missing: Missing, documents: int | None) -> Floats:
    """Return the mean rank of the relevant documents not retrieved, NaN where they have none; shape
    (topics,)."""
    if missing == "next":
        return run.num_ret + (_unseen(run, rel) + 1) / 2
    if missing == "random":
        return run.num_ret + (_rest(run, rel, documents) + 1) / 2
    return np.full(run.n_topics, np.nan)


def _nonrelevant_before(
    run: JudgedRun, rel: int, n: int, missing: Missing, documents: int | None
) -> Floats:
    """Count the non-relevant documents before the n-th relevant one where that is not retrieved;
    NaN where nothing says how many they are, or the topic has no relevant document; shape
    (topics,)."""
    unseen, retrieved = _unseen(run, rel), run.relevant(rel).count()
    before: Floats = np.full(run.n_topics, np.nan)
    if missing == "last":
        before = _last(run, rel, documents) - run.num_rel(rel)
    elif missing == "next":
        before = (run.num_ret - retrieved).astype(np.float64)
    elif missing == "random":
        before = (
            run.num_ret
            - retrieved
            + (_rest(run, rel, documents) - unseen) * (n - retrieved) / (unseen + 1)
        )

    before[run.num_rel(rel) == 0] = np.nan
    return before


def _over(above: Floats, below: Ints) -> Floats:
    """above / below, and NaN where below is 0."""
    result = np.full(len(below), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result
