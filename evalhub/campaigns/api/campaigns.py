"""The API of campaigns and their agreements."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, cast

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.campaigns.api.answers import SHAPES, agreement_answer, campaign_answer
from evalhub.campaigns.api.inputs import (
    AgreementSerializer,
    CampaignChangeSerializer,
    CampaignSerializer,
    SignatureSerializer,
)
from evalhub.campaigns.questions.lookup import (
    may_organise,
    organised_campaign,
    takes_part,
    visible_campaign,
)
from evalhub.campaigns.services.campaigns import (
    add_agreement,
    archive_campaign,
    change_campaign,
    create_campaign,
    delete_draft,
    publish_campaign,
)
from evalhub.campaigns.services.configuration import copy_campaign
from evalhub.campaigns.services.teams import sign
from runs.errors import InvalidInput
from runs.models import Agreement, Campaign, Scope, Signature, Team, User
from runs.services import clock
from runs.web import idempotency
from runs.web.lists import AnswerList
from runs.web.origin import origin_of

# Ten years.
_MAX_SHIFT_DAYS = 3_660
_PREFETCHED = ("phases__collection", "phases__extensions")


def _may_create(request: Request, body: Any) -> bool:
    return bool(Team.objects.led_by(request.user).filter(slug=body["team"]).exists())


def _fresh_answer(request: Request, slug: str) -> Any:
    campaign = Campaign.objects.select_related("team").prefetch_related(*_PREFETCHED).get(slug=slug)
    return campaign_answer(request, campaign, clock.database_now())


def shift_of(text: str) -> timedelta:
    """Return by how much the times of a copy move.

    Raise InvalidInput if the text is not a whole number of days.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,4}", text) or abs(int(text)) > _MAX_SHIFT_DAYS:
        message = (
            f"shift_days={text[:40]}: "
            f"shift_days is a whole number of days, at most {_MAX_SHIFT_DAYS:,}"
        )
        raise InvalidInput(message, code="bad_parameter", pointer="shift_days")

    return timedelta(days=int(text))


class CampaignList(AnswerList[Campaign]):
    """Published campaigns, and drafts of which the caller is an organiser, newest first; POST creates a draft of one of
    the teams that the caller owns, or with `from` a copy of a campaign."""

    serializer_class = SHAPES["campaign"]
    scopes = {"POST": Scope.MANAGE}
    # The campaign of `from`.
    problems_of_bodies = (404,)
    queryset = Campaign.objects.none()

    def get_queryset(self) -> QuerySet[Campaign]:
        seen = Campaign.objects.visible_to(self.request.user)
        return seen.select_related("team").prefetch_related(*_PREFETCHED)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        now = clock.database_now()
        return self.get_paginated_response(
            [campaign_answer(request, campaign, now) for campaign in page]
        )

    @extend_schema(
        request=CampaignSerializer,
        responses={201: SHAPES["campaign"]},
        parameters=[
            OpenApiParameter(
                "from", description="copy this campaign, of which the caller is an organiser"
            ),
            OpenApiParameter(
                "shift_days",
                int,
                description="with `from`: move every time by so many days; default: 0",
            ),
            idempotency.PARAMETER,
        ],
    )
    @idempotency.idempotent(_may_create)
    def post(self, request: Request) -> Response:
        query = request.query_params
        slug = query.get("from")
        shift = shift_of(query.get("shift_days", "0"))
        source = organised_campaign(request, slug) if slug else None
        serializer = CampaignSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        fields = dict(serializer.validated_data)
        team, collections = fields.pop("team"), fields.pop("collections", {})
        if collections and source is None:
            raise InvalidInput("collections belongs to a copy: add ?from=", pointer="/collections")

        owner: dict[str, Any] = {
            "team": team,
            "user": cast(User, request.user),
            "origin": origin_of(request),
        }

        with transaction.atomic():
            if source:
                campaign = copy_campaign(
                    source=source, fields=fields, collections=collections, shift=shift, **owner
                )
            else:
                campaign = create_campaign(fields=fields, **owner)

            data = _fresh_answer(request, campaign.slug)
            response = Response(data, status.HTTP_201_CREATED, headers={"Location": data["url"]})
            idempotency.remember(request, lambda: response)

        return response


class CampaignDetail(APIView):
    """One campaign; PATCH changes what it says and how teams register, DELETE deletes a draft."""

    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}

    @extend_schema(responses=SHAPES["campaign"])
    def get(self, request: Request, campaign: str) -> Response:
        visible_campaign(request, campaign)
        return Response(_fresh_answer(request, campaign))

    @extend_schema(request=CampaignChangeSerializer, responses=SHAPES["campaign"])
    def patch(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = CampaignChangeSerializer(
            data=request.data, partial=True, context={"request": request}
        )
        serializer.is_valid(raise_exception=True)
        change_campaign(
            campaign=organised, changes=serializer.validated_data, origin=origin_of(request)
        )

        return Response(_fresh_answer(request, campaign))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, campaign: str) -> Response:
        delete_draft(campaign=organised_campaign(request, campaign), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class CampaignPublish(APIView):
    """Show a draft to everybody. It is never a draft again."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=SHAPES["campaign"], parameters=[idempotency.PARAMETER])
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str) -> Response:
        publish_campaign(campaign=organised_campaign(request, campaign), origin=origin_of(request))
        return Response(_fresh_answer(request, campaign))


class CampaignArchive(APIView):
    """End a published campaign: it stays readable, and nothing enters it any more."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=SHAPES["campaign"], parameters=[idempotency.PARAMETER])
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str) -> Response:
        archive_campaign(campaign=organised_campaign(request, campaign), origin=origin_of(request))
        return Response(_fresh_answer(request, campaign))


def _signing_times(request: Request, campaign: Campaign) -> dict[int, Any]:
    own = Signature.objects.filter(agreement__campaign=campaign, user=request.user.pk)
    return dict(own.values_list("agreement", "signed_at"))


class AgreementList(AnswerList[Agreement]):
    """The agreements of a campaign; POST adds one, which organisers may. They are never changed."""

    serializer_class = SHAPES["agreement"]
    scopes = {"POST": Scope.MANAGE}
    queryset = Agreement.objects.none()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        campaign = visible_campaign(request, self.kwargs["campaign"])
        page = self.paginate_queryset(campaign.agreements.order_by("created_at", "pk")) or []
        signed = _signing_times(request, campaign)
        return self.get_paginated_response(
            [agreement_answer(agreement, signed) for agreement in page]
        )

    @extend_schema(
        request=AgreementSerializer,
        responses={201: SHAPES["agreement"]},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = AgreementSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        agreement = add_agreement(
            campaign=organised, origin=origin_of(request), **serializer.validated_data
        )
        return Response(agreement_answer(agreement, {}), status.HTTP_201_CREATED)


class AgreementSign(APIView):
    """Sign an agreement as a member of a team in the campaign; a second signature changes nothing."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(
        request=SignatureSerializer,
        responses=SHAPES["agreement"],
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.one_act(takes_part)
    def post(self, request: Request, campaign: str, agreement: str) -> Response:
        visible = visible_campaign(request, campaign)
        row = visible.agreements.filter(sha256=agreement).first()
        if row is None:
            raise Http404(f"campaign {campaign} has no agreement {agreement[:64]!r}")

        serializer = SignatureSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        user, name = cast(User, request.user), serializer.validated_data["typed_name"]
        sign(agreement=row, user=user, typed_name=name, origin=origin_of(request))

        return Response(agreement_answer(row, _signing_times(request, visible)))
