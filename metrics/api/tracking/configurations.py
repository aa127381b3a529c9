"""The API of configurations as files."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.exports.tracking.configurations import configurations_table
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import read_means
from runs.api.tracking.configurations import PARAMETERS, configurations_in
from runs.web.access import sees_scores, visible_collection
from runs.web.parameters import text_of


class ConfigurationsExport(APIView):
    """The configurations as CSV: a row for each run, the baseline first and then the best, a column
    for each parameter, and the mean of the collection's first measure for readers who see scores.
    """

    problems = (403,)

    @extend_schema(
        operation_id="configurations_export",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=PARAMETERS,
    )
    def get(self, request: Request, collection: str) -> HttpResponse:
        test_collection = visible_collection(request, collection)
        parameters = text_of(request.query_params)
        scored = sees_scores(request, test_collection)

        def read() -> Table:
            configurations = configurations_in(parameters, test_collection, request.user)
            means = None
            if scored:
                runs = [run.pk for run in configurations.runs]
                means = read_means(collection=test_collection, runs=runs)

            return configurations_table(test_collection, configurations, means)

        table, export = read_in_snapshot(read), FORMATS["csv"]
        headers = export.headers(f"{test_collection.slug}-configurations")
        return HttpResponse(export.content(table), headers=headers)
