"""The API of leaderboards as files."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.api.parameters import FILTER, MEASURE_NAMES, SCORES, STATISTICS, parameter
from metrics.exports.boards import EXPORTS
from metrics.questions.parameters import board_query, query_of, standings_query
from metrics.services.boards.leaderboard import read_whole_board
from metrics.services.boards.standings import read_standings
from runs.api.access import scored_collection


class LeaderboardExport(APIView):
    """A leaderboard as a file, all rows that the filter shows: csv has every one of them with all its figures, md and
    tex the ranked ones as a table, trec_eval their means in trec_eval's own lines."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[
            MEASURE_NAMES,
            parameter("sort", "the measure to rank by; the first where left out"),
            parameter("order", "desc or asc; best first where left out"),
            FILTER,
            SCORES,
            *STATISTICS,
        ],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        found = scored_collection(request, collection)
        parameters = query_of(request)
        query, asked = board_query(parameters, found, request.user), standings_query(parameters)
        board = read_whole_board(collection=found, query=query)
        standings = read_standings(board=board, query=asked) if asked else None
        export = EXPORTS[kind]
        response = HttpResponse("".join(export.render(found, board, standings)), content_type=export.content_type)
        response["Content-Disposition"] = f'attachment; filename="{found.slug}-leaderboard.{export.ending}"'
        return response
