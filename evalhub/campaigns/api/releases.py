"""The API of releases."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from evalhub.campaigns.api.inputs import TimeField, TimesSerializer
from evalhub.campaigns.questions.lookup import may_organise, organised_phase, visible_phase
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.releases import cancel_release, plan_release
from evalhub.campaigns.services.releasing import WAITS_FOR, release_now, waits_for
from runs import models
from runs.errors import InvalidInput
from runs.models import Campaign, Phase, Scope, User
from runs.models.campaigns.disclosure import is_participant
from runs.models.text import check_line
from runs.services import clock
from runs.web import idempotency
from runs.web.fields import ChoiceField
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, Url, shape

AUDIENCES = tuple(models.Release.Audience.labels)
STATES = ("planned", "waiting", "done", "cancelled")


class Release(TypedDict):
    """An act that shows the results of a phase to more people."""

    id: UUID
    url: Url
    campaign: str
    phase: str
    audience: Annotated[str, OneOf(AUDIENCES)]
    state: Annotated[str, OneOf(STATES)]
    planned_at: Annotated[datetime | None, "null: when an organiser does it"]
    done_at: datetime | None
    cancelled_at: datetime | None
    waits_for: Annotated[str | None, OneOf(WAITS_FOR), "why a release that is due is not done"]
    waiting_for_evaluations: Annotated[int | None, "entries to be evaluated first; for organisers"]
    qrels: Annotated[int | None, "version of the judgements; null: the one that is active then"]
    qrels_sha256: str | None
    with_run_files: bool
    note: str
    entries: Annotated[int | None, "on the official leaderboard, when it was done"]


class ReleaseSerializer(TimesSerializer):
    """A release to plan."""

    times = ("at",)
    audience = ChoiceField(choices=AUDIENCES)
    at = TimeField(required=False, allow_null=True, default=None)
    zone = serializers.CharField(max_length=64, required=False)
    qrels = serializers.IntegerField(
        min_value=1, max_value=1_000_000, required=False, allow_null=True, default=None
    )
    with_run_files = serializers.BooleanField(required=False, default=False)
    note = serializers.CharField(
        max_length=500, required=False, allow_blank=True, default="", validators=[check_line]
    )


class ReleaseNowSerializer(KnownFields, serializers.Serializer[Any]):
    force = serializers.BooleanField(
        required=False, default=False, help_text="do not wait for evaluations"
    )
    reason = serializers.CharField(
        max_length=500,
        required=False,
        allow_blank=True,
        default="",
        validators=[check_line],
        help_text="of force",
    )


def releases_of(user: Any, phase: Phase, organiser: bool) -> QuerySet[models.Release]:
    """Return the releases that the user sees: organisers see all, others those done for them."""
    rows = models.Release.objects.filter(phase=phase).select_related(
        "qrels", "phase__campaign", "phase__collection"
    )
    if organiser:
        return rows

    public = Q(audience=models.Release.Audience.PUBLIC)

    return rows.exclude(done_at=None).filter(Q() if is_participant(user, phase) else public)


def release_answer(
    request: Request, release: models.Release, organiser: bool, now: datetime
) -> Release:
    reason, evaluations = waits_for(release, now) if organiser else (None, 0)
    if release.cancelled_at:
        state = "cancelled"
    elif release.done_at:
        state = "done"
    else:
        state = "waiting" if reason else "planned"

    return Release(
        id=release.pk,
        url=reverse("phase-release", args=[release.pk], request=request),
        campaign=release.phase.campaign.slug,
        phase=release.phase.slug,
        audience=release.get_audience_display(),
        state=state,
        planned_at=release.planned_at,
        done_at=release.done_at,
        cancelled_at=release.cancelled_at,
        waits_for=reason,
        waiting_for_evaluations=evaluations if organiser else None,
        qrels=release.qrels.version if release.qrels else None,
        qrels_sha256=release.qrels.sha256 if release.qrels else None,
        with_run_files=release.with_run_files,
        note=release.note,
        entries=len(release.official) if release.done_at else None,
    )


def _visible_release(request: Request, pk: UUID) -> tuple[models.Release, bool]:
    """Return a release that the caller sees, and whether the caller organises its campaign."""
    campaigns = Campaign.objects.visible_to(request.user)
    rows = models.Release.objects.filter(phase__campaign__in=campaigns)
    release = rows.select_related("phase__campaign__team").filter(pk=pk).first()

    if release:
        organiser = is_organiser(release.phase.campaign, request.user)
        visible = releases_of(request.user, release.phase, organiser).filter(pk=pk).first()
        if visible:
            return visible, organiser

    raise Http404(f"there is no release {pk}")


def _organises_release(request: Request, body: Any, release: UUID) -> bool:
    organised = Campaign.objects.organised_by(request.user)
    return bool(models.Release.objects.filter(pk=release, phase__campaign__in=organised).exists())


class ReleaseList(AnswerList[models.Release]):
    """The releases of a phase: organisers see all, others those that were done for them; POST plans one."""

    serializer_class = shape(Release)
    scopes = {"POST": Scope.MANAGE}
    queryset = models.Release.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        phase = visible_phase(request, self.kwargs["campaign"], self.kwargs["phase"])
        organiser = is_organiser(phase.campaign, request.user)
        now = clock.database_now()
        rows = releases_of(request.user, phase, organiser).order_by("created_at", "pk")
        page = self.paginate_queryset(rows) or []

        return self.get_paginated_response(
            [release_answer(request, release, organiser, now) for release in page]
        )

    @extend_schema(
        request=ReleaseSerializer,
        responses={201: shape(Release)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        serializer = ReleaseSerializer(organised, request.data)
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        # The zone was for reading the time.
        fields.pop("zone", None)
        audience = models.Release.Audience.values[AUDIENCES.index(fields.pop("audience"))]

        release = plan_release(
            phase=organised,
            audience=audience,
            user=cast(User, request.user),
            origin=origin_of(request),
            **fields,
        )
        data = release_answer(request, release, True, clock.database_now())

        return Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})


class ReleaseDetail(APIView):
    """One release; DELETE cancels a planned one."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses=shape(Release))
    def get(self, request: Request, release: UUID) -> Response:
        visible, organiser = _visible_release(request, release)
        return Response(release_answer(request, visible, organiser, clock.database_now()))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, release: UUID) -> Response:
        visible, _ = _visible_release(request, release)
        cancel_release(release=visible, user=cast(User, request.user), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReleaseNow(APIView):
    """Do a planned release at once. It is done for good."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(
        request=ReleaseNowSerializer, responses=shape(Release), parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(_organises_release)
    def post(self, request: Request, release: UUID) -> Response:
        visible, _ = _visible_release(request, release)
        serializer = ReleaseNowSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        if fields["force"] and not fields["reason"]:
            message = "say why the release does not wait for evaluations"
            raise InvalidInput(message, code="required", pointer="/reason")

        released = release_now(
            release=visible, user=cast(User, request.user), **fields, origin=origin_of(request)
        )

        return Response(release_answer(request, released, True, clock.database_now()))
