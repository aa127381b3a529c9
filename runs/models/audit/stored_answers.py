"""Answers that are remembered, so that a request sent twice is done once."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.checked import StoredJSON


class RememberedAnswer(models.Model):
    """The answer to a request with an Idempotency-Key, stored in the transaction of its effect."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(
        max_length=64, help_text="SHA-256 of the method, address, fields and files"
    )
    status = models.PositiveSmallIntegerField()
    location = models.CharField(max_length=2000, blank=True)
    body = StoredJSON()
    created_at = models.DateTimeField(default=timezone.now, editable=False, db_index=True)

    objects: ClassVar[models.Manager[RememberedAnswer]] = models.Manager()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="one_answer_per_key"),)

    def __str__(self) -> str:
        return f"{self.key} of {self.user}"
