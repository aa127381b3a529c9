"""The parameters that questions about sessions share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import Measure
from metrics.engine.sessions.grammar import check_has_values, parse_session_measures
from metrics.services.question import COMPUTED, Choice, Context, Parameter
from metrics.services.sessions.judged_sets import default_measures
from runs.models import SessionSet
from runs.parameters import pointed

JUDGED_BY = Choice(
    "which sets; default: the first there is", choices=tuple(SessionSet.JudgedBy.values)
)


def session_measures_in(
    parameters: Mapping[str, str], name: str = "measures", documents: int | None = None
) -> list[Measure]:
    """Return the session measures of one parameter, or the default ones.

    `documents` is the collection's size.
    """
    try:
        measures = parse_session_measures(parameters.get(name, ""), documents) or default_measures()
        for measure in measures:
            check_has_values(measure)
    except MeasureError as error:
        raise pointed(error, name) from error

    return measures


def session_measure_in(
    parameters: Mapping[str, str], name: str = "measure", documents: int | None = None
) -> Measure:
    """Return one session measure, nsDCG by default."""
    return session_measures_in(parameters, name, documents)[0]


@dataclass(frozen=True)
class SessionMeasures(Parameter):
    """Session measures with commas between them; by default those of the leaderboard."""

    text: str = "session measures separated by commas; default: those of the leaderboard"
    default: Any = COMPUTED

    def value(self, context: Context) -> list[Measure]:
        return session_measures_in(context.parameters, self.name, context.documents)

    def write(self, value: Any) -> str:
        return ",".join(measure.name for measure in value)


@dataclass(frozen=True)
class SessionMeasure(Parameter):
    """A session measure; by default the first one."""

    default: Any = COMPUTED

    def value(self, context: Context) -> Measure:
        return session_measure_in(context.parameters, self.name, context.documents)

    def write(self, value: Any) -> str:
        return str(value.name)


@dataclass(frozen=True)
class VectorMeasure(SessionMeasure):
    """A session measure that is a vector, with or without values of sessions."""

    text: str = "a session measure that is a vector, default: nsDCG"

    def value(self, context: Context) -> Measure:
        text = context.parameters.get(self.name, "")
        try:
            return (parse_session_measures(text) or default_measures())[0]
        except MeasureError as error:
            raise pointed(error, self.name) from error
