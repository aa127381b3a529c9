"""The API of the systems of a collection's session sets: leaderboard and comparison, as answers and as files."""

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
from metrics.services.sessions.standings import SessionStandingsQuery, read_session_standings
from metrics.services.snapshots import read_in_snapshot
from runs.web.access import scored_collection
from runs.web.shapes import shape


class SessionBoardView(APIView):
    """The systems of the collection's session sets, ranked by one measure; stale ones come last, without a rank."""

    @extend_schema(responses=shape(SessionBoard), parameters=[*SESSION_BOARD, *PAGE])
    def get(self, request: Request, collection: str) -> Response:
        def read() -> SessionBoard:
            found = scored_collection(request, collection)
            parameters = query_of(request)
            query = SessionBoardQuery.read(parameters, found)
            SessionStandingsQuery.check_options(parameters)
            statistics = SessionStandingsQuery.requested(parameters)

            read = board.read_session_board(collection=found, query=query)
            standings = (
                read_session_standings(collection=found, board=read, query=statistics)
                if statistics
                else None
            )
            pages = paged(request, query.offset, query.limit or read.total, read.total)
            return board_answer(found, read, standings, pages)

        return Response(read_in_snapshot(read))


class SessionBoardExport(APIView):
    """A leaderboard of systems as a file: csv has every row with all its values, md and tex those that are ranked."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*SESSION_BOARD])
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> Table:
            found = scored_collection(request, collection)
            parameters = query_of(request)
            query = replace(SessionBoardQuery.read(parameters, found), limit=None)
            SessionStandingsQuery.check_options(parameters)
            statistics = SessionStandingsQuery.requested(parameters)

            read = board.read_session_board(collection=found, query=query)
            standings = (
                read_session_standings(collection=found, board=read, query=statistics)
                if statistics
                else None
            )
            return BOARD_EXPORTS[kind](found, read, standings)

        return _file(read_in_snapshot(read), f"{collection}-session-leaderboard", kind)


class SessionComparisonView(APIView):
    """Systems, searchers, topics or collections compared on one value of each session, by the design of these
    sessions, with the reason for the design."""

    @extend_schema(
        responses=shape(SessionComparison), parameters=[*SESSION_COMPARISON, *COMPARED_FACTOR]
    )
    def get(self, request: Request, collection: str) -> Response:
        own = scored_collection(request, collection)
        query = SessionComparisonQuery.read(query_of(request), own)
        others = [scored_collection(request, slug) for slug in query.other_collections(own)]
        compared = comparison.compare_systems(collection=own, query=query, others=others)
        return Response(comparison_answer(own, compared))


class SessionComparisonExport(APIView):
    """A comparison of systems as a file: csv has every pair, md and tex a table of the systems."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*SESSION_COMPARISON]
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        found = scored_collection(request, collection)
        query = SessionComparisonQuery.read(query_of(request), found)
        compared = comparison.compare_systems(collection=found, query=query)
        table = COMPARISON_EXPORTS[kind](found, compared)
        return _file(table, f"{found.slug}-session-comparison", kind)


def _file(table: Table, name: str, kind: str) -> HttpResponse:
    export = FORMATS[kind]
    return HttpResponse(export.content(table), headers=export.headers(name))
