"""Shapes of what a leaderboard says of how sure it is."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.engine.significance.pairs import INTERVALS
from metrics.engine.significance.verdicts import REASONS, VERDICTS


class CautionSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class TieringSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="tiers")
    family = serializers.IntegerField(help_text="pairs that p counts for: all of the ranked runs")
    significant = serializers.IntegerField(help_text="pairs with a verdict")
    cautions = CautionSerializer(many=True)


class RanksSerializer(serializers.Serializer[Any]):
    resamples = serializers.IntegerField(help_text="bootstrap samples of the topics")


class ContrastSerializer(serializers.Serializer[Any]):
    run = serializers.UUIDField()
    family = serializers.IntegerField(
        help_text="pairs that p counts for: every other ranked run with this one, or all pairs where the test counts so"
    )
    intervals = serializers.ChoiceField(choices=INTERVALS, help_text="whether each holds alone, or all at once")
    significant = serializers.IntegerField(help_text="pairs with a verdict")
    cautions = CautionSerializer(many=True)


class BoardStatisticsSerializer(serializers.Serializer[Any]):
    """How the statistics of a board were made; a part that was not asked for, or has no answer, is null."""

    measure = serializers.CharField(help_text="the one that the board is sorted by")
    parts = serializers.ListField(child=serializers.CharField())
    runs = serializers.IntegerField(help_text="ranked runs with a mean: those that take part")
    topics = serializers.IntegerField(allow_null=True, help_text="on which every run has a value")
    test = serializers.CharField()
    correction = serializers.CharField(allow_null=True, help_text="null where p counts for all pairs by itself")
    alpha = serializers.FloatField()
    confidence = serializers.FloatField()
    resamples = serializers.IntegerField(allow_null=True, help_text="B of the test; null for one that does not draw")
    seed = serializers.IntegerField()
    tiers = TieringSerializer(allow_null=True)
    ranks = RanksSerializer(allow_null=True)
    baseline = ContrastSerializer(allow_null=True)
    cautions = CautionSerializer(many=True)


class RankIntervalSerializer(serializers.Serializer[Any]):
    low = serializers.IntegerField()
    high = serializers.IntegerField()
    share_first = serializers.FloatField(help_text="samples of topics in which the run is first, tied or alone")


class AgainstBaselineSerializer(serializers.Serializer[Any]):
    difference = serializers.FloatField(help_text="mean of the run minus mean of the baseline")
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    relative = serializers.FloatField(
        allow_null=True, help_text="as a share of the baseline's mean; null where it is 0"
    )
    statistic = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField(allow_null=True, help_text="null where the pair cannot be tested")
    p_adjusted = serializers.FloatField(allow_null=True)
    mark = serializers.ChoiceField(choices=VERDICTS, allow_null=True, help_text="where there is a verdict")
    withheld = serializers.ChoiceField(
        choices=REASONS[1:], allow_null=True, help_text="why there is no verdict, whatever p is"
    )
    wins = serializers.IntegerField(help_text="topics on which the run is better")
    ties = serializers.IntegerField()
    losses = serializers.IntegerField()


class StandingSerializer(serializers.Serializer[Any]):
    """Null in whole for a stale run and for one without a mean."""

    tier = serializers.IntegerField(allow_null=True)
    groups = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="two runs share a letter exactly when the test does not separate them",
    )
    rank = RankIntervalSerializer(allow_null=True)
    baseline = AgainstBaselineSerializer(allow_null=True)
