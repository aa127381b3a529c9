"""The API of the parameters and costs of a collection's runs, with facets.

What organisers say of one is in `runs.api.tracking.keys`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import page_addresses
from metrics.questions.answer_cache import Subject, cached, everybody
from metrics.services.tracking.parameters import DEFAULT_LIMIT, MAX_LIMIT, Facet, read_facets
from runs.api.tracking.keys import Key, key_of
from runs.formats.parameters import MAX_KEY
from runs.parameters import MAX_OFFSET, integer_in
from runs.web.access import note_filter, visible_collection
from runs.web.parameters import text_of
from runs.web.shapes import Kind, Url, shape


class FacetValue(TypedDict):
    value: Annotated[
        Any, Kind(serializers.JSONField), "a text in lower case, its first 200 characters"
    ]
    runs: int


class KeyWithFacets(Key):
    runs: Annotated[int, "those that have it"]
    missing: Annotated[int, "the others"]
    types: Annotated[dict[str, int], "runs by number, text and boolean"]
    min: Annotated[float | None, "of the numbers"]
    max: float | None
    distinct: Annotated[int, "different values"]
    values: Annotated[list[FacetValue], "the 20 most frequent"]


class Parameters(TypedDict):
    """Keys of the runs that the caller sees."""

    count: Annotated[int, "keys on all pages"]
    runs: Annotated[int, "those that the filter selects"]
    next: Url | None
    previous: Url | None
    results: list[KeyWithFacets]


def _open_collection(request: Request, collection: str) -> Subject | None:
    """Return the collection, or None while readers see different runs."""
    test_collection = visible_collection(request, collection)
    return None if test_collection.blind or test_collection.veiled else Subject(test_collection)


class ParameterList(APIView):
    """The parameters and costs of the runs that the caller sees, with the values that occur."""

    problems = (403,)

    @extend_schema(
        operation_id="parameters_list",
        responses=shape(Parameters),
        parameters=[
            OpenApiParameter(
                "filter", description="whose parameters: those of the runs that a filter selects"
            ),
            OpenApiParameter("q", description="a part of the name"),
            OpenApiParameter(
                "limit",
                int,
                description=f"keys of a page, default: {DEFAULT_LIMIT}, at most {MAX_LIMIT}",
            ),
            OpenApiParameter("offset", int, description="keys to pass over"),
        ],
    )
    @cached(_open_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = visible_collection(request, collection)
        parameters = text_of(request.query_params)
        note_filter(request, test_collection, parameters.get("filter", ""))

        offset = integer_in(parameters, "offset", 0, 0, MAX_OFFSET)
        limit = integer_in(parameters, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
        facets = read_facets(
            collection=test_collection,
            reader=request.user,
            filter=parameters.get("filter", ""),
            name=parameters.get("q", "")[:MAX_KEY],
            offset=offset,
            limit=limit,
        )

        page = page_addresses(request.build_absolute_uri(), offset, limit, facets.count)

        return Response(
            Parameters(
                count=facets.count,
                runs=facets.runs,
                next=page.next,
                previous=page.previous,
                results=[_with_facets(facet, facets.runs) for facet in facets.results],
            )
        )


def _with_facets(facet: Facet, runs: int) -> KeyWithFacets:
    return KeyWithFacets(
        **key_of(facet.key),
        runs=facet.runs,
        missing=runs - facet.runs,
        types=facet.types,
        min=facet.low,
        max=facet.high,
        distinct=facet.distinct,
        values=[FacetValue(value=value, runs=count) for value, count in facet.values],
    )
