"""The charts of a session set: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from drf_spectacular.types import OpenApiTypes

from metrics.charts.figure import Figure
from metrics.charts.sessions.curves import one_session_figure, session_curves_figure
from metrics.charts.sessions.each import MOST_PLACES as MOST_PLACES_OF_EACH
from metrics.charts.sessions.each import each_session_figure
from metrics.charts.sessions.lines import MOST_PLACES
from metrics.charts.sessions.queries import query_curves_figure
from metrics.engine.grammar import Measure
from metrics.models import SessionEvaluation
from metrics.questions.declared import Reads, parameter
from metrics.questions.sessions import curve_measure_in, leasts_in, length_in, selection_in
from metrics.services.sessions.analyses import read_query_curves, read_session_curves, system_places
from metrics.services.sessions.judged_sets import JudgedSet, load_set
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.parameters import session_measure_in
from metrics.services.sessions.values import ChosenSessions, SessionSelection, choose_sessions
from runs.parameters import flag_in


@dataclass(frozen=True)
class AskedOfSet:
    """The evaluated set of a chart, and the query string as text; `read` is its judged view if it was read before."""

    evaluation: SessionEvaluation
    query: Mapping[str, str]
    read: JudgedSet | None = None

    def source_of(self, figure: Figure, measure: Measure) -> Figure:
        """Return the chart with its source; a set that is judged by its own log has no version of the judgements."""
        qrels = self.evaluation.qrels
        versions = [qrels.version] if qrels else []
        return figure.drawn_from(
            self.evaluation.session_set.collection, *versions, measure=measure.name
        )

    def chosen(self, selection: SessionSelection) -> ChosenSessions:
        return choose_sessions(evaluation=self.evaluation, selection=selection, whole=self.whole)

    @cached_property
    def whole(self) -> JudgedSet:
        return load_set(self.evaluation) if self.read is None else self.read

    @cached_property
    def places(self) -> dict[str, int]:
        """The places of systems among those of the collection, by which they are coloured."""
        return system_places(self.evaluation)


def _curves(asked: AskedOfSet) -> Figure:
    measure, leasts = curve_measure_in(asked.query), leasts_in(asked.query)
    length = length_in(asked.query, MOST_PLACES) or MOST_PLACES
    chosen = asked.chosen(selection_in({**asked.query, "least": str(leasts[0])}))
    curves = {
        least: read_session_curves(chosen=chosen, measure=measure, length=length, least=least)
        for least in leasts
    }
    figure = session_curves_figure(
        chosen,
        curves,
        asked.places,
        measure=measure,
        ideal=flag_in(asked.query, "ideal", default=True),
    )
    return asked.source_of(figure, measure)


def _queries(asked: AskedOfSet) -> Figure:
    measure = curve_measure_in(asked.query)
    chosen = asked.chosen(selection_in(asked.query))
    drawn = read_query_curves(chosen=chosen, measure=measure)
    return asked.source_of(
        query_curves_figure(chosen, drawn, asked.places, measure=measure), measure
    )


def _sessions(asked: AskedOfSet) -> Figure:
    """Draw the sessions of one system on one topic, by default those of the first judged session."""
    measure, selection = curve_measure_in(asked.query), selection_in(asked.query)
    chosen = asked.chosen(selection)
    if chosen.judged.sessions and (selection.system is None or selection.topic is None):
        # Judged ones before others, in the order of the log.
        judged = chosen.judged.view.is_judged.tolist()
        first = max(range(len(judged)), key=lambda place: (judged[place], -place))
        session = chosen.judged.sessions[first]
        system = session.system.decode() if selection.system is None else selection.system
        topic = session.topic_id.decode() if selection.topic is None else selection.topic
        chosen = asked.chosen(replace(selection, system=system, topic=topic))
    drawn = read_session_curves(
        chosen=chosen, measure=measure, length=MOST_PLACES_OF_EACH, per_session=True
    )
    return asked.source_of(
        each_session_figure(chosen, drawn, asked.places, measure=measure), measure
    )


def _session(asked: AskedOfSet) -> Figure:
    measure, name = session_measure_in(asked.query), asked.query.get("session") or "1"
    shown = read_session(evaluation=asked.evaluation, name=name, measure=measure, documents=0)
    return asked.source_of(one_session_figure(shown, measure=measure), measure)


SESSION_CHARTS: dict[str, Callable[[AskedOfSet], Figure]] = {
    "curves": _curves, "queries": _queries, "sessions": _sessions, "session": _session,
}  # fmt: skip


_MEASURE = parameter("measure", "a session measure that is a vector, default: nsDCG")
_NAMED = (
    _MEASURE,
    parameter("system", "only the sessions with this system"),
    parameter("topic", "only those of this topic (its topic_id)"),
    parameter("searcher", "only those of this searcher"),
)
_SELECTED = (
    *_NAMED,
    parameter("least", "only sessions of at least so many queries", OpenApiTypes.INT),
)
SESSION_CHART_READS: Reads = {
    "curves": (
        *_NAMED,
        parameter(
            "least",
            "only sessions of at least so many queries; two numbers, as 1,4, draw the curves of both",
        ),
        parameter(
            "length",
            f"positions drawn, at most {MOST_PLACES}; default: the longest session's",
            OpenApiTypes.INT,
        ),
        parameter("ideal", "false leaves out the ideal", OpenApiTypes.BOOL),
    ),
    "queries": _SELECTED,
    "sessions": _SELECTED,
    "session": (
        _MEASURE,
        parameter("session", "its id or its number in the log, default: the first"),
    ),
}
