"""The API of suites: make them, read them, their leaderboard, and the difference of two systems."""

from __future__ import annotations

from typing import Any, cast

from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.suites.api.answers import (
    SuiteBoardAnswer,
    SuiteComparisonAnswer,
    SuiteDetail,
    SuiteSummary,
    SuiteVersionAnswer,
    board_answer,
    comparison_answer,
    suite_detail,
    suite_summary,
    version_answer,
)
from evalhub.suites.exports.suites import board_table, comparison_table
from evalhub.suites.models import Suite, SuiteVersion
from evalhub.suites.questions.lookup import (
    all_who_see_the_results,
    board_of,
    comparison_of,
    deletable_suite,
    managed_suite,
    of_suite,
    suites_of,
    versions_of,
    visible_results,
    visible_version,
)
from evalhub.suites.questions.members import SuiteSerializer, SuiteVersionSerializer
from evalhub.suites.services.board import SuiteBoardQuery, SuiteQuery
from evalhub.suites.services.comparison import SuiteComparisonQuery
from evalhub.suites.services.suites import add_version, create_suite, delete_suite, members_of
from metrics.exports.formats import FORMATS
from metrics.exports.table import Table
from metrics.questions.answer_cache import cached
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from runs.models import Scope, Team, User
from runs.web import idempotency
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.shapes import shape

BOARD, COMPARISON = declared(SuiteBoardQuery), declared(SuiteComparisonQuery)
VERSION = declared(SuiteQuery)
_FILE = {(200, "text/csv"): OpenApiTypes.STR}


def _may_create(request: Request, body: Any) -> bool:
    return bool(Team.objects.led_by(request.user).filter(slug=body["team"]).exists())


def _may_add(request: Request, body: Any, suite: str) -> bool:
    return bool(Suite.objects.managed_by(request.user).filter(slug=suite).exists())


class SuiteList(AnswerList[Suite]):
    """The suites with collections that the caller sees; POST makes one with its first version."""

    serializer_class = shape(SuiteSummary)
    scopes = {"POST": Scope.MANAGE}
    problems = (409,)
    queryset = Suite.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        suites: Any = self.paginate_queryset(suites_of(request.user)) or []
        counted = SuiteVersion.objects.annotate(collections=Count("members"))
        newest: dict[int, Any] = counted.in_bulk([suite.newest for suite in suites])
        return self.get_paginated_response(
            [
                suite_summary(request, suite, version.number, version.collections)
                for suite in suites
                for version in [newest[suite.newest]]
            ]
        )

    @extend_schema(
        request=SuiteSerializer,
        responses={201: shape(SuiteDetail)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_create)
    def post(self, request: Request) -> Response:
        serializer = SuiteSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        members = members_of(fields.pop("members"), request.user)
        with transaction.atomic():
            version = create_suite(
                **fields, members=members, user=cast(User, request.user), origin=origin_of(request)
            )
            data = suite_detail(request, version, [1], visible_results(request, version))
            response = Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)
        return response


class SuiteView(APIView):
    """One suite with the collections of a version. DELETE deletes it with all versions; the
    collections and their results stay."""

    scopes = {"DELETE": Scope.MANAGE}
    problems = (403,)

    @extend_schema(responses=shape(SuiteDetail), parameters=[*VERSION])
    def get(self, request: Request, suite: str) -> Response:
        query = SuiteQuery.read(query_of(request))
        version = visible_version(request, suite, query.version)
        versions = list(versions_of(request, suite).values_list("number", flat=True))
        visible = visible_results(request, version)
        return Response(suite_detail(request, version, versions, visible))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, suite: str) -> Response:
        delete_suite(suite=deletable_suite(request, suite), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class SuiteVersionList(AnswerList[SuiteVersion]):
    """The versions of a suite, newest first; POST makes a new one, which never changes."""

    serializer_class = shape(SuiteVersionAnswer)
    scopes = {"POST": Scope.MANAGE}
    problems = (403, 409)
    queryset = SuiteVersion.objects.none()

    def get_queryset(self) -> QuerySet[SuiteVersion]:
        visible_version(self.request, self.kwargs["suite"])
        return versions_of(self.request, self.kwargs["suite"])

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(
            [version_answer(request, row, visible_results(request, row)) for row in page]
        )

    @extend_schema(
        request=SuiteVersionSerializer,
        responses={201: shape(SuiteVersionAnswer)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_add)
    def post(self, request: Request, suite: str) -> Response:
        managed = managed_suite(request, suite)
        serializer = SuiteVersionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        with transaction.atomic():
            version = add_version(
                suite=managed,
                members=members_of(fields["members"], request.user),
                note=fields["note"],
                user=cast(User, request.user),
                origin=origin_of(request),
            )
            data = version_answer(request, version, visible_results(request, version))
            response = Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)
        return response


class SuiteBoardView(APIView):
    """The systems of a suite by their mean over its collections, with two kinds of intervals,
    Borda's count and mean ranks."""

    @extend_schema(responses=shape(SuiteBoardAnswer), parameters=[*BOARD])
    @cached(of_suite, shared_by=all_who_see_the_results)
    def get(self, request: Request, suite: str) -> Response:
        return Response(read_in_snapshot(lambda: board_answer(board_of(request, suite))))


class SuiteBoardExport(APIView):
    """The leaderboard as a file: csv at full precision, md and tex as a table."""

    @extend_schema(responses=_FILE, parameters=[*BOARD])
    @cached(of_suite, shared_by=all_who_see_the_results)
    def get(self, request: Request, suite: str, kind: str) -> HttpResponse:
        return _file(kind, lambda: board_table(board_of(request, suite)))


class SuiteComparisonView(APIView):
    """Two systems: their difference in each collection, over all, and by random effects."""

    @extend_schema(responses=shape(SuiteComparisonAnswer), parameters=[*COMPARISON])
    @cached(of_suite, shared_by=all_who_see_the_results)
    def get(self, request: Request, suite: str) -> Response:
        return Response(read_in_snapshot(lambda: comparison_answer(comparison_of(request, suite))))


class SuiteComparisonExport(APIView):
    """The difference of two systems as a file: csv at full precision, md and tex as a table."""

    @extend_schema(responses=_FILE, parameters=[*COMPARISON])
    @cached(of_suite, shared_by=all_who_see_the_results)
    def get(self, request: Request, suite: str, kind: str) -> HttpResponse:
        return _file(kind, lambda: comparison_table(comparison_of(request, suite)))


def _file(kind: str, read: Any) -> HttpResponse:
    def content() -> tuple[str, bytes]:
        table: Table = read()
        return table.name, FORMATS[kind].content(table)

    name, body = read_in_snapshot(content)
    return HttpResponse(body, headers=FORMATS[kind].headers(name))
