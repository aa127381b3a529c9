"""The API of links by which people take part in a campaign, for its organisers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.questions.lookup import organised_campaign
from evalhub.campaigns.services.links import create_campaign_link
from runs.models import InvitationLink, Scope, User
from runs.models.text import check_line
from runs.services.accounts.invitation_links import (
    DAYS,
    MAX_DAYS,
    MAX_USES,
    is_open,
    revoke_link,
)
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import shape


class CampaignLink(TypedDict):
    """A link by which people take part in a campaign."""

    key: Annotated[str, "it revokes the link"]
    team_name: Annotated[str, "of the one team that the link is for; empty: one for each person"]
    team: Annotated[str | None, "which the first person registered, where it is for one team"]
    created_by: str
    created_at: datetime
    expires_at: datetime
    max_uses: Annotated[int | None, "how many people may use it; null: any number"]
    uses: int


class NewCampaignLink(CampaignLink):
    """A new link: the only answer that contains its address."""

    url: str


class CampaignLinkSerializer(KnownFields, serializers.Serializer[Any]):
    team_name = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=150,
        validators=[check_line],
        help_text="of the team that it is for; empty: each person registers one",
    )
    days = serializers.IntegerField(
        required=False, default=DAYS, min_value=1, max_value=MAX_DAYS, help_text="until it expires"
    )
    max_uses = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=MAX_USES,
        help_text="how many people may use it; null: any number",
    )


def link_answer(link: InvitationLink) -> CampaignLink:
    return CampaignLink(
        key=link.key,
        team_name=link.team_name,
        team=link.team.slug if link.team else None,
        created_by=link.created_by.username if link.created_by else "",
        created_at=link.created_at,
        expires_at=link.expires_at,
        max_uses=link.max_uses,
        uses=link.uses,
    )


def link_address(request: Request, code: str) -> str:
    """Return the address of a new link."""
    path = f"{reverse('join-campaign-page')}?{urlencode({'code': code})}"
    return request.build_absolute_uri(path)


class CampaignLinkList(AnswerList[InvitationLink]):
    """The open links of a campaign; POST makes one. For organisers."""

    serializer_class = shape(CampaignLink)
    answer = staticmethod(link_answer)
    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    signed_in = True
    problems = (403,)
    queryset = InvitationLink.objects.none()

    def get_queryset(self) -> QuerySet[InvitationLink]:
        if getattr(self, "swagger_fake_view", False):
            return InvitationLink.objects.none()

        campaign = organised_campaign(self.request, self.kwargs["campaign"])
        rows = InvitationLink.objects.filter(is_open(), campaign=campaign)
        return rows.select_related("team", "created_by")

    @extend_schema(request=CampaignLinkSerializer, responses={201: shape(NewCampaignLink)})
    def post(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = CampaignLinkSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        link, code = create_campaign_link(
            campaign=organised,
            by=cast(User, request.user),
            **serializer.validated_data,
            origin=origin_of(request),
        )

        answer = NewCampaignLink(**link_answer(link), url=link_address(request, code))
        return Response(answer, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class CampaignLinkDetail(APIView):
    """One link of a campaign; DELETE revokes it."""

    scopes = {"DELETE": Scope.MANAGE}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, campaign: str, campaign_link: str) -> Response:
        organised = organised_campaign(request, campaign)
        revoke_link(campaign=organised, key=campaign_link, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
