"""Who sees and who may change what a team has submitted: runs and session sets alike."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Q

from runs.models.accounts import Team
from runs.models.collections import Collection

M_co = TypeVar("M_co", bound=models.Model, covariant=True)


class SubmissionQuerySet(models.QuerySet[M_co]):
    """Rows with a collection, a team and the moment they were taken away."""

    def visible_to(self, user: Any) -> Self:
        """Those of visible collections that are not deleted; of a blind one, others' only for its organisers."""
        return self.filter(deleted_at=None, collection__in=Collection.objects.visible_to(user)).unveiled_for(user)

    def unveiled_for(self, user: Any) -> Self:
        """Without those of others where these are blind."""
        return self.filter(Q(collection__in=Collection.objects.scored_for(user)) | Q(team__in=Team.objects.of(user)))

    def owned_by(self, user: Any) -> Self:
        """Those the user may change or delete: of the user's teams; staff may all."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(team__in=Team.objects.of(user))
