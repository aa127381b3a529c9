"""The API of teams and people in campaigns."""

from __future__ import annotations

from typing import Any, cast

from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from django.urls import reverse
from django.utils.http import urlencode
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.answers import (
    SHAPES,
    ParticipationInvitation,
    decisions_answer,
    member_answer,
    participation_answer,
)
from evalhub.campaigns.api.inputs import (
    OptionalReasonSerializer,
    ParticipationChangeSerializer,
    ParticipationInvitationSerializer,
    RegistrationSerializer,
    TeamDecisionsSerializer,
)
from evalhub.campaigns.questions.lookup import (
    organised_campaign,
    participations_of,
    takes_part,
    visible_campaign,
    visible_participation,
)
from evalhub.campaigns.services.teams import (
    change_state,
    decide_teams,
    join,
    leave,
    move_anonymity,
    register_team,
    rename,
)
from runs.errors import NotAllowed
from runs.models import CampaignMember, Membership, Participation, Scope, Signature, Team, User
from runs.models.accounts.accounts import is_staff
from runs.services.accounts.invitation_links import create_link
from runs.services.accounts.teams import invite
from runs.web import idempotency
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.permissions import Access


def _may_register(request: Request, body: Any, campaign: str) -> bool:
    return bool(Team.objects.led_by(request.user).filter(slug=body["team"]).exists())


class ParticipationList(AnswerList[Participation]):
    """The teams of a campaign: organisers see all, others those that they are in; POST registers one that the caller
    owns. PATCH accepts, declines or removes many (organisers): each that can change does, and the answer has all."""

    serializer_class = SHAPES["participation"]
    answer = staticmethod(participation_answer)
    scopes = {"POST": Scope.SUBMIT, "PATCH": Scope.MANAGE}
    access = {"POST": Access.SIGNED_IN, "PATCH": Access.ORGANISERS}
    queryset = Participation.objects.none()

    def get_queryset(self) -> QuerySet[Participation]:
        if getattr(self, "swagger_fake_view", False):
            return Participation.objects.none()

        campaign = visible_campaign(self.request, self.kwargs["campaign"])
        participations = participations_of(self.request.user, campaign)
        return participations.prefetch_related("members").order_by("requested_at", "pk")

    @extend_schema(
        request=RegistrationSerializer,
        responses={201: SHAPES["participation"]},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_register)
    def post(self, request: Request, campaign: str) -> Response:
        visible = visible_campaign(request, campaign)
        serializer = RegistrationSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        user, origin = cast(User, request.user), origin_of(request)

        with transaction.atomic():
            participation = register_team(
                campaign=visible, **serializer.validated_data, user=user, origin=origin
            )
            response = Response(participation_answer(participation), status.HTTP_201_CREATED)
            idempotency.remember(request, lambda: response)

        return response

    @extend_schema(
        operation_id="campaigns_teams_decide",
        request=TeamDecisionsSerializer,
        responses=SHAPES["decisions"],
    )
    def patch(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = TeamDecisionsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        decisions = decide_teams(
            campaign=organised,
            **serializer.validated_data,
            user=cast(User, request.user),
            origin=origin_of(request),
        )

        return Response(decisions_answer(decisions))


class ParticipationDetail(APIView):
    """A team in a campaign; PATCH accepts, declines or removes it (organisers), withdraws or renames it (owners)."""

    scopes = {"PATCH": Scope.SUBMIT}
    access = {"PATCH": Access.ORGANISERS}

    @extend_schema(responses=SHAPES["participation"])
    def get(self, request: Request, campaign: str, entrant: str) -> Response:
        return Response(participation_answer(visible_participation(request, campaign, entrant)))

    @extend_schema(request=ParticipationChangeSerializer, responses=SHAPES["participation"])
    def patch(self, request: Request, campaign: str, entrant: str) -> Response:
        participation = visible_participation(request, campaign, entrant)
        serializer = ParticipationChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        user, origin = cast(User, request.user), origin_of(request)
        fields = serializer.validated_data
        names = {name: fields[name] for name in ("name", "affiliation") if name in fields}

        with transaction.atomic():
            rename(participation=participation, changes=names, user=user, origin=origin)
            if "anonymous_until" in fields:
                move_anonymity(
                    participation=participation,
                    until=fields["anonymous_until"],
                    user=user,
                    origin=origin,
                )

            if "state" in fields and fields["state"] != participation.state:
                change_state(
                    participation=participation,
                    state=fields["state"],
                    reason=fields.get("reason", ""),
                    user=user,
                    origin=origin,
                )

        return Response(participation_answer(visible_participation(request, campaign, entrant)))


class CampaignMemberList(AnswerList[CampaignMember]):
    """The people who take part in a team; POST makes the caller, who is in the team, one of them."""

    serializer_class = SHAPES["member"]
    scopes = {"POST": Scope.SUBMIT}
    without_body = ("POST",)
    signed_in = True
    queryset = CampaignMember.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        participation = visible_participation(
            request, self.kwargs["campaign"], self.kwargs["entrant"]
        )
        signatures = (
            Signature.objects.filter(participation=participation, user=OuterRef("user"))
            .order_by()
            .values("user")
        )
        # Members without a signature have no row in the subquery.
        signed = Coalesce(Subquery(signatures.annotate(n=Count("pk")).values("n")), 0)
        rows = (
            participation.members.select_related("user")
            .annotate(signed=signed)
            .order_by("joined_at", "pk")
        )
        page = self.paginate_queryset(rows) or []

        return self.get_paginated_response(
            [member_answer(member, cast(Any, member).signed) for member in page]
        )

    @extend_schema(
        request=None, responses={201: SHAPES["member"]}, parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(takes_part)
    def post(self, request: Request, campaign: str, entrant: str) -> Response:
        participation = visible_participation(request, campaign, entrant)
        member = join(
            participation=participation, user=cast(User, request.user), origin=origin_of(request)
        )
        return Response(member_answer(member, 0), status.HTTP_201_CREATED)


class CampaignMemberDetail(APIView):
    """DELETE takes a person out of a team: the person, an owner of the team or an organiser may. Whom an organiser
    takes out may join another team."""

    scopes = {"DELETE": Scope.SUBMIT}
    access = {"DELETE": Access.TEAM_OR_ORGANISERS}
    problems = (400,)

    @extend_schema(
        responses={204: None},
        parameters=[
            OpenApiParameter(
                "reason", description="by organisers, of a member of a team with entries: required"
            )
        ],
    )
    def delete(self, request: Request, campaign: str, entrant: str, participant: str) -> Response:
        participation = visible_participation(request, campaign, entrant)
        rows = participation.members.select_related(
            "user", "participation__campaign__team", "participation__team"
        )
        member = rows.filter(user__username=participant).first()
        if member is None:
            raise Http404(f"{participant!r} does not take part in team {entrant}")

        serializer = OptionalReasonSerializer(
            data={"reason": request.query_params.get("reason", "")}
        )
        serializer.is_valid(raise_exception=True)
        reason, user = serializer.validated_data["reason"], cast(User, request.user)
        leave(member=member, user=user, reason=reason, origin=origin_of(request))

        return Response(status=status.HTTP_204_NO_CONTENT)


class ParticipationInvitationList(APIView):
    """POST invites a user to take part with a team, or makes a link for it, which its owners may."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(request=ParticipationInvitationSerializer, responses={201: SHAPES["invitation"]})
    def post(self, request: Request, campaign: str, entrant: str) -> Response:
        participation = visible_participation(request, campaign, entrant)
        if not (
            is_staff(request.user)
            or Team.objects.led_by(request.user).filter(pk=participation.team_id).exists()
        ):
            raise NotAllowed(f"only owners of team {participation.team} can invite people to it")

        serializer = ParticipationInvitationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        username = serializer.validated_data["username"]
        by, origin = cast(User, request.user), origin_of(request)
        answer = ParticipationInvitation(
            campaign=campaign, team=entrant, username=username, url=None, key=None, expires_at=None
        )
        if username:
            role = Membership.Role.MEMBER
            invite(
                team=participation.team,
                username=username,
                role=role,
                by=by,
                participation=participation,
                origin=origin,
            )
        else:
            link, code = create_link(
                team=participation.team, by=by, participation=participation, origin=origin
            )
            url = request.build_absolute_uri(f"{reverse('join-page')}?{urlencode({'code': code})}")
            answer.update({"url": url, "key": link.key, "expires_at": link.expires_at})

        return Response(answer, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})
