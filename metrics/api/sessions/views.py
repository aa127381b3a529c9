"""The API of what is computed of session sets: values, curves, lengths, single sessions, boards, comparisons."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from metrics.api.parameters import ALPHA, CONFIDENCE, CORRECTION, RESAMPLES, SEED, TEST, VERSION, parameter
from metrics.api.sessions.answers import (
    board_as_json,
    curves_as_json,
    lengths_as_json,
    queries_as_json,
    read_from,
    session_as_json,
    session_comparison_as_json,
    values_as_json,
)
from metrics.api.sessions.serializers import (
    LengthsSerializer,
    OneSessionSerializer,
    QueryCurvesSerializer,
    SessionBoardSerializer,
    SessionComparisonSerializer,
    SessionCurvesSerializer,
    SessionEvaluationSerializer,
    SetValuesSerializer,
)
from metrics.questions.parameters import flag_in, query_of
from metrics.questions.sessions import (
    documents_in,
    length_in,
    selection_in,
    session_board_query,
    session_comparison_query,
    session_evaluation_in,
    session_measure_in,
    session_measures_in,
    session_page_in,
)
from metrics.services.sessions.analyses import read_lengths, read_query_curves, read_session_curves
from metrics.services.sessions.board import read_session_board
from metrics.services.sessions.comparison import DESIGNS, compare_systems
from metrics.services.sessions.one_session import read_session
from metrics.services.sessions.values import ChosenSessions, choose_sessions, read_session_values
from runs.api.access import scored_collection, scored_session_set
from runs.models import SessionSet

_MEASURES = parameter("measures", "session measures separated by commas; those of the board where left out")
_MEASURE = parameter("measure", "a session measure, nsDCG where left out")
_JUDGED_BY = parameter(
    "judged_by", "which sets; the first there is where left out", choices=("topic", "session", "query", "own")
)
_SELECTION = [
    parameter("system", "only the sessions with this system"),
    parameter("topic", "only those of this topic (its topic_id)"),
    parameter("searcher", "only those of this searcher"),
    parameter("least", "only those of at least so many queries, 1 where left out", OpenApiTypes.INT),
    VERSION,
]
# What a comparison of systems is asked.
SESSION_COMPARISON = (
    _MEASURE,
    parameter("sets", "session set ids separated by commas; all evaluated where left out"),
    parameter("systems", "names separated by commas, as the board has them; all where left out"),
    parameter("baseline", "a system: compare every other one with it only"),
    parameter("design", "the one that is recognised where left out", choices=DESIGNS),
    TEST,
    CORRECTION,
    ALPHA,
    CONFIDENCE,
    RESAMPLES,
    SEED,
    _JUDGED_BY,
)


class SessionValuesView(APIView):
    """The values of each session, and their means in all and by system, computed from the judged view."""

    @extend_schema(
        responses=SetValuesSerializer,
        parameters=[
            _MEASURES,
            *_SELECTION,
            parameter("limit", "sessions of a page, 1,000 where left out, at most 10,000", OpenApiTypes.INT),
            parameter("offset", "sessions to pass over", OpenApiTypes.INT),
        ],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measures, (offset, limit) = session_measures_in(parameters), session_page_in(parameters)
        chosen = _chosen(found, parameters)
        values = read_session_values(chosen=chosen, measures=measures)
        count = len(chosen.places)
        body = {
            **read_from(chosen.evaluation),
            "count": count,
            **_pages(request, offset, limit, count),
            **values_as_json(values, slice(offset, offset + limit)),
        }
        return Response(body)


class SessionCurvesView(APIView):
    """The mean curve of each system's sessions beside the ideal's: what has stopped is held at its last value."""

    @extend_schema(
        responses=SessionCurvesSerializer,
        parameters=[
            _MEASURE,
            *_SELECTION,
            parameter("length", "components; the longest session's where left out", OpenApiTypes.INT),
            parameter("per_session", "true: every session's own vector as well", OpenApiTypes.BOOL),
        ],
    )
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, chosen = session_measure_in(parameters), _chosen(found, parameters)
        asked = {"length": length_in(parameters), "per_session": flag_in(parameters, "per_session")}
        drawn = read_session_curves(chosen=chosen, measure=measure, **asked)  # type: ignore[arg-type]
        return Response({**read_from(chosen.evaluation), "measure": measure.name, **curves_as_json(chosen, drawn)})


class SessionQueriesView(APIView):
    """Mean curves of the last queries, of all others, of the best and of all; reformulations that gained and lost."""

    @extend_schema(responses=QueryCurvesSerializer, parameters=[_MEASURE, *_SELECTION])
    def get(self, request: Request, session_set: UUID) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, chosen = session_measure_in(parameters), _chosen(found, parameters)
        drawn = read_query_curves(chosen=chosen, measure=measure)
        return Response({**read_from(chosen.evaluation), "measure": measure.name, **queries_as_json(chosen, drawn)})


class SessionLengthsView(APIView):
    """Sessions by their number of queries, in all and by system."""

    @extend_schema(responses=LengthsSerializer, parameters=_SELECTION)
    def get(self, request: Request, session_set: UUID) -> Response:
        chosen = _chosen(scored_session_set(request, session_set), query_of(request))
        return Response({**read_from(chosen.evaluation), **lengths_as_json(chosen, read_lengths(chosen=chosen))})


class OneSessionView(APIView):
    """One session, by its id or its number in the log: queries, rankings with levels, vector, what each query added."""

    @extend_schema(
        responses=OneSessionSerializer,
        parameters=[
            _MEASURE,
            parameter("documents", "listed for each query, 100 where left out, at most 10,000", OpenApiTypes.INT),
            VERSION,
        ],
    )
    def get(self, request: Request, session_set: UUID, session: str) -> Response:
        found, parameters = scored_session_set(request, session_set), query_of(request)
        measure, evaluation = session_measure_in(parameters), session_evaluation_in(parameters, found)
        shown = read_session(evaluation=evaluation, name=session, measure=measure, documents=documents_in(parameters))
        return Response({**read_from(evaluation), "measure": measure.name, **session_as_json(shown)})


class SessionEvaluations(APIView):
    """Every evaluation of a session set, newest judgements first."""

    @extend_schema(responses=SessionEvaluationSerializer(many=True))
    def get(self, request: Request, session_set: UUID) -> Response:
        found = scored_session_set(request, session_set)
        rows = found.evaluations.select_related("qrels").defer("qrels__topic_ids").order_by("-qrels__version", "pk")
        return Response(SessionEvaluationSerializer(rows, many=True).data)


class SessionBoardView(APIView):
    """The systems of the collection's session sets, ranked by one measure; stale ones come last, without a rank."""

    @extend_schema(
        responses=SessionBoardSerializer,
        parameters=[
            _MEASURES,
            parameter("sort", "the measure to rank by; the first where left out"),
            parameter("order", "desc or asc; best first where left out"),
            _JUDGED_BY,
            parameter("limit", "rows of a page, 50 where left out, at most 200", OpenApiTypes.INT),
            parameter("offset", "rows to pass over", OpenApiTypes.INT),
        ],
    )
    def get(self, request: Request, collection: str) -> Response:
        found, query = scored_collection(request, collection), session_board_query(query_of(request))
        board = read_session_board(collection=found, query=query)
        pages = _pages(request, query.offset, query.limit, board.total)
        return Response({"collection": found.slug, **board_as_json(board), **pages})


class SessionComparisonView(APIView):
    """Systems compared on one figure of their sessions, by the design that these have, and why it is that one."""

    @extend_schema(
        responses=SessionComparisonSerializer,
        parameters=[*SESSION_COMPARISON],
    )
    def get(self, request: Request, collection: str) -> Response:
        found, query = scored_collection(request, collection), session_comparison_query(query_of(request))
        compared = compare_systems(collection=found, query=query)
        return Response({"collection": found.slug, **session_comparison_as_json(compared)})


def _chosen(session_set: SessionSet, parameters: dict[str, str]) -> ChosenSessions:
    selection = selection_in(parameters)
    return choose_sessions(evaluation=session_evaluation_in(parameters, session_set), selection=selection)


def _pages(request: Request, offset: int, limit: int, count: int) -> dict[str, Any]:
    """Where the pages after and before this one are."""
    url, after, before = request.build_absolute_uri(), offset + limit, max(0, offset - limit)
    return {
        "next": replace_query_param(url, "offset", after) if after < count else None,
        "previous": replace_query_param(url, "offset", before) if offset else None,
    }
