"""The API of teams, their members, and tokens."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.api.access import led_team, visible_team
from runs.api.origin import origin_of
from runs.api.serializers import (
    InvitationSerializer,
    MembershipSerializer,
    NewMembershipSerializer,
    NewTeamSerializer,
    NewTokenSerializer,
    RoleSerializer,
    TeamSerializer,
    TokenSerializer,
)
from runs.models import ApiToken, Invitation, Membership, Scope, Team, User
from runs.services.teams import (
    accept_invitation,
    change_role,
    create_team,
    delete_team,
    end_invitation,
    invite,
    remove_member,
)
from runs.services.tokens import issue_token, revoke_token


class TeamList(generics.ListAPIView[Team]):
    """The caller's teams; POST makes one, whose first owner is the caller."""

    serializer_class = TeamSerializer
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = Team.objects.none()

    def get_queryset(self) -> QuerySet[Team]:
        return cast(QuerySet[Team], Team.objects.of(self.request.user))

    @extend_schema(request=NewTeamSerializer, responses={201: TeamSerializer})
    def post(self, request: Request) -> Response:
        serializer = NewTeamSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        owner = cast(User, request.user)
        team = create_team(owner=owner, origin=origin_of(request), **serializer.validated_data)
        return Response(TeamSerializer(team).data, status.HTTP_201_CREATED)


class MemberList(generics.ListAPIView[Membership]):
    """Who is in a team; POST invites a user by name. Owners of the team invite, members read."""

    serializer_class = MembershipSerializer
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = Membership.objects.none()

    def get_queryset(self) -> QuerySet[Membership]:
        if getattr(self, "swagger_fake_view", False):
            return Membership.objects.none()
        members = visible_team(self.request, self.kwargs["team"]).memberships
        return members.select_related("user").order_by("user__username")

    @extend_schema(request=NewMembershipSerializer, responses={201: InvitationSerializer})
    def post(self, request: Request, team: str) -> Response:
        found = led_team(request, team)
        serializer = NewMembershipSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, origin = cast(User, request.user), origin_of(request)
        made = invite(team=found, by=by, origin=origin, **serializer.validated_data)
        return Response(InvitationSerializer(made).data, status.HTTP_201_CREATED)


class TeamDetail(APIView):
    """One team; DELETE deletes one that has no collection and never submitted anything."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str) -> Response:
        delete_team(team=led_team(request, team), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamInvitationList(generics.ListAPIView[Invitation]):
    """Who is invited into a team and has not answered yet."""

    serializer_class = InvitationSerializer
    signed_in = True
    queryset = Invitation.objects.none()

    def get_queryset(self) -> QuerySet[Invitation]:
        if getattr(self, "swagger_fake_view", False):
            return Invitation.objects.none()
        return _invitations(team=visible_team(self.request, self.kwargs["team"])).order_by("user__username")


class TeamInvitationDetail(APIView):
    """One invitation into a team; DELETE takes it back."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, invited: str) -> Response:
        found = _invitations(team=led_team(request, team), user__username=invited).first()
        if found is None:
            raise Http404(f"{invited!r} is not invited to team {team}")
        end_invitation(invitation=found, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationList(generics.ListAPIView[Invitation]):
    """The caller's invitations into teams."""

    serializer_class = InvitationSerializer
    signed_in = True
    queryset = Invitation.objects.none()

    def get_queryset(self) -> QuerySet[Invitation]:
        return _invitations(user=self.request.user.pk).order_by("team__slug")


class InvitationDetail(APIView):
    """One of the caller's invitations: POST accepts it, DELETE declines it."""

    scopes = {"POST": Scope.MANAGE, "DELETE": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses={201: MembershipSerializer})
    def post(self, request: Request, team: str) -> Response:
        made = accept_invitation(invitation=self._found(request, team), origin=origin_of(request))
        return Response(MembershipSerializer(made).data, status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str) -> Response:
        end_invitation(invitation=self._found(request, team), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _found(self, request: Request, team: str) -> Invitation:
        found = _invitations(user=request.user.pk, team__slug=team).first()
        if found is None:
            raise Http404(f"you are not invited to team {team!r}")
        return found


def _invitations(**of: Any) -> QuerySet[Invitation]:
    return Invitation.objects.filter(**of).select_related("team", "user", "invited_by")


class MemberDetail(APIView):
    """One member of a team: PATCH changes the role, DELETE takes the user out. A member may leave, too."""

    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}

    @extend_schema(request=RoleSerializer, responses=MembershipSerializer)
    def patch(self, request: Request, team: str, username: str) -> Response:
        found = _membership(led_team(request, team), username)
        serializer = RoleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        change_role(membership=found, role=serializer.validated_data["role"], origin=origin_of(request))
        return Response(MembershipSerializer(found).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, username: str) -> Response:
        leaves = username == request.user.get_username()
        found = _membership(visible_team(request, team) if leaves else led_team(request, team), username)
        remove_member(membership=found, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _membership(team: Team, username: str) -> Membership:
    found = team.memberships.select_related("user", "team").filter(user__username=username).first()
    if found is None:
        raise Http404(f"there is no {username!r} in team {team}")
    return found


class TokenList(generics.ListAPIView[ApiToken]):
    """The caller's tokens that are not revoked; POST makes one and shows its text, this once."""

    serializer_class = TokenSerializer
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = ApiToken.objects.none()

    def get_queryset(self) -> QuerySet[ApiToken]:
        return ApiToken.objects.filter(user=self.request.user.pk, revoked_at=None)

    @extend_schema(request=TokenSerializer, responses={201: NewTokenSerializer})
    def post(self, request: Request) -> Response:
        serializer = TokenSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        maker = request.auth if isinstance(request.auth, ApiToken) else None
        fields: dict[str, Any] = {**serializer.validated_data, "maker": maker, "origin": origin_of(request)}
        token, text = issue_token(user=cast(User, request.user), **fields)
        return Response({**TokenSerializer(token).data, "token": text}, status.HTTP_201_CREATED)


class TokenDetail(APIView):
    """One of the caller's tokens; DELETE revokes it."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        revoke_token(user=cast(User, request.user), key=key, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
