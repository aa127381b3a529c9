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
    """Return the releases that the user sees: organisers all, others those that were done for them."""
    rows = models.Release.objects.filter(phase=phase).select_related(
        "qrels", "phase__campaign", "phase__collection"
    )
    if organiser:
        return rows

    public = Q(audience=models.Release.Audience.PUBLIC)

    return rows.exclude(done_at=None).filter(Q() if is_participant(user, phase) else public)


def release_answer(
    request: Request, found: models.Release, organiser: bool, now: datetime
) -> Release:
    why, running = waits_for(found, now) if organiser else (None, 0)
    state = "waiting" if why else "planned"
    state = "cancelled" if found.cancelled_at else "done" if found.done_at else state

    return Release(
        id=found.pk,
        url=reverse("phase-release", args=[found.pk], request=request),
        campaign=found.phase.campaign.slug,
        phase=found.phase.slug,
        audience=found.get_audience_display(),
        state=state,
        planned_at=found.planned_at,
        done_at=found.done_at,
        cancelled_at=found.cancelled_at,
        waits_for=why,
        waiting_for_evaluations=running if organiser else None,
        qrels=found.qrels.version if found.qrels else None,
        qrels_sha256=found.qrels.sha256 if found.qrels else None,
        with_run_files=found.with_run_files,
        note=found.note,
        entries=len(found.official) if found.done_at else None,
    )


def _visible_release(request: Request, pk: UUID) -> tuple[models.Release, bool]:
    """Return a release that the caller sees, and whether the caller is an organiser of its campaign."""
    seen = Campaign.objects.visible_to(request.user)
    rows = models.Release.objects.filter(phase__campaign__in=seen).select_related(
        "phase__campaign__team"
    )
    found = rows.filter(pk=pk).first()
    organiser = found is not None and is_organiser(found.phase.campaign, request.user)
    shown = (
        releases_of(request.user, found.phase, organiser).filter(pk=pk).first() if found else None
    )
    if shown is None:
        raise Http404(f"there is no release {pk}")

    return shown, organiser


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
        organiser, now = is_organiser(phase.campaign, request.user), clock.database_now()
        rows = releases_of(request.user, phase, organiser).order_by("created_at", "pk")
        page = self.paginate_queryset(rows) or []

        return self.get_paginated_response(
            [release_answer(request, one, organiser, now) for one in page]
        )

    @extend_schema(
        request=ReleaseSerializer,
        responses={201: shape(Release)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        found = organised_phase(request, campaign, phase)
        serializer = ReleaseSerializer(found, request.data)
        serializer.is_valid(raise_exception=True)
        asked = {name: value for name, value in serializer.validated_data.items() if name != "zone"}
        audience = models.Release.Audience.values[AUDIENCES.index(asked.pop("audience"))]
        user, origin = cast(User, request.user), origin_of(request)
        made = plan_release(phase=found, audience=audience, user=user, origin=origin, **asked)
        data = release_answer(request, made, True, clock.database_now())

        return Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})


class ReleaseDetail(APIView):
    """One release; DELETE cancels a planned one."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses=shape(Release))
    def get(self, request: Request, release: UUID) -> Response:
        found, organiser = _visible_release(request, release)
        return Response(release_answer(request, found, organiser, clock.database_now()))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, release: UUID) -> Response:
        found, _ = _visible_release(request, release)
        cancel_release(release=found, user=cast(User, request.user), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReleaseNow(APIView):
    """Do a planned release at once. It is done for good."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(
        request=ReleaseNowSerializer, responses=shape(Release), parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(_organises_release)
    def post(self, request: Request, release: UUID) -> Response:
        found, _ = _visible_release(request, release)
        serializer = ReleaseNowSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        if asked["force"] and not asked["reason"]:
            message = "say why the release does not wait for evaluations"
            raise InvalidInput(message, code="required", pointer="/reason")

        done = release_now(
            release=found, user=cast(User, request.user), **asked, origin=origin_of(request)
        )

        return Response(release_answer(request, done, True, clock.database_now()))
