"""Value tables: values that other programs computed, of measures that a collection declares."""

from __future__ import annotations

import json

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.external import (
    NAME_RULE,
    PREFIX,
    ExternalDefinition,
    external_definition,
)
from metrics.engine.measures.grammar import Measure
from runs.digests import digest_of_bytes
from runs.errors import StoredValueCorrupt
from runs.models.accounts.accounts import User
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection
from runs.models.submissions.runs import Run
from runs.models.text import check_line, check_text


class ExternalMeasure(models.Model):
    """A measure with values from tables. From its first table on, only unit and description
    change."""

    class Direction(models.TextChoices):
        HIGHER = "higher"
        LOWER = "lower"

    class Aggregation(models.TextChoices):
        MEAN = "mean"
        GEOMETRIC = "geometric"

    class Missing(models.TextChoices):
        UNDEFINED = "undefined"
        ZERO = "zero"

    class Source(models.TextChoices):
        ORGANISER = "organiser"
        REPORTED = "reported"

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="external_measures"
    )
    name = models.CharField(
        max_length=60,
        validators=[
            RegexValidator(
                rf"\A{NAME_RULE}\Z",
                "use 1 to 60 letters, digits, '_', '.', '@', '+' and '-', and begin with a letter, "
                "a digit or '_'",
            )
        ],
        help_text=f"without the {PREFIX} in front of it",
    )
    direction = models.CharField(
        max_length=6, choices=Direction.choices, help_text="which values are better"
    )
    low = models.FloatField(null=True, blank=True, help_text="the lowest value that is possible")
    high = models.FloatField(null=True, blank=True, help_text="the highest value that is possible")
    unit = models.CharField(
        max_length=20, blank=True, default="", validators=[check_line], help_text="such as ms"
    )
    description = models.CharField(
        max_length=500, blank=True, default="", validators=[check_text],
        help_text="what it measures, and which program computes it",
    )  # fmt: skip
    aggregate = models.CharField(
        max_length=10, choices=Aggregation.choices, default=Aggregation.MEAN,
        help_text="how the values of topics become one value of a run",
    )  # fmt: skip
    missing = models.CharField(
        max_length=10, choices=Missing.choices, default=Missing.UNDEFINED,
        help_text="the value of a topic that is not in the tables of a run",
    )  # fmt: skip
    source = models.CharField(
        max_length=10, choices=Source.choices, default=Source.ORGANISER,
        help_text="who gives values: the organisers, or each team those of its own runs",
    )  # fmt: skip
    version = models.PositiveIntegerField(
        default=0, editable=False, help_text="the number of the last table with values of it"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("collection", "name")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "name"), name="one_external_measure_per_name"
            ),
        )

    def __str__(self) -> str:
        return PREFIX + self.name

    @property
    def definition(self) -> ExternalDefinition:
        geometric = self.aggregate == self.Aggregation.GEOMETRIC
        return external_definition(
            self.name,
            lower_is_better=self.direction == self.Direction.LOWER,
            aggregate=Aggregate.GEOMETRIC if geometric else Aggregate.MEAN,
            low=self.low,
            high=self.high,
            unit=self.unit,
            description=self.description,
            reported=self.source == self.Source.REPORTED,
            version=self.version,
        )

    @property
    def measure(self) -> Measure:
        return Measure(self.definition, None, ())


class ValueTable(models.Model):
    """An uploaded table. Its values are in TableValues, unless a later table replaced them."""

    collection = models.ForeignKey(
        Collection, on_delete=models.CASCADE, related_name="value_tables"
    )
    number = models.PositiveIntegerField()
    note = models.CharField(max_length=500, blank=True, default="", validators=[check_text])
    tool = models.CharField(max_length=200, blank=True, default="", validators=[check_line])
    tool_version = models.CharField(max_length=100, blank=True, default="", validators=[check_line])
    provenance = StoredJSON(default=dict, blank=True)
    sha256 = models.CharField(max_length=64)
    measures = StoredJSON(help_text="number of values by measure")
    runs = models.PositiveIntegerField()
    values = models.PositiveIntegerField()
    warnings = StoredJSON(default=dict, blank=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("collection", "-number")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "number"), name="one_value_table_per_number"
            ),
        )

    def __str__(self) -> str:
        return f"{self.collection} values {self.number}"


class TableValues(models.Model):
    """The values of a run under a measure by topic, from all tables so far."""

    measure = models.ForeignKey(
        ExternalMeasure, on_delete=models.CASCADE, related_name="values_of_runs"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="table_values")
    content = models.BinaryField(help_text="a JSON object: a number for each topic")
    topics = models.PositiveIntegerField()
    digest = models.BigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("measure", "run"), name="one_row_of_values_per_measure_and_run"
            ),
        )

    def __str__(self) -> str:
        return f"{self.measure} of {self.run}"

    def write(self, values: dict[str, float]) -> None:
        """Set the values, neither checked nor saved."""
        self.content = json.dumps(values, separators=(",", ":")).encode()
        self.topics = len(values)
        self.digest = self._digest()

    def read(self) -> dict[str, float]:
        """Return the values by topic. Raise StoredValueCorrupt if they are damaged."""
        if not self.is_sound():
            raise StoredValueCorrupt(
                f"the stored values of {self.measure} of run {self.run_id} are damaged, and nothing "
                "is shown of them; upload a table with them again"
            )
        values: dict[str, float] = json.loads(bytes(self.content))
        return values

    def is_sound(self) -> bool:
        return self.digest == self._digest()

    def _digest(self) -> int:
        return digest_of_bytes(("table values", self.measure_id, self.run_id), self.content)
