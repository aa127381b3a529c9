"""The API of snapshots: make one of a campaign's results, read it, give it a DOI, withdraw it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.inputs import ReasonSerializer
from evalhub.campaigns.exports.citation_data import cited_of
from evalhub.campaigns.exports.freezing import freeze_results, keep_results
from evalhub.campaigns.questions.lookup import organised_campaign, visible_campaign
from evalhub.campaigns.questions.snapshots import (
    ARCHIVE,
    ARCHIVE_TYPE,
    SnapshotSerializer,
    archive_of,
    as_file,
    site_of,
    visible_snapshot,
)
from evalhub.campaigns.services.campaigns import check_organiser
from evalhub.campaigns.services.manifest import RUN_FILES, shown_manifest
from evalhub.campaigns.services.snapshots import give_doi, snapshots_seen_by, withdraw_snapshot
from runs.api.collections.collections import either
from runs.models import Campaign, Scope, Snapshot, User
from runs.models.text import DOI_RULE, DOI_SAID
from runs.web import idempotency
from runs.web.fields import JSONObject
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, Url, shape


class SnapshotAnswer(TypedDict):
    """A snapshot; `page` is the address that a paper cites."""

    sha256: str
    code: Annotated[str, "the beginning of the SHA-256 by which it is addressed"]
    url: Url
    page: str
    campaign: str
    phase: Annotated[str | None, "null: all phases"]
    number: int
    label: str
    created_at: datetime
    archive_sha256: str
    archive_bytes: int
    supersedes: Annotated[str | None, "the code of the one before"]
    superseded_by: str | None
    withdrawn_at: datetime | None
    withdrawn_reason: str
    doi: str
    citation: str


class SnapshotContent(SnapshotAnswer):
    """A snapshot with its content; that of a withdrawn one has no values."""

    manifest: JSONObject


class SnapshotPhase(TypedDict):
    phase: str
    run_files: Annotated[str, OneOf(RUN_FILES), "whether it would have the files of runs"]


class SnapshotCheck(TypedDict):
    """What a snapshot would have."""

    phases: list[SnapshotPhase]
    run_files_limit: Annotated[int, "bytes of the files of runs, as they are stored"]


class DoiSerializer(KnownFields, serializers.Serializer[Any]):
    doi = serializers.RegexField(
        rf"\A{DOI_RULE}\Z", max_length=220, error_messages={"invalid": DOI_SAID}
    )


SHAPE, CONTENT = shape(SnapshotAnswer), shape(SnapshotContent)


def snapshot_answer(request: Request, snapshot: Snapshot) -> SnapshotAnswer:
    citation = cited_of(snapshot, site_of(request))
    successor = snapshot.superseded_by.order_by("number").values_list("code", flat=True).first()
    return SnapshotAnswer(
        sha256=snapshot.sha256,
        code=snapshot.code,
        url=f"{site_of(request)}/api/v1/snapshots/{snapshot.code}/",
        page=citation.address,
        campaign=snapshot.campaign.slug,
        phase=snapshot.phase.slug if snapshot.phase else None,
        number=snapshot.number,
        label=snapshot.label,
        created_at=snapshot.created_at,
        archive_sha256=snapshot.archive_sha256,
        archive_bytes=snapshot.archive_bytes,
        supersedes=snapshot.supersedes.code if snapshot.supersedes else None,
        superseded_by=successor,
        withdrawn_at=snapshot.withdrawn_at,
        withdrawn_reason=snapshot.withdrawn_reason,
        doi=snapshot.doi,
        citation=citation.text,
    )


def _content(request: Request, snapshot: Snapshot) -> SnapshotContent:
    return SnapshotContent(**snapshot_answer(request, snapshot), manifest=shown_manifest(snapshot))


def _may_make(request: Request, body: Any, campaign: str) -> bool:
    return bool(Campaign.objects.organised_by(request.user).filter(slug=campaign).exists())


def _organises_snapshot(request: Request, body: Any, snapshot: str) -> bool:
    return bool(Campaign.objects.organised_by(request.user).filter(slug=body["campaign"]).exists())


class SnapshotList(AnswerList[Snapshot]):
    """The snapshots of a campaign that the caller sees, newest first; POST makes one of a phase or of all of them. The
    same results are one snapshot, which is answered with 200, and so is a `dry_run`."""

    serializer_class = SHAPE
    scopes = {"POST": Scope.MANAGE}
    problems = (403, 409)
    queryset = Snapshot.objects.none()

    def get_queryset(self) -> QuerySet[Snapshot]:
        if getattr(self, "swagger_fake_view", False):
            return Snapshot.objects.none()

        campaign = visible_campaign(self.request, self.kwargs["campaign"])
        return (
            snapshots_seen_by(self.request.user)
            .filter(campaign=campaign)
            .select_related("supersedes")
            .defer("archive", "manifest")
            .order_by("-number")
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        return self.get_paginated_response(
            [snapshot_answer(request, snapshot) for snapshot in page]
        )

    @extend_schema(
        request=SnapshotSerializer,
        responses={201: SHAPE, 200: either("SnapshotOrCheck", SHAPE, shape(SnapshotCheck))},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_make)
    def post(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = SnapshotSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user = cast(User, request.user)
        fields = serializer.validated_data
        frozen = freeze_results(
            campaign=organised, phase=fields["phase"], label=fields["label"], user=user
        )
        if fields["dry_run"]:
            phases = [
                SnapshotPhase(phase=phase["slug"], run_files=phase["run_files"])
                for phase in json.loads(frozen.manifest)["phases"]
            ]
            limit = settings.EVALHUB_SNAPSHOT_RUN_BYTES
            return Response(SnapshotCheck(phases=phases, run_files_limit=limit))

        with transaction.atomic():
            snapshot, new = keep_results(
                frozen, user=user, site=site_of(request), origin=origin_of(request)
            )
            data = snapshot_answer(request, snapshot)
            code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
            response = Response(data, code, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)

        return response


class SnapshotDetail(APIView):
    """One snapshot with its content; PATCH gives it a DOI, once."""

    scopes = {"PATCH": Scope.MANAGE}
    problems = (403, 409)

    @extend_schema(responses=CONTENT)
    def get(self, request: Request, snapshot: str) -> Response:
        return Response(_content(request, visible_snapshot(request, snapshot)))

    @extend_schema(request=DoiSerializer, responses=SHAPE)
    def patch(self, request: Request, snapshot: str) -> Response:
        visible = visible_snapshot(request, snapshot)
        check_organiser(visible.campaign, request.user)
        serializer = DoiSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        give_doi(snapshot=visible, doi=serializer.validated_data["doi"], origin=origin_of(request))

        return Response(snapshot_answer(request, visible_snapshot(request, snapshot)))


class SnapshotArchive(APIView):
    """The archive of a snapshot, for whoever sees the snapshot: the bytes of its permanent address, which reads no
    tokens. Its SHA-256 is in `X-SHA256`."""

    problems = (410,)

    @extend_schema(responses={(200, ARCHIVE_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request, snapshot: str) -> HttpResponse:
        visible = visible_snapshot(request, snapshot)
        return as_file(visible, archive_of(visible), ARCHIVE, ARCHIVE_TYPE)


class SnapshotWithdraw(APIView):
    """Withdraw a snapshot for a reason: its address stays and says so, its content is not given out any more."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(request=ReasonSerializer, responses=SHAPE, parameters=[idempotency.PARAMETER])
    @idempotency.one_act(_organises_snapshot)
    def post(self, request: Request, snapshot: str) -> Response:
        visible = visible_snapshot(request, snapshot)
        check_organiser(visible.campaign, request.user)
        serializer = ReasonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        withdraw_snapshot(
            snapshot=visible, reason=serializer.validated_data["reason"], origin=origin_of(request)
        )

        return Response(snapshot_answer(request, visible_snapshot(request, snapshot)))
