"""The API of messages in a campaign: notices of its organisers, and the outbox of its mails."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from evalhub.campaigns.questions.lookup import (
    may_organise,
    organised_campaign,
    participation_of,
    visible_campaign,
)
from evalhub.campaigns.services.campaigns import SELECTIONS, is_organiser, post_notice
from evalhub.campaigns.services.teams import MAX_AT_ONCE
from runs.models import Campaign, CampaignNotice, Mail, Participation, Scope, User
from runs.models.text import check_line, check_text
from runs.web import idempotency
from runs.web.fields import ChoiceField
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape

_Audience = CampaignNotice.Audience
MAIL_STATES = {
    Mail.State.DUE: "waits for the server of mail",
    Mail.State.SENDING: "is being sent",
    Mail.State.SENT: "sent",
    Mail.State.GIVEN_UP: "not sent: the address was refused",
    Mail.State.NOT_SET_UP: "not sent: mail is not set up",
    Mail.State.NO_ADDRESS: "not sent: the person has no address here",
}


class Notice(TypedDict):
    """What the organisers told the teams, or everybody."""

    id: UUID
    title: str
    text: Annotated[str, "Markdown"]
    audience: Annotated[str, OneOf(_Audience.choices)]
    teams: Annotated[list[str] | None, "that were chosen, for organisers; null for others"]
    posted_at: datetime


class OutboxMail(TypedDict):
    """A mail of an event to a person, as it was written with the event."""

    id: Annotated[UUID, "the beginning of its Message-ID"]
    event: str
    to: Annotated[str, "a user"]
    subject: str
    text: str
    state: Annotated[str, OneOf(Mail.State.choices)]
    means: Annotated[str, "the state in words"]
    attempts: int
    last_error: str
    created_at: datetime
    ended_at: datetime | None


class NoticeSerializer(KnownFields, serializers.Serializer[Any]):
    """A notice to post."""

    answered = Notice
    title = serializers.CharField(max_length=200, validators=[check_line])
    text = serializers.CharField(max_length=20_000, validators=[check_text])
    audience = ChoiceField(
        choices=[*_Audience.choices, *SELECTIONS.items()], required=False, default=_Audience.TEAMS
    )
    teams = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=MAX_AT_ONCE,
        help_text="for the audience chosen: short names of teams",
    )
    phase = serializers.CharField(
        max_length=64,
        required=False,
        default="",
        allow_blank=True,
        help_text="where teams without_entries have none; default: in no phase",
    )


def notice_answer(notice: CampaignNotice, organiser: bool) -> Notice:
    """Return a notice. Only organisers read which teams were chosen: names may be hidden."""
    return Notice(
        id=notice.pk,
        title=notice.title,
        text=notice.text,
        audience=notice.audience,
        teams=sorted(team.team.slug for team in notice.teams.all()) if organiser else None,
        posted_at=notice.posted_at,
    )


def mail_answer(mail: Mail) -> OutboxMail:
    return OutboxMail(
        id=mail.pk,
        event=mail.event,
        to=mail.recipient.username if mail.recipient else "",
        subject=mail.subject,
        text=mail.text,
        state=mail.state,
        means=MAIL_STATES[Mail.State(mail.state)],
        attempts=mail.attempts,
        last_error=mail.last_error,
        created_at=mail.created_at,
        ended_at=mail.ended_at,
    )


def notices_seen_by(user: Any, campaign: Campaign) -> QuerySet[CampaignNotice]:
    """Return the notices of a campaign that the user reads, latest first."""
    own = participation_of(user, campaign)
    takes_part = own is not None and own.state == Participation.State.ACCEPTED
    rows = campaign.notices.order_by("-posted_at", "pk")
    if is_organiser(campaign, user):
        return rows.prefetch_related("teams__team")

    seen = Q(audience=_Audience.PUBLIC)
    if takes_part:
        seen |= Q(audience=_Audience.TEAMS)
    if own:
        seen |= Q(audience=_Audience.CHOSEN, pk__in=_notices_to(own))

    return rows.filter(seen)


def _notices_to(team: Participation) -> QuerySet[Any, Any]:
    return CampaignNotice.objects.filter(teams=team).order_by().values("pk")


class NoticeList(AnswerList[CampaignNotice]):
    """The notices of a campaign, latest first: those to teams are for members of accepted ones, those to chosen teams
    for their members. POST posts one and notifies the teams, for organisers: all, chosen ones, those without entries, or
    those without an address for mail."""

    serializer_class = shape(Notice)
    scopes = {"POST": Scope.MANAGE}
    queryset = CampaignNotice.objects.none()

    def get_queryset(self) -> QuerySet[CampaignNotice]:
        if getattr(self, "swagger_fake_view", False):
            return CampaignNotice.objects.none()

        return notices_seen_by(
            self.request.user, visible_campaign(self.request, self.kwargs["campaign"])
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.get_queryset()) or []
        organiser = is_organiser(visible_campaign(request, self.kwargs["campaign"]), request.user)
        return self.get_paginated_response([notice_answer(notice, organiser) for notice in page])

    @extend_schema(
        request=NoticeSerializer, responses={201: shape(Notice)}, parameters=[idempotency.PARAMETER]
    )
    @idempotency.one_act(may_organise)
    def post(self, request: Request, campaign: str) -> Response:
        organised = organised_campaign(request, campaign)
        serializer = NoticeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        notice = post_notice(
            campaign=organised,
            user=cast(User, request.user),
            origin=origin_of(request),
            **serializer.validated_data,
        )

        return Response(notice_answer(notice, organiser=True), status.HTTP_201_CREATED)


class OutboxList(AnswerList[Mail]):
    """The mails of a campaign of the last 90 days, latest first, for organisers: what was sent, what waits, and without
    a server of mail what would have been sent."""

    access = {"GET": Access.ORGANISERS}
    serializer_class = shape(OutboxMail)
    answer = staticmethod(mail_answer)
    signed_in = True
    problems = (403,)
    queryset = Mail.objects.none()

    def get_queryset(self) -> QuerySet[Mail]:
        if getattr(self, "swagger_fake_view", False):
            return Mail.objects.none()

        campaign = organised_campaign(self.request, self.kwargs["campaign"])
        return campaign.mails.select_related("recipient").order_by("-created_at", "pk")
