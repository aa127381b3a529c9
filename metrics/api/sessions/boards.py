"""The API of the leaderboard and the comparison of systems, as JSON and as files."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.sessions.answers import paged
from metrics.api.sessions.board_answers import (
    SessionBoard,
    SessionComparison,
    board_answer,
    comparison_answer,
)
from metrics.exports.formats import FORMATS
from metrics.exports.sessions import BOARD_EXPORTS, COMPARISON_EXPORTS
from metrics.exports.table import Table
from metrics.questions.declared import COMPARED_FACTOR, PAGE, SESSION_BOARD, SESSION_COMPARISON
from metrics.questions.parameters import query_of
from metrics.services.sessions import board, comparison
from metrics.services.sessions.board import SessionBoardQuery
from metrics.services.sessions.sample import SessionComparisonQuery
from metrics.services.sessions.standings import (
    SessionStandings,
    SessionStandingsQuery,
    read_session_standings,
)
from metrics.services.snapshots import read_in_snapshot
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape


class SessionBoardView(APIView):
    """The systems of the collection's session sets, ranked by one measure; stale ones come last,
    without a rank."""

    @extend_schema(responses=shape(SessionBoard), parameters=[*SESSION_BOARD, *PAGE])
    def get(self, request: Request, collection: str) -> Response:
        def read() -> SessionBoard:
            test_collection = scored_collection(request, collection)
            systems, standings = _read_board(request, test_collection)
            limit = systems.query.limit or systems.total
            pages = paged(request, systems.query.offset, limit, systems.total)

            return board_answer(test_collection, systems, standings, pages)

        return Response(read_in_snapshot(read))


class SessionBoardExport(APIView):
    """A leaderboard of systems as a file: csv has every row with all its values, md and tex those
    that are ranked."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*SESSION_BOARD])
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> Table:
            test_collection = scored_collection(request, collection)
            systems, standings = _read_board(request, test_collection, whole=True)
            return BOARD_EXPORTS[kind](test_collection, systems, standings)

        return _file(read_in_snapshot(read), f"{collection}-session-leaderboard", kind)


class SessionComparisonView(APIView):
    """Systems, searchers, topics or collections compared on one value of each session, by the
    design of these sessions, with the reason for the design."""

    @extend_schema(
        responses=shape(SessionComparison), parameters=[*SESSION_COMPARISON, *COMPARED_FACTOR]
    )
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = SessionComparisonQuery.read(query_of(request), test_collection)
        others = [
            scored_collection(request, slug) for slug in query.other_collections(test_collection)
        ]
        compared = comparison.compare_systems(
            collection=test_collection, query=query, others=others
        )

        return Response(comparison_answer(test_collection, compared))


class SessionComparisonExport(APIView):
    """A comparison of systems as a file: csv has every pair, md and tex a table of the systems."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*SESSION_COMPARISON]
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        test_collection = scored_collection(request, collection)
        query = SessionComparisonQuery.read(query_of(request), test_collection)
        compared = comparison.compare_systems(collection=test_collection, query=query)
        table = COMPARISON_EXPORTS[kind](test_collection, compared)

        return _file(table, f"{test_collection.slug}-session-comparison", kind)


def _read_board(
    request: Request, collection: Collection, *, whole: bool = False
) -> tuple[board.SessionBoard, SessionStandings | None]:
    """Return a page of the leaderboard, or the whole, and its statistics if they were requested."""
    parameters = query_of(request)
    query = SessionBoardQuery.read(parameters, collection)
    if whole:
        query = replace(query, limit=None)

    SessionStandingsQuery.check_options(parameters)
    statistics = SessionStandingsQuery.requested(parameters)

    systems = board.read_session_board(collection=collection, query=query)
    if not statistics:
        return systems, None

    return systems, read_session_standings(collection=collection, board=systems, query=statistics)


def _file(table: Table, name: str, kind: str) -> HttpResponse:
    export = FORMATS[kind]
    return HttpResponse(export.content(table), headers=export.headers(name))
