"""Campaigns: what organisers set up, and the teams that take part. `entries` has what the teams enter."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Any

from django.core.validators import EmailValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.functional import cached_property

from runs.models.accounts.accounts import Team, User
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection
from runs.models.collections.disclosure import led_by
from runs.models.text import DOI_RULE, DOI_SAID, check_line, check_text

# What the short name of a campaign or a phase may be.
SLUG_RULE = r"[a-z0-9][a-z0-9_-]{0,63}"
SLUG_RULE_SAID = "use lower-case letters, digits, '_' and '-'"
_SLUG = RegexValidator(rf"\A{SLUG_RULE}\Z", SLUG_RULE_SAID)


class CampaignQuerySet(models.QuerySet["Campaign"]):
    def organised_by(self, user: Any) -> CampaignQuerySet:
        """Those whose organiser the user is: an owner of the campaign's team, or staff."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(led_by(user))

    def visible_to(self, user: Any) -> CampaignQuerySet:
        """Those that are published, and drafts of which the user is an organiser."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(~Q(state=Campaign.State.DRAFT) | led_by(user))


def _draw_seed() -> int:
    return secrets.randbits(62)


LICENCE_RULE = r"\A[A-Za-z0-9][A-Za-z0-9.+-]*\Z"
LICENCE_SAID = (
    "write the SPDX identifier of a licence, such as CC-BY-4.0: letters, digits, dots, hyphens "
    "and plus signs"
)
_DOI = RegexValidator(rf"\A{DOI_RULE}\Z", DOI_SAID)


class Campaign(models.Model):
    """An event in which teams enter runs into phases. The owners of its team are its organisers."""

    class State(models.TextChoices):
        DRAFT = "draft"
        PUBLISHED = "published"
        ARCHIVED = "archived"

    class Registration(models.TextChoices):
        OPEN = "open"
        APPROVAL = "approval"
        CLOSED = "closed"

    class TagScope(models.TextChoices):
        TEAM = "team"
        CAMPAIGN = "campaign"

    class Names(models.TextChoices):
        SHOWN = "shown"
        HIDDEN_UNTIL_RELEASE = "hidden_until_release"

    slug = models.CharField(max_length=64, unique=True, validators=[_SLUG])
    name = models.CharField(max_length=200, validators=[check_line])
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="campaigns")
    summary = models.CharField(max_length=500, blank=True, validators=[check_line])
    guidelines = models.TextField(blank=True, max_length=50_000, validators=[check_text])
    contact = models.CharField(max_length=254, blank=True, validators=[EmailValidator()])
    licence = models.CharField(
        max_length=64,
        blank=True,
        db_default="",
        validators=[RegexValidator(LICENCE_RULE, LICENCE_SAID)],
        help_text="SPDX identifier of the licence of its snapshots, such as CC-BY-4.0",
    )
    rights = models.CharField(
        max_length=500,
        blank=True,
        db_default="",
        validators=[check_line],
        help_text="who has which rights in its snapshots, in words",
    )
    citation_authors = models.CharField(
        max_length=1000,
        blank=True,
        db_default="",
        validators=[check_line],
        help_text="whom citations of its snapshots name, as in: Lima, Ana; Kim, Bo. Empty: its team",
    )
    paper_doi = models.CharField(
        max_length=220,
        blank=True,
        db_default="",
        validators=[_DOI],
        help_text="of its overview paper",
    )
    judgements_doi = models.CharField(
        max_length=220,
        blank=True,
        db_default="",
        validators=[_DOI],
        help_text="of the judgements, published elsewhere",
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    registration = models.CharField(
        max_length=10, choices=Registration.choices, default=Registration.APPROVAL
    )
    registration_closes_at = models.DateTimeField(null=True, blank=True)
    roster_closes_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="when teams can no longer change; empty: as the first evaluation phase closes",
    )
    max_team_size = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )
    tag_scope = models.CharField(max_length=10, choices=TagScope.choices, default=TagScope.CAMPAIGN)
    anonymous_until = models.DateTimeField(
        null=True, blank=True, help_text="until then teams have pseudonyms"
    )
    names = models.CharField(
        max_length=20,
        choices=Names.choices,
        default=Names.SHOWN,
        db_default=Names.SHOWN,
        help_text="whether teams have pseudonyms until results are released to participants",
    )
    seed = models.BigIntegerField(
        default=_draw_seed, db_default=0, editable=False, help_text="of the pseudonyms; secret"
    )
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CampaignQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "slug")
        constraints = (
            models.CheckConstraint(
                condition=Q(max_team_size=None) | Q(max_team_size__gte=1),
                name="teams_of_a_campaign_have_members",
            ),
        )

    def __str__(self) -> str:
        return self.slug

    @cached_property
    def first_released_at(self) -> datetime | None:
        """Return when the first of its evaluations became public."""
        evaluated = Collection.objects.filter(
            phases__campaign=self, phases__kind=Phase.Kind.EVALUATION, released_at__isnull=False
        )
        times = evaluated.order_by("released_at").values_list("released_at", flat=True)

        return times.first()


def _at_least_one(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=Q(**{name: None}) | Q(**{f"{name}__gte": 1}), name=f"phase_{name}_positive"
    )


class Phase(models.Model):
    """A task in a window of time. All times are instants; `zone` says how they were meant and are shown.

    `closes_at` moves with extensions for all teams; those of one team are rows of `Extension`. The
    state of a phase follows from the clock: see `evalhub.campaigns.services.phase_times`.
    """

    class Kind(models.TextChoices):
        TRAINING = "training"
        DEVELOPMENT = "development"
        EVALUATION = "evaluation"
        AFTERWARDS = "afterwards"

    class Feedback(models.TextChoices):
        NONE = "none"
        OWN = "own"
        BOARD = "board"

    class Selection(models.TextChoices):
        ALL = "all"
        BEST = "best"
        LATEST = "latest"
        CHOSEN = "chosen"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="phases")
    slug = models.CharField(max_length=64, validators=[_SLUG])
    name = models.CharField(max_length=200, validators=[check_line])
    description = models.TextField(blank=True, max_length=20_000, validators=[check_text])
    place = models.PositiveIntegerField(default=0)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="phases")
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.EVALUATION)
    opens_at = models.DateTimeField()
    closes_at = models.DateTimeField()
    late_closes_at = models.DateTimeField(null=True, blank=True)
    zone = models.CharField(max_length=64, default="UTC")
    paused_at = models.DateTimeField(null=True, blank=True, editable=False)
    paused_reason = models.CharField(max_length=500, blank=True, validators=[check_line])
    measures = StoredJSON(default=list, blank=True, help_text="the first one is the primary one")
    measure_titles = StoredJSON(
        null=True, blank=True, help_text="short titles by measure, as heads of columns"
    )
    decimals = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="of means on leaderboards and in tables for papers"
    )
    slots = models.PositiveIntegerField(
        null=True, blank=True, help_text="entries of a team at a time"
    )
    attempts_daily = models.PositiveIntegerField(
        null=True, blank=True, help_text="entries of a team per day (UTC)"
    )
    attempts_total = models.PositiveIntegerField(null=True, blank=True)
    run_types = StoredJSON(
        default=list, blank=True, help_text="a list of {key, label}; empty: not asked"
    )
    form = StoredJSON(default=list, blank=True, help_text="the fields that an entry answers")
    feedback = models.CharField(
        max_length=5,
        choices=Feedback.choices,
        default=Feedback.NONE,
        db_default=Feedback.NONE,
        help_text="what teams see at once: nothing, their own values, or the leaderboard too",
    )
    freeze_board_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="teams see no later entry of others on the leaderboard before a release",
    )
    selection = models.CharField(
        max_length=6,
        choices=Selection.choices,
        default=Selection.ALL,
        db_default=Selection.ALL,
        help_text="which entries of a team stand on the official leaderboard",
    )
    chosen_max = models.PositiveIntegerField(
        default=1, db_default=1, help_text="entries that a team may choose"
    )
    must_answer_all = models.BooleanField(
        default=False, help_text="refuse a run without an answer to a topic"
    )
    max_documents = models.PositiveIntegerField(
        null=True, blank=True, help_text="of a run, for each topic"
    )
    naming = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="the pattern of tags, such as {team}-{run_type}-{priority}",
    )
    excluded_topics = StoredJSON(
        null=True, blank=True, editable=False, help_text="that do not count, and why"
    )
    excluded_reason = models.CharField(
        max_length=500, blank=True, default="", db_default="", editable=False
    )

    class Meta:
        ordering = ("campaign", "place", "opens_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("campaign", "slug"), name="one_phase_per_slug"),
            models.CheckConstraint(
                condition=Q(opens_at__lt=F("closes_at")), name="phase_opens_before_it_closes"
            ),
            models.CheckConstraint(
                condition=Q(late_closes_at=None) | Q(late_closes_at__gte=F("closes_at")),
                name="phase_ends_late_after_it_closes",
            ),
            *(
                _at_least_one(name)
                for name in (
                    "slots",
                    "attempts_daily",
                    "attempts_total",
                    "chosen_max",
                    "max_documents",
                    "decimals",
                )
            ),
            models.CheckConstraint(
                condition=~Q(kind="evaluation") | Q(feedback="none"),
                name="no_feedback_in_an_evaluation",
            ),
        )
        indexes = (
            models.Index(fields=("collection", "kind", "opens_at"), name="phases_of_collection"),
        )

    def __str__(self) -> str:
        return f"{self.campaign}/{self.slug}"

    @property
    def measure_names(self) -> list[str]:
        """Return the names of its measures, the primary one first.

        Without own ones they are those of its collection that teams do not report: a team could
        change what it reported after the deadline.
        """
        names: list[str] = self.measures or [
            name for name in self.collection.measures if not self.collection.is_reported(name)
        ]
        return names or self.collection.measures


class Participation(models.Model):
    """A team in a campaign. Its row is locked while its limits are counted."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        ACCEPTED = "accepted"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"
        REMOVED = "removed"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="participations")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="participations")
    state = models.CharField(max_length=10, choices=State.choices, default=State.REQUESTED)
    name = models.CharField(max_length=150, validators=[check_line], help_text="as it is shown")
    former_name = models.CharField(
        max_length=150,
        blank=True,
        default="",
        db_default="",
        help_text="under which results were disclosed to teams",
    )
    affiliation = models.CharField(max_length=300, blank=True, validators=[check_line])
    requested_at = models.DateTimeField(default=timezone.now, editable=False)
    accepted_at = models.DateTimeField(null=True, blank=True, editable=False)
    pseudonym = models.PositiveIntegerField(
        null=True, editable=False, help_text="drawn when the team is accepted"
    )
    anonymous_until = models.DateTimeField(
        null=True, blank=True, help_text="empty: as in its campaign"
    )
    prolonged = models.BooleanField(default=False, db_default=False, editable=False)

    class Meta:
        ordering = ("campaign", "requested_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("campaign", "team"), name="one_participation_per_team"),
            models.UniqueConstraint(
                fields=("campaign", "pseudonym"), name="one_pseudonym_per_team"
            ),
        )

    def __str__(self) -> str:
        return f"{self.team} in {self.campaign}"

    @property
    def shown_name(self) -> str:
        """Return the name, with the one that it had when results were disclosed if it has changed since."""
        return f"{self.name} (formerly {self.former_name})" if self.former_name else self.name


class CampaignMember(models.Model):
    """A person in a participating team: in one team of a campaign. Whoever left after the team's first entry stays on
    record, and joins no other."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="campaign_memberships")
    participation = models.ForeignKey(
        Participation, on_delete=models.CASCADE, related_name="members"
    )
    joined_at = models.DateTimeField(default=timezone.now, editable=False)
    left_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("joined_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("campaign", "user"), name="one_team_per_person"),
        )

    def __str__(self) -> str:
        return f"{self.user} for {self.participation}"


class Agreement(models.Model):
    """A text that participants sign before they enter runs. A changed text is another agreement."""

    class RequiredOf(models.TextChoices):
        EACH_MEMBER = "each_member"
        ONE_OWNER = "one_owner"

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="agreements")
    title = models.CharField(max_length=200, validators=[check_line])
    text = models.TextField(max_length=50_000, validators=[check_text])
    sha256 = models.CharField(max_length=64)
    required_of = models.CharField(
        max_length=12, choices=RequiredOf.choices, default=RequiredOf.EACH_MEMBER
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("campaign", "sha256"), name="one_agreement_per_text"),
        )

    def __str__(self) -> str:
        return f"{self.title} of {self.campaign}"


# What stands for the name of a person who was forgotten.
FORMER_MEMBER = "former member"


def forget_name(collector: Any, field: Any, signatures: Any, using: str) -> None:
    """When a person is deleted, keep what was signed and when, without the person and the name."""
    models.SET_NULL(collector, field, signatures, using)
    collector.add_field_update(field.model._meta.get_field("typed_name"), FORMER_MEMBER, signatures)


class Signature(models.Model):
    """That a person has signed an agreement; it is never changed or deleted. Of a person whose account is deleted the
    agreement and the date stay, and the name goes."""

    agreement = models.ForeignKey(Agreement, on_delete=models.CASCADE, related_name="signatures")
    user = models.ForeignKey(User, null=True, on_delete=forget_name, related_name="signatures")
    participation = models.ForeignKey(
        Participation, on_delete=models.CASCADE, related_name="signatures"
    )
    typed_name = models.CharField(max_length=150, validators=[check_line])
    signed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("signed_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("agreement", "user"), name="one_signature_per_person"),
        )

    def __str__(self) -> str:
        return f"{self.typed_name} under {self.agreement}"


class Extension(models.Model):
    """A later end of a phase, for all teams or for one. A row is deleted where it is cancelled before its old end."""

    phase = models.ForeignKey(Phase, on_delete=models.CASCADE, related_name="extensions")
    participation = models.ForeignKey(
        Participation,
        null=True,
        on_delete=models.CASCADE,
        related_name="extensions",
        help_text="empty: all",
    )
    old = models.DateTimeField()
    new = models.DateTimeField()
    old_late = models.DateTimeField(
        null=True, editable=False, help_text="the end of late entries, if it moved with the phase"
    )
    reason = models.CharField(max_length=500, validators=[check_line])
    announced_at = models.DateTimeField(default=timezone.now)
    values_seen_since = models.DateTimeField(
        null=True,
        editable=False,
        help_text="when an organiser first read values of its entries, if before",
    )
    actor = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        ordering = ("announced_at", "id")
        constraints = (
            models.CheckConstraint(condition=Q(new__gt=F("old")), name="an_extension_is_later"),
        )

    def __str__(self) -> str:
        return f"{self.phase} until {self.new:%Y-%m-%d %H:%M:%S} UTC"
