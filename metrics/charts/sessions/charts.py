"""The charts of a session set: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drf_spectacular.types import OpenApiTypes

from metrics.charts.figure import Figure
from metrics.charts.sessions.curves import MOST_PLACES, one_session_figure, session_curves_figure
from metrics.models import SessionEvaluation
from metrics.questions.declared import Reads, parameter
from metrics.questions.sessions import selection_in, session_measure_in
from metrics.services.sessions.analyses import read_session_curves, system_places
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.values import choose_sessions


@dataclass(frozen=True)
class AskedOfSet:
    """The evaluated set of a chart, and the query string as text."""

    evaluation: SessionEvaluation
    query: Mapping[str, str]


def _curves(asked: AskedOfSet) -> Figure:
    measure = session_measure_in(asked.query)
    chosen = choose_sessions(evaluation=asked.evaluation, selection=selection_in(asked.query))
    drawn = read_session_curves(chosen=chosen, measure=measure, length=MOST_PLACES)
    return session_curves_figure(chosen, drawn, system_places(asked.evaluation), measure=measure)


def _session(asked: AskedOfSet) -> Figure:
    measure, name = session_measure_in(asked.query), asked.query.get("session") or "1"
    shown = read_session(evaluation=asked.evaluation, name=name, measure=measure, documents=0)
    return one_session_figure(shown, measure=measure)


SESSION_CHARTS: dict[str, Callable[[AskedOfSet], Figure]] = {"curves": _curves, "session": _session}


_MEASURE = parameter("measure", "a session measure that is a vector, default: nsDCG")
SESSION_CHART_READS: Reads = {
    "curves": (
        _MEASURE,
        parameter("system", "only the sessions with this system"),
        parameter("topic", "only those of this topic (its topic_id)"),
        parameter("searcher", "only those of this searcher"),
        parameter("least", "only sessions of at least so many queries", OpenApiTypes.INT),
    ),
    "session": (_MEASURE, parameter("session", "its id or its number in the log, default: the first")),
}
