"""Measures against what the user knew and expected: coverage, novelty, relative recall, recall
effort."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.judged import JudgedRun, Known
from metrics.engine.measures.ratio import ratio


def coverage(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Coverage: the share of the relevant documents known to the user that is retrieved.

    Formula: Coverage = |K & R & A| / |K & R|; K is what the user knew, as the file of known
    documents says that came with the run, R the relevant documents and A those in ranks 1..k
    Range: 0 to 1
    Source: Korfhage, Information Storage and Retrieval, 1997; Baeza-Yates and Ribeiro-Neto, Modern
    Information Retrieval, chapter 4
    Elsewhere: in the evaluation of recommender systems coverage is the share of the catalogue that
    is recommended; a leaderboard's coverage is the number of topics the run answered
    Undefined: where the user knew no relevant document of the topic, as in every topic of a run
    without known documents
    """
    if run.known is None:
        return np.full(run.n_topics, np.nan)
    base = _known_relevant(run, run.known, rel)
    return _retrieved_known(run, run.known, cutoff, rel) / base


def novelty(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Novelty: the share of the relevant documents retrieved that the user did not know.

    Formula: Novelty = |(R & A) - K| / |R & A|, with K, R and A as for Coverage
    Range: 0 to 1
    Source: Korfhage, Information Storage and Retrieval, 1997; Baeza-Yates and Ribeiro-Neto, Modern
    Information Retrieval, chapter 4
    Elsewhere: the formula gives 1 where the user knew nothing relevant; here that is no value, so
    that Novelty speaks of the same topics as Coverage. In the evaluation of recommender systems
    novelty is how unpopular the items are
    Undefined: where the user knew no relevant document of the topic, as in every topic of a run
    without known documents, or no relevant document is retrieved
    """
    if run.known is None:
        return np.full(run.n_topics, np.nan)

    retrieved = run.relevant(rel).count(cutoff)
    known = ratio(_retrieved_known(run, run.known, cutoff, rel), retrieved)
    defined = (retrieved > 0) & ~np.isnan(_known_relevant(run, run.known, rel))
    return np.where(defined, 1 - known, np.nan)


def relative_recall(
    run: JudgedRun, *, cutoff: int | None = None, expected: int | None = None, rel: int = 1
) -> Floats:
    """Relative recall: the relevant documents found, relative to how many the user expected to
    find.

    Formula: RelativeRecall = relevant documents in ranks 1..k / expected
    Range: 0 and above; above 1 where more is found than was expected
    Source: Baeza-Yates and Ribeiro-Neto, Modern Information Retrieval, chapter 4
    Elsewhere: relative recall is also the share of what several systems together find (Clarke and
    Willett, Aslib Proceedings 49(7), 1997), which is R@k under pooled judgements
    Undefined: where no number is expected: neither by the parameter nor for the topic with the
    run's known documents
    """
    return run.relevant(rel).count(cutoff) / _expected(run, expected)


def recall_effort(
    run: JudgedRun, *, cutoff: None = None, expected: int | None = None, rel: int = 1
) -> Floats:
    """Recall effort: how many relevant documents the user expected, relative to how many had to be
    examined for them.

    Formula: RecallEffort = expected / rank at which the expected number of relevant documents is
    reached
    Range: 0 to 1; 1 where every document down to there is relevant, so that more is less effort
    Source: Baeza-Yates and Ribeiro-Neto, Modern Information Retrieval, chapter 4; it is the
    precision at that rank
    Elsewhere: the source counts the documents examined in the attempt, and leaves open when the
    user gives up
    Undefined: where the run does not reach the expected number, or none is expected, as for
    RelativeRecall
    """
    relevant, expected_number = run.relevant(rel), _expected(run, expected)
    reached = relevant.ordinal == expected_number[relevant.topic]
    topic = relevant.topic[reached]
    effort = np.full(run.n_topics, np.nan)
    effort[topic] = expected_number[topic] / relevant.rank[reached]

    return effort


def _known_relevant(run: JudgedRun, known: Known, rel: int) -> Floats:
    """Relevant documents the user knew, retrieved or not, NaN where there are none; shape
    (topics,)."""
    counts = known.base.sum_where(known.base.level >= rel)
    return np.where(counts > 0, counts, np.nan)


def _retrieved_known(run: JudgedRun, known: Known, cutoff: int | None, rel: int) -> Ints:
    """Relevant documents the user knew that are retrieved; shape (topics,)."""
    rows = known.rows & (run.level >= rel)
    if cutoff is not None:
        rows &= run.rank <= cutoff
    return np.bincount(run.topic[rows], minlength=run.n_topics)


def _expected(run: JudgedRun, expected: int | None) -> Floats:
    """Return how many relevant documents were expected, NaN where no number was given; shape
    (topics,)."""
    if expected is not None:
        return np.full(run.n_topics, float(expected))
    if run.known is None:
        return np.full(run.n_topics, np.nan)
    return np.where(run.known.expected > 0, run.known.expected, np.nan)
