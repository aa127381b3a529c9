"""The identity of an installation, so that no process uses the store or the Redis of another."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q

from runs.models.checked import StoredJSON


class Install(models.Model):
    """The only row of its table; the store and Redis bear the same id."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)
    needs = StoredJSON(
        default=list, editable=False, help_text="migrations that code must know to work with it"
    )
    key_check = models.CharField(
        max_length=64, blank=True, editable=False, help_text="tells a changed secret key"
    )

    objects: ClassVar[models.Manager[Install]] = models.Manager()

    class Meta:
        constraints = (models.CheckConstraint(condition=Q(id=1), name="one_install"),)

    def __str__(self) -> str:
        return str(self.uuid)
