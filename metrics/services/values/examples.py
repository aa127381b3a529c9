"""A small ranking and a small session on which the page of a measure computes its values."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements, judge
from metrics.engine.measures.definition import Cutoff, MeasureDefinition
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.judging import judge_sessions
from metrics.services.values.known_measures import of_what
from runs.formats.sessions.reading import use_sessions
from runs.formats.trec_qrels import SUBTOPIC, read_qrels
from runs.formats.trec_run import use_run

# The same for a session of two queries: the same two documents are not retrieved.
EXAMPLE_QUERIES = ((0, 2, None, 1), (3, 0, 1, 0, 2))
# Levels of the documents at ranks 1 to 8, None for the unjudged one; two relevant documents are not
# retrieved.
EXAMPLE_LEVELS = (3, 0, 2, None, 0, 1, 0, 2)
EXAMPLE_MISSED = (3, 1)
_SUFFIXES = {
    Cutoff.NONE: ("",),
    Cutoff.OPTIONAL: ("", "@3", "@8"),
    Cutoff.REQUIRED: ("@3", "@8"),
    Cutoff.SHARE: ("@0.2", "@0.5"),
}
# Parameter values that clearly change a value, each instead of its default.
_VARIANTS = (
    ("rel", "2"),
    ("gains", "'exp'"),
    ("p", "0.5"),
    ("judged_only", "True"),
    ("relative", "True"),
    ("beta", "2"),
)
_SESSION_VARIANTS = (
    ("rel", "2"),
    ("gains", "'exp'"),
    ("b", "10"),
    ("bq", "none"),
    ("short", "'asis'"),
    ("ideal", "'once'"),
    ("norm", "'query'"),
    ("queries", "1"),
    ("figure", "'best'"),
    ("figure", "'last'"),
    ("figure", "'avgpos'"),
)


@dataclass(frozen=True)
class ExampleValue:
    """A measure and its value on the example, or None if it has none."""

    measure: Measure
    value: float | None


def example_values(definition: MeasureDefinition) -> list[ExampleValue]:
    """Return values of the measure at some cutoffs and with some other parameters.

    A measure of sessions is computed on the session.
    """
    arguments = [
        f"{parameter.name}={parameter.example}"
        for parameter in definition.parameters
        if parameter.example
    ]
    optional = {parameter.name for parameter in definition.parameters if not parameter.example}
    suffixes = _SUFFIXES[definition.cutoff]
    names = [_name_with(definition, arguments, suffix) for suffix in suffixes]

    if of_what(definition) == "sessions":
        names += [
            _name_with(definition, [*arguments, f"{name}={set_to}"], "")
            for name, set_to in _SESSION_VARIANTS
        ]

        session = _judged_session()
        return [
            ExampleValue(measure, measure.aggregate(session_values(session, measure))[0])
            for measure in _parse_valid(names, parse_session_measure)
        ]

    names += [
        _name_with(definition, [*arguments, f"{name}={set_to}"], suffixes[-1])
        for name, set_to in _VARIANTS
        if name in optional
    ]

    run = _judged()
    return [
        ExampleValue(measure, measure.aggregate(measure.compute(run), run)[0])
        for measure in _parse_valid(names, parse_measure)
    ]


def _name_with(definition: MeasureDefinition, arguments: list[str], suffix: str) -> str:
    return definition.name + (f"({','.join(arguments)})" if arguments else "") + suffix


def _parse_valid(names: list[str], parse: Callable[[str], Measure]) -> list[Measure]:
    """Return the names that are valid, without repetitions: some parameters need another one."""
    measures: dict[Measure, None] = {}
    for name in names:
        with contextlib.suppress(MeasureError):
            measures[parse(name)] = None
    return list(measures)


@cache
def _judged() -> JudgedRun:
    levels = [(f"d{rank}", level) for rank, level in enumerate(EXAMPLE_LEVELS, 1)]
    run = "".join(
        f"1 Q0 {doc_id} {rank} {100 - rank} example\n" for rank, (doc_id, _) in enumerate(levels, 1)
    )
    judgements = _judgements(levels)

    return use_run(lambda: io.BytesIO(run.encode()), lambda blocks: judge(blocks, judgements))[1]


@cache
def _judged_session() -> JudgedSessions:
    levels = [
        [(f"q{query}d{rank}", level) for rank, level in enumerate(ranking, 1)]
        for query, ranking in enumerate(EXAMPLE_QUERIES, 1)
    ]

    queries = [{"documents": [doc_id for doc_id, _ in ranking]} for ranking in levels]
    log = json.dumps({"session_id": "s", "topic_id": "1", "queries": queries}) + "\n"
    judgements = _judgements(
        [document for ranking in levels for document in ranking], own_subtopics=True
    )
    return use_sessions(
        lambda: io.BytesIO(log.encode()), lambda blocks: judge_sessions(blocks, judgements)
    )[1]


@cache
def zero_without_relevant(measure: Measure) -> bool:
    """Return whether a topic or session without a relevant document always has the value 0."""
    judgements = read_qrels(lambda: io.BytesIO(b"1 0 d1 0\n1 0 d2 0\n")).judgements
    if of_what(measure.definition) == "sessions":
        queries = [{"documents": ["d1", "d3"]}]
        log = json.dumps({"session_id": "s", "topic_id": "1", "queries": queries}) + "\n"
        session = use_sessions(
            lambda: io.BytesIO(log.encode()), lambda blocks: judge_sessions(blocks, judgements)
        )[1]
        compute = measure.definition.compute
        values = compute(session, cutoff=measure.cutoff, **measure.parameters)
    else:
        text = b"1 Q0 d1 1 2.0 r\n1 Q0 d3 2 1.0 r\n"
        run = use_run(lambda: io.BytesIO(text), lambda blocks: judge(blocks, judgements))[1]
        values = measure.compute(run)

    return bool((values == 0).all())


def _judgements(levels: list[tuple[str, int | None]], *, own_subtopics: bool = False) -> Judgements:
    """Return judgements in which all documents share one subtopic, or each has its own."""
    missed = [(f"m{number}", level) for number, level in enumerate(EXAMPLE_MISSED, 1)]
    judged = [(doc_id, level) for doc_id, level in [*levels, *missed] if level is not None]
    subtopics = range(len(judged)) if own_subtopics else [0] * len(judged)
    lines = (
        f"1 {subtopic} {doc_id} {level}\n"
        for subtopic, (doc_id, level) in zip(subtopics, judged, strict=True)
    )
    qrels = "".join(lines)

    return read_qrels(lambda: io.BytesIO(qrels.encode()), iteration=SUBTOPIC).judgements
