"""Share links: one leaderboard, comparison or run for readers without an account."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.collections.collections import Collection

# A comparison may name as many runs as an address has room for.
MAX_SHARED_QUERY = 10_000


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def managed_by(self, user: Any) -> ShareLinkQuerySet:
        """Return the user's own links, and those to collections that the user organises."""
        if not user.is_authenticated:
            return self.none()
        managed = Q(collection__in=Collection.objects.managed_by(user))
        return self.filter(Q(created_by=user) | managed)


class ShareLink(models.Model):
    """A read-only address of one object; only the SHA-256 of its secret is stored.

    `target` is the id of the run or stored comparison; `query` has the parameters of a leaderboard,
    of a comparison that is not stored, or of a run. `opened` counts the openings; only the day of
    the last one is stored.
    """

    class Kind(models.TextChoices):
        LEADERBOARD = "leaderboard"
        COMPARISON = "comparison"
        RUN = "run"

    key = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="share_links")
    target = models.CharField(max_length=36, blank=True)
    query = models.CharField(max_length=MAX_SHARED_QUERY, blank=True)
    created_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="share_links")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, editable=False)
    opened = models.PositiveIntegerField(default=0, editable=False)
    last_opened_on = models.DateField(null=True, editable=False)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"link {self.key} to a {self.kind} of {self.collection}"

    @property
    def ended(self) -> str:
        """Return how the link has ended, `revoked` or `expired`; empty while it has not."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at <= timezone.now() else ""
