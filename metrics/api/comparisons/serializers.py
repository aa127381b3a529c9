"""Shapes of comparisons."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.api.boards.serializers import CautionSerializer
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.effect_sizes import READINGS
from metrics.engine.significance.pairs import INTERVALS, MAX_RESAMPLES, TIES, ZEROS
from metrics.engine.significance.verdicts import REASONS, VERDICTS
from metrics.models import Comparison
from metrics.services.comparisons.comparison import MAX_RUNS
from runs.api.parameters import KnownFields
from runs.models import Collection

_MEASURES = 20


class AskedComparisonSerializer(KnownFields, serializers.Serializer[Any]):
    """The parameters of a comparison as a body; what is left out is as in the address."""

    measures = serializers.ListField(child=serializers.CharField(max_length=500), max_length=_MEASURES, required=False)
    runs = serializers.ListField(child=serializers.UUIDField(), max_length=MAX_RUNS, required=False)
    family = serializers.ListField(
        child=serializers.CharField(max_length=36),
        max_length=MAX_RUNS,
        required=False,
        help_text="the runs that `runs` were found among, or all",
    )
    baseline = serializers.UUIDField(required=False)
    tests = serializers.ListField(child=serializers.ChoiceField(choices=list(TESTS)), required=False)
    correction = serializers.ChoiceField(choices=list(CORRECTIONS), required=False)
    alpha = serializers.FloatField(required=False)
    confidence = serializers.FloatField(required=False)
    resamples = serializers.IntegerField(required=False, min_value=1, max_value=MAX_RESAMPLES)
    seed = serializers.IntegerField(required=False, min_value=0)
    zeros = serializers.ChoiceField(choices=ZEROS, required=False)
    ties = serializers.ChoiceField(choices=TIES, required=False)
    min_difference = serializers.FloatField(required=False)
    scores = serializers.ChoiceField(choices=Collection.Scores.choices, required=False)


class ComparisonStatusSerializer(serializers.ModelSerializer[Comparison]):
    url = serializers.URLField(help_text="where the comparison is read")

    class Meta:
        model = Comparison
        fields = (
            "id", "url", "state", "progress", "since", "created_at", "attempts", "seconds", "error_code",
            "error_message",
        )  # fmt: skip


class WaitingComparisonSerializer(serializers.Serializer[Any]):
    """A comparison that a worker makes."""

    comparison = ComparisonStatusSerializer()


class BoundedSerializer(serializers.Serializer[Any]):
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class VerdictSerializer(serializers.Serializer[Any]):
    low = serializers.FloatField(allow_null=True, help_text="of the interval of the mean difference")
    high = serializers.FloatField(allow_null=True)
    statistic = serializers.FloatField(allow_null=True, help_text="null where there is none")
    p_value = serializers.FloatField(allow_null=True, help_text="null where the test cannot be made")
    p_adjusted = serializers.FloatField(allow_null=True, help_text="corrected over the family")
    exact = serializers.BooleanField(help_text="p is of the exact distribution")
    significant = serializers.BooleanField(help_text="whether there is a verdict")
    verdict = serializers.ChoiceField(choices=VERDICTS, allow_null=True, help_text="of a against b")
    withheld = serializers.ChoiceField(
        choices=REASONS[1:], allow_null=True, help_text="why there is no verdict, whatever p is"
    )


class SplitPairSerializer(serializers.Serializer[Any]):
    a = serializers.UUIDField()
    b = serializers.UUIDField()
    difference = serializers.FloatField(help_text="mean of a minus mean of b")
    wins = serializers.IntegerField(help_text="topics on which a is better")
    ties = serializers.IntegerField()
    losses = serializers.IntegerField()
    tests = serializers.DictField(child=VerdictSerializer())


class PairSerializer(SplitPairSerializer):
    relative_difference = serializers.FloatField(allow_null=True, help_text="as a share of the mean of b")
    reading = serializers.ChoiceField(choices=READINGS, help_text="of the relative difference, after Sparck Jones")
    cohen_d = BoundedSerializer()
    hedges_g = BoundedSerializer()
    standardised_difference = BoundedSerializer()


class GroupsSerializer(serializers.Serializer[Any]):
    run = serializers.UUIDField()
    tier = serializers.IntegerField()
    groups = serializers.ListField(child=serializers.IntegerField(), help_text="runs that share one are not separated")
    letters = serializers.CharField(allow_null=True, help_text="the same as letters; null beyond 52 groups")


class FamilySerializer(serializers.Serializer[Any]):
    about = serializers.ChoiceField(choices=("means", "ranks"))
    paired = serializers.BooleanField()
    draws = serializers.BooleanField(help_text="depends on resamples and seed")
    correction = serializers.CharField(allow_null=True, help_text="null where p counts for all pairs by itself")
    family = serializers.IntegerField(help_text="number of pairs that p counts for")
    intervals = serializers.ChoiceField(choices=INTERVALS, help_text="whether each holds alone, or all at once")
    significant = serializers.IntegerField(help_text="number of pairs with a verdict")
    cautions = CautionSerializer(many=True)
    groups = GroupsSerializer(many=True, allow_null=True, help_text="null with a baseline or without a test")


class SourceSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    squares = serializers.FloatField()
    freedom = serializers.FloatField()
    mean_square = serializers.FloatField()
    statistic = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField(allow_null=True)


class OmnibusSerializer(serializers.Serializer[Any]):
    statistic = serializers.FloatField(allow_null=True)
    freedom = serializers.ListField(child=serializers.FloatField())
    p_value = serializers.FloatField(allow_null=True, help_text="null where the test cannot be made")
    effect = serializers.FloatField(help_text="partial eta squared, Kendall's W or epsilon squared")
    sources = SourceSerializer(many=True)
    cautions = CautionSerializer(many=True)


class LeftOutSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    runs_without_value = serializers.IntegerField()


class TopicsUsedSerializer(serializers.Serializer[Any]):
    used = serializers.IntegerField()
    left_out = serializers.IntegerField()
    reasons = LeftOutSerializer(many=True, help_text="the first 50")


class ComparedMeanSerializer(serializers.Serializer[Any]):
    run = serializers.UUIDField()
    mean = serializers.FloatField()


class DisagreementsSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    pairs = SplitPairSerializer(many=True, help_text="the first 50")


class ComparedMeasureSerializer(serializers.Serializer[Any]):
    measure = serializers.CharField()
    topics = TopicsUsedSerializer()
    cautions = CautionSerializer(many=True)
    means = ComparedMeanSerializer(many=True, help_text="best first")
    omnibus = serializers.DictField(child=OmnibusSerializer())
    tests = serializers.DictField(child=FamilySerializer())
    disagreements = DisagreementsSerializer(
        allow_null=True, help_text="pairs on which tests of means and of ranks disagree; null for tests of one kind"
    )
    count = serializers.IntegerField(help_text="pairs of all pages")
    pairs = PairSerializer(many=True)


class PairFamilySerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=("all_pairs", "baseline"))
    baseline = serializers.UUIDField(allow_null=True)
    runs = serializers.IntegerField(help_text="that were tested together; `runs` of the answer may be some of them")
    pairs = serializers.IntegerField(help_text="that were tested together")


class ComparedRunSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    team = serializers.CharField()
    tag = serializers.CharField()


class ComparisonSerializer(serializers.Serializer[Any]):
    """Pairs of runs under some measures and tests. While a worker makes it, only `comparison` is there."""

    comparison = ComparisonStatusSerializer(allow_null=True, help_text="null for one made on the spot")
    collection = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    engine_version = serializers.CharField()
    stale = serializers.BooleanField()
    tests = serializers.ListField(child=serializers.CharField())
    family = PairFamilySerializer()
    correction = serializers.CharField()
    alpha = serializers.FloatField()
    confidence = serializers.FloatField()
    resamples = serializers.IntegerField()
    seed = serializers.IntegerField()
    zeros = serializers.CharField()
    ties = serializers.CharField()
    min_difference = serializers.FloatField()
    cautions = CautionSerializer(many=True)
    runs = ComparedRunSerializer(many=True)
    measures = ComparedMeasureSerializer(many=True)
    sort = serializers.CharField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
