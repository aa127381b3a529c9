"""The outbox of campaigns: mails that an event wrote, notices of organisers, and what the clock has announced."""

from __future__ import annotations

import uuid

from django.core.validators import MinLengthValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.campaigns.campaigns import Campaign, Participation, Phase
from runs.models.text import check_line, check_text


class Mail(models.Model):
    """One event for one person, written in the transaction of the event. Its id is that of the message, so that one
    which is sent twice is known by it. The address is the person's when it is sent, and is not
    kept, unless it is one that the person is to confirm, or of somebody without an account; that mail
    is of no campaign, and its text, which has a secret, is removed when it was sent.

    `state` changes only by compare-and-set updates (runs/services/mail/outbox.py).
    """

    class State(models.TextChoices):
        DUE = "due"
        SENDING = "sending"
        SENT = "sent"
        GIVEN_UP = "given_up"
        NOT_SET_UP = "not_set_up"
        NO_ADDRESS = "no_address"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(
        Campaign, null=True, on_delete=models.CASCADE, related_name="mails"
    )
    event = models.CharField(max_length=30)
    recipient = models.ForeignKey(
        User,
        null=True,
        on_delete=models.CASCADE,
        related_name="mails",
        help_text="null: someone without an account",
    )
    address = models.EmailField(
        blank=True, default="", db_default="", help_text="one that is not of an account yet"
    )
    subject = models.CharField(max_length=300)
    text = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DUE)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(default=timezone.now)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.CheckConstraint(
                condition=Q(state="sending", lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(state="sending") & Q(lease_token=None, lease_until=None)),
                name="mail_is_leased_while_it_is_sent",
            ),
        )
        indexes = (
            models.Index(fields=("next_at",), condition=Q(state="due"), name="due_mails"),
            models.Index(fields=("campaign", "-created_at", "id"), name="mails_of_a_campaign"),
            models.Index(fields=("created_at",), name="mails_by_age"),
        )

    def __str__(self) -> str:
        return f"mail {self.pk}"


class CampaignNotice(models.Model):
    """What organisers write to the accepted teams, to teams that they choose, or to everybody."""

    class Audience(models.TextChoices):
        TEAMS = "teams"
        PUBLIC = "public"
        CHOSEN = "chosen"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="notices")
    title = models.CharField(max_length=200, validators=[check_line, MinLengthValidator(1)])
    text = models.TextField(max_length=20_000, validators=[check_text])
    audience = models.CharField(max_length=6, choices=Audience.choices, default=Audience.TEAMS)
    teams = models.ManyToManyField(
        Participation, related_name="+", blank=True, help_text="that were chosen"
    )
    posted_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    posted_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-posted_at", "id")

    def __str__(self) -> str:
        return f"notice {self.pk} of {self.campaign}"


class PhaseMoment(models.Model):
    """That the clock has reached a moment of a phase, for teams for which it closes at the same time: written once,
    with what is told of it, by the first dispatcher that comes."""

    class Kind(models.TextChoices):
        OPENED = "opened"
        CLOSING_72 = "closing_72"
        CLOSING_24 = "closing_24"
        CLOSING_2 = "closing_2"
        CLOSED = "closed"
        # Of a release that was due half an hour ago; `of` is when.
        WAITING = "waiting"
        # Of a day of a campaign, on its first phase; `of` is its end.
        DIGEST = "digest"

    phase = models.ForeignKey(Phase, on_delete=models.CASCADE, related_name="moments")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    of = models.DateTimeField(help_text="the opening, or the closing that it belongs to")
    noted_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("noted_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("phase", "kind", "of"), name="one_moment_of_a_kind"),
        )

    def __str__(self) -> str:
        return f"{self.phase} {self.kind}"
