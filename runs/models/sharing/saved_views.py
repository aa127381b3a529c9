"""Saved views: the parameters of a leaderboard under a name and a short address."""

from __future__ import annotations

import secrets
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, User
from runs.models.collections.collections import Collection, scored_in
from runs.models.collections.disclosure import in_team_of
from runs.models.text import check_line

# Without letters and digits that look alike.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
CODE_LENGTH = 10
MAX_NAME, MAX_QUERY = 100, 4_000


def new_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))


class ViewQuerySet(models.QuerySet["View"]):
    def visible_to(self, user: Any) -> ViewQuerySet:
        """Return the user's own views, those of their teams, and those of visible collections.

        Only organisers see views of a blind collection: a filter quotes parameters of others' runs.
        """
        views = self.filter(scored_in(user, "collection__"))
        return views.filter(Q(scope=View.Scope.COLLECTION) | _owned_by(user))

    def changeable_by(self, user: Any) -> ViewQuerySet:
        """Return own views, those of the user's teams, and the collection's for organisers."""
        managed = Q(scope=View.Scope.COLLECTION, collection__in=Collection.objects.managed_by(user))
        return self.visible_to(user).filter(managed | _owned_by(user))


def _owned_by(user: Any) -> Q:
    """Match the views of a user and of the user's teams."""
    if not user.is_authenticated:
        return Q(pk__in=())
    return Q(scope=View.Scope.ME, owner=user) | Q(scope=View.Scope.TEAM) & in_team_of(user)


class View(models.Model):
    """The parameters of a collection's leaderboard, which its `scope` may open by name.

    `owner` is the account that saved it; a view of a team or collection stays when the account is
    deleted.
    """

    class Scope(models.TextChoices):
        ME = "me"
        TEAM = "team"
        COLLECTION = "collection"

    code = models.CharField(max_length=CODE_LENGTH, unique=True, default=new_code, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="views")
    owner = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="views")
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="views")
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.ME)
    name = models.CharField(max_length=MAX_NAME, validators=[check_line])
    query = models.CharField(max_length=MAX_QUERY, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ViewQuerySet.as_manager()

    class Meta:
        ordering = ("collection", "name", "code")
        constraints = (
            models.CheckConstraint(
                condition=Q(scope="team", team__isnull=False) | (~Q(scope="team") & Q(team=None)),
                name="view_of_a_team_has_one",
            ),
        )

    def __str__(self) -> str:
        return f"{self.collection}/{self.code}"
