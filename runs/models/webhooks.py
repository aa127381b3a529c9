"""Webhooks of teams and collections, and the deliveries to them."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, User
from runs.models.checked import ReadableJSON
from runs.models.collections.collections import Collection, Qrels
from runs.models.collections.disclosure import led_by


class WebhookQuerySet(models.QuerySet["Webhook"]):
    def managed_by(self, user: Any) -> WebhookQuerySet:
        """Return webhooks of teams that the user owns and of collections that the user organises.

        Staff see all.
        """
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(led_by(user) | led_by(user, "collection__"))


class Webhook(models.Model):
    """An address to which the events of a team or of a collection are sent.

    The secrets are sealed with a key derived from the secret key
    (runs/services/webhooks/signing.py); one of the format `slack` has none. `failing_since` is the
    time of the first failure since the last success.
    """

    class Event(models.TextChoices):
        RUN_SUBMITTED = "run.submitted"
        RUN_EVALUATED = "run.evaluated"
        RUN_FAILED = "run.failed"
        SESSION_SET_EVALUATED = "session_set.evaluated"
        QRELS_ACTIVATED = "qrels.activated"
        EVALUATIONS_DONE = "evaluations.done"
        COMPARISON_COMPARED = "comparison.compared"
        COLLECTION_RELEASED = "collection.released"
        ENTRY_RECEIVED = "entry.received"
        ENTRY_WITHDRAWN = "entry.withdrawn"
        ENTRY_DISQUALIFIED = "entry.disqualified"
        ENTRY_EVALUATED = "entry.evaluated"
        ENTRY_FAILED = "entry.failed"
        PHASE_OPENED = "phase.opened"
        PHASE_CLOSING = "phase.closing"
        PHASE_CLOSED = "phase.closed"
        PHASE_EXTENDED = "phase.extended"
        PHASE_EXTENSION_CANCELLED = "phase.extension_cancelled"
        PHASE_PAUSED = "phase.paused"
        PHASE_RESUMED = "phase.resumed"
        TEAM_REQUESTED = "team.requested"
        TEAM_ACCEPTED = "team.accepted"
        TEAM_DECLINED = "team.declined"
        TEAM_REMOVED = "team.removed"
        RELEASE_DONE = "release.done"
        RELEASE_WAITING = "release.waiting"
        QRELS_SUPERSEDED = "qrels.superseded"
        NOTICE_POSTED = "notice.posted"

    class Format(models.TextChoices):
        STANDARD = "standard"
        SLACK = "slack"

    class Reason(models.TextChoices):
        """Why the service disabled it; a person who does so gives no reason."""

        GONE = "gone", "its receiver answered that it is gone (410)"
        FAILING = "failing", "nothing was delivered for five days"
        SECRET_UNREADABLE = (
            "secret_unreadable",
            "its secret was sealed with another secret key of the server",
        )
        COLLECTION_MOVED = "collection_moved", "the collection belongs to another team now"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="webhooks")
    collection = models.ForeignKey(
        Collection, null=True, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=2000)
    events = ReadableJSON(default=list)
    format = models.CharField(max_length=10, choices=Format.choices, default=Format.STANDARD)
    secret_sealed = models.CharField(max_length=200, blank=True)
    previous_secret_sealed = models.CharField(max_length=200, blank=True)
    previous_until = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=20, choices=Reason.choices, blank=True)
    failing_since = models.DateTimeField(null=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = WebhookQuerySet.as_manager()

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.CheckConstraint(
                condition=Q(team=None, collection__isnull=False)
                | Q(team__isnull=False, collection=None),
                name="webhook_of_a_team_or_a_collection",
            ),
        )

    def __str__(self) -> str:
        return f"webhook {self.pk}"

    @property
    def host(self) -> str:
        """Return the part of its address that is not secret: host and port."""
        return self.url.split("/")[2]


class Delivery(models.Model):
    """One event for one webhook, written in the event's transaction; its id is the `webhook-id`.

    `state` changes only by compare-and-set updates (runs/services/webhooks/deliveries.py).
    """

    class State(models.TextChoices):
        DUE = "due"
        SENDING = "sending"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=30)
    body = models.TextField(help_text="the JSON that is sent, byte by byte")
    state = models.CharField(max_length=10, choices=State.choices, default=State.DUE)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_error = models.CharField(max_length=30, blank=True)
    request_id = models.CharField(
        max_length=64, blank=True, help_text="of the request that caused the event"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            # One at a time for each webhook, whichever process sends it.
            models.UniqueConstraint(
                fields=("webhook",),
                condition=Q(state="sending"),
                name="one_delivery_at_a_time_per_webhook",
            ),
            models.CheckConstraint(
                condition=Q(state="sending", lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(state="sending") & Q(lease_token=None, lease_until=None)),
                name="lease_exactly_while_sending",
            ),
        )
        indexes = (
            models.Index(
                fields=("webhook", "next_at"), condition=Q(state="due"), name="due_deliveries"
            ),
            models.Index(fields=("webhook", "-created_at", "id"), name="deliveries_of_a_webhook"),
            models.Index(fields=("created_at",), name="deliveries_by_age"),
        )

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class UnannouncedEvaluations(models.Model):
    """Judgements with an evaluation that has ended since the end of all was last announced.

    A dispatcher announces it when none is left, and deletes the row. The workers that end the last
    two evaluations at the same time cannot know it, because each sees the other's as unfinished.
    """

    qrels = models.OneToOneField(
        Qrels, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    since = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"evaluations by {self.qrels_id}"
