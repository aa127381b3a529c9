"""The pages of a team's and of a collection's webhooks: make one, try it, see its deliveries."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import render
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.work import begin_file
from runs.api.webhooks import WebhookSerializer
from runs.errors import NotFound
from runs.models import Collection, Delivery, Scope, Team, User, Webhook
from runs.services.webhooks.managing import (
    change_secret,
    change_webhook,
    create_webhook,
    delete_webhook,
    try_webhook,
)
from runs.services.webhooks.transport import SECONDS
from runs.web.access import led_team, managed_collection
from runs.web.forms import FormPage
from runs.web.origin import origin_of
from runs.web.views import problem_of

_MAX_DELIVERIES = 5
_MEANINGS = {
    Webhook.Event.RUN_SUBMITTED: "a run was submitted",
    Webhook.Event.RUN_EVALUATED: "a run was evaluated",
    Webhook.Event.RUN_FAILED: "the evaluation of a run failed",
    Webhook.Event.SESSION_SET_EVALUATED: "a session set was evaluated",
    Webhook.Event.QRELS_ACTIVATED: "a version of judgements became active",
    Webhook.Event.EVALUATIONS_DONE: "all runs of a collection are evaluated",
    Webhook.Event.COMPARISON_COMPARED: "a stored comparison is finished",
    Webhook.Event.COLLECTION_RELEASED: "a blind collection was released",
    Webhook.Event.ENTRY_RECEIVED: "a run was entered into a phase of a campaign",
    Webhook.Event.ENTRY_WITHDRAWN: "an entry was withdrawn",
    Webhook.Event.ENTRY_DISQUALIFIED: "an entry was disqualified",
    Webhook.Event.ENTRY_EVALUATED: "an entry was evaluated, in a phase with feedback",
    Webhook.Event.ENTRY_FAILED: "the evaluation of an entry failed, in a phase with feedback",
    Webhook.Event.PHASE_OPENED: "a phase has opened",
    Webhook.Event.PHASE_CLOSING: "a phase closes in 72, 24 or 2 hours",
    Webhook.Event.PHASE_CLOSED: "a phase has closed",
    Webhook.Event.PHASE_EXTENDED: "a phase closes later",
    Webhook.Event.PHASE_EXTENSION_CANCELLED: "a phase closes at its old end after all",
    Webhook.Event.PHASE_PAUSED: "a phase was paused",
    Webhook.Event.PHASE_RESUMED: "a phase takes entries again",
    Webhook.Event.TEAM_REQUESTED: "a team asks to take part in a campaign",
    Webhook.Event.TEAM_ACCEPTED: "a team was accepted",
    Webhook.Event.TEAM_DECLINED: "a team was declined",
    Webhook.Event.TEAM_REMOVED: "a team was removed",
    Webhook.Event.RELEASE_DONE: "results of a phase were released",
    Webhook.Event.RELEASE_WAITING: "a release is due and waits, for half an hour",
    Webhook.Event.QRELS_SUPERSEDED: "newer judgements of released results became active",
    Webhook.Event.NOTICE_POSTED: "organisers of a campaign posted a notice",
}
_FORMATS = {
    Webhook.Format.STANDARD: "JSON, signed (Standard Webhooks)",
    Webhook.Format.SLACK: "text for Slack, Mattermost or Discord",
}


class WebhooksPage(FormPage):
    """Webhooks of one owner.

    `action` creates one, or tests, enables, disables or deletes the one that `webhook` names, or
    gives it a new secret.
    """

    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "url", "events", "format", "webhook")

    def owner(self, request: Request, **key: str) -> Team | Collection:
        """Return the team or collection in the address.

        Raise NotAllowed if the user does not manage it.
        """
        raise NotImplementedError

    def get(self, request: Request, **key: str) -> HttpResponse:
        return _page(request, self.owner(request, **key))

    def post(self, request: Request, **key: str) -> HttpResponse:
        owner, action = self.owner(request, **key), str(request.data.get("action", ""))
        try:
            if action == "create":
                return _create(request, owner)
            return _change(request, owner, action)
        except (EvalHubError, APIException) as error:
            status, detail = problem_of(error)
            return _page(request, owner, status, refused=detail)


class TeamWebhooksPage(WebhooksPage):
    """The webhooks of a team, for its owners."""

    def owner(self, request: Request, **key: str) -> Team:
        return led_team(request, key["team"])


class CollectionWebhooksPage(WebhooksPage):
    """The webhooks of a collection, for its organisers."""

    def owner(self, request: Request, **key: str) -> Collection:
        return managed_collection(request, key["slug"])


def _create(request: Request, owner: Team | Collection) -> HttpResponse:
    events = request.data.getlist("events") if hasattr(request.data, "getlist") else []
    serializer = WebhookSerializer(
        data={
            "url": request.data.get("url", ""),
            "format": request.data.get("format", ""),
            "events": events,
        }
    )

    serializer.is_valid(raise_exception=True)
    webhook, secret = create_webhook(
        owner=owner,
        user=cast(User, request.user),
        origin=origin_of(request),
        **serializer.validated_data,
    )

    return _page(request, owner, 201, done=f"Webhook to {webhook.host} created.", secret=secret)


def _change(request: Request, owner: Team | Collection, action: str) -> HttpResponse:
    webhook = _find_webhook(owner, str(request.data.get("webhook", "")))
    origin, secret = origin_of(request), ""
    if action == "test":
        begin_file(SECONDS)
        reply = try_webhook(webhook=webhook)
        status = f" with status {reply.status}" if reply.status else ""
        if not reply.delivered:
            message = f"the test event was not delivered{status}: {reply.error}"
            return _page(request, owner, refused=message)
        done = f"{webhook.host} answered{status} after {1000 * reply.seconds:.0f} ms."
    elif action in ("enable", "disable"):
        change_webhook(webhook=webhook, changes={"enabled": action == "enable"}, origin=origin)
        done = f"Webhook to {webhook.host} {action}d."
    elif action == "secret":
        secret = change_secret(webhook=webhook, origin=origin)
        done = (
            f"Webhook to {webhook.host} has a new secret. The previous one also signs for 24 hours."
        )
    elif action == "delete":
        delete_webhook(webhook=webhook, origin=origin)
        done = f"Webhook to {webhook.host} deleted."
    else:
        raise NotFound(f"there is no action {action[:40]!r}")

    return _page(request, owner, done=done, secret=secret)


def _find_webhook(owner: Team | Collection, text: str) -> Webhook:
    webhooks = owner.webhooks.select_related("team", "collection")
    try:
        webhook = webhooks.filter(pk=UUID(text)).first()
    except ValueError:
        webhook = None

    if webhook is None:
        raise NotFound(f"{owner} has no webhook {text[:40]!r}")
    return webhook


def _page(
    request: Request, owner: Team | Collection, status: int = 200, **result: Any
) -> HttpResponse:
    latest = Delivery.objects.order_by("-created_at", "id")[:_MAX_DELIVERIES]
    recent: Any = cast(Any, Prefetch)("deliveries", latest, "recent")
    context = {
        "owner": owner,
        "of_team": isinstance(owner, Team),
        "webhooks": owner.webhooks.prefetch_related(recent),
        "events": [(event.value, text) for event, text in _MEANINGS.items()],
        "formats": [(kind.value, text) for kind, text in _FORMATS.items()],
        "sending": settings.EVALHUB_WEBHOOKS,
        **result,
    }

    response = render(request, "runs/webhooks.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
