"""Select the sessions that a comparison of systems takes, with their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
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

ComparedFactor = Literal["systems", "searchers", "topics", "collections"]
COMPARED_FACTORS: tuple[ComparedFactor, ...] = ("systems", "searchers", "topics", "collections")
DESIGNS: tuple[Design, ...] = ("crossed", "paired", "latin_square", "two_way", "unpaired")
# The tests of an analysis of all sessions at once: crossed, and in a Latin square.
OWN_TESTS = ("min_f", "latin_square")
# The fields of a session that have the roles of system, topic and searcher in an analysis.
_ROLES: dict[ComparedFactor, tuple[str, str, str]] = {
    "systems": ("system", "topic_id", "searcher"),
    "searchers": ("searcher", "topic_id", "system"),
    "topics": ("topic_id", "searcher", "system"),
    # The topics of two collections are not the same ones, even if they have the same names.
    "collections": ("collection", "searcher", "system"),
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
    """The parameters of a comparison.

    No sets or systems means all, no design the recognised one, no test the usual one of the design.

    `compare` is the factor whose levels are compared; for those other than systems, `systems`
    chooses the sessions and `baseline` is one of those compared. `collections` are those that are
    compared with the collection of the question.

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
            "what is compared: the systems, the searchers or the topics of the sessions, or this "
            "collection with others",
            default=COMPARED_FACTORS[0],
            choices=COMPARED_FACTORS,
        )
    )
    collections: list[str] = parameter(
        _Names("collections to compare this one with, separated by commas (compare=collections)")
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

    def other_collections(self, own: Collection) -> list[str]:
        """Return the names of the collections that are compared with `own`.

        Raise StatisticsError if there are none, too many, or some where something else is compared.
        """
        others = [slug for slug in dict.fromkeys(self.collections) if slug != own.slug]
        if self.compare != "collections":
            if self.collections:
                message = "collections are compared by compare=collections"
                raise StatisticsError(message, code="bad_parameter", pointer="collections")
        elif not others:
            message = "name the collections to compare this one with, as in collections=web-2,web-3"
            raise StatisticsError(message, code="too_few_systems", pointer="collections")
        elif len(others) >= MAX_SYSTEMS:
            message = f"at most {MAX_SYSTEMS} collections can be compared; found {len(others) + 1}"
            raise StatisticsError(message, code="too_many_systems", pointer="collections")

        return others


@dataclass(frozen=True)
class Sample:
    """All sessions that take part, with their values.

    `names` are in the order of the factors' systems, best first.
    """

    values: Floats
    factors: Factors
    names: list[str]
    entrants: dict[str, tuple[SessionEvaluation, str]]


def read_sample(
    collection: Collection,
    judged_by: str,
    query: SessionComparisonQuery,
    others: Sequence[Collection] = (),
) -> Sample:
    """Read the sessions of the named systems in the collection, and in the `others`.

    Raise StatisticsError for fewer than two systems, too many of them, or an unknown one.
    """
    evaluations = _evaluations([collection, *others], judged_by, query)
    check_means(evaluations)

    entrants: dict[str, list[tuple[SessionEvaluation, str]]] = {}
    for evaluation in evaluations:
        for system in evaluation.means["systems"]:
            entrants.setdefault(system_name(evaluation, system), []).append((evaluation, system))

    names = _choose_systems(entrants, query)
    used = {evaluation.pk for name in names for evaluation, _ in entrants[name]}
    evaluations = [evaluation for evaluation in evaluations if evaluation.pk in used]
    queries = sum(entrant.session_set.queries for entrant in evaluations)
    begin_sessions(work_of(queries, [query.measure]), "sets", read=queries)

    parts: list[Floats] = []
    sessions: list[Session] = []
    for evaluation, judged in load_sets(evaluations):
        label = [system_name(evaluation, name.decode()) for name in judged.systems]
        sessions_taken = np.flatnonzero(
            np.isin(judged.system, [i for i, name in enumerate(label) if name in names])
        )
        parts.append(session_values(judged.view, query.measure)[sessions_taken])
        slug = evaluation.session_set.collection.slug

        for index, owner in zip(
            sessions_taken.tolist(), judged.system[sessions_taken].tolist(), strict=True
        ):
            session = replace(judged.sessions[index], system=label[owner].encode())
            sessions.append(_in_role(session, query.compare, slug))

    factors = Factors.of(sessions)
    levels = [name.decode() for name in factors.systems]
    if query.compare == "systems":
        compared = {name: entrants[name][0] for name in levels}
    elif 2 <= len(levels) <= MAX_SYSTEMS:
        compared = {level: (evaluations[0], level) for level in levels}
    else:
        message = f"2 to {MAX_SYSTEMS} {query.compare} can be compared; found {len(levels)}"
        code = "too_few_systems" if len(levels) < 2 else "too_many_systems"
        raise StatisticsError(message, code=code, pointer="compare")

    return _in_order(Sample(np.concatenate(parts), factors, levels, compared), query)


def _evaluations(
    collections: list[Collection], judged_by: str, query: SessionComparisonQuery
) -> list[SessionEvaluation]:
    """Return the evaluations of the sets that take part.

    Raise StatisticsError if one of them is not evaluated, or if a collection has none.
    """
    slugs = [collection.slug for collection in collections]
    evaluations: list[SessionEvaluation] = []
    for collection in collections:
        current = current_evaluations(collection, judged_by)
        if not current and len(collections) > 1:
            message = f"no session set of {collection.slug} is evaluated, judged by {judged_by}"
            raise StatisticsError(message, code="unknown_session_set", pointer="collections")
        evaluations += current

    evaluated = {str(evaluation.session_set_id) for evaluation in evaluations}
    missing = [pk for pk in query.sets if pk not in evaluated]
    if missing:
        message = (
            f"session set {missing[0]} is not evaluated, judged by {judged_by}, in "
            f"{' or '.join(slugs)}"
        )
        raise StatisticsError(message, code="unknown_session_set", pointer="sets")

    chosen = set(query.sets) or evaluated
    return [candidate for candidate in evaluations if str(candidate.session_set_id) in chosen]


def _in_role(session: Session, compare: ComparedFactor, collection: str) -> Session:
    """Return the session with the compared factor in the place of the system.

    The other factors are in the places of topic and searcher. Raise StatisticsError for a session
    that does not name the searcher that is needed.
    """
    if not session.searcher and compare in ("searchers", "topics"):
        message = f"{compare} cannot be compared: some sessions do not name their searcher"
        raise StatisticsError(message, code="not_crossed", pointer="compare")

    system, topic, searcher = (
        collection.encode() if role == "collection" else getattr(session, role)
        for role in _ROLES[compare]
    )

    return replace(session, system=system, topic_id=topic, searcher=searcher)


def in_words_of(text: str, compare: ComparedFactor) -> str:
    """Return a text about systems, topics and searchers in the words of what has their roles."""
    nouns = [field.removesuffix("_id") for field in _ROLES[compare]]
    words = dict(zip(("system", "topic", "searcher"), nouns, strict=True))
    return re.sub(r"\b(system|topic|searcher)(?=s?\b)", lambda match: words[match[0]], text)


def _choose_systems(
    entrants: dict[str, list[tuple[SessionEvaluation, str]]], query: SessionComparisonQuery
) -> set[str]:
    """Return the systems that take part by their full names.

    A system's own name is enough if only one set has it.
    """
    names = set()
    baseline = query.systems and query.compare == "systems" and query.baseline
    for name in [*query.systems, *([baseline] if baseline else [])]:
        matches = [full for full in entrants if name in (full, entrants[full][0][1])]
        # A system that is compared with itself in other collections may be in a set of each.
        if not matches or (len(matches) > 1 and query.compare != "collections"):
            problem = (
                "is in several session sets"
                if matches
                else "is not in any evaluated session set here"
            )
            message = f"system {name[:100]!r} {problem}; write team/tag:system"
            raise StatisticsError(message, code="unknown_system", pointer="systems")

        names.update(matches)

    names = names or set(entrants)
    if query.compare != "systems":
        return names

    if not 2 <= len(names) <= MAX_SYSTEMS:
        few = len(names) < 2
        text = (
            f"a comparison needs 2 to {MAX_SYSTEMS} systems; found {len(names)}. Name some with "
            "systems="
        )
        raise StatisticsError(
            text, code="too_few_systems" if few else "too_many_systems", pointer="systems"
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
) -> tuple[int, ...]:
    """Return the place of a baseline among the systems; empty without one.

    Raise StatisticsError if it is unknown.
    """
    if baseline is None:
        return ()

    places = [
        index
        for index, name in enumerate(names)
        if name == baseline or (compare == "systems" and name.endswith(f":{baseline}"))
    ]

    if len(places) != 1:
        message = f"baseline {baseline[:100]!r} is not one of the compared {compare}"
        message += "; write team/tag:system" if compare == "systems" else ""
        raise StatisticsError(message, code="unknown_system", pointer="baseline")

    return tuple(places)
