"""Suites, their versions, and the collections of each version."""

from __future__ import annotations

from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models import Collection, Qrels, Team, User
from runs.models.accounts.accounts import is_staff
from runs.models.collections.disclosure import led_by
from runs.models.text import check_line, check_text

# The longest name of a measure, with all of its parameters.
MEASURE_LENGTH = 200
GROUP_LENGTH, NOTE_LENGTH = 60, 500
# Hexadecimal digits of the digest of a version.
DIGEST_LENGTH = 20


class SuiteVersionQuerySet(models.QuerySet["SuiteVersion"]):
    """Versions by what a user may see of them."""

    def visible_to(self, user: Any) -> SuiteVersionQuerySet:
        """Return the versions with collections that all exist for the user: of another one, even
        its name would disclose a collection."""
        seen = Collection.objects.visible_to(user)
        hidden = SuiteMember.objects.exclude(collection__in=seen)
        return self.exclude(pk__in=hidden.values("version"))


class SuiteQuerySet(models.QuerySet["Suite"]):
    """Suites by what a user may do."""

    def managed_by(self, user: Any) -> SuiteQuerySet:
        """Return the suites that the user makes versions of, as an owner of their team or staff."""
        return self if is_staff(user) else self.filter(led_by(user))


class Suite(models.Model):
    """A named sequence of sets of collections, its versions."""

    slug = models.CharField(
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[a-z0-9][a-z0-9_-]*\Z", "use lower-case letters, digits, '_' and '-'"
            )
        ],
    )
    name = models.CharField(max_length=200, validators=[check_line])
    description = models.TextField(blank=True, max_length=20_000, validators=[check_text])
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="suites")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SuiteQuerySet.as_manager()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug


class SuiteVersion(models.Model):
    """An ordered set of collections; it never changes.

    `digest` is that of the suite's name, the number and the members.
    """

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="in its suite, from 1")
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, validators=[check_line])
    digest = models.CharField(max_length=DIGEST_LENGTH)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SuiteVersionQuerySet.as_manager()

    class Meta:
        ordering = ("suite", "-number")
        constraints = (
            models.UniqueConstraint(
                fields=("suite", "number"), name="one_suite_version_per_number"
            ),
        )

    def __str__(self) -> str:
        return f"{self.suite} v{self.number}"


class SuiteMember(models.Model):
    """A collection of a version, with the measure by which it counts and its weight.

    `group` is empty where the version has no groups. Without `qrels` the active judgements count.
    """

    version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE, related_name="members")
    position = models.PositiveSmallIntegerField()
    collection = models.ForeignKey(
        Collection, on_delete=models.PROTECT, related_name="suite_members"
    )
    qrels = models.ForeignKey(Qrels, null=True, on_delete=models.PROTECT, related_name="+")
    measure = models.CharField(max_length=MEASURE_LENGTH)
    weight = models.FloatField(default=1.0)
    group = models.CharField(max_length=GROUP_LENGTH, blank=True, validators=[check_line])

    class Meta:
        ordering = ("version", "position")
        constraints = (
            models.UniqueConstraint(
                fields=("version", "collection"), name="one_member_per_collection"
            ),
            models.CheckConstraint(condition=Q(weight__gt=0), name="a_weight_is_positive"),
        )

    def __str__(self) -> str:
        return f"{self.collection} in {self.version}"
