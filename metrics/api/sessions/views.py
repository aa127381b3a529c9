"""The API of the results of one session set: values, curves, lengths, single sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics import models
from metrics.api.sessions.answers import (
    Lengths,
    OneSession,
    QueryCurves,
    SessionCurves,
    SetValues,
    curves_answer,
    lengths_answer,
    paged,
    queries_answer,
    session_answer,
    values_answer,
)
from metrics.api.sessions.searcher_answers import Searchers, searchers_answer
from metrics.questions.declared import SESSION_MEASURE, SESSION_MEASURES, VERSION, parameter
from metrics.questions.parameters import query_of
from metrics.questions.sessions import (
    curve_measure_in,
    documents_in,
    length_in,
    selection_in,
    session_evaluation_in,
    session_page_in,
)
from metrics.services.sessions.analyses import read_lengths, read_query_curves, read_session_curves
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.parameters import session_measure_in, session_measures_in
from metrics.services.sessions.searchers import read_searchers
from metrics.services.sessions.values import ChosenSessions, choose_sessions, read_session_values
from runs.api.access import scored_session_set
from runs.api.shapes import OneOf, shape
from runs.models import SessionSet
from runs.parameters import flag_in

_SELECTION = [
    parameter("system", "only the sessions with this system"),
    parameter("topic", "only those of this topic (its topic_id)"),
    parameter("searcher", "only those of this searcher"),
    parameter("least", "only those of at least so many queries, default: 1", OpenApiTypes.INT),
    VERSION,
]


class SessionValuesView(APIView):
    """The values of each session, and their means overall and by system, computed from the judged view."""

    @extend_schema(
        responses=shape(SetValues),
        parameters=[
            SESSION_MEASURES,
            *_SELECTION,
            parameter(
                "limit", "sessions of a page, default: 1,000, at most 10,000", OpenApiTypes.INT
            ),
            parameter("offset", "sessions to pass over", OpenApiTypes.INT),
        ],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measures = session_measures_in(parameters, documents=found.collection.documents)
        offset, limit = session_page_in(parameters)
        chosen = _chosen(found, parameters)
        values = read_session_values(chosen=chosen, measures=measures)
        pages = paged(request, offset, limit, len(chosen.places))
        return Response(values_answer(values, slice(offset, offset + limit), pages))


class SessionCurvesView(APIView):
    """The mean curve of each system's sessions beside the ideal's: a session that has stopped is held at its last
    value."""

    @extend_schema(
        responses=shape(SessionCurves),
        parameters=[
            SESSION_MEASURE,
            *_SELECTION,
            parameter("length", "components; default: the longest session's", OpenApiTypes.INT),
            parameter("per_session", "true: every session's own vector as well", OpenApiTypes.BOOL),
        ],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, chosen = curve_measure_in(parameters), _chosen(found, parameters)
        length, per_session = length_in(parameters), flag_in(parameters, "per_session")
        drawn = read_session_curves(
            chosen=chosen, measure=measure, length=length, per_session=per_session
        )
        return Response(curves_answer(chosen, measure, drawn))


class SessionQueriesView(APIView):
    """Mean curves of the last queries, of all others, of the best and of all, and reformulations that gained and
    lost."""

    @extend_schema(responses=shape(QueryCurves), parameters=[SESSION_MEASURE, *_SELECTION])
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, chosen = curve_measure_in(parameters), _chosen(found, parameters)
        drawn = read_query_curves(chosen=chosen, measure=measure)
        return Response(queries_answer(chosen, measure, drawn))


class SessionLengthsView(APIView):
    """Sessions by their number of queries, overall and by system."""

    @extend_schema(responses=shape(Lengths), parameters=_SELECTION)
    def get(self, request: Request, session_set: UUID) -> Response:
        chosen = _chosen(scored_session_set(request, session_set), query_of(request))
        return Response(lengths_answer(chosen, read_lengths(chosen=chosen)))


class SessionSearchersView(APIView):
    """The attributes of the log's searchers: means and standard deviations, in total and by group."""

    @extend_schema(
        responses=shape(Searchers),
        parameters=[
            parameter("by", "an attribute to group by, or system; default: no groups"),
            *_SELECTION,
        ],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        parameters = query_of(request)
        chosen, by = (
            _chosen(scored_session_set(request, session_set), parameters),
            parameters.get("by") or None,
        )
        return Response(searchers_answer(chosen, read_searchers(chosen=chosen, by=by), by))


class OneSessionView(APIView):
    """One session, by its id or its number in the log: queries, rankings with levels, vector, contribution of each
    query."""

    @extend_schema(
        responses=shape(OneSession),
        parameters=[
            SESSION_MEASURE,
            parameter(
                "documents", "listed for each query, default: 100, at most 10,000", OpenApiTypes.INT
            ),
            VERSION,
        ],
    )
    def get(self, request: Request, session_set: UUID, session: str) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, evaluation = (
            session_measure_in(parameters),
            session_evaluation_in(parameters, found),
        )
        shown = read_session(
            evaluation=evaluation, name=session, measure=measure, documents=documents_in(parameters)
        )
        return Response(session_answer(evaluation, measure, shown))


class SessionEvaluation(TypedDict):
    """An evaluation of a session set."""

    qrels: Annotated[int | None, "null where the log judges itself"]
    judged_by: Annotated[str, OneOf(SessionSet.JudgedBy.choices)]
    engine_version: str
    state: Annotated[str, OneOf(models.SessionEvaluation.State.choices)]
    since: datetime
    attempts: int
    sessions_judged: int | None
    error_code: str
    error_message: str
    seconds: float | None


class SessionEvaluations(APIView):
    """Every evaluation of a session set, newest judgements first."""

    @extend_schema(responses=shape(SessionEvaluation)(many=True))
    def get(self, request: Request, session_set: UUID) -> Response:
        found = scored_session_set(request, session_set)
        rows = (
            found.evaluations.select_related("qrels")
            .defer("qrels__topic_ids")
            .order_by("-qrels__version", "pk")
        )
        return Response(
            [
                SessionEvaluation(
                    qrels=row.qrels.version if row.qrels else None,
                    judged_by=row.judged_by,
                    engine_version=row.engine_version,
                    state=row.state,
                    since=row.since,
                    attempts=row.attempts,
                    sessions_judged=row.sessions_judged,
                    error_code=row.error_code,
                    error_message=row.error_message,
                    seconds=row.seconds,
                )
                for row in rows
            ]
        )


def _chosen(session_set: SessionSet, parameters: dict[str, str]) -> ChosenSessions:
    selection = selection_in(parameters)
    return choose_sessions(
        evaluation=session_evaluation_in(parameters, session_set), selection=selection
    )
