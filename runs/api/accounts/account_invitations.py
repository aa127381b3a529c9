"""The API of invitation links that create accounts, for administrators."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from django.utils.http import urlencode
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.models import InvitationLink, Scope, Team, User
from runs.models.accounts.accounts import is_staff
from runs.services.accounts.invitation_links import (
    DAYS,
    MAX_DAYS,
    MAX_USES,
    account_links,
    create_account_link,
    is_open,
    revoke_link,
)
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import shape


class AccountInvitation(TypedDict):
    key: Annotated[str, "it revokes the link"]
    team: Annotated[str | None, "of which new users are members"]
    email: Annotated[str, "to which the link was mailed; empty: none"]
    created_by: str
    created_at: datetime
    expires_at: datetime
    max_uses: Annotated[int | None, "how many people may use it; null: any number"]
    uses: int


class NewAccountInvitation(AccountInvitation):
    """A new link: the only answer that contains its address."""

    url: str


class AccountInvitationSerializer(KnownFields, serializers.Serializer[Any]):
    team = serializers.SlugField(
        required=False,
        allow_null=True,
        default=None,
        max_length=64,
        help_text="of which new users become members",
    )
    email = serializers.EmailField(
        required=False,
        allow_blank=True,
        default="",
        max_length=254,
        help_text="the link is mailed to it, and is for one person",
    )
    days = serializers.IntegerField(
        required=False, default=DAYS, min_value=1, max_value=MAX_DAYS, help_text="until it expires"
    )
    max_uses = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=1,
        min_value=1,
        max_value=MAX_USES,
        help_text="how many people may use it; null: any number",
    )

    def validate_team(self, slug: str | None) -> Team | None:
        if not slug:
            return None
        team: Team | None = Team.objects.filter(slug=slug).first()
        if team is None:
            raise serializers.ValidationError(f"there is no team {slug!r}")
        return team


def account_invitation_answer(link: InvitationLink) -> AccountInvitation:
    return AccountInvitation(
        key=link.key,
        team=link.team.slug if link.team else None,
        email=link.email,
        created_by=link.created_by.username if link.created_by else "",
        created_at=link.created_at,
        expires_at=link.expires_at,
        max_uses=link.max_uses,
        uses=link.uses,
    )


def check_administrator(request: Request) -> None:
    """Raise Http404 for others than administrators: for them the address does not exist."""
    if not is_staff(request.user):
        raise Http404("there is no such address")


class AccountInvitationList(AnswerList[InvitationLink]):
    """The open links that create accounts; POST makes one. For administrators."""

    serializer_class = shape(AccountInvitation)
    answer = staticmethod(account_invitation_answer)
    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ADMINISTRATORS, "POST": Access.ADMINISTRATORS}
    signed_in = True
    problems = (404,)
    queryset = InvitationLink.objects.none()

    def get_queryset(self) -> QuerySet[InvitationLink]:
        if getattr(self, "swagger_fake_view", False):
            return InvitationLink.objects.none()

        check_administrator(self.request)
        return cast(QuerySet[InvitationLink], account_links().filter(is_open()))

    @extend_schema(
        request=AccountInvitationSerializer, responses={201: shape(NewAccountInvitation)}
    )
    def post(self, request: Request) -> Response:
        check_administrator(request)
        serializer = AccountInvitationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by, origin = cast(User, request.user), origin_of(request)
        link, code = create_account_link(by=by, **serializer.validated_data, origin=origin)

        url = request.build_absolute_uri(f"{reverse('join-page')}?{urlencode({'code': code})}")
        answer = NewAccountInvitation(**account_invitation_answer(link), url=url)
        return Response(answer, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class AccountInvitationDetail(APIView):
    """One link that creates accounts; DELETE revokes it. For administrators."""

    scopes = {"DELETE": Scope.MANAGE}
    access = {"DELETE": Access.ADMINISTRATORS}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, account_link: str) -> Response:
        check_administrator(request)
        revoke_link(key=account_link, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
