"""The parameters of a comparison as a body."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.pairs import MAX_RESAMPLES, TIES, ZEROS
from metrics.engine.significance.practical import PRACTICAL
from metrics.services.comparisons.comparison import MAX_RUNS
from runs.api.fields import ChoiceField
from runs.api.parameters import KnownFields
from runs.models import Collection
from runs.services.labels import PREFIX

_MEASURES = 20


class RunField(serializers.UUIDField):
    """A run by its id, or by a label."""

    def to_internal_value(self, data: Any) -> Any:
        return (
            data
            if isinstance(data, str) and data.startswith(PREFIX)
            else super().to_internal_value(data)
        )


class AskedComparisonSerializer(KnownFields, serializers.Serializer[Any]):
    """The parameters of a comparison as a body, with the same defaults as in the address."""

    measures = serializers.ListField(
        child=serializers.CharField(max_length=500), max_length=_MEASURES, required=False
    )
    runs = serializers.ListField(child=RunField(), max_length=MAX_RUNS, required=False)
    family = serializers.ListField(
        child=serializers.CharField(max_length=250),
        max_length=MAX_RUNS,
        required=False,
        help_text="the runs that `runs` were found among, or all",
    )
    baseline = RunField(required=False)
    tests = serializers.ListField(child=ChoiceField(choices=[*TESTS, *PRACTICAL]), required=False)
    correction = ChoiceField(choices=list(CORRECTIONS), required=False)
    alpha = serializers.FloatField(required=False)
    confidence = serializers.FloatField(required=False)
    resamples = serializers.IntegerField(required=False, min_value=1, max_value=MAX_RESAMPLES)
    seed = serializers.IntegerField(required=False, min_value=0)
    zeros = ChoiceField(choices=ZEROS, required=False)
    ties = ChoiceField(choices=TIES, required=False)
    min_difference = serializers.FloatField(required=False)
    rope = serializers.FloatField(
        required=False,
        help_text="differences up to this are practically equal, for bayes_t and bayes_bootstrap",
    )
    margin = serializers.FloatField(
        required=False, help_text="the smallest difference that would matter, for tost"
    )
    scores = ChoiceField(choices=Collection.Scores.choices, required=False)
