"""The API of leaderboards, as JSON and as files."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.boards.answers import Leaderboard, leaderboard_answer
from metrics.exports.boards import EXPORTS
from metrics.exports.boards.tables import paper_table
from metrics.exports.formats import FORMATS
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import (
    ARRANGE,
    BOARD,
    BY,
    COLUMNS,
    DECIMALS,
    ENTRIES,
    FILTER,
    MEASURE_NAMES,
    ORDER,
    ROWS,
    SCORES,
    SORT,
    STATISTICS,
    TOPICS,
    VERSIONS,
    VIEW,
)
from metrics.questions.saved_views import board_parameters
from metrics.services.boards.board_question import BoardQuery, FileQuery
from metrics.services.boards.leaderboard import read_leaderboard, read_whole_board
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.boards.standings import read_standings
from metrics.services.snapshots import read_in_snapshot
from runs.web.access import scored_collection
from runs.web.shapes import shape


class LeaderboardView(APIView):
    """Means of the collection's runs, ranked by one measure.

    Below them, without a rank, are stale, queued, evaluating and failed runs. A filter selects
    rows, columns show parameters and costs; the ranks are those of the whole leaderboard.
    """

    @extend_schema(responses=shape(Leaderboard), parameters=[*BOARD, VIEW])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        parameters = board_parameters(request, test_collection)
        query = BoardQuery.read(parameters, test_collection, request.user)
        StandingsQuery.check_options(parameters)
        statistics = StandingsQuery.requested(parameters)

        board = read_leaderboard(collection=test_collection, query=query)
        standings = read_standings(board=board, query=statistics) if statistics else None

        return Response(
            leaderboard_answer(
                test_collection, query, board, standings, request.build_absolute_uri()
            )
        )


class LeaderboardExport(APIView):
    """A leaderboard as a file, with all rows that the filter shows: csv has every row with all its
    values, md and tex the ranked rows as a table, trec_eval their means in trec_eval's format."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[
            MEASURE_NAMES,
            SORT,
            ORDER,
            FILTER,
            COLUMNS,
            ARRANGE,
            VERSIONS,
            ENTRIES,
            SCORES,
            TOPICS,
            BY,
            ROWS,
            DECIMALS,
            *STATISTICS,
            VIEW,
        ],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> tuple[str, bytes]:
            test_collection = scored_collection(request, collection)
            parameters = board_parameters(request, test_collection)
            query = BoardQuery.read(parameters, test_collection, request.user)
            StandingsQuery.check_options(parameters)
            statistics = StandingsQuery.requested(parameters)

            board = read_whole_board(collection=test_collection, query=query)
            standings = read_standings(board=board, query=statistics) if statistics else None
            # A saved view has the rows of its page.
            if request.query_params.get("limit"):
                board = replace(board, rows=board.rows[: query.limit])

            if EXPORTS[kind] is paper_table:
                decimals = FileQuery.read(parameters).decimals
                table = paper_table(test_collection, board, standings, decimals)
            else:
                table = EXPORTS[kind](test_collection, board, standings)

            return test_collection.slug, FORMATS[kind].content(table)

        slug, content = read_in_snapshot(read)
        return HttpResponse(content, headers=FORMATS[kind].headers(f"{slug}-leaderboard"))
