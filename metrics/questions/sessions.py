"""Read the parameters of requests about session sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from metrics.engine.errors import MeasureError
from metrics.engine.grammar import Measure
from metrics.engine.measures.definition import read_choice
from metrics.engine.sessions.designs import Design
from metrics.engine.sessions.grammar import check_has_values, parse_session_measures
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import DEFAULTS, Options
from metrics.models import SessionEvaluation
from metrics.questions.declared import SESSION_HOW_MADE
from metrics.questions.parameters import (
    MAX_LIMIT,
    MAX_SEED,
    MAX_VERSION,
    RESAMPLES,
    choice_in,
    several_in,
    share_in,
)
from metrics.services.sessions.board import SessionBoardQuery
from metrics.services.sessions.comparison import DESIGNS
from metrics.services.sessions.judged_sets import default_measures
from metrics.services.sessions.sample import (
    COMPARED_FACTORS,
    ComparedFactor,
    SessionComparisonQuery,
)
from metrics.services.sessions.standings import PARTS, SessionStandingsQuery
from metrics.services.sessions.values import SessionSelection, find_session_evaluation
from runs.api.parameters import MAX_OFFSET, integer_in
from runs.errors import InvalidInput
from runs.models import SessionSet

MAX_SESSIONS = 10_000
_MAX_QUERIES, _MAX_LENGTH, _MAX_DOCUMENTS = 1_000, 1_000_000, 10_000


def session_measures_in(
    parameters: Mapping[str, str], name: str = "measures", documents: int | None = None
) -> list[Measure]:
    """Return the session measures of one parameter, or the default ones; `documents` is the collection's size."""
    try:
        measures = parse_session_measures(parameters.get(name, ""), documents) or default_measures()
        for measure in measures:
            check_has_values(measure)
    except MeasureError as error:
        raise MeasureError(error.message, code=error.code, pointer=name) from error
    return measures


def session_measure_in(
    parameters: Mapping[str, str], name: str = "measure", documents: int | None = None
) -> Measure:
    """Return one session measure, nsDCG by default."""
    return session_measures_in(parameters, name, documents)[0]


def curve_measure_in(parameters: Mapping[str, str]) -> Measure:
    """Return one session measure that has a curve, by default nsDCG; it may have no values of sessions."""
    try:
        return (parse_session_measures(parameters.get("measure", "")) or default_measures())[0]
    except MeasureError as error:
        raise MeasureError(error.message, code=error.code, pointer="measure") from error


def leasts_in(parameters: Mapping[str, str]) -> list[int]:
    """Return one or two numbers of queries, the smaller first, that sessions must have at least."""
    leasts = several_in(
        parameters,
        "least",
        lambda text: integer_in({"least": text}, "least", 1, 1, _MAX_QUERIES),
    )
    if len(leasts) > 2:
        message = f"least={parameters['least'][:40]}: one or two numbers of queries, as least=1,4"
        raise InvalidInput(message, code="too_many_values", pointer="least")
    return sorted(leasts) or [1]


def selection_in(parameters: Mapping[str, str]) -> SessionSelection:
    """Return the selection of sessions: `system`, `topic` and `searcher` are exact, even if they are given empty."""
    return SessionSelection(
        parameters.get("system"),
        parameters.get("topic"),
        parameters.get("searcher"),
        integer_in(parameters, "least", 1, 1, _MAX_QUERIES),
    )


def session_evaluation_in(
    parameters: Mapping[str, str], session_set: SessionSet
) -> SessionEvaluation:
    """Return the evaluation of the set to read, by `qrels`."""
    version = integer_in(parameters, "qrels", 0, 0, MAX_VERSION) or None
    return find_session_evaluation(session_set=session_set, version=version)


def length_in(parameters: Mapping[str, str], most: int = _MAX_LENGTH) -> int | None:
    return integer_in(parameters, "length", 0, 0, most) or None


def documents_in(parameters: Mapping[str, str]) -> int:
    return integer_in(parameters, "documents", 100, 0, _MAX_DOCUMENTS)


def session_page_in(parameters: Mapping[str, str]) -> tuple[int, int]:
    """Return offset and limit of a list of sessions."""
    offset = integer_in(parameters, "offset", 0, 0, MAX_OFFSET)
    return offset, integer_in(parameters, "limit", 1_000, 1, MAX_SESSIONS)


def session_board_query(parameters: Mapping[str, str], documents: int | None) -> SessionBoardQuery:
    """Return the query of a leaderboard of systems. `sort` is a session measure; `order` is desc or asc, by default the
    one with the best system first."""
    measures = session_measures_in(parameters, documents=documents)
    sort = (
        session_measure_in(parameters, "sort", documents) if parameters.get("sort") else measures[0]
    )
    order = choice_in(parameters, "order", ("desc", "asc"))
    return SessionBoardQuery(
        measures=measures,
        sort=sort,
        descending=order == "desc" or (order is None and not sort.lower_is_better),
        judged_by=_judged_by(parameters),
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=integer_in(parameters, "limit", 50, 1, MAX_LIMIT),
    )


def session_standings_query(parameters: Mapping[str, str]) -> SessionStandingsQuery | None:
    """Return the statistics of a leaderboard of systems, or None if neither `statistics` nor `baseline` is given.

    Raise InvalidInput for options of statistics without them.
    """
    parts = several_in(
        parameters, "statistics", lambda text: read_choice("all", *PARTS)("statistics", text)
    )
    baseline = parameters.get("baseline") or None
    if not (parts or baseline):
        told = [name for name in SESSION_HOW_MADE if parameters.get(name)]
        if told:
            message = f"{told[0]} is an option of statistics: request some, such as statistics=tiers, or a baseline"
            raise InvalidInput(message, code="required", pointer="statistics")
        return None
    if "baseline" in parts and not baseline:
        raise InvalidInput(
            "statistics=baseline needs the name of a system: baseline=...", pointer="baseline"
        )
    wanted = {
        *parts,
        *(["baseline"] if baseline else []),
        *(["intervals", "tiers"] if "all" in parts else []),
    }
    asked = session_comparison_query({**parameters, "measure": ""}, None)
    return SessionStandingsQuery(
        tuple(part for part in PARTS if part in wanted),
        baseline,
        asked.design,
        asked.test,
        asked.rule,
        asked.options,
    )


def session_comparison_query(
    parameters: Mapping[str, str], documents: int | None
) -> SessionComparisonQuery:
    return SessionComparisonQuery(
        measure=session_measure_in(parameters, documents=documents),
        sets=[_set_id(text) for text in parameters.get("sets", "").split(",") if text],
        systems=[name for name in parameters.get("systems", "").split(",") if name],
        compare=cast(
            ComparedFactor,
            choice_in(parameters, "compare", COMPARED_FACTORS) or COMPARED_FACTORS[0],
        ),
        baseline=parameters.get("baseline") or None,
        design=cast(Design | None, choice_in(parameters, "design", DESIGNS)),
        test=parameters.get("test") or None,
        rule=Rule(parameters.get("correction") or "holm", share_in(parameters, "alpha", 0.05)),
        options=Options(
            confidence=share_in(parameters, "confidence", 0.95),
            resamples=integer_in(parameters, "resamples", DEFAULTS.resamples, *RESAMPLES),
            seed=integer_in(parameters, "seed", DEFAULTS.seed, 0, MAX_SEED),
        ),
        judged_by=_judged_by(parameters),
    )


def _judged_by(parameters: Mapping[str, str]) -> str | None:
    return choice_in(parameters, "judged_by", tuple(SessionSet.JudgedBy.values))


def _set_id(text: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        raise InvalidInput(
            f"{text[:40]!r} is not the id of a session set", pointer="sets"
        ) from error
