"""The API of teams, their members, and tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs import models
from runs.models import ApiToken, Scope, User
from runs.models.text import check_line
from runs.services.accounts.addresses import ask_address, confirm_address
from runs.services.accounts.invitation_links import revoke_link
from runs.services.accounts.teams import (
    accept_invitation,
    change_role,
    create_team,
    delete_team,
    end_invitation,
    invite,
    remove_member,
)
from runs.services.accounts.tokens import issue_token, revoke_token
from runs.web.access import led_team, visible_team
from runs.web.fields import ChoiceField
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape

Role = Annotated[str, OneOf(models.Membership.Role.choices)]


class Team(TypedDict):
    slug: str
    name: str
    created_at: datetime


class Membership(TypedDict):
    username: str
    role: Role


class Invitation(TypedDict):
    team: str
    team_name: str
    username: str
    role: Role
    invited_by: str | None
    created_at: datetime


class Token(TypedDict):
    key: str
    name: str
    scopes: list[Annotated[str, OneOf(models.Scope.choices)]]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class NewToken(Token):
    """A new token: the only answer that contains its text."""

    token: str


class OwnTeam(TypedDict):
    """A team of the caller's."""

    slug: str
    name: str
    role: Role


class Me(TypedDict):
    """Who asks."""

    username: str
    email: Annotated[str, "to which mail of campaigns goes; empty: none"]
    teams: list[OwnTeam]
    token: Annotated[Token | None, "the one that was sent; null in a browser"]


def team_answer(team: models.Team) -> Team:
    return Team(slug=team.slug, name=team.name, created_at=team.created_at)


def membership_answer(membership: models.Membership) -> Membership:
    return Membership(username=membership.user.username, role=membership.role)


def invitation_answer(invitation: models.Invitation) -> Invitation:
    return Invitation(
        team=invitation.team.slug,
        team_name=invitation.team.name,
        username=invitation.user.username,
        role=invitation.role,
        invited_by=invitation.invited_by.username if invitation.invited_by else None,
        created_at=invitation.created_at,
    )


def token_answer(token: models.ApiToken) -> Token:
    return Token(
        key=token.key,
        name=token.name,
        scopes=token.scopes,
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
    )


class NewTeamSerializer(KnownFields, serializers.Serializer[Any]):
    slug = serializers.RegexField(
        r"\A[a-z0-9][a-z0-9_-]{0,63}\Z",
        error_messages={"invalid": "use lower-case letters, digits, '_' and '-'"},
    )
    name = serializers.CharField(max_length=150, validators=[check_line])


class RoleSerializer(KnownFields, serializers.Serializer[Any]):
    role = ChoiceField(choices=models.Membership.Role.choices)


class NewMembershipSerializer(RoleSerializer):
    username = serializers.CharField(max_length=150)
    role = ChoiceField(
        choices=models.Membership.Role.choices, default=models.Membership.Role.MEMBER
    )


class ScopesField(serializers.ListField):
    child = ChoiceField(choices=Scope.choices)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty=False, max_length=len(Scope), **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class TokenSerializer(KnownFields, serializers.ModelSerializer[ApiToken]):
    """A token to create."""

    answered = Token
    scopes = ScopesField(required=False, help_text="scopes of the token; default: read and submit")

    class Meta:
        model = ApiToken
        fields = ("name", "scopes", "expires_at")

    def validate_expires_at(self, moment: Any) -> Any:
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("must be in the future")
        return moment


class AddressSerializer(KnownFields, serializers.Serializer[Any]):
    answered = Me
    email = serializers.CharField(
        max_length=254,
        required=False,
        allow_blank=True,
        help_text="a mail to it asks for a confirmation; empty: no mail",
    )
    confirmation = serializers.CharField(
        max_length=1_000, required=False, help_text="what that mail has"
    )


class MeView(APIView):
    """The caller: the user, their address, their teams with the role in each, and the token that
    was sent; PATCH asks for another address, or confirms it."""

    signed_in = True
    scopes = {"PATCH": Scope.MANAGE}

    @extend_schema(responses=shape(Me))
    def get(self, request: Request) -> Response:
        memberships = (
            models.Membership.objects.filter(user=request.user.pk)
            .select_related("team")
            .order_by("team__slug")
        )
        teams = [
            OwnTeam(slug=membership.team.slug, name=membership.team.name, role=membership.role)
            for membership in memberships
        ]

        token = token_answer(request.auth) if isinstance(request.auth, ApiToken) else None
        user = cast(User, request.user)
        return Response(
            Me(username=user.get_username(), email=user.email, teams=teams, token=token)
        )

    @extend_schema(request=AddressSerializer, responses={200: shape(Me), 202: shape(Me)})
    def patch(self, request: Request) -> Response:
        serializer = AddressSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data

        user, origin = cast(User, request.user), origin_of(request)

        mail_sent = False
        if "confirmation" in fields:
            confirm_address(user=user, token=fields["confirmation"], origin=origin)
        elif "email" in fields:
            mail_sent = ask_address(user=user, email=fields["email"], origin=origin)

        response = self.get(request)
        response.status_code = status.HTTP_202_ACCEPTED if mail_sent else status.HTTP_200_OK
        return response


class TeamList(AnswerList[models.Team]):
    """The caller's teams; POST creates one, whose first owner is the caller."""

    serializer_class = shape(Team)
    answer = staticmethod(team_answer)
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = models.Team.objects.none()

    def get_queryset(self) -> QuerySet[models.Team]:
        return cast(QuerySet[models.Team], models.Team.objects.of(self.request.user))

    @extend_schema(request=NewTeamSerializer, responses={201: shape(Team)})
    def post(self, request: Request) -> Response:
        serializer = NewTeamSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        owner = cast(User, request.user)
        team = create_team(owner=owner, origin=origin_of(request), **serializer.validated_data)
        return Response(team_answer(team), status.HTTP_201_CREATED)


class MemberList(AnswerList[models.Membership]):
    """The members of a team; POST invites a user by name. Owners of the team invite, members
    read."""

    serializer_class = shape(Membership)
    answer = staticmethod(membership_answer)
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = models.Membership.objects.none()

    def get_queryset(self) -> QuerySet[models.Membership]:
        members = visible_team(self.request, self.kwargs["team"]).memberships
        return members.select_related("user").order_by("user__username")

    @extend_schema(request=NewMembershipSerializer, responses={201: shape(Invitation)})
    def post(self, request: Request, team: str) -> Response:
        invited_team = led_team(request, team)
        serializer = NewMembershipSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, origin = cast(User, request.user), origin_of(request)
        invitation = invite(team=invited_team, by=by, origin=origin, **serializer.validated_data)

        return Response(invitation_answer(invitation), status.HTTP_201_CREATED)


class TeamDetail(APIView):
    """One team; DELETE deletes one that has no collection and never submitted anything."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str) -> Response:
        delete_team(team=led_team(request, team), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamInvitationList(AnswerList[models.Invitation]):
    """The users who are invited to a team and have not answered yet."""

    serializer_class = shape(Invitation)
    answer = staticmethod(invitation_answer)
    signed_in = True
    queryset = models.Invitation.objects.none()

    def get_queryset(self) -> QuerySet[models.Invitation]:
        invitations = _invitations(team=visible_team(self.request, self.kwargs["team"]))
        return invitations.order_by("user__username")


class TeamInvitationDetail(APIView):
    """One invitation to a team, by a user name or the key of a link; DELETE withdraws it."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, invited: str) -> Response:
        owned_team, origin = led_team(request, team), origin_of(request)
        invitation = _invitations(team=owned_team, user__username=invited).first()
        if invitation:
            end_invitation(invitation=invitation, origin=origin)
        elif owned_team.links.filter(key=invited).exists():
            revoke_link(team=owned_team, key=invited, origin=origin)
        else:
            raise Http404(f"{invited!r} is neither invited to team {team} nor the key of a link")

        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationList(AnswerList[models.Invitation]):
    """The caller's invitations to teams."""

    serializer_class = shape(Invitation)
    answer = staticmethod(invitation_answer)
    signed_in = True
    queryset = models.Invitation.objects.none()

    def get_queryset(self) -> QuerySet[models.Invitation]:
        return _invitations(user=self.request.user.pk).order_by("team__slug")


class InvitationDetail(APIView):
    """One of the caller's invitations: POST accepts it, DELETE declines it."""

    scopes = {"POST": Scope.MANAGE, "DELETE": Scope.MANAGE}
    access = {"POST": Access.INVITED, "DELETE": Access.INVITED}
    without_body = ("POST",)

    @extend_schema(request=None, responses={201: shape(Membership)})
    def post(self, request: Request, team: str) -> Response:
        membership = accept_invitation(
            invitation=self._invitation(request, team), origin=origin_of(request)
        )
        return Response(membership_answer(membership), status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str) -> Response:
        end_invitation(invitation=self._invitation(request, team), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _invitation(self, request: Request, team: str) -> models.Invitation:
        invitation = _invitations(user=request.user.pk, team__slug=team).first()
        if invitation is None:
            raise Http404(f"you are not invited to team {team!r}")
        return invitation


def _invitations(**lookups: Any) -> QuerySet[models.Invitation]:
    invitations = models.Invitation.objects.filter(**lookups)
    return invitations.select_related("team", "user", "invited_by")


class MemberDetail(APIView):
    """One member of a team: PATCH changes the role, DELETE removes the user. Members can leave,
    too."""

    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}
    access = {"DELETE": Access.MEMBER_OR_OWNERS}

    @extend_schema(request=RoleSerializer, responses=shape(Membership))
    def patch(self, request: Request, team: str, username: str) -> Response:
        membership = _membership(led_team(request, team), username)
        serializer = RoleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        change_role(
            membership=membership, role=serializer.validated_data["role"], origin=origin_of(request)
        )

        return Response(membership_answer(membership))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, username: str) -> Response:
        leaves = username == request.user.get_username()
        found_team = visible_team(request, team) if leaves else led_team(request, team)
        membership = _membership(found_team, username)
        remove_member(membership=membership, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


def _membership(team: models.Team, username: str) -> models.Membership:
    membership = (
        team.memberships.select_related("user", "team").filter(user__username=username).first()
    )
    if membership is None:
        raise Http404(f"there is no {username!r} in team {team}")
    return membership


class TokenList(AnswerList[ApiToken]):
    """The caller's tokens that are not revoked; POST creates one and shows its text once."""

    serializer_class = shape(Token)
    answer = staticmethod(token_answer)
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = ApiToken.objects.none()

    def get_queryset(self) -> QuerySet[ApiToken]:
        return ApiToken.objects.filter(user=self.request.user.pk, revoked_at=None)

    @extend_schema(request=TokenSerializer, responses={201: shape(NewToken)})
    def post(self, request: Request) -> Response:
        serializer = TokenSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        token, text = issue_token(
            user=cast(User, request.user),
            maker=request.auth if isinstance(request.auth, ApiToken) else None,
            origin=origin_of(request),
            **serializer.validated_data,
        )

        answer = NewToken(**token_answer(token), token=text)
        return Response(answer, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class TokenDetail(APIView):
    """One of the caller's tokens; DELETE revokes it."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        revoke_token(user=cast(User, request.user), key=key, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
