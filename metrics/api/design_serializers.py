"""Shapes of how far orders agree and of what a collection tells apart."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.api.serializers import RunNameSerializer
from metrics.api.statistics_serializers import CautionSerializer


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
