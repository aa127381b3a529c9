"""Judged answers of systems that generate text, as the tools of TREC's RAG tracks write them.

An object with `nuggets` says which nuggets an answer has (nuggetizer, `assign`); one with
`support_eval` says how far the documents that its sentences cite support them:

    {"run_id": "r1", "qid": "301", "response_length": 120,
     "nuggets": [{"text": "...", "importance": "vital", "assignment": "partial_support"}]}

    {"run_id": "r1", "topic_id": "301", "answer": [{"text": "...", "citations": [0, 3]}],
     "support_eval": [{"citations": [0, 3], "eval_scores": ["FS", "NS"]}]}

Formulas:

    strict_vital_score  vital nuggets with full support / vital nuggets; 0 for an answer to a topic
                        without vital nuggets
    strict_all_score    the same of all nuggets
    vital_score         as strict_vital_score, where partial support counts 1/2
    all_score           as strict_all_score, where partial support counts 1/2
    citation_precision  mean of the support of all judged citations: full 1, partial 1/2, none 0;
                        undefined for an answer without a judged citation
    citation_recall     mean over sentences of the best support that a citation of it has; 0 for a
                        sentence without one, and for an answer without a sentence
    answer_words        response_length, or the words of the answer

Sources: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track", 2024, and
calculate_nugget_scores of nuggetizer; Thakur et al., "Support Evaluation for the TREC 2024 RAG
Track", 2025, where one citation of each sentence was judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# The measures of answers, with the highest value of each: 0 is the lowest of all of them, and higher
# is better.
MEASURES: dict[str, tuple[float | None, str]] = {
    "strict_vital_score": (1.0, "vital nuggets with full support"),
    "strict_all_score": (1.0, "nuggets with full support"),
    "vital_score": (1.0, "vital nuggets, 1/2 for partial support"),
    "all_score": (1.0, "nuggets, 1/2 for partial support"),
    "citation_precision": (1.0, "citations that support their sentence"),
    "citation_recall": (1.0, "sentences that a citation supports"),
    "answer_words": (None, "length of the answer"),
}
# Of a nugget by an answer, and of a sentence by a document that it cites.
_ASSIGNMENTS = {"support": 1.0, "partial_support": 0.5, "not_support": 0.0}
_SUPPORT = {"FS": 1.0, "PS": 0.5, "NS": 0.0}
_IMPORTANCE = ("vital", "okay")
_RUN, _TOPIC = ("run_id", "run"), ("qid", "topic_id", "narrative_id", "query_id", "topic")


class BadAnswer(ValueError):
    """A record that cannot be read: what is wrong with it, as a sentence."""


def is_answer(record: Mapping[str, Any]) -> bool:
    """Return whether a JSON object is a judged answer and not a value."""
    return "nuggets" in record or "support_eval" in record


def answer_values(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """Yield run, topic, measure and value of a judged answer. Raise BadAnswer."""
    fields = {**record, **_mapping(record.get("metadata", {}), "metadata")}
    run, topic = _name(fields, _RUN), _name(fields, _TOPIC)

    values: dict[str, float] = {}
    if "nuggets" in record:
        values |= _nugget_scores(_list(record["nuggets"], "nuggets"))
    if "support_eval" in record:
        values |= _citation_scores(record)
    if (words := _words(record)) is not None:
        values["answer_words"] = words

    for measure, value in values.items():
        yield run, topic, measure, value


def _nugget_scores(nuggets: list[Mapping[str, Any]]) -> dict[str, float]:
    support = [_weight(nugget.get("assignment"), _ASSIGNMENTS, "assignment") for nugget in nuggets]
    for nugget in nuggets:
        if nugget.get("importance") not in _IMPORTANCE:
            raise BadAnswer(_wrong("importance", nugget.get("importance"), _IMPORTANCE))

    vital = [
        weight
        for nugget, weight in zip(nuggets, support, strict=True)
        if nugget["importance"] == "vital"
    ]
    return {
        "strict_vital_score": _mean([float(weight == 1) for weight in vital]),
        "strict_all_score": _mean([float(weight == 1) for weight in support]),
        "vital_score": _mean(vital),
        "all_score": _mean(support),
    }


def _citation_scores(record: Mapping[str, Any]) -> dict[str, float]:
    sentences = _list(record["support_eval"], "support_eval")
    support = []
    for sentence in sentences:
        labels = sentence.get("eval_scores")
        if not isinstance(labels, list):
            raise BadAnswer(
                "each sentence of support_eval has eval_scores, a list of FS, PS and NS"
            )
        support.append([_weight(label, _SUPPORT, "eval_scores") for label in labels])

    # Some programs leave out the sentences without a citation.
    number = max(len(sentences), len(_sentences(record)))
    judged = [weight for weights in support for weight in weights]
    scores = {"citation_precision": _mean(judged)} if judged else {}
    best = [max(weights, default=0.0) for weights in support]
    scores["citation_recall"] = sum(best) / number if number else 0.0
    return scores


def _words(record: Mapping[str, Any]) -> float | None:
    length = record.get("response_length")
    if length is not None:
        number = str(length)
        if not number.isascii() or not number.isdigit() or len(number) > 9:
            raise BadAnswer(f"response_length is {number[:40]!r}, not a number of words")
        return float(number)

    if record.get("answer") is None:
        return None
    texts = [sentence.get("text") for sentence in _sentences(record)]
    if not all(isinstance(text, str) for text in texts):
        return None
    return float(sum(len(str(text).split()) for text in texts))


def _sentences(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    answer = record.get("answer")
    if answer is None:
        return []
    if isinstance(answer, str):
        # Nuggets are assigned to plain text, too, which nobody has divided into sentences.
        return [{"text": answer}] if answer.strip() else []
    return _list(answer, "answer")


def _name(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = fields.get(name)
        if value in (None, ""):
            continue
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
        raise BadAnswer(f"{name} must be a text or a number")
    raise BadAnswer(f"the answer lacks {names[0]}")


def _list(value: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise BadAnswer(f"{name} must be a list of objects")
    return [_mapping(item, f"each of {name}") for item in value]


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadAnswer(f"{name} must be an object")
    return value


def _weight(label: Any, weights: Mapping[str, float], name: str) -> float:
    if not isinstance(label, str) or label not in weights:
        raise BadAnswer(_wrong(name, label, tuple(weights)))
    return weights[label]


def _wrong(name: str, label: Any, labels: tuple[str, ...]) -> str:
    return f"{name} {str(label)[:40]!r} is none of {', '.join(labels)}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
