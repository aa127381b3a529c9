"""The API of leaderboards as files."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.api.boards.standings import asked_standings
from metrics.api.parameters import FILTER, MEASURE_NAMES, ORDER, SCORES, SORT, STATISTICS
from metrics.exports.boards import EXPORTS
from metrics.questions.boards import board_query
from metrics.questions.parameters import query_of
from metrics.services.boards.leaderboard import read_whole_board
from metrics.services.boards.standings import read_standings
from metrics.services.snapshots import one_snapshot
from runs.api.access import scored_collection


class LeaderboardExport(APIView):
    """A leaderboard as a file, all rows that the filter shows: csv has every one of them with all its figures, md and
    tex the ranked ones as a table, trec_eval their means in trec_eval's own lines."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[
            MEASURE_NAMES,
            SORT,
            ORDER,
            FILTER,
            SCORES,
            *STATISTICS,
        ],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        with one_snapshot():
            found = scored_collection(request, collection)
            parameters = query_of(request)
            query, asked = board_query(parameters, found, request.user), asked_standings(parameters)
            board = read_whole_board(collection=found, query=query)
            standings = read_standings(board=board, query=asked) if asked else None
            export = EXPORTS[kind]
            text = "".join(export.render(found, board, standings))
        response = HttpResponse(text, content_type=export.content_type)
        response["Content-Disposition"] = f'attachment; filename="{found.slug}-leaderboard.{export.ending}"'
        return response
