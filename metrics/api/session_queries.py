"""Reading what a request asks of session sets out of its query string."""

from __future__ import annotations

from collections.abc import Mapping

from metrics.api.queries import (
    MAX_OFFSET,
    MAX_VERSION,
    integer_in,
)
from metrics.engine.errors import MeasureError
from metrics.engine.grammar import Measure
from metrics.engine.sessions.grammar import parse_session_measures
from metrics.models import SessionEvaluation
from metrics.services.session_values import SessionSelection, find_session_evaluation
from metrics.services.session_views import default_measures
from runs.models import SessionSet

MAX_SESSIONS = 10_000
_MAX_QUERIES, _MAX_LENGTH, _MAX_DOCUMENTS = 1_000, 1_000_000, 10_000


def session_measures_in(parameters: Mapping[str, str], name: str = "measures") -> list[Measure]:
    """The session measures of one parameter, or those that every set is given."""
    try:
        return parse_session_measures(parameters.get(name, "")) or default_measures()
    except MeasureError as error:
        raise MeasureError(error.message, code=error.code, pointer=name) from error


def session_measure_in(parameters: Mapping[str, str], name: str = "measure") -> Measure:
    """One session measure, nsDCG where left out."""
    return session_measures_in(parameters, name)[0]


def selection_in(parameters: Mapping[str, str]) -> SessionSelection:
    """Which sessions: `system`, `topic` and `searcher` are exact, also where they are given empty."""
    return SessionSelection(
        parameters.get("system"),
        parameters.get("topic"),
        parameters.get("searcher"),
        integer_in(parameters, "least", 1, 1, _MAX_QUERIES),
    )


def session_evaluation_in(parameters: Mapping[str, str], session_set: SessionSet) -> SessionEvaluation:
    """The evaluation of the set to read, by `qrels`."""
    version = integer_in(parameters, "qrels", 0, 0, MAX_VERSION) or None
    return find_session_evaluation(session_set=session_set, version=version)


def length_in(parameters: Mapping[str, str]) -> int | None:
    return integer_in(parameters, "length", 0, 0, _MAX_LENGTH) or None


def documents_in(parameters: Mapping[str, str]) -> int:
    return integer_in(parameters, "documents", 100, 0, _MAX_DOCUMENTS)


def session_page_in(parameters: Mapping[str, str]) -> tuple[int, int]:
    """Offset and limit of a list of sessions."""
    offset = integer_in(parameters, "offset", 0, 0, MAX_OFFSET)
    return offset, integer_in(parameters, "limit", 1_000, 1, MAX_SESSIONS)
