"""The charts of a session set: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from metrics.charts.figure import Figure
from metrics.charts.sessions.curves import one_session_figure, session_curves_figure
from metrics.charts.sessions.each import MOST_PLACES as MOST_PLACES_OF_EACH
from metrics.charts.sessions.each import each_session_figure
from metrics.charts.sessions.lines import MOST_PLACES
from metrics.charts.sessions.queries import query_curves_figure
from metrics.engine.measures.grammar import Measure
from metrics.models import SessionEvaluation
from metrics.questions.declared import SESSION, SESSION_MEASURE, Reads, declared
from metrics.services.question import Flag, Integer, Question, Several, parameter
from metrics.services.sessions.analyses import (
    QueryCurvesQuery,
    read_query_curves,
    read_session_curves,
    system_places,
)
from metrics.services.sessions.judged_sets import JudgedSet, load_set
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.parameters import VectorMeasure, session_measure_in
from metrics.services.sessions.values import (
    MAX_QUERIES,
    ChosenSessions,
    SessionSelection,
    choose_sessions,
)
from runs.errors import InvalidInput


@dataclass(frozen=True)
class CurvesChartQuery(Question):
    """The sessions to draw: those of one or two least numbers of queries."""

    measure: Measure = parameter(VectorMeasure())
    leasts: list[int] = parameter(
        Several(
            "only sessions of at least so many queries; "
            "two numbers, as 1,4, draw the curves of both",
            name="least",
            of=Integer("", low=1, high=MAX_QUERIES),
            default=(1,),
        )
    )
    length: int | None = parameter(
        Integer(
            f"positions drawn, at most {MOST_PLACES}; default: the longest session's",
            high=MOST_PLACES,
        )
    )
    ideal: bool = parameter(Flag("false leaves out the ideal", default=True))

    def __post_init__(self) -> None:
        if len(self.leasts) > 2:
            least = ",".join(map(str, self.leasts))[:40]
            message = f"least={least}: one or two numbers of queries, as least=1,4"
            raise InvalidInput(message, code="too_many_values", pointer="least")


@dataclass(frozen=True)
class SetChartRequest:
    """The evaluated set of a chart, and the query string as text.

    `read` is the judged set if it was read before.
    """

    evaluation: SessionEvaluation
    query: Mapping[str, str]
    read: JudgedSet | None = None

    def source_of(self, figure: Figure, measure: Measure) -> Figure:
        """Return the chart with its source; a set judged by its own log has no qrels version."""
        qrels = self.evaluation.qrels
        versions = [qrels] if qrels else []
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
        """Return the places of systems among those of the collection, for their colours."""
        return system_places(self.evaluation)


def _curves(request: SetChartRequest) -> Figure:
    query = CurvesChartQuery.read(request.query)
    measure, length, leasts = query.measure, query.length or MOST_PLACES, sorted(query.leasts)
    chosen = request.chosen(SessionSelection.read({**request.query, "least": str(leasts[0])}))

    curves = {
        least: read_session_curves(chosen=chosen, measure=measure, length=length, least=least)
        for least in leasts
    }
    figure = session_curves_figure(
        chosen, curves, request.places, measure=measure, ideal=query.ideal
    )

    return request.source_of(figure, measure)


def _queries(request: SetChartRequest) -> Figure:
    query = QueryCurvesQuery.read(request.query)
    chosen, measure = request.chosen(query.selection), query.measure
    curves = read_query_curves(chosen=chosen, measure=measure)
    return request.source_of(
        query_curves_figure(chosen, curves, request.places, measure=measure), measure
    )


def _sessions(request: SetChartRequest) -> Figure:
    """Draw the sessions of one system on one topic: by default those of a judged session."""
    query = QueryCurvesQuery.read(request.query)
    measure, selection = query.measure, query.selection

    chosen = request.chosen(selection)
    if chosen.judged.sessions and (selection.system is None or selection.topic is None):
        # By default the first judged session in the order of the log, or else the first one.
        judged = chosen.judged.view.is_judged.tolist()
        first = max(range(len(judged)), key=lambda place: (judged[place], -place))
        session = chosen.judged.sessions[first]
        system = session.system.decode() if selection.system is None else selection.system
        topic = session.topic_id.decode() if selection.topic is None else selection.topic
        chosen = request.chosen(replace(selection, system=system, topic=topic))

    curves = read_session_curves(
        chosen=chosen, measure=measure, length=MOST_PLACES_OF_EACH, per_session=True
    )
    return request.source_of(
        each_session_figure(chosen, curves, request.places, measure=measure), measure
    )


def _session(request: SetChartRequest) -> Figure:
    measure, name = session_measure_in(request.query), request.query.get("session") or "1"
    session = read_session(evaluation=request.evaluation, name=name, measure=measure, documents=0)
    return request.source_of(one_session_figure(session, measure=measure), measure)


SESSION_CHARTS: dict[str, Callable[[SetChartRequest], Figure]] = {
    "curves": _curves,
    "queries": _queries,
    "sessions": _sessions,
    "session": _session,
}


_NAMES = ("system", "topic", "searcher")
_SELECTED = declared(QueryCurvesQuery, "measure", *_NAMES, "least")
SESSION_CHART_READS: Reads = {
    "curves": (*declared(CurvesChartQuery), *declared(SessionSelection, *_NAMES)),
    "queries": _SELECTED,
    "sessions": _SELECTED,
    "session": (SESSION_MEASURE, SESSION),
}
