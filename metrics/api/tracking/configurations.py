"""The API of configurations as files."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.exports.formats import FORMATS
from metrics.exports.tracking.configurations import configurations_table
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import Configurations, RunMeans, read_means
from runs.api.tracking.configurations import PARAMETERS, configurations_in
from runs.web.access import sees_scores, visible_collection
from runs.web.parameters import text_of


class ConfigurationsExport(APIView):
    """The configurations as CSV: a row for each run, the baseline first and then the best, a column for each parameter,
    and the mean of the collection's first measure for readers who see scores."""

    problems = (403,)

    @extend_schema(
        operation_id="configurations_export",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=PARAMETERS,
    )
    def get(self, request: Request, collection: str) -> HttpResponse:
        board = visible_collection(request, collection)
        asked, scored = text_of(request.query_params), sees_scores(request, board)

        def read() -> tuple[Configurations, RunMeans | None]:
            found = configurations_in(asked, board, request.user)
            return found, read_means(
                collection=board, runs=[run.pk for run in found.runs]
            ) if scored else None

        table, export = configurations_table(board, *read_in_snapshot(read)), FORMATS["csv"]
        headers = export.headers(f"{board.slug}-configurations")
        return HttpResponse(export.content(table), headers=headers)
