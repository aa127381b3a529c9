"""Judged answers of the RAG tracks: the values of each, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from runs.formats.judged_answers import BadAnswer, answer_values, is_answer


def _nuggets(*labels: str) -> list[dict[str, str]]:
    return [
        {"text": label, **dict(zip(("importance", "assignment"), label.split(), strict=True))}
        for label in labels
    ]


def _scores(**record: Any) -> dict[str, float]:
    assert is_answer(record)
    rows = list(answer_values({"run_id": "r1", "qid": "301", **record}))
    assert {(run, topic) for run, topic, _, _ in rows} == {("r1", "301")}
    return {measure: value for _, _, measure, value in rows}


def test_nuggets_are_scored_as_the_nuggetizer_scores_them() -> None:
    """The first two are what calculate_nugget_scores of nuggetizer returns."""
    nuggets = _nuggets("vital support", "vital partial_support", "okay not_support")
    assert _scores(nuggets=nuggets) == {
        "strict_vital_score": 0.5,
        "strict_all_score": 1 / 3,
        "vital_score": 0.75,
        "all_score": 0.5,
    }
    assert set(_scores(nuggets=[]).values()) == {0.0}

    okay = _scores(nuggets=_nuggets("okay support", "okay partial_support"), response_length=90)
    assert okay == {
        "strict_vital_score": 0.0,
        "strict_all_score": 0.5,
        "vital_score": 0.0,
        "all_score": 0.75,
        "answer_words": 90.0,
    }


def test_citations_are_scored_by_sentence_and_by_document() -> None:
    answer = [
        {"text": text}
        for text in ("Two words.", "Three words here.", "One.", "And four words more.")
    ]
    support = [{"eval_scores": ["PS", "FS"]}, {"eval_scores": ["NS"]}, {"eval_scores": []}]

    # Of four sentences, one of which was left out as it cites nothing.
    assert _scores(answer=answer, support_eval=support) == {
        "citation_precision": 0.5,
        "citation_recall": 0.25,
        "answer_words": 10.0,
    }
    # Nothing is cited: no precision.
    assert _scores(support_eval=support[2:]) == {"citation_recall": 0.0}
    # An answer without a sentence is a bad one, not one that nobody judged.
    assert _scores(answer=[], support_eval=[]) == {"citation_recall": 0.0, "answer_words": 0.0}


def test_answers_may_be_plain_text() -> None:
    nuggets = _nuggets("vital support")
    assert _scores(answer="Three words here.", nuggets=nuggets)["answer_words"] == 3
    assert _scores(answer=" ", nuggets=nuggets)["answer_words"] == 0


def test_run_and_topic_have_the_names_of_each_year() -> None:
    nuggets = _nuggets("vital support")
    of_2024 = {"run_id": "r1", "topic_id": "2027497", "topic": "how often", "nuggets": nuggets}
    of_2025 = {"metadata": {"run_id": "r1", "narrative_id": 14}, "nuggets": nuggets}
    assert {row[:2] for row in answer_values(of_2024)} == {("r1", "2027497")}
    assert {row[:2] for row in answer_values(of_2025)} == {("r1", "14")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nuggets": _nuggets("vital failed")}, "assignment 'failed' is none of support"),
        ({"nuggets": _nuggets("huge support")}, "importance 'huge' is none of vital, okay"),
        ({"nuggets": ["text"]}, "each of nuggets must be an object"),
        ({"nuggets": {}}, "nuggets must be a list"),
        ({"nuggets": [], "run_id": ""}, "the answer lacks run_id"),
        ({"nuggets": [], "qid": None}, "the answer lacks qid"),
        ({"nuggets": [], "run_id": ["r1"]}, "run_id must be a text or a number"),
        ({"nuggets": [], "qid": {}}, "qid must be a text or a number"),
        ({"nuggets": [], "answer": 5}, "answer must be a list of objects"),
        ({"nuggets": [], "response_length": "long"}, "response_length is 'long'"),
        ({"nuggets": [], "response_length": -1}, "response_length is '-1'"),
        ({"support_eval": [{"eval_scores": "FS"}]}, "eval_scores, a list of FS, PS and NS"),
        ({"support_eval": [{"eval_scores": [None]}]}, "eval_scores 'None' is none of FS"),
        ({"support_eval": [], "metadata": "run"}, "metadata must be an object"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadAnswer, match=message):
        list(answer_values({"run_id": "r1", "qid": "301", **change}))
