"""The revision of a collection: the number under which answers about it are kept."""

from __future__ import annotations

from django.db import models

from runs.models.collections.collections import Collection


class RevisionPart(models.Model):
    """A part of a collection's revision, which is the sum of its parts.

    Every change adds to a part that no other transaction holds, or makes one: a collection has as
    many as changed at the same time at most, and no change waits for another. `others` leaves out
    what only arriving runs and the moves of their evaluations added.
    """

    # A constraint would wait for whoever has locked the collection, as every submission does.
    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="revision_parts", db_constraint=False
    )
    changes = models.BigIntegerField()
    others = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.collection_id}: {self.changes}"
