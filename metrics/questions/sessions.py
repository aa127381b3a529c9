"""Read the parameters of requests about the sessions of a set."""

from __future__ import annotations

from collections.abc import Mapping

from metrics.engine.errors import MeasureError
from metrics.engine.grammar import Measure
from metrics.engine.sessions.grammar import parse_session_measures
from metrics.models import SessionEvaluation
from metrics.services.question import MAX_VERSION
from metrics.services.sessions.judged_sets import default_measures
from metrics.services.sessions.values import SessionSelection, find_session_evaluation
from runs.errors import InvalidInput
from runs.models import SessionSet
from runs.parameters import MAX_OFFSET, integer_in, pointed, several_in

MAX_SESSIONS = 10_000
_MAX_QUERIES, _MAX_LENGTH, _MAX_DOCUMENTS = 1_000, 1_000_000, 10_000


def curve_measure_in(parameters: Mapping[str, str]) -> Measure:
    """Return one session measure that has a curve, by default nsDCG; it may have no values of sessions."""
    try:
        return (parse_session_measures(parameters.get("measure", "")) or default_measures())[0]
    except MeasureError as error:
        raise pointed(error, "measure") from error


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
