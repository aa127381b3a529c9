"""The engine as a library: compute values of measures from judgements and a run, without a server
or a database."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from metrics.engine.arrays import Bytes, Ints
from metrics.engine.errors import InputError, MeasureError
from metrics.engine.judgement.judging import SCORE_TYPES, Judgements, ScoreType, judge
from metrics.engine.judgement.ranking import RankedBlock, hash_spans
from metrics.engine.judgement.sampling import MIN_PROBABILITY, Sampling
from metrics.engine.judgement.subtopics import Subtopics
from metrics.engine.measures.definition import MAX_LEVEL
from metrics.engine.measures.grammar import parse_measure, split_names
from metrics.engine.trec_eval.files import FilePath, QrelsRows, RunRows, read_qrels, read_run

# The possible uses of the second column of a qrels file.
Iteration = Literal["subtopic", "ignore"]
_ITERATIONS = (None, "subtopic", "ignore")
# Hashes only propose where a document may be found: any seed gives the same values.
_SEED = 0


@dataclass(frozen=True)
class Evaluated:
    """The values of one run; every mapping has the measures by the names in the request.

    `values` has a number for every judged topic, NaN where the measure is undefined; `undefined`
    then gives the reason by topic, as a key of `REASONS`. `means` has the value of the run over the
    topics that have a value (NaN if none has), and `aggregates` how it is computed: mean, sum,
    geometric mean or pooled ratio. `measures` has the canonical names. `topics` are the judged
    ones, in the order of the judgements; of those, `unanswered` are not in the run and count as
    empty rankings. `unjudged` topics of the run have no judgements and are ignored.
    """

    measures: dict[str, str]
    topics: tuple[str, ...]
    values: dict[str, dict[str, float]]
    means: dict[str, float]
    aggregates: dict[str, str]
    undefined: dict[str, dict[str, str]]
    unanswered: tuple[str, ...]
    unjudged: tuple[str, ...]


def evaluate(
    qrels: Mapping[str, Mapping[str, int]] | FilePath,
    run: Mapping[str, Mapping[str, float]] | FilePath,
    measures: str | Iterable[str],
    *,
    scores: ScoreType = "float64",
    documents: int | None = None,
    iteration: Iteration | None = None,
    strata: Mapping[str, Mapping[str, str]] | None = None,
    probabilities: Mapping[str, Mapping[str, float]] | None = None,
) -> Evaluated:
    """Evaluate a run: exactly the values that the service gives, per topic and in the mean over all
    judged topics.

    `qrels` maps topics to documents to levels (whole numbers), `run` topics to documents to scores;
    either may be the path of a TREC file instead, plain or gzip. `measures` is a list of names, or
    one string with commas or blanks between them; gains, discounts, cutoffs and levels of relevance
    are parts of a name. Documents are ranked by score, then by doc_id, both descending; ranks in a
    file are ignored, as in trec_eval.

    `scores="float32"` compares scores as trec_eval 9 did. `documents` is the size of the
    collection, for the few measures that need it. `iteration` says what the second column of a
    qrels file is: `subtopic` or nothing (`ignore`); without it, subtopics where a topic judges a
    document under two of them.

    Of sampled judgements, `strata` has the stratum of each document of `qrels`, where a level below
    0 means that it was not drawn; or `probabilities` has the probability with which each was drawn,
    above 0 and at most 1. Only estimates, such as statAP, are then computed.

    Raises MeasureError for a name that means nothing, InputError (a ValueError) for a topic,
    document or line that cannot be read, and OSError for a file that cannot.

    >>> qrels = {"1": {"d1": 2, "d2": 0, "d3": 1}, "2": {"d4": 1}}
    >>> run = {"1": {"d1": 9.5, "d2": 8.1}, "2": {"d9": 7.7, "d4": 7.2}}
    >>> evaluated = evaluate(qrels, run, "nDCG@10 AP P(rel=2)@1")
    >>> evaluated.values["AP"]
    {'1': 0.5, '2': 0.5}
    >>> round(evaluated.means["nDCG@10"], 4)
    0.6956

    A topic without an answer counts as an empty ranking, and one without a value says why:

    >>> evaluated = evaluate(qrels, {"1": {"d1": 1.0}}, ["AP", "ESL"])
    >>> evaluated.unanswered, evaluated.means["AP"]
    (('2',), 0.25)
    >>> evaluated.values["ESL"]["2"], evaluated.undefined["ESL"]["2"]
    (nan, 'relevant_document_not_retrieved')
    """
    if scores not in SCORE_TYPES:
        raise InputError(f"scores is {' or '.join(SCORE_TYPES)}, not {scores!r}")
    if iteration not in _ITERATIONS:
        raise InputError(f"iteration is subtopic or ignore, not {iteration!r}")

    names = split_names(measures) if isinstance(measures, str) else list(dict.fromkeys(measures))
    if not names:
        raise MeasureError("name at least one measure")

    requested = {name: parse_measure(name, documents) for name in names}
    judged = read_qrels(qrels) if isinstance(qrels, str | os.PathLike) else _qrels_rows(qrels)
    ranked = read_run(run) if isinstance(run, str | os.PathLike) else _run_rows(run)
    judgements = _judgements(judged, iteration)
    if strata is not None or probabilities is not None:
        judgements = replace(judgements, sampling=_sampling(judgements, strata, probabilities))
    view = judge([_block(ranked)], judgements, scores)

    topics = tuple(topic.decode() for topic in judgements.topic_ids)
    values, means, undefined = {}, {}, {}
    for name, measure in requested.items():
        column = measure.compute(view)
        figure, _ = measure.aggregate(column, view)
        values[name] = dict(zip(topics, column.tolist(), strict=True))
        means[name] = math.nan if figure is None else figure
        reasons = zip(topics, measure.why_undefined(view, column), strict=True)
        undefined[name] = {topic: reason for topic, reason in reasons if reason}

    return Evaluated(
        measures={name: measure.name for name, measure in requested.items()},
        topics=topics,
        values=values,
        means=means,
        aggregates={name: measure.aggregate_name for name, measure in requested.items()},
        undefined=undefined,
        unanswered=tuple(
            topic for topic, count in zip(topics, view.num_ret.tolist(), strict=True) if not count
        ),
        unjudged=tuple(topic.decode() for topic in ranked if topic not in judgements.topic_index),
    )


def _sampling(
    judgements: Judgements,
    strata: Mapping[str, Mapping[str, str]] | None,
    probabilities: Mapping[str, Mapping[str, float]] | None,
) -> Sampling:
    """Return the sampling of judgements, whose documents are all in one of the mappings."""
    if strata is not None and probabilities is not None:
        raise InputError("give strata or probabilities, not both")

    by_document: dict[tuple[int, bytes], Any] = {}
    name = "strata" if strata is not None else "probabilities"
    for topic_id, documents in _items(strata if strata is not None else probabilities, name):
        topic = judgements.topic_index.get(_id(topic_id, "topic"))
        for document, value in _items(documents, f"the {name} of topic {topic_id!r}"):
            place = -1 if topic is None else topic, _id(document, "document")
            if place not in judgements.places:
                message = f"document {document!r} of topic {topic_id!r} has no level"
                raise InputError(f"{message}: write -1 if it was not drawn")
            by_document[place] = value

    values = []
    for topic, document in judgements.places:
        if (topic, document) not in by_document:
            topic_id = judgements.topic_ids[topic].decode()
            raise InputError(f"{name} lacks document {document.decode()!r} of topic {topic_id!r}")
        values.append(by_document[topic, document])

    # `places` has the documents in the order of the rows.
    if strata is not None:
        numbers = {stratum: number for number, stratum in enumerate(dict.fromkeys(values))}
        rows = np.array([numbers[stratum] for stratum in values], np.int64)
        return Sampling.of_strata(judgements.topics, rows, judgements.levels)

    for value in values:
        if not isinstance(value, Real) or not MIN_PROBABILITY <= float(value) <= 1:
            message = f"a probability is a number from {MIN_PROBABILITY:f} to 1, not {value!r}"
            raise InputError(message)
    drawn = np.array(values, np.float64)
    return Sampling.of_probabilities(judgements.topics, drawn, judgements.levels)


def _qrels_rows(qrels: Mapping[str, Mapping[str, int]]) -> QrelsRows:
    rows: QrelsRows = {}
    for topic, documents in _items(qrels, "the judgements"):
        judged = rows[_id(topic, "topic")] = {}
        for document, level in _items(documents, f"the judgements of topic {topic!r}"):
            if not isinstance(level, Integral) or abs(int(level)) > MAX_LEVEL:
                message = (
                    f"is {level!r}, which is not a whole number from -{MAX_LEVEL} to {MAX_LEVEL}"
                )
                raise InputError(f"the level of document {document!r} of topic {topic!r} {message}")
            judged[_id(document, "document"), b""] = int(level)

    return rows


def _run_rows(run: Mapping[str, Mapping[str, float]]) -> RunRows:
    rows: RunRows = {}
    for topic, documents in _items(run, "the run"):
        ranked = rows[_id(topic, "topic")] = {}
        for document, score in _items(documents, f"the ranking of topic {topic!r}"):
            if not isinstance(score, Real) or not math.isfinite(score):
                message = f"is {score!r}, which is not a finite number"
                raise InputError(f"the score of document {document!r} of topic {topic!r} {message}")
            ranked[_id(document, "document")] = float(score)

    return rows


def _items(mapping: Any, name: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(mapping, Mapping):
        raise InputError(f"{name} must be a dictionary, not {type(mapping).__name__}")
    return mapping.items()


def _id(text: Any, kind: str) -> bytes:
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"a {kind} id is text of one character or more, not {text!r}")
    return text.encode()


def _judgements(rows: QrelsRows, iteration: Iteration | None) -> Judgements:
    """Return the judgements in arrays; a document that is judged in several iterations has the
    highest of its levels."""
    topic_ids = [topic for topic, judged in rows.items() if judged]
    if not topic_ids:
        raise InputError("the judgements are empty")

    levels: list[dict[bytes, int]] = []
    for topic in topic_ids:
        highest: dict[bytes, int] = {}
        for (document, _), level in rows[topic].items():
            highest[document] = max(level, highest.get(document, level))
        levels.append(highest)

    repeated = any(
        len(judged) < len(rows[topic]) for topic, judged in zip(topic_ids, levels, strict=True)
    )
    by_subtopic = iteration == "subtopic" or (iteration is None and repeated)
    data, starts, ends = _spans([document for judged in levels for document in judged])

    return Judgements(
        topic_ids=topic_ids,
        topics=np.repeat(np.arange(len(levels)), [len(judged) for judged in levels]),
        levels=np.array([level for judged in levels for level in judged.values()], np.int64),
        data=data,
        doc_starts=starts,
        doc_ends=ends,
        doc_hashes=hash_spans(data, starts, ends, _SEED),
        seed=_SEED,
        subtopics=_subtopics([rows[topic] for topic in topic_ids], levels) if by_subtopic else None,
    )


def _subtopics(
    rows: list[dict[tuple[bytes, bytes], int]], levels: list[dict[bytes, int]]
) -> Subtopics | None:
    """Return the level of each document in each iteration, or None if every topic has one iteration
    only."""
    # Iterations are numbered in the order in which they occur, over all topics.
    numbers: dict[bytes, int] = {}
    columns: list[tuple[int, int, int, int]] = []
    several, first_row = False, 0
    for topic, (judged, documents) in enumerate(zip(rows, levels, strict=True)):
        numbers_here = sorted(
            {numbers.setdefault(iteration, len(numbers)) for _, iteration in judged}
        )
        several |= len(numbers_here) > 1
        judgement = {document: first_row + index for index, document in enumerate(documents)}

        # By document descending, then by iteration.
        ordered = sorted(judged, key=lambda key: numbers[key[1]])
        ordered.sort(key=lambda key: key[0], reverse=True)
        for document, iteration in ordered:
            subtopic = numbers_here.index(numbers[iteration])
            level = judged[document, iteration]
            columns.append((topic, judgement[document], subtopic, level))
        first_row += len(documents)

    return Subtopics(*np.array(columns, np.int64).T.copy()) if several else None


def _block(rows: RunRows) -> RankedBlock:
    ranked = {topic: documents for topic, documents in rows.items() if documents}
    if not ranked:
        raise InputError("the run is empty")

    data, starts, ends = _spans(
        [document for documents in ranked.values() for document in documents]
    )
    sizes = [len(documents) for documents in ranked.values()]
    scores = np.array(
        [score for documents in ranked.values() for score in documents.values()], np.float64
    )
    topic_starts = np.append(0, np.cumsum(sizes))

    return RankedBlock(
        data=data,
        topic_ids=list(ranked),
        topic_starts=topic_starts,
        scores=scores,
        doc_starts=starts,
        doc_ends=ends,
        doc_hashes=hash_spans(data, starts, ends, _SEED),
    )


def _spans(ids: list[bytes]) -> tuple[Bytes, Ints, Ints]:
    """Return the ids one after another, and where each starts and ends."""
    ends = np.cumsum([len(doc_id) for doc_id in ids])
    return np.frombuffer(b"".join(ids), np.uint8), np.append(0, ends[:-1]), ends
