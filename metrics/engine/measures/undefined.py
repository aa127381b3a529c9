"""The reasons why a topic has no value: for each measure that can be undefined, in the order in
which they are examined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from metrics.engine.arrays import Flags, Floats
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.cutoffs import at_each_cutoff
from metrics.engine.measures.external import NO_RANKING, NOT_IN_TABLE

REASONS = {
    "no_relevant_document": "no document of the topic is relevant",
    "too_few_relevant_documents": "the topic has fewer relevant documents than the user is after",
    "relevant_document_not_retrieved": "a relevant document that counts is not retrieved",
    "collection_too_small": "the number of documents is smaller than what is retrieved or relevant",
    "every_document_relevant": "the collection holds nothing but relevant documents",
    "no_document_retrieved": "no document is retrieved",
    "no_document_with_gain": "no judged document of the topic has a gain",
    "no_gain_retrieved": "no document with a gain is retrieved",
    "no_pair_of_documents": "the ranks hold no relevant or no non-relevant document",
    "no_known_documents": "the run came without known documents",
    "no_known_relevant_document": "the user knew no relevant document of the topic",
    "no_relevant_document_retrieved": "no relevant document is retrieved",
    "nothing_expected": "no number of relevant documents is expected",
    "expected_not_reached": "the run does not reach the expected number of relevant documents",
    "scores_left_out": "the scores of documents that were left out are not known",
    NOT_IN_TABLE: "the tables have no value of the run for this topic",
    NO_RANKING: "the run has no ranking: its values come from tables",
}

# Each reason, and the topics for which it holds; True for all.
_Reasons = list[tuple[str, Flags | bool]]
_Values = Mapping[str, Any]


def why_undefined(
    name: str, run: JudgedRun, values: Floats, parameters: _Values
) -> list[str | None]:
    """Return the reason of each topic without a value, a key of REASONS, and None for a topic with
    one.

    `parameters` are those of the measure, its cutoff among them; `values` are the computed values
    of the run.
    """
    missing = np.isnan(values)
    reasons: list[str | None] = [None] * len(values)
    for reason, topics in _RULES[name](run, parameters) if missing.any() else []:
        for topic in np.flatnonzero(missing & topics).tolist():
            reasons[topic] = reasons[topic] or reason

    return reasons


def _search_length(run: JudgedRun, values: _Values) -> _Reasons:
    num_rel, needed = run.num_rel(values["rel"]), values.get("n", 1)
    return [
        ("no_relevant_document", num_rel == 0),
        ("too_few_relevant_documents", num_rel < needed),
        ("collection_too_small", _too_small(run, values)),
        *_not_retrieved(values),
    ]


def _normalised_recall(run: JudgedRun, values: _Values) -> _Reasons:
    num_rel, retrieved = run.num_rel(values["rel"]), run.relevant(values["rel"]).count()
    return [
        ("no_relevant_document", num_rel == 0),
        ("collection_too_small", _too_small(run, values)),
        (
            "every_document_relevant",
            values["documents"] == (retrieved if values["missing"] == "ignore" else num_rel),
        ),
        *_not_retrieved(values),
    ]


def _too_small(run: JudgedRun, values: _Values) -> Flags | bool:
    """Return whether the collection cannot hold what is retrieved, and what is relevant where that
    is put into it."""
    if values["documents"] is None:
        return False

    num_rel, retrieved = run.num_rel(values["rel"]), run.num_ret
    if values["missing"] in ("next", "random"):
        retrieved = retrieved + num_rel - run.relevant(values["rel"]).count()
    too_small: Flags = values["documents"] < np.maximum(retrieved, num_rel)

    return too_small


def _not_retrieved(values: _Values) -> _Reasons:
    ignored = values["missing"] == "ignore"
    return [
        ("no_relevant_document_retrieved" if ignored else "relevant_document_not_retrieved", True)
    ]


def _accuracy(run: JudgedRun, values: _Values) -> _Reasons:
    return [("no_document_retrieved", run.num_ret == 0), ("no_pair_of_documents", True)]


def _satisfaction(run: JudgedRun, values: _Values) -> _Reasons:
    return [("no_relevant_document", True)]


def _frustration(run: JudgedRun, values: _Values) -> _Reasons:
    return [("no_document_retrieved", True)]


def _relative_relevance(run: JudgedRun, values: _Values) -> _Reasons:
    return [
        ("no_document_with_gain", run.ideal_gains(values["gains"]).count() == 0),
        ("scores_left_out", True),
    ]


def _half_life(run: JudgedRun, values: _Values) -> _Reasons:
    return [
        ("no_document_with_gain", run.ideal_gains(values["gains"]).count() == 0),
        ("no_gain_retrieved", True),
    ]


def _against_known(run: JudgedRun, values: _Values) -> _Reasons:
    if run.known is None:
        return [("no_known_documents", True)]

    base = run.known.base
    num_known = base.sum_where(base.level >= values["rel"])
    return [
        ("no_known_relevant_document", num_known == 0),
        ("no_relevant_document_retrieved", True),
    ]


def _against_expected(run: JudgedRun, values: _Values) -> _Reasons:
    if values["expected"] is not None:
        return [("expected_not_reached", True)]
    expected = np.zeros(run.n_topics) if run.known is None else run.known.expected
    return [("nothing_expected", expected == 0), ("expected_not_reached", True)]


def _at_each_cutoff(run: JudgedRun, values: _Values) -> _Reasons:
    reasons: _Reasons = []
    for measure in at_each_cutoff(values["of"], values["cutoffs"]):
        missing = np.isnan(measure.compute(run))
        if missing.any():
            judged, parameters = measure.as_called(run)
            rules = _RULES[measure.definition.name](judged, parameters)
            reasons += [(reason, holds & missing) for reason, holds in rules]

    return reasons


_RULES: dict[str, Callable[[JudgedRun, _Values], _Reasons]] = {
    "AvgCut": _at_each_cutoff,
    "SearchLength": _search_length,
    "ASL": _search_length,
    "ESL": _search_length,
    "NormRecall": _normalised_recall,
    "Accuracy": _accuracy,
    "Satisfaction": _satisfaction,
    "Total": _satisfaction,
    "Frustration": _frustration,
    "RelRelevance": _relative_relevance,
    "RHL": _half_life,
    "Coverage": _against_known,
    "Novelty": _against_known,
    "RelativeRecall": _against_expected,
    "RecallEffort": _against_expected,
}
