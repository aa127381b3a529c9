"""Submissions: the fields that runs and session sets share, and who may see and change them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.digests import digest_of_bytes
from runs.errors import StoredValueCorrupt
from runs.models.accounts.accounts import Team, User, is_staff
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection, exists_for
from runs.models.collections.disclosure import in_team_of, sees_everything
from runs.models.text import check_text

M_co = TypeVar("M_co", bound=models.Model, covariant=True)


def seen_by(user: Any, of: str = "", at: datetime | None = None) -> Q:
    """Return the rule of `visible_to`, at a time, as a condition on rows.

    `of` is the path from a row to its submission. Where each row has one, a database looks at that
    one instead of collecting all that the user sees.
    """
    return (
        Q(**{f"{of}deleted_at": None})
        & exists_for(user, f"{of}collection__")
        & unveiled(user, of, at)
    )


def unveiled(user: Any, of: str = "", at: datetime | None = None) -> Q:
    """Return the rule of `unveiled_for`, at a time, as a condition on rows."""
    if is_staff(user):
        return Q()
    return sees_everything(user, f"{of}collection__", at) | in_team_of(user, of)


class SubmissionQuerySet(models.QuerySet[M_co]):
    """Rows with a collection, a team and the moment they were withdrawn."""

    def visible_to(self, user: Any) -> Self:
        """Return submissions of visible collections that are not withdrawn.

        In a blind collection only organisers see those of others.
        """
        return self.filter(seen_by(user))

    def unveiled_for(self, user: Any) -> Self:
        """Leave out submissions of others where they are blind."""
        return self.filter(unveiled(user))

    def owned_by(self, user: Any) -> Self:
        """Return what the user may change or withdraw: of the user's teams, or all for staff."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(in_team_of(user))


class Submission(models.Model):
    """Metadata of a file that a team submitted to a collection; its content is in the store.

    `KEY` names the kind in addresses, codes and the foreign key of its evaluations. `WAY` is the
    path to the setting that, like the judgements, an evaluation must share to be current; `way` is
    its value. `SEALED` are the columns that describe its files; they never change and have a
    digest.
    """

    KEY: ClassVar[str]
    WAY: ClassVar[str]
    SEALED: ClassVar[tuple[str, ...]] = ("sha256", "size", "documents", "topics", "grouped")

    # Every kind defines them, because the other table needs a name for each.
    collection: models.ForeignKey[Collection, Collection]
    team: models.ForeignKey[Team, Team]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    submitted_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    tag = models.CharField(max_length=64)
    description = models.TextField(blank=True, max_length=20_000, validators=[check_text])
    metadata = StoredJSON(default=dict, blank=True)
    sha256 = models.CharField(max_length=64, db_index=True, help_text="of the decompressed file")
    size = models.BigIntegerField(help_text="bytes, decompressed")
    documents = models.BigIntegerField()
    topics = models.IntegerField()
    warnings = StoredJSON(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)
    digest = models.BigIntegerField(
        null=True, editable=False, help_text="of what its files are and hold"
    )

    class Meta:
        abstract = True
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return f"{self.team}/{self.tag}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the digest with a new row."""
        if self._state.adding:
            self.digest = self.digest_of_sealed()
        super().save(*args, **kwargs)

    def digest_of_sealed(self) -> int:
        return digest_of_bytes((self.KEY, self.pk, *(getattr(self, name) for name in self.SEALED)))

    def check_sound(self) -> None:
        """Raise StoredValueCorrupt if the row differs from its digest, which old rows may lack."""
        if self.digest not in (None, self.digest_of_sealed()):
            raise StoredValueCorrupt(
                f"the stored row of {self.noun()} {self.pk} is damaged, and nothing is shown of "
                "it; evalhub fsck finds such rows, and a backup has them as they were"
            )

    @classmethod
    def noun(cls) -> str:
        """Return the noun for it in a sentence."""
        return cls.KEY.replace("_", " ")

    @property
    def way(self) -> str:
        raise NotImplementedError

    @property
    def file_name(self) -> str:
        """Return the name under which its file is downloaded."""
        raise NotImplementedError

    @property
    def files(self) -> list[str]:
        """Return the names of its stored files."""
        return [self.sha256]


def one_per_tag(name: str) -> models.UniqueConstraint:
    """Return the constraint to one live submission of a team under a tag in a collection."""
    return models.UniqueConstraint(
        fields=("collection", "team", "tag"), condition=Q(deleted_at=None), name=name
    )


def by_date(name: str) -> models.Index:
    """Return the index of the submissions of a collection in the order of their list."""
    return models.Index(fields=("collection", "-created_at", "id"), name=name)
