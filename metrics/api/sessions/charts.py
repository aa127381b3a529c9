"""The API of charts of session sets: the curves of systems and of single sessions, in the formats of all charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.api.charts import CHART_PARAMETERS, Reads, chart_key, check_chart, every_parameter, look_in, picture
from metrics.api.parameters import VERSION, parameter
from metrics.charts.figure import Figure
from metrics.charts.rendering import FORMATS
from metrics.charts.sessions.curves import MOST_PLACES, one_session_figure, session_curves_figure
from metrics.models import SessionEvaluation
from metrics.questions.parameters import query_of
from metrics.questions.sessions import selection_in, session_evaluation_in, session_measure_in
from metrics.services.sessions.analyses import read_session_curves, system_places
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.values import choose_sessions
from runs.api.access import scored_session_set


@dataclass(frozen=True)
class AskedOfSet:
    """Of which evaluated set a chart is asked for, and the query string as text."""

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


_MEASURE = parameter("measure", "a session measure that is a vector, nsDCG where left out")
SESSION_CHART_READS: Reads = {
    "curves": (
        _MEASURE,
        parameter("system", "only the sessions with this system"),
        parameter("topic", "only those of this topic (its topic_id)"),
        parameter("searcher", "only those of this searcher"),
        parameter("least", "only sessions of at least so many queries", OpenApiTypes.INT),
    ),
    "session": (_MEASURE, parameter("session", "its id or its number in the log, the first where left out")),
}
_OF_A_SET = (*CHART_PARAMETERS, VERSION)


class SessionChart(APIView):
    """A chart of a session set: the mean curves of its systems, or one session from query to query."""

    @extend_schema(
        responses={(200, form.content_type): OpenApiResponse(OpenApiTypes.BINARY) for form in FORMATS.values()},
        parameters=[
            *every_parameter(SESSION_CHART_READS),
            *_OF_A_SET,
        ],
    )
    def get(self, request: Request, session_set: UUID, chart: str, form: str) -> HttpResponse:
        found = scored_session_set(request, session_set)
        check_chart(request, SESSION_CHART_READS, chart, form, _OF_A_SET)
        query = query_of(request)
        look = look_in(query)
        asked = AskedOfSet(session_evaluation_in(query, found), query)
        key = chart_key(asked.evaluation, f"{chart}.{form}", query)
        return picture(key, form, lambda: SESSION_CHARTS[chart](asked).draw(look))
