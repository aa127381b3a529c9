"""Pools, who judges them, and what they judged."""

from __future__ import annotations

import secrets
import uuid
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from runs.models import Collection, Entry, Phase, Qrels, Run, Team, User
from runs.models.checked import StoredJSON
from runs.models.collections.disclosure import led_by, sees_everything
from runs.models.text import check_line, check_text

# The longest ids of topics and documents, as in `runs.models.Topic`.
_ID_LENGTH = 1024


def draw_seed() -> int:
    """Return a seed that nobody can guess, small enough for every reader of JSON."""
    return secrets.randbits(53)


class PoolQuerySet(models.QuerySet["Pool"]):
    """Pools by what a user may see of them."""

    def managed_by(self, user: Any) -> PoolQuerySet:
        """Return the pools that the user makes.

        Their users are the owners of the team of the collection and of the campaign, and staff.
        """
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(led_by(user, "collection__") | led_by(user, "phase__campaign__"))

    def visible_to(self, user: Any) -> PoolQuerySet:
        """Return the pools that the user makes, and shown ones of collections with visible scores."""
        if user.is_authenticated and user.is_staff:
            return self

        public = Q(shown_at__isnull=False, state=Pool.State.FROZEN)
        seen = Collection.objects.visible_to(user).filter(sees_everything(user))
        return self.filter(
            Q(pk__in=self.managed_by(user).values("pk")) | public & Q(collection__in=seen)
        )


class Pool(models.Model):
    """The documents of runs that are to be judged, drawn by a recipe.

    The documents are in a stored file (`evalhub.pools.services.pool_file`), which is written with
    the draft; a draft can be deleted, and a frozen pool never changes. `topics` has a row
    [topic id, number of documents] for each topic, in the order of the file; `depths` is the table
    of `evalhub.pools.services.pooling.DepthTable`. `excluded` names
    what was left out as judged before: the id of the active qrels, and the pools.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        FROZEN = "frozen"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="pools")
    phase = models.ForeignKey(
        Phase,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="pools",
        help_text="empty: a pool of runs outside of campaigns",
    )
    number = models.PositiveIntegerField(help_text="in its collection, from 1")
    state = models.CharField(max_length=6, choices=State.choices, default=State.DRAFT)
    recipe = StoredJSON(help_text="the method and its parameters")
    seed = models.BigIntegerField(default=draw_seed, editable=False)
    topics = StoredJSON(default=list, help_text="rows of topic id and number of documents")
    documents = models.BigIntegerField(help_text="over all topics")
    sha256 = models.CharField(max_length=64, help_text="of the file, decompressed")
    size = models.BigIntegerField(help_text="bytes of the file, decompressed")
    depths = StoredJSON(default=dict, help_text="documents of the first runs, by depth")
    excluded = StoredJSON(default=dict, help_text="what it leaves out as judged before")
    note = models.CharField(max_length=500, blank=True, validators=[check_line])
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    frozen_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    frozen_at = models.DateTimeField(null=True, editable=False)
    shown_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="since when all who see the results of the collection see it",
    )

    objects = PoolQuerySet.as_manager()

    class Meta:
        ordering = ("collection", "-number")
        constraints = (
            models.UniqueConstraint(fields=("collection", "number"), name="one_pool_per_number"),
            models.CheckConstraint(
                condition=Q(state="draft", frozen_at=None)
                | Q(state="frozen", frozen_at__isnull=False),
                name="a_frozen_pool_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(shown_at=None) | Q(state="frozen"), name="a_draft_pool_is_not_shown"
            ),
        )
        indexes = (models.Index(fields=("sha256",), name="pools_by_file"),)

    def __str__(self) -> str:
        return f"pool {self.number} of {self.collection}"

    @property
    def is_frozen(self) -> bool:
        return self.state == self.State.FROZEN


class PoolRun(models.Model):
    """A run that contributes to a pool. `place` is its bit in the pool's file, from 0."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="contributors")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="pools")
    entry = models.ForeignKey(
        Entry, null=True, blank=True, on_delete=models.PROTECT, related_name="pools"
    )
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    place = models.PositiveIntegerField()
    priority = models.IntegerField(null=True)
    depth = models.PositiveIntegerField(null=True, help_text="ranks 1 to depth are in the pool")

    class Meta:
        ordering = ("pool", "place")
        constraints = (
            models.UniqueConstraint(fields=("pool", "place"), name="one_run_per_place_in_a_pool"),
            models.UniqueConstraint(
                fields=("pool", "run"), name="a_run_contributes_once_to_a_pool"
            ),
        )

    def __str__(self) -> str:
        return f"{self.run} in {self.pool}"


class Assessor(models.Model):
    """Who judges documents of a collection: a user, or a name that came with a file."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="assessors")
    user = models.ForeignKey(
        User, null=True, blank=True, on_delete=models.SET_NULL, related_name="assessing"
    )
    name = models.CharField(max_length=150, validators=[check_line])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("collection", "name")
        constraints = (
            models.UniqueConstraint(fields=("collection", "name"), name="one_assessor_per_name"),
            models.UniqueConstraint(fields=("collection", "user"), name="one_assessor_per_user"),
        )

    def __str__(self) -> str:
        return self.name


class Assignment(models.Model):
    """A topic of a pool that an assessor judges."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="assignments")
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="assignments")
    topic_id = models.CharField(max_length=_ID_LENGTH)
    primary = models.BooleanField(default=False, help_text="the first assessor of the topic")
    copies = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text="how many assessors judge a document of the topic",
    )
    overlap = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="share of the documents that have more than one assessor, drawn by the seed",
    )
    due_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("pool", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("pool", "assessor", "topic_id"), name="one_assignment_per_topic"
            ),
            models.UniqueConstraint(
                fields=("pool", "topic_id"),
                condition=Q(primary=True),
                name="one_primary_assessor_per_topic",
            ),
            models.CheckConstraint(condition=Q(copies__gte=1), name="a_document_has_copies"),
            models.CheckConstraint(
                condition=Q(overlap__gte=0, overlap__lte=1), name="overlap_is_a_share"
            ),
        )

    def __str__(self) -> str:
        return f"topic {self.topic_id} of {self.pool} for {self.assessor}"


class Judgement(models.Model):
    """The level that an assessor gave to a document for a topic.

    A correction is a new row; the row that it replaces stays and is not `active`. Insert it after
    that one became inactive, in one transaction. Level -1 is in the pool and not judged, -2 should
    have been judged and was not.
    """

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="judgements")
    topic_id = models.CharField(max_length=_ID_LENGTH)
    doc_id = models.CharField(max_length=_ID_LENGTH)
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="judgements")
    aspect = models.CharField(max_length=64, blank=True, validators=[check_line])
    level = models.IntegerField()
    round = models.CharField(
        max_length=20,
        blank=True,
        validators=[check_line],
        help_text="of judging, such as 0.5: the iteration of a file of judgements",
    )
    seconds = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0.0)], help_text="spent on it"
    )
    note = models.CharField(max_length=2000, blank=True, validators=[check_text])
    outside = models.BooleanField(default=False, help_text="the document is not in the pool")
    at = models.DateTimeField(default=timezone.now)
    recorded_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    active = models.BooleanField(default=True, help_text="no later row replaces it")
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="superseded_by"
    )

    class Meta:
        ordering = ("pool", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("pool", "topic_id", "doc_id", "assessor", "aspect"),
                condition=Q(active=True),
                name="one_active_judgement",
            ),
            models.CheckConstraint(
                condition=Q(seconds=None) | Q(seconds__gte=0), name="seconds_of_judging"
            ),
            models.CheckConstraint(
                condition=Q(supersedes=None) | ~Q(supersedes=F("id")),
                name="a_judgement_supersedes_another",
            ),
        )
        indexes = (
            models.Index(
                fields=("pool", "assessor", "topic_id"),
                condition=Q(active=True),
                name="judgements_of_assessor",
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic_id} {self.doc_id} {self.level} by {self.assessor}"


class Adjudication(models.Model):
    """The level that an adjudicator decided for a document on which assessors differ."""

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="adjudications")
    topic_id = models.CharField(max_length=_ID_LENGTH)
    doc_id = models.CharField(max_length=_ID_LENGTH)
    aspect = models.CharField(max_length=64, blank=True, validators=[check_line])
    level = models.IntegerField()
    note = models.CharField(max_length=2000, blank=True, validators=[check_text])
    at = models.DateTimeField(default=timezone.now)
    decided_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    active = models.BooleanField(default=True, help_text="no later row replaces it")
    supersedes = models.OneToOneField(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="superseded_by"
    )

    class Meta:
        ordering = ("pool", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("pool", "topic_id", "doc_id", "aspect"),
                condition=Q(active=True),
                name="one_active_adjudication",
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic_id} {self.doc_id} {self.level}, decided"


class JudgedVersion(models.Model):
    """A version of qrels that was made of judgements of pools, and how."""

    qrels = models.OneToOneField(Qrels, on_delete=models.CASCADE, related_name="judged_version")
    pools = models.ManyToManyField(Pool, related_name="versions")
    resolve = models.CharField(max_length=20, help_text="how several levels became one")
    aspect = models.CharField(max_length=64, blank=True)
    provenance = StoredJSON(
        default=dict, help_text="digests of the pools, counts of the assessors, agreement"
    )
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("qrels",)

    def __str__(self) -> str:
        return f"{self.qrels} of judgements"
