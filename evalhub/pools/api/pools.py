"""The API of pools: make them of the entries of a phase or of runs, freeze and read them."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.questions.lookup import may_organise, organised_phase, visible_phase
from evalhub.pools.api.answers import (
    PoolCheck,
    PoolDetail,
    PoolStatisticsAnswer,
    PoolSummary,
    pool_check,
    pool_detail,
    pool_summary,
    statistics_answer,
)
from evalhub.pools.exports.files import FORMS, MEDIA_TYPES, archive, topic_file
from evalhub.pools.models import Pool
from evalhub.pools.questions.lookup import (
    managed_pool,
    planned_pool,
    pools_of,
    visible_pool,
)
from evalhub.pools.questions.recipes import PoolSerializer
from evalhub.pools.services.pool_file import documents_of
from evalhub.pools.services.pools import delete_draft, freeze_pool, show_pool, store_draft
from evalhub.pools.services.statistics import read_statistics
from runs.api.collections.collections import either
from runs.errors import Conflict, InvalidInput
from runs.models import Collection, Phase, Scope, User
from runs.web import idempotency
from runs.web.access import managed_collection, sees_scores, visible_collection
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import shape

SUMMARY, DETAIL = shape(PoolSummary), shape(PoolDetail)
_CHECK = either("PoolOrCheck", DETAIL, shape(PoolCheck))
_ASSESSOR = OpenApiParameter(
    "assessor", str, description="the documents are in the order of this assessor"
)
_FORM = OpenApiParameter("form", str, enum=list(FORMS), description="default: tsv")
_MAX_NAME = 150


def _may_manage(request: Request, body: Any, **_: Any) -> bool:
    return bool(Pool.objects.managed_by(request.user).filter(pk=body["id"]).exists())


def _managed_collection(request: Request, body: Any, collection: str) -> bool:
    return bool(Collection.objects.managed_by(request.user).filter(slug=collection).exists())


class _PoolList(AnswerList[Pool]):
    """Pools, newest first."""

    serializer_class = SUMMARY
    scopes = {"POST": Scope.MANAGE}
    problems = (403, 409)
    queryset = Pool.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response([pool_summary(request, pool) for pool in page])

    def make(self, request: Request, collection: Collection, phase: Phase | None) -> Response:
        """Answer with a new draft, or with what it would have."""
        serializer = PoolSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        plan = planned_pool(request, collection, phase, fields)
        if fields["dry_run"]:
            return Response(pool_check(plan))

        with transaction.atomic():
            pool = store_draft(plan=plan, user=cast(User, request.user), origin=origin_of(request))
            data = pool_detail(request, pool)
            response = Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)
        return response


class PhasePoolList(_PoolList):
    """The pools of a phase that the caller sees; POST makes a draft of its entries, or with
    `dry_run` answers what it would have."""

    def get_queryset(self) -> QuerySet[Pool]:
        if getattr(self, "swagger_fake_view", False):
            return Pool.objects.none()
        phase = visible_phase(self.request, self.kwargs["campaign"], self.kwargs["phase"])
        return pools_of(self.request.user).filter(phase=phase).order_by("-number")

    @extend_schema(
        request=PoolSerializer,
        responses={201: DETAIL, 200: _CHECK},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        return self.make(request, organised.collection, organised)


class CollectionPoolList(_PoolList):
    """The pools of a collection that the caller sees; POST makes a draft of runs, or with
    `dry_run` answers what it would have."""

    def get_queryset(self) -> QuerySet[Pool]:
        if getattr(self, "swagger_fake_view", False):
            return Pool.objects.none()
        collection = visible_collection(self.request, self.kwargs["collection"])
        return pools_of(self.request.user).filter(collection=collection).order_by("-number")

    @extend_schema(
        request=PoolSerializer,
        responses={201: DETAIL, 200: _CHECK},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_managed_collection)
    def post(self, request: Request, collection: str) -> Response:
        return self.make(request, managed_collection(request, collection), None)


class ShownSerializer(KnownFields, serializers.Serializer[Any]):
    shown = serializers.BooleanField(
        help_text="whether all who see the results of the collection see the pool"
    )


class PoolView(APIView):
    """One pool; PATCH shows it to all who see the results of its collection, DELETE deletes a
    draft."""

    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}
    problems = (403, 409)

    @extend_schema(responses=DETAIL)
    def get(self, request: Request, pool: UUID) -> Response:
        return Response(pool_detail(request, visible_pool(request, pool)))

    @extend_schema(request=ShownSerializer, responses=DETAIL)
    def patch(self, request: Request, pool: UUID) -> Response:
        managed = managed_pool(request, pool)
        serializer = ShownSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        shown = serializer.validated_data["shown"]
        changed = show_pool(pool=managed, shown=shown, origin=origin_of(request))
        return Response(pool_detail(request, changed))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pool: UUID) -> Response:
        delete_draft(pool=managed_pool(request, pool), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class PoolFreeze(APIView):
    """Freeze a draft: it never changes again, and its documents can be judged."""

    scopes = {"POST": Scope.MANAGE}
    problems = (403, 409)
    without_body = ("POST",)

    @extend_schema(request=None, responses=DETAIL, parameters=[idempotency.PARAMETER])
    @idempotency.one_act(_may_manage)
    def post(self, request: Request, pool: UUID) -> Response:
        managed = managed_pool(request, pool)
        user = cast(User, request.user)
        frozen = freeze_pool(pool=managed, user=user, origin=origin_of(request))
        return Response(pool_detail(request, frozen))


class PoolStatisticsView(APIView):
    """Documents of each topic and run, the overlap of runs, and growth with depth; unique relevant
    documents by the active judgements, where there are some."""

    @extend_schema(responses=shape(PoolStatisticsAnswer))
    def get(self, request: Request, pool: UUID) -> Response:
        visible = visible_pool(request, pool)
        # Whoever manages a campaign sees its pools, but not the judgements of another collection.
        scored = sees_scores(request, visible.collection)
        qrels = visible.collection.active_qrels if scored else None
        return Response(statistics_answer(visible, read_statistics(visible, qrels)))


class PoolFile(APIView):
    """The documents of a topic, in an order that says nothing of ranks and runs."""

    access = {"GET": Access.ORGANISERS}
    problems = (403, 409)

    @extend_schema(
        responses={(200, "text/tab-separated-values"): OpenApiTypes.BINARY},
        parameters=[_ASSESSOR],
    )
    def get(self, request: Request, pool: UUID, topic: str, file_form: str) -> HttpResponse:
        frozen = frozen_pool(request, pool)
        doc_ids = documents_of(frozen, topic)
        if not doc_ids:
            raise Http404(f"pool {frozen.number} has no topic {topic[:40]!r}")

        content = topic_file(
            pool=frozen,
            topic_id=topic,
            doc_ids=doc_ids,
            form=file_form,
            assessor=_assessor(request),
        )
        response = HttpResponse(content, content_type=MEDIA_TYPES[file_form])
        response["Content-Disposition"] = f'attachment; filename="pool-{frozen.number}.{file_form}"'
        return response


class PoolArchive(APIView):
    """The files of all topics as a zip archive."""

    access = {"GET": Access.ORGANISERS}
    problems = (403, 409)

    @extend_schema(
        responses={(200, "application/zip"): OpenApiTypes.BINARY}, parameters=[_ASSESSOR, _FORM]
    )
    def get(self, request: Request, pool: UUID) -> FileResponse:
        form = request.query_params.get("form", "tsv")
        if form not in FORMS:
            message = f"form {form[:20]!r} is not one of {', '.join(FORMS)}"
            raise InvalidInput(message, code="unknown_form", pointer="form")

        frozen = frozen_pool(request, pool)
        packed = archive(pool=frozen, form=form, assessor=_assessor(request))
        return FileResponse(
            packed,
            as_attachment=True,
            filename=f"pool-{frozen.number}.zip",
            content_type="application/zip",
        )


def frozen_pool(request: Request, pk: UUID) -> Pool:
    """Return a pool that the user manages. Raise Conflict for a draft, which has no files."""
    pool = managed_pool(request, pk)
    if not pool.is_frozen:
        message = "only a frozen pool has files for assessors; freeze it first"
        raise Conflict(message, code="pool_not_frozen")
    return pool


def _assessor(request: Request) -> str:
    name = request.query_params.get("assessor", "")
    if len(name) > _MAX_NAME:
        message = f"a name has at most {_MAX_NAME} characters"
        raise InvalidInput(message, code="bad_assessor", pointer="assessor")
    return name
