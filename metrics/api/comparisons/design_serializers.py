"""Shapes of how far orders agree and of what a collection tells apart."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.api.boards.serializers import CautionSerializer
from metrics.api.serializers import RunNameSerializer


def _figures(text: str = "", **options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=text, **options)


def _counts(text: str = "") -> serializers.ListField:
    return serializers.ListField(child=serializers.IntegerField(), help_text=text)


class OrderSerializer(serializers.Serializer[Any]):
    measure = serializers.CharField()
    qrels = serializers.IntegerField()
    ties = serializers.BooleanField(help_text="whether two runs share a rank")
    ranks = _counts("of the runs, in their order")
    means = _figures("of the runs, on the topics used")


class AgreementSerializer(serializers.Serializer[Any]):
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class OrderPairSerializer(serializers.Serializer[Any]):
    a = serializers.IntegerField(help_text="place among the orders, from 0 on")
    b = serializers.IntegerField()
    tau = AgreementSerializer(help_text="Kendall's tau-b; tau-a without ties")
    tau_ap = AgreementSerializer(help_text="the AP correlation with a as the truth")
    tau_ap_reversed = AgreementSerializer(help_text="with b as the truth")
    symmetric_tau_ap = AgreementSerializer()
    rbo = AgreementSerializer(help_text="rank-biased overlap, p = 0.9, extrapolated")
    moved = serializers.IntegerField(help_text="runs whose rank differs")
    changes = _counts("of the runs: rank in b minus rank in a")


class OrdersSerializer(serializers.Serializer[Any]):
    """Orders of the same runs, and every two of them that differ in the measure or in the qrels, not in both."""

    collection = serializers.CharField()
    scores = serializers.CharField()
    topics = serializers.IntegerField(help_text="judged in every version, with a value of every run in every order")
    confidence = serializers.FloatField()
    resamples = serializers.IntegerField()
    seed = serializers.IntegerField()
    cautions = CautionSerializer(many=True)
    runs = RunNameSerializer(many=True)
    orders = OrderSerializer(many=True)
    pairs = OrderPairSerializer(many=True)


class PowerCurveSerializer(serializers.Serializer[Any]):
    pair = _counts("places of the pairs, from 1 on, in descending order of p")
    p_value = _figures()


class DiscriminativePowerSerializer(serializers.Serializer[Any]):
    pairs = serializers.IntegerField()
    share = serializers.FloatField(help_text="of the pairs with p below alpha, uncorrected")
    needed = serializers.FloatField(help_text="the difference with which every pair would be there")
    typical = serializers.FloatField(help_text="with which half of them would")
    curve = PowerCurveSerializer(help_text="achieved significance levels, at up to 500 pairs")


class DetectionSerializer(serializers.Serializer[Any]):
    difference = serializers.FloatField()
    power_t = serializers.FloatField(help_text="of a paired t test of two runs, with the topics at hand")
    topics_t = serializers.IntegerField(allow_null=True, help_text="that it needs; null beyond a million")
    power_anova = serializers.FloatField(help_text="of an analysis of variance of all runs")
    topics_anova = serializers.IntegerField(allow_null=True)
    topics_interval = serializers.IntegerField(
        allow_null=True, help_text="for an interval no wider than the difference"
    )


class TopicSetSizeSerializer(serializers.Serializer[Any]):
    variance = serializers.FloatField(help_text="of a run's values that runs and topics leave")
    detectable = serializers.FloatField(help_text="the difference that a paired t test finds with the power asked for")
    half_width = serializers.FloatField(help_text="expected, of the interval of a difference")
    detections = DetectionSerializer(many=True)


class SwapSizeSerializer(serializers.Serializer[Any]):
    topics = serializers.IntegerField(help_text="of each of the two sets")
    rate = serializers.FloatField(allow_null=True, help_text="share of all comparisons that are turned round")
    needed = serializers.FloatField(
        allow_null=True, help_text="the difference from which on at most 5 per cent are; null where none is enough"
    )
    compared = _counts("by bins of the difference on the first set")
    swapped = _counts()
    rates = _figures("null for a bin without a comparison")


class SwapRatesSerializer(serializers.Serializer[Any]):
    edges = _figures("where each bin begins; the last one is open")
    sizes = SwapSizeSerializer(many=True)


class MeasureDesignSerializer(serializers.Serializer[Any]):
    measure = serializers.CharField()
    topics = serializers.IntegerField(help_text="on which every run has a value")
    cautions = CautionSerializer(many=True)
    discriminative_power = DiscriminativePowerSerializer()
    topic_set_size = TopicSetSizeSerializer(
        allow_null=True, help_text="null where runs and topics explain every value: nothing is left to plan for"
    )
    swap_rates = SwapRatesSerializer()


class DesignSerializer(serializers.Serializer[Any]):
    """What the collection tells apart, measure by measure."""

    collection = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    runs = RunNameSerializer(many=True)
    test = serializers.CharField()
    alpha = serializers.FloatField()
    power = serializers.FloatField()
    resamples = serializers.IntegerField(allow_null=True, help_text="null for a test that does not draw")
    trials = serializers.IntegerField(help_text="pairs of topic sets of each size")
    seed = serializers.IntegerField()
    measures = MeasureDesignSerializer(many=True)
