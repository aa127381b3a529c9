"""Counters for limits: submissions by day, requests by minute."""

from __future__ import annotations

from django.db import models

from runs.models.accounts.accounts import Team
from runs.models.collections.collections import Collection


class QuotaCounter(models.Model):
    """The number of runs that a team has submitted to a collection on one day (UTC).

    It only changes by conditional updates.
    """

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="quota_counters"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="quota_counters")
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("collection", "team", "day"), name="one_quota_per_day"),
        )

    def __str__(self) -> str:
        return f"{self.team} in {self.collection} on {self.day}: {self.used}"


class RateCounter(models.Model):
    """The number of acts in one minute since the epoch, as far as the processes have reported."""

    key = models.CharField(max_length=100)
    minute = models.BigIntegerField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("minute", "key"), name="one_rate_per_minute"),
        )

    def __str__(self) -> str:
        return f"{self.key}: {self.used}"
