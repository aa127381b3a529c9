"""The API of parameters: the keys of a collection with facets, and what organisers say of a key."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from metrics.services.boards.conditions import visible_board, visible_keys
from metrics.services.boards.parameters import DEFAULT_LIMIT, MAX_LIMIT, Facet, read_facets
from metrics.services.snapshots import read_in_snapshot
from runs.api.access import managed_collection, note_filter, visible_collection
from runs.api.origin import origin_of
from runs.api.parameters import MAX_OFFSET, integer_in, text_of
from runs.api.serializers import ParameterKeySerializer
from runs.api.shapes import Kind, OneOf, Url, shape
from runs.formats.parameters import MAX_KEY
from runs.models import ParameterKey, Scope
from runs.services.parameters import change_key


class FacetValue(TypedDict):
    value: Annotated[Any, Kind(serializers.JSONField), "a text in lower case, its first 200 characters"]
    runs: int


class Key(TypedDict):
    space: Annotated[str, OneOf(ParameterKey.Space.choices)]
    name: str
    unit: str
    note: str
    role: Annotated[str, OneOf(ParameterKey.Role.choices), "ignored: it does not say how a run was made"]


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


class ParameterList(APIView):
    """The parameters and costs of the runs that the caller sees, with the values that occur."""

    problems = (403,)

    @extend_schema(
        operation_id="parameters_list",
        responses=shape(Parameters),
        parameters=[
            OpenApiParameter("filter", description="whose parameters: those of the runs that a filter selects"),
            OpenApiParameter("q", description="a part of the name"),
            OpenApiParameter(
                "limit", int, description=f"keys of a page, default: {DEFAULT_LIMIT}, at most {MAX_LIMIT}"
            ),
            OpenApiParameter("offset", int, description="keys to pass over"),
        ],
    )
    def get(self, request: Request, collection: str) -> Response:
        found = visible_collection(request, collection)
        asked = text_of(request.query_params)
        note_filter(request, found, asked.get("filter", ""))
        offset = integer_in(asked, "offset", 0, 0, MAX_OFFSET)
        limit = integer_in(asked, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
        facets = read_in_snapshot(
            lambda: read_facets(
                collection=found,
                reader=request.user,
                filter=asked.get("filter", ""),
                name=asked.get("q", "")[:MAX_KEY],
                offset=offset,
                limit=limit,
            )
        )
        url, after = request.build_absolute_uri(), offset + limit
        return Response(
            Parameters(
                count=facets.count,
                runs=facets.runs,
                next=replace_query_param(url, "offset", after) if after < facets.count else None,
                previous=replace_query_param(url, "offset", max(0, offset - limit)) if offset else None,
                results=[_with_facets(facet, facets.runs) for facet in facets.results],
            )
        )


class ParameterDetail(APIView):
    """What organisers say of a parameter or a cost: its unit, a note, and whether it says how a run was made."""

    scopes = {"PATCH": Scope.MANAGE}

    @extend_schema(request=ParameterKeySerializer, responses=shape(Key))
    def patch(self, request: Request, collection: str, space: str, parameter: str) -> Response:
        found = managed_collection(request, collection)
        with transaction.atomic():
            seen = visible_keys(visible_board(found, request.user), space).filter(name=parameter)
            key = (
                ParameterKey.objects.select_for_update().filter(pk__in=list(seen.values_list("pk", flat=True))).first()
            )
            if key is None:
                raise Http404(f"no run of collection {collection} has {space}:{parameter[:60]}")
            serializer = ParameterKeySerializer(key, request.data, partial=True)
            serializer.is_valid(raise_exception=True)
            change_key(key=key, changes=serializer.validated_data, origin=origin_of(request))
        return Response(_key(key))


def _key(key: ParameterKey) -> Key:
    return Key(space=key.space, name=key.name, unit=key.unit, note=key.note, role=key.role)


def _with_facets(facet: Facet, runs: int) -> KeyWithFacets:
    return KeyWithFacets(
        **_key(facet.key),
        runs=facet.runs,
        missing=runs - facet.runs,
        types=facet.types,
        min=facet.low,
        max=facet.high,
        distinct=facet.distinct,
        values=[FacetValue(value=value, runs=count) for value, count in facet.values],
    )
