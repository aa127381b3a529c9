"""Test collections: their topics and the versions of their judgements."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts import Team, User

DEFAULT_MEASURES = (
    "nDCG@10", "nDCG", "AP", "RR", "P@5", "P@10", "R@100", "R@1000", "Rprec", "Judged@10",
)  # fmt: skip


def default_measures() -> list[str]:
    return list(DEFAULT_MEASURES)


def check_labels(labels: Any) -> None:
    """Labels are texts by level."""
    if not isinstance(labels, dict) or not all(isinstance(label, str) for label in labels.values()):
        raise ValidationError('write a text for each level: {"0": "not relevant", "1": "relevant"}')


class CollectionQuerySet(models.QuerySet["Collection"]):
    def visible_to(self, user: Any) -> CollectionQuerySet:
        """Public collections and those of the user's teams; staff see all. The one rule of who sees what."""
        if user.is_authenticated and user.is_staff:
            return self
        own = Team.objects.of(user)
        return self.filter(Q(visibility=Collection.Visibility.PUBLIC) | Q(team__in=own))

    def managed_by(self, user: Any) -> CollectionQuerySet:
        """Collections whose topics, judgements and settings the user may change."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(team__in=Team.objects.of(user))


class Collection(models.Model):
    """A test collection: topics, judgements, and the way its runs are judged."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        TEAM = "team"

    class Scores(models.TextChoices):
        FLOAT64 = "float64"
        FLOAT32 = "float32"

    slug = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"\A[a-z0-9][a-z0-9_-]*\Z", "use lower-case letters, digits, '_' and '-'")],
    )
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, max_length=20_000)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="collections")
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.PUBLIC)
    simulated = models.BooleanField(default=False, help_text="made up by a program; shown wherever it is listed")
    documents = models.BigIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)], help_text="number of documents in the corpus"
    )
    level_labels = models.JSONField(
        default=dict, blank=True, validators=[check_labels], help_text='what the levels mean: {"0": "not relevant"}'
    )
    measures = models.JSONField(default=default_measures, help_text="computed for every run")
    scores = models.CharField(max_length=10, choices=Scores.choices, default=Scores.FLOAT64)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CollectionQuerySet.as_manager()

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    @property
    def active_qrels(self) -> Qrels | None:
        """The judgements that count; None until a version is activated."""
        return self.qrels.filter(active=True).first()


class Topic(models.Model):
    """One information need."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="topics")
    topic_id = models.CharField(max_length=1024)
    position = models.IntegerField()
    title = models.TextField(blank=True)
    fields = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("collection", "position")
        constraints = (models.UniqueConstraint(fields=("collection", "topic_id"), name="one_topic_per_id"),)

    def __str__(self) -> str:
        return self.topic_id


class Qrels(models.Model):
    """One immutable version of a collection's judgements; the file is named by its SHA-256."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="qrels")
    version = models.PositiveIntegerField()
    active = models.BooleanField(default=False)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField(help_text="bytes, decompressed")
    lines = models.BigIntegerField()
    judgements = models.BigIntegerField()
    topics = models.IntegerField()
    topic_ids = models.JSONField(help_text="in the order of every stored vector")
    levels = models.JSONField(help_text="number of judgements at each level")
    warnings = models.JSONField(default=dict)
    note = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("collection", "-version")
        verbose_name_plural = "qrels"
        constraints = (
            models.UniqueConstraint(fields=("collection", "version"), name="one_qrels_per_version"),
            models.UniqueConstraint(fields=("collection",), condition=Q(active=True), name="one_active_qrels"),
        )

    def __str__(self) -> str:
        return f"{self.collection} v{self.version}"
