"""The parameters of a comparison of systems, and the sessions that it compares, with their values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.grammar import Measure
from metrics.engine.ranking import Floats
from metrics.engine.sessions.blocks import Session
from metrics.engine.sessions.designs import Design, Factors, samples
from metrics.engine.sessions.grammar import session_values
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.families import USUAL_RULE, Rule
from metrics.engine.significance.pairs import DEFAULTS, Options
from metrics.models import SessionEvaluation
from metrics.services.question import (
    MAX_SEED,
    RESAMPLES,
    Choice,
    Context,
    Integer,
    Parameter,
    Question,
    Share,
    group,
    parameter,
)
from metrics.services.sessions.board import current_evaluations, system_name
from metrics.services.sessions.judged_sets import begin_sessions, check_means, load_sets, work_of
from metrics.services.sessions.parameters import JUDGED_BY, SessionMeasure
from runs.errors import InvalidInput
from runs.models import Collection

MAX_SYSTEMS = 50

ComparedFactor = Literal["systems", "searchers", "topics"]
COMPARED_FACTORS: tuple[ComparedFactor, ...] = ("systems", "searchers", "topics")
DESIGNS: tuple[Design, ...] = ("crossed", "paired", "latin_square", "two_way", "unpaired")
# The tests of an analysis of all sessions at once: crossed, and in a Latin square.
OWN_TESTS = ("min_f", "latin_square")
# The fields of a session that have the roles of system, topic and searcher in an analysis.
_ROLES: dict[ComparedFactor, tuple[str, str, str]] = {
    "systems": ("system", "topic_id", "searcher"),
    "searchers": ("searcher", "topic_id", "system"),
    "topics": ("topic_id", "searcher", "system"),
}


@dataclass(frozen=True)
class _Names(Parameter):
    """Names with commas between them."""

    default: Any = ()

    def read(self, text: str, name: str, context: Context) -> list[str]:
        return [part for part in text.split(",") if part]

    def write(self, value: Any) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class _SetIds(_Names):
    """Ids of session sets with commas between them."""

    def read(self, text: str, name: str, context: Context) -> list[str]:
        return [_set_id(part, name) for part in super().read(text, name, context)]


def _set_id(text: str, name: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not the id of a session set", pointer=name) from error


# What statistics of systems are made with, here and on their leaderboard.
DESIGN = Choice("default: the one that is recognised", choices=DESIGNS)
TEST = Parameter(", ".join([*OWN_TESTS, *TESTS]))
CORRECTION = Parameter(", ".join(CORRECTIONS), default=USUAL_RULE.correction)
ALPHA = Share("significance level", default=USUAL_RULE.alpha)
CONFIDENCE = Share("of the intervals", default=DEFAULTS.confidence)
DRAWS = Integer(
    "B of a test that draws", default=DEFAULTS.resamples, low=RESAMPLES[0], high=RESAMPLES[1]
)
SEED = Integer("of everything that is drawn", default=DEFAULTS.seed, high=MAX_SEED)


@dataclass(frozen=True)
class SessionComparisonQuery(Question):
    """The parameters of a comparison; no sets or systems means all, no design the recognised one, no test the usual one
    of the design.

    `compare` is the factor whose levels are compared; for searchers and topics, `systems` chooses the sessions and
    `baseline` is one of those compared.

    `descending` is the order of the systems by their means; None puts the best one first.
    """

    measure: Measure = parameter(SessionMeasure("a session measure, default: nsDCG"))
    sets: list[str] = parameter(
        _SetIds("session set ids separated by commas; default: all evaluated")
    )
    systems: list[str] = parameter(
        _Names("names separated by commas, as on the leaderboard; default: all")
    )
    compare: ComparedFactor = parameter(
        Choice(
            "what is compared: the systems, the searchers or the topics of the sessions",
            default=COMPARED_FACTORS[0],
            choices=COMPARED_FACTORS,
        )
    )
    baseline: str | None = parameter(
        Parameter("a system, or one of those compared: compare every other one with it only")
    )
    design: Design | None = parameter(DESIGN)
    test: str | None = parameter(TEST)
    rule: Rule = group(Rule, correction=CORRECTION, alpha=ALPHA)
    options: Options = group(Options, confidence=CONFIDENCE, resamples=DRAWS, seed=SEED)
    judged_by: str | None = parameter(JUDGED_BY)
    descending: bool | None = None


@dataclass(frozen=True)
class Sample:
    """All sessions that take part, with their values; `names` are in the order of the factors' systems, best first."""

    values: Floats
    factors: Factors
    names: list[str]
    entrants: dict[str, tuple[SessionEvaluation, str]]


def read_sample(collection: Collection, judged_by: str, query: SessionComparisonQuery) -> Sample:
    """Read the sessions of the named systems. Raise StatisticsError for fewer than two systems, too many of them, or an
    unknown one."""
    evaluations = current_evaluations(collection, judged_by)
    if query.sets:
        evaluated = {str(evaluation.session_set_id) for evaluation in evaluations}
        missing = [pk for pk in query.sets if pk not in evaluated]
        if missing:
            message = f"session set {missing[0]} is not evaluated, judged by {judged_by}, in {collection.slug}"
            raise StatisticsError(message, code="unknown_session_set", pointer="sets")
        evaluations = [
            evaluation for evaluation in evaluations if str(evaluation.session_set_id) in query.sets
        ]
    check_means(evaluations)
    entrants = {
        system_name(evaluation, system): (evaluation, system)
        for evaluation in evaluations
        for system in evaluation.means["systems"]
    }
    names = _chosen(entrants, query)
    taken = {entrants[name][0].pk for name in names}
    evaluations = [evaluation for evaluation in evaluations if evaluation.pk in taken]
    queries = sum(one.session_set.queries for one in evaluations)
    begin_sessions(work_of(queries, [query.measure]), "sets", read=queries)
    parts: list[Floats] = []
    sessions: list[Session] = []
    for evaluation, judged in load_sets(evaluations):
        label = [system_name(evaluation, name.decode()) for name in judged.systems]
        taking = np.flatnonzero(
            np.isin(judged.system, [i for i, name in enumerate(label) if name in names])
        )
        parts.append(session_values(judged.view, query.measure)[taking])
        owners = judged.system[taking].tolist()
        kept = (judged.sessions[index] for index in taking.tolist())
        sessions += [
            replace(one, system=label[owner].encode())
            for one, owner in zip(kept, owners, strict=True)
        ]
    if query.compare != "systems":
        sessions = _in_roles(sessions, query.compare)
    factors = Factors.of(sessions)
    names_in_order = [name.decode() for name in factors.systems]
    if query.compare != "systems":
        if not 2 <= len(names_in_order) <= MAX_SYSTEMS:
            few = len(names_in_order) < 2
            message = (
                f"2 to {MAX_SYSTEMS} {query.compare} can be compared; found {len(names_in_order)}"
            )
            code = "too_few_systems" if few else "too_many_systems"
            raise StatisticsError(message, code=code, pointer="compare")
        entrants = {name: (evaluations[0], name) for name in names_in_order}
    return _in_order(Sample(np.concatenate(parts), factors, names_in_order, entrants), query)


def _in_roles(sessions: list[Session], compare: ComparedFactor) -> list[Session]:
    """Return the sessions with the compared factor in the place of the system, and the others in those of topic and
    searcher. Raise StatisticsError if a session does not name its searcher."""
    if not all(session.searcher for session in sessions):
        message = f"{compare} cannot be compared: some sessions do not name their searcher"
        raise StatisticsError(message, code="not_crossed", pointer="compare")
    system, topic, searcher = _ROLES[compare]
    return [
        replace(
            session,
            system=getattr(session, system),
            topic_id=getattr(session, topic),
            searcher=getattr(session, searcher),
        )
        for session in sessions
    ]


def in_words_of(text: str, compare: ComparedFactor) -> str:
    """Return a text about systems, topics and searchers in the words of what has their roles."""
    nouns = [field.removesuffix("_id") for field in _ROLES[compare]]
    words = dict(zip(("system", "topic", "searcher"), nouns, strict=True))
    return re.sub(r"\b(system|topic|searcher)(?=s?\b)", lambda match: words[match[0]], text)


def _chosen(
    entrants: dict[str, tuple[SessionEvaluation, str]], query: SessionComparisonQuery
) -> set[str]:
    """Return the systems that take part by their full names; a system's own name is enough if only one set has it."""
    names = set()
    baseline = query.systems and query.compare == "systems" and query.baseline
    for name in [*query.systems, *([baseline] if baseline else [])]:
        found = [full for full, (_, system) in entrants.items() if name in (full, system)]
        if len(found) != 1:
            what = (
                "is in several session sets"
                if found
                else "is not in any evaluated session set here"
            )
            message = f"system {name[:100]!r} {what}; write team/tag:system"
            raise StatisticsError(message, code="unknown_system", pointer="systems")
        names.add(found[0])
    names = names or set(entrants)
    if query.compare != "systems":
        return names
    if not 2 <= len(names) <= MAX_SYSTEMS:
        few = len(names) < 2
        say = f"a comparison needs 2 to {MAX_SYSTEMS} systems; found {len(names)}. Name some with systems="
        raise StatisticsError(
            say, code="too_few_systems" if few else "too_many_systems", pointer="systems"
        )
    return names


def _in_order(sample: Sample, query: SessionComparisonQuery) -> Sample:
    """Return the same sample with the systems in the order of their means."""
    descending = not query.measure.lower_is_better if query.descending is None else query.descending
    means = [
        float(np.mean(values)) if len(values) else np.nan
        for values in samples(sample.values, sample.factors)
    ]
    order = np.argsort(-np.array(means) if descending else np.array(means), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    names = [sample.names[index] for index in order.tolist()]
    systems = [sample.factors.systems[index] for index in order.tolist()]
    factors = replace(sample.factors, systems=systems, system=place[sample.factors.system])
    return replace(sample, factors=factors, names=names)


def place_of(
    names: list[str], baseline: str | None, compare: ComparedFactor = "systems"
) -> int | None:
    """Return the place of a baseline among the systems, None without one. Raise StatisticsError if it is unknown."""
    if baseline is None:
        return None
    found = [
        index
        for index, name in enumerate(names)
        if name == baseline or (compare == "systems" and name.endswith(f":{baseline}"))
    ]
    if len(found) != 1:
        message = f"baseline {baseline[:100]!r} is not one of the compared {compare}"
        message += "; write team/tag:system" if compare == "systems" else ""
        raise StatisticsError(message, code="unknown_system", pointer="baseline")
    return found[0]
