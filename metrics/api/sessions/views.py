"""The API of the results of one session set: values, curves, lengths, single sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict
from uuid import UUID

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
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.sessions.analyses import (
    QueryCurvesQuery,
    SessionCurvesQuery,
    read_lengths,
    read_query_curves,
    read_session_curves,
)
from metrics.services.sessions.one_session import OneSessionQuery, read_session
from metrics.services.sessions.searchers import SearchersQuery, read_searchers
from metrics.services.sessions.values import (
    ChosenSessions,
    SessionSelection,
    SessionValuesQuery,
    choose_sessions,
    find_session_evaluation,
    read_session_values,
)
from runs.models import SessionSet
from runs.web.access import scored_session_set
from runs.web.shapes import OneOf, shape


class SessionValuesView(APIView):
    """The values of each session, and their means overall and by system, computed from the judged
    view."""

    @extend_schema(responses=shape(SetValues), parameters=[*declared(SessionValuesQuery)])
    def get(self, request: Request, session_set: UUID) -> Response:
        submitted_set = scored_session_set(request, session_set)
        query = SessionValuesQuery.read(query_of(request), submitted_set.collection)
        chosen = _choose(submitted_set, query.selection)
        values = read_session_values(chosen=chosen, measures=query.measures)

        page = slice(query.offset, query.offset + query.limit)
        pages = paged(request, query.offset, query.limit, len(chosen.places))

        return Response(values_answer(values, page, pages))


class SessionCurvesView(APIView):
    """The mean curve of each system's sessions beside the ideal's: a session that has stopped is
    held at its last value."""

    @extend_schema(responses=shape(SessionCurves), parameters=[*declared(SessionCurvesQuery)])
    def get(self, request: Request, session_set: UUID) -> Response:
        submitted_set = scored_session_set(request, session_set)
        query = SessionCurvesQuery.read(query_of(request))
        chosen, measure = _choose(submitted_set, query.selection), query.measure
        curves = read_session_curves(
            chosen=chosen, measure=measure, length=query.length, per_session=query.per_session
        )

        return Response(curves_answer(chosen, measure, curves))


class SessionQueriesView(APIView):
    """Mean curves of the last queries, of all others, of the best and of all, and reformulations
    that gained and lost."""

    @extend_schema(responses=shape(QueryCurves), parameters=[*declared(QueryCurvesQuery)])
    def get(self, request: Request, session_set: UUID) -> Response:
        submitted_set = scored_session_set(request, session_set)
        query = QueryCurvesQuery.read(query_of(request))
        chosen = _choose(submitted_set, query.selection)
        curves = read_query_curves(chosen=chosen, measure=query.measure)

        return Response(queries_answer(chosen, query.measure, curves))


class SessionLengthsView(APIView):
    """Sessions by their number of queries, overall and by system."""

    @extend_schema(responses=shape(Lengths), parameters=[*declared(SessionSelection)])
    def get(self, request: Request, session_set: UUID) -> Response:
        submitted_set = scored_session_set(request, session_set)
        chosen = _choose(submitted_set, SessionSelection.read(query_of(request)))
        return Response(lengths_answer(chosen, read_lengths(chosen=chosen)))


class SessionSearchersView(APIView):
    """The attributes of the log's searchers: means and standard deviations, in total and by
    group."""

    @extend_schema(
        responses=shape(Searchers),
        parameters=[*declared(SearchersQuery)],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        submitted_set = scored_session_set(request, session_set)
        query = SearchersQuery.read(query_of(request))
        chosen = _choose(submitted_set, query.selection)
        searchers = read_searchers(chosen=chosen, by=query.by)

        return Response(searchers_answer(chosen, searchers, query.by))


class OneSessionView(APIView):
    """One session, by its id or its number in the log: queries, rankings with levels, vector,
    contribution of each query."""

    @extend_schema(responses=shape(OneSession), parameters=[*declared(OneSessionQuery)])
    def get(self, request: Request, session_set: UUID, session: str) -> Response:
        submitted_set = scored_session_set(request, session_set)
        query = OneSessionQuery.read(query_of(request))
        evaluation = find_session_evaluation(session_set=submitted_set, query=query.evaluation)
        detail = read_session(
            evaluation=evaluation, name=session, measure=query.measure, documents=query.documents
        )

        return Response(session_answer(evaluation, query.measure, detail))


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
        submitted_set = scored_session_set(request, session_set)
        rows = (
            submitted_set.evaluations.select_related("qrels")
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


def _choose(session_set: SessionSet, selection: SessionSelection) -> ChosenSessions:
    evaluation = find_session_evaluation(session_set=session_set, query=selection)
    return choose_sessions(evaluation=evaluation, selection=selection)
