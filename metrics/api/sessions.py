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

from metrics.api.parameters import VERSION, parameter
from metrics.api.queries import query_of
from metrics.api.session_answers import (
    read_from,
    values_as_json,
)
from metrics.api.session_queries import (
    selection_in,
    session_evaluation_in,
    session_measures_in,
    session_page_in,
)
from metrics.api.session_serializers import (
    SessionEvaluationSerializer,
    SetValuesSerializer,
)
from metrics.services.session_values import ChosenSessions, choose_sessions, read_session_values
from runs.api.access import scored_session_set
from runs.models import SessionSet

_MEASURES = parameter("measures", "session measures separated by commas; those of the board where left out")
_SELECTION = [
    parameter("system", "only the sessions with this system"),
    parameter("topic", "only those of this topic (its topic_id)"),
    parameter("searcher", "only those of this searcher"),
    parameter("least", "only those of at least so many queries, 1 where left out", OpenApiTypes.INT),
    VERSION,
]


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


class SessionEvaluations(APIView):
    """Every evaluation of a session set, newest judgements first."""

    @extend_schema(responses=SessionEvaluationSerializer(many=True))
    def get(self, request: Request, session_set: UUID) -> Response:
        found = scored_session_set(request, session_set)
        rows = found.evaluations.select_related("qrels").defer("qrels__topic_ids").order_by("-qrels__version", "pk")
        return Response(SessionEvaluationSerializer(rows, many=True).data)


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
