"""The API of phases."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.inputs import (
    CancelledExtensionSerializer,
    ExtensionSerializer,
    PhasePatchSerializer,
    PhaseSerializer,
    ReasonSerializer,
)
from evalhub.campaigns.api.phase_answers import SHAPE, phase_answer
from evalhub.campaigns.questions.lookup import (
    may_organise,
    organised_campaign,
    organised_phase,
    participation_of,
    visible_campaign,
    visible_phase,
)
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.exclusions import exclude_topics
from evalhub.campaigns.services.phases import (
    cancel_extension,
    change_phase,
    create_phase,
    extend_phase,
    pause_phase,
    resume_phase,
)
from metrics.services.queue.queueing import queue_judged
from runs.models import Participation, Phase, Scope, User, boards_seen
from runs.services import clock
from runs.services.storage.files import storing
from runs.web import idempotency
from runs.web.lists import AnswerList
from runs.web.origin import origin_of


def _response(
    request: Request, campaign: str, phase: str, code: int = status.HTTP_200_OK
) -> Response:
    visible = visible_phase(request, campaign, phase)
    own = participation_of(request.user, visible.campaign)
    organiser = is_organiser(visible.campaign, request.user)
    sees_board = visible.pk in boards_seen(request.user, [visible])
    now = clock.database_now()

    return Response(
        phase_answer(request, visible, own, organiser, now, sees_board=sees_board), code
    )


class PhaseList(AnswerList[Phase]):
    """The phases of a campaign; POST adds one on a collection of which the caller is an organiser."""

    serializer_class = SHAPE
    scopes = {"POST": Scope.MANAGE}
    queryset = Phase.objects.none()

    def get_queryset(self) -> QuerySet[Phase]:
        if getattr(self, "swagger_fake_view", False):
            return Phase.objects.none()

        rows = visible_campaign(self.request, self.kwargs["campaign"]).phases
        return rows.select_related("collection", "campaign__team").prefetch_related(
            "extensions__participation__team"
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        campaign = visible_campaign(request, self.kwargs["campaign"])
        own = participation_of(request.user, campaign)
        organiser = is_organiser(campaign, request.user)
        now = clock.database_now()
        boards = boards_seen(request.user, page)
        answers = [
            phase_answer(request, phase, own, organiser, now, sees_board=phase.pk in boards)
            for phase in page
        ]

        return self.get_paginated_response(answers)

    @extend_schema(
        request=PhaseSerializer, responses={201: SHAPE}, parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = PhaseSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        new_phase = create_phase(
            campaign=organised,
            user=cast(User, request.user),
            fields=serializer.validated_data,
            origin=origin_of(request),
        )

        return _response(request, campaign, new_phase.slug, status.HTTP_201_CREATED)


class PhaseDetail(APIView):
    """One phase with its state by the database's clock; PATCH changes it."""

    scopes = {"PATCH": Scope.MANAGE}

    @extend_schema(responses=SHAPE)
    def get(self, request: Request, campaign: str, phase: str) -> Response:
        return _response(request, campaign, phase)

    @extend_schema(request=PhasePatchSerializer, responses=SHAPE)
    def patch(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        serializer = PhasePatchSerializer(
            organised, request.data, partial=True, context={"request": request}
        )
        serializer.is_valid(raise_exception=True)
        user, origin = cast(User, request.user), origin_of(request)
        changes = dict(serializer.validated_data)
        confirm = changes.pop("confirm", False)
        exclusion = {
            name: changes.pop(name)
            for name in ("excluded_topics", "excluded_reason")
            if name in changes
        }

        # Only the exclusion of topics needs the store of files.
        with storing() if exclusion else nullcontext(), transaction.atomic():
            if exclusion:
                exclude_topics(
                    phase=organised,
                    topics=exclusion.get("excluded_topics", organised.excluded_topics or []),
                    reason=exclusion.get("excluded_reason", organised.excluded_reason),
                    user=user,
                    enqueue=queue_judged,
                    origin=origin,
                )

            if changes or not exclusion:
                change_phase(
                    phase=organised, user=user, changes=changes, confirm=confirm, origin=origin
                )

        return _response(request, campaign, phase)


class PhaseExtend(APIView):
    """Let a phase close later, for all teams or for one. DELETE cancels the last extension until its old end; otherwise a
    phase never closes earlier than published."""

    scopes = {"POST": Scope.MANAGE, "DELETE": Scope.MANAGE}

    @extend_schema(request=ExtensionSerializer, responses=SHAPE, parameters=[idempotency.PARAMETER])
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        serializer = ExtensionSerializer(organised, request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data

        extend_phase(
            phase=organised,
            until=fields["closes_at"],
            reason=fields["reason"],
            user=cast(User, request.user),
            participation=_team_of(organised, fields["team"]),
            confirm=fields["confirm"],
            origin=origin_of(request),
        )

        return _response(request, campaign, phase)

    @extend_schema(
        responses={204: None},
        parameters=[
            OpenApiParameter(
                "closes_at",
                required=True,
                description="the end that is cancelled, as in extensions",
            ),
            OpenApiParameter("reason", required=True, description="those concerned read it"),
            OpenApiParameter("team", description="of the extension for one team; default: all"),
        ],
    )
    def delete(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        serializer = CancelledExtensionSerializer(data=request.query_params.dict())
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data

        cancel_extension(
            phase=organised,
            until=fields["closes_at"],
            reason=fields["reason"],
            participation=_team_of(organised, fields["team"]),
            origin=origin_of(request),
        )

        return Response(status=status.HTTP_204_NO_CONTENT)


def _team_of(phase: Phase, slug: str | None) -> Participation | None:
    """Return the team that an extension names, None for all teams."""
    if not slug:
        return None

    team = phase.campaign.participations.select_related("team").filter(team__slug=slug).first()
    if team is None:
        raise Http404(f"no team {slug!r} takes part in campaign {phase.campaign}")

    return team


class PhasePause(APIView):
    """Take no entries until the phase is resumed; its times stay as they are."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(request=ReasonSerializer, responses=SHAPE, parameters=[idempotency.PARAMETER])
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        organised = organised_phase(request, campaign, phase)
        serializer = ReasonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        pause_phase(
            phase=organised, reason=serializer.validated_data["reason"], origin=origin_of(request)
        )

        return _response(request, campaign, phase)


class PhaseResume(APIView):
    """Take entries again."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=SHAPE, parameters=[idempotency.PARAMETER])
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str, phase: str) -> Response:
        resume_phase(phase=organised_phase(request, campaign, phase), origin=origin_of(request))
        return _response(request, campaign, phase)
