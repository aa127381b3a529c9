"""The API of the version, for programs that depend on one."""

from __future__ import annotations

from typing import Annotated, TypedDict

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.version import LEAST_CLIENT, VERSION
from metrics.engine import ENGINE_VERSION
from metrics.questions.answer_cache import cached, everybody
from metrics.services.comparisons.content import STATISTICS_VERSION
from runs.web.shapes import shape

# Each name comes with its feature, and stays within one version of the API.
FEATURES = ("me", "run_states", "sha256_filter", "labels", "gate")


class Version(TypedDict):
    version: Annotated[str, "of this EvalHub, as it is installed"]
    engine_version: Annotated[str, "of the measures: another one evaluates every run again"]
    statistics_version: Annotated[int, "of the tests: another one makes stored comparisons again"]
    api_version: Annotated[str, "of these addresses, as it stands in them"]
    least_client: Annotated[str, "the oldest evalhub-client that these addresses still serve"]
    features: Annotated[list[str], "what this API has that earlier ones of its version had not"]


class VersionView(APIView):
    """The versions of this EvalHub, its engine, its statistics and its API."""

    @extend_schema(responses=shape(Version))
    @cached(None, shared_by=everybody)
    def get(self, request: Request) -> Response:
        versions = Version(
            version=VERSION,
            engine_version=ENGINE_VERSION,
            statistics_version=STATISTICS_VERSION,
            api_version=str(settings.SPECTACULAR_SETTINGS["VERSION"]),
            least_client=LEAST_CLIENT,
            features=list(FEATURES),
        )
        return Response(versions)
