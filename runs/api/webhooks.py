"""The API of webhooks and their deliveries, for owners of teams and organisers of collections."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.work import begin_file
from runs import models
from runs.models import Scope, User
from runs.services.webhooks.deliveries import send_again
from runs.services.webhooks.managing import (
    change_secret,
    change_webhook,
    create_webhook,
    delete_webhook,
    try_webhook,
)
from runs.services.webhooks.transport import SECONDS
from runs.web.access import led_team, managed_collection
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape

_Event, _Format = models.Webhook.Event, models.Webhook.Format


class Webhook(TypedDict):
    id: UUID
    team: Annotated[str | None, "whose it is: a team's"]
    collection: Annotated[str | None, "or a collection's"]
    url: Annotated[str, "of the format slack only the host, because the rest is a secret"]
    format: Annotated[str, OneOf(_Format.choices)]
    events: list[Annotated[str, OneOf(_Event.choices)]]
    enabled: bool
    disabled_reason: Annotated[
        str, OneOf(["", *models.Webhook.Reason.values]), "why the server disabled it, or empty"
    ]
    failing_since: Annotated[datetime | None, "the first failure since the last delivery"]
    created_by: str | None
    created_at: datetime


class NewWebhook(Webhook):
    """A new webhook: the only answer that contains its secret."""

    secret: Annotated[str | None, "null for a format that is not signed"]


class WebhookSecret(TypedDict):
    """A new secret of a webhook, in the only answer that contains it."""

    secret: str
    previous_until: Annotated[datetime | None, "until when the previous secret signs too"]


class WebhookTest(TypedDict):
    """What became of a test event."""

    delivered: bool
    status: Annotated[int | None, "of the receiver's answer"]
    error: Annotated[str, "why it was not delivered, as a code"]
    milliseconds: int


class Delivery(TypedDict):
    id: Annotated[UUID, "the webhook-id, the same in every attempt"]
    event: str
    state: Annotated[str, OneOf(models.Delivery.State.choices)]
    attempts: int
    next_at: Annotated[datetime | None, "when it is sent, while it is due"]
    last_status: Annotated[int | None, "of the receiver's last answer"]
    last_error: Annotated[str, "why the last attempt failed, as a code"]
    body: Annotated[str, "as it is sent, byte by byte"]
    request_id: Annotated[str, "of the request that caused the event; empty where a worker did"]
    created_at: datetime
    ended_at: datetime | None


def webhook_answer(webhook: models.Webhook) -> Webhook:
    slack = webhook.format == _Format.SLACK
    return Webhook(
        id=webhook.pk,
        team=webhook.team.slug if webhook.team else None,
        collection=webhook.collection.slug if webhook.collection else None,
        url=f"https://{webhook.host}/..." if slack else webhook.url,
        format=webhook.format,
        events=webhook.events or [],
        enabled=webhook.enabled,
        disabled_reason=webhook.disabled_reason,
        failing_since=webhook.failing_since,
        created_by=webhook.created_by.username if webhook.created_by else None,
        created_at=webhook.created_at,
    )


def delivery_answer(delivery: models.Delivery) -> Delivery:
    return Delivery(
        id=delivery.pk,
        event=delivery.event,
        state=delivery.state,
        attempts=delivery.attempts,
        next_at=delivery.next_at if delivery.state == models.Delivery.State.DUE else None,
        last_status=delivery.last_status,
        last_error=delivery.last_error,
        body=delivery.body,
        request_id=delivery.request_id,
        created_at=delivery.created_at,
        ended_at=delivery.ended_at,
    )


class EventsField(serializers.ListField):
    child = serializers.ChoiceField(choices=_Event.choices)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty=False, max_length=len(_Event), **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        return [str(event) for event in dict.fromkeys(super().to_internal_value(data))]


class WebhookChangeSerializer(KnownFields, serializers.Serializer[Any]):
    """The fields of a webhook that can be changed."""

    answered = Webhook
    url = serializers.CharField(max_length=2000, required=False)
    events = EventsField(required=False)
    enabled = serializers.BooleanField(required=False)


class WebhookSerializer(KnownFields, serializers.Serializer[Any]):
    """A webhook to create."""

    answered = Webhook
    url = serializers.CharField(max_length=2000, help_text="https, of a public address")
    events = EventsField()
    format = serializers.ChoiceField(choices=_Format.choices, default=_Format.STANDARD)


def _with_names(webhooks: QuerySet[models.Webhook]) -> QuerySet[models.Webhook]:
    return webhooks.select_related("team", "collection", "created_by")


def managed_webhook(request: Request, pk: UUID) -> models.Webhook:
    """Return a webhook that the user manages."""
    webhook = _with_names(models.Webhook.objects.managed_by(request.user)).filter(pk=pk).first()
    if webhook is None:
        raise Http404(f"there is no webhook {pk}")
    return webhook


class WebhookList(AnswerList[models.Webhook]):
    """The webhooks of an owner; `owner` returns it to those who manage it."""

    serializer_class = shape(Webhook)
    answer = staticmethod(webhook_answer)
    signed_in = True
    scopes = {"POST": Scope.MANAGE}
    queryset = models.Webhook.objects.none()

    def owner(self) -> models.Team | models.Collection:
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[models.Webhook]:
        return _with_names(self.owner().webhooks.all())

    @extend_schema(request=WebhookSerializer, responses={201: shape(NewWebhook)})
    def post(self, request: Request, **key: str) -> Response:
        owner = self.owner()
        serializer = WebhookSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        webhook, secret = create_webhook(
            owner=owner,
            user=cast(User, request.user),
            origin=origin_of(request),
            **serializer.validated_data,
        )

        answer = NewWebhook(**webhook_answer(webhook), secret=secret or None)
        return Response(answer, status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class TeamWebhookList(WebhookList):
    """The webhooks of a team, for its owners; POST creates one and shows its secret once."""

    access = {"GET": Access.ORGANISERS}

    def owner(self) -> models.Team:
        return led_team(self.request, self.kwargs["team"])


class CollectionWebhookList(WebhookList):
    """The webhooks of a collection, for its organisers; POST creates one and shows its secret
    once."""

    access = {"GET": Access.ORGANISERS}

    def owner(self) -> models.Collection:
        return managed_collection(self.request, self.kwargs["collection"])


class WebhookDetail(APIView):
    """One webhook; PATCH changes its address, events or whether it is enabled, DELETE deletes
    it."""

    signed_in = True
    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}

    @extend_schema(responses=shape(Webhook))
    def get(self, request: Request, webhook: UUID) -> Response:
        return Response(webhook_answer(managed_webhook(request, webhook)))

    @extend_schema(request=WebhookChangeSerializer, responses=shape(Webhook))
    def patch(self, request: Request, webhook: UUID) -> Response:
        managed = managed_webhook(request, webhook)
        serializer = WebhookChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        change_webhook(
            webhook=managed, changes=serializer.validated_data, origin=origin_of(request)
        )

        return Response(webhook_answer(managed))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, webhook: UUID) -> Response:
        delete_webhook(webhook=managed_webhook(request, webhook), origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookNewSecret(APIView):
    """Give a webhook a new secret; the previous one signs beside it for 24 hours."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=shape(WebhookSecret))
    def post(self, request: Request, webhook: UUID) -> Response:
        managed = managed_webhook(request, webhook)
        secret = change_secret(webhook=managed, origin=origin_of(request))
        answer = WebhookSecret(secret=secret, previous_until=managed.previous_until)
        return Response(answer, headers={"Cache-Control": "no-store"})


class WebhookTestView(APIView):
    """Send a `webhook.test` event now, and answer with what became of it; nothing is stored."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses=shape(WebhookTest))
    def post(self, request: Request, webhook: UUID) -> Response:
        managed = managed_webhook(request, webhook)
        # It occupies a thread for as long as the receiver takes.
        begin_file(SECONDS)
        reply = try_webhook(webhook=managed)
        answer = WebhookTest(
            delivered=reply.delivered,
            status=reply.status,
            error=reply.error,
            milliseconds=round(1000 * reply.seconds),
        )

        return Response(answer)


class DeliveryList(AnswerList[models.Delivery]):
    """The deliveries of a webhook in the last 30 days, newest first."""

    serializer_class = shape(Delivery)
    answer = staticmethod(delivery_answer)
    signed_in = True
    queryset = models.Delivery.objects.none()

    def get_queryset(self) -> QuerySet[models.Delivery]:
        return managed_webhook(self.request, self.kwargs["webhook"]).deliveries.all()


class DeliveryAgain(APIView):
    """Send a delivery again, under the same id, with all its attempts."""

    scopes = {"POST": Scope.MANAGE}
    without_body = ("POST",)

    @extend_schema(request=None, responses={202: shape(Delivery)})
    def post(self, request: Request, delivery: UUID) -> Response:
        webhooks = models.Webhook.objects.managed_by(request.user)
        deliveries = models.Delivery.objects.filter(webhook__in=webhooks).select_related("webhook")
        row = deliveries.filter(pk=delivery).first()
        if row is None:
            raise Http404(f"there is no delivery {delivery}")

        send_again(row)
        row.refresh_from_db()
        return Response(delivery_answer(row), status.HTTP_202_ACCEPTED)
