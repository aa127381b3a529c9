"""Parameters and costs of runs as rows to search, copied from `Run.metadata` and `Run.costs`."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from runs.formats.parameters import MAX_KEY, SEARCHED
from runs.models.collections.collections import Collection
from runs.models.submissions.runs import Run
from runs.models.text import check_line, check_text


class ParameterKey(models.Model):
    """The name of a parameter or of a cost in a collection, as its organisers describe it."""

    class Space(models.TextChoices):
        PARAM = "param"
        COST = "cost"

    class Role(models.TextChoices):
        SETTING = "setting"
        IGNORED = "ignored"

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="parameter_keys"
    )
    space = models.CharField(max_length=10, choices=Space.choices)
    name = models.CharField(max_length=MAX_KEY)
    unit = models.CharField(max_length=30, blank=True, validators=[check_line])
    note = models.CharField(max_length=300, blank=True, validators=[check_text])
    role = models.CharField(
        max_length=10,
        choices=Role.choices,
        default=Role.SETTING,
        help_text="whether it says how a run was made",
    )

    class Meta:
        ordering = ("space", "name")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "space", "name"), name="one_key_per_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.space}:{self.name}"


class ParameterSet(models.Model):
    """The rows of one run. A change of the run's metadata or costs replaces it by a new one."""

    id = models.BigAutoField(primary_key=True)
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="parameter_set")
    digest = models.CharField(
        max_length=64, db_index=True, help_text="of the parameters without those of the platform"
    )
    left_out = models.PositiveIntegerField(
        default=0, help_text="values that are kept, not searched"
    )

    def __str__(self) -> str:
        return f"parameters of run {self.run_id}"


class Parameter(models.Model):
    """One value: a number, the beginning of a text without regard to case, or a boolean."""

    id = models.BigAutoField(primary_key=True)
    owner = models.ForeignKey(
        ParameterSet, on_delete=models.CASCADE, related_name="parameters", db_index=False
    )
    key = models.ForeignKey(
        ParameterKey, on_delete=models.CASCADE, related_name="parameters", db_index=False
    )
    number = models.FloatField(null=True)
    folded = models.CharField(max_length=SEARCHED, null=True)  # noqa: DJ001, null is: not a text
    boolean = models.BooleanField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("owner", "key"), name="one_value_per_key"),
            models.CheckConstraint(
                name="one_type_of_value",
                condition=(
                    Q(number__isnull=False, folded__isnull=True, boolean__isnull=True)
                    | Q(number__isnull=True, folded__isnull=False, boolean__isnull=True)
                    | Q(number__isnull=True, folded__isnull=True, boolean__isnull=False)
                ),
            ),
        )
        indexes = (
            models.Index(
                fields=("key", "number", "owner"),
                name="numbers_of_key",
                condition=Q(number__isnull=False),
            ),
            models.Index(
                fields=("key", "folded", "owner"),
                name="texts_of_key",
                condition=Q(folded__isnull=False),
            ),
            models.Index(
                fields=("key", "boolean", "owner"),
                name="booleans_of_key",
                condition=Q(boolean__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.key_id} of {self.owner_id}"
