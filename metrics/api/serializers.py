"""Shapes of what is computed."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.models import Evaluation


class MeanSerializer(serializers.Serializer[Any]):
    mean = serializers.FloatField(allow_null=True)
    topics = serializers.IntegerField(help_text="topics with a value")


class RunNameSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="pk")
    team = serializers.CharField(source="team.slug")
    tag = serializers.CharField()
    created_at = serializers.DateTimeField()


class CoverageSerializer(serializers.Serializer[Any]):
    answered = serializers.IntegerField()
    judged = serializers.IntegerField()


class RowSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(allow_null=True)
    stale = serializers.BooleanField()
    run = RunNameSerializer()
    coverage = CoverageSerializer()
    tied_documents = serializers.IntegerField()
    qrels = serializers.IntegerField()
    engine_version = serializers.CharField()
    values = serializers.DictField(child=MeanSerializer())


class LeaderboardSerializer(serializers.Serializer[Any]):
    """A page of a leaderboard."""

    collection = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    measures = serializers.ListField(child=serializers.CharField())
    sort = serializers.CharField()
    order = serializers.CharField()
    count = serializers.IntegerField()
    ranked = serializers.IntegerField()
    states = serializers.DictField(child=serializers.IntegerField())
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = RowSerializer(many=True)


class PairSerializer(serializers.Serializer[Any]):
    a = serializers.UUIDField()
    b = serializers.UUIDField()
    difference = serializers.FloatField(help_text="mean of a minus mean of b")
    low = serializers.FloatField()
    high = serializers.FloatField()
    statistic = serializers.FloatField(allow_null=True)
    p_value = serializers.FloatField()
    p_adjusted = serializers.FloatField()
    significant = serializers.BooleanField()


class ComparedRunSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    team = serializers.CharField()
    tag = serializers.CharField()
    mean = serializers.FloatField()


class ComparisonSerializer(serializers.Serializer[Any]):
    """Pairs of runs under one test and correction."""

    collection = serializers.CharField()
    measure = serializers.CharField()
    qrels = serializers.IntegerField()
    test = serializers.CharField()
    correction = serializers.CharField()
    family = serializers.IntegerField(help_text="number of pairs corrected together")
    alpha = serializers.FloatField()
    confidence = serializers.FloatField()
    topics = serializers.IntegerField()
    warnings = serializers.ListField(child=serializers.CharField())
    runs = ComparedRunSerializer(many=True)
    pairs = PairSerializer(many=True)


class TopicValuesSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    values = serializers.DictField(child=serializers.FloatField(allow_null=True))


class RunValuesSerializer(serializers.Serializer[Any]):
    """A run's values."""

    run = serializers.UUIDField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    engine_version = serializers.CharField()
    stale = serializers.BooleanField()
    coverage = CoverageSerializer()
    means = serializers.DictField(child=MeanSerializer())
    topics = TopicValuesSerializer(many=True)


class CurvePointsSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    values = serializers.ListField(child=serializers.FloatField())


class RunCurveSerializer(serializers.Serializer[Any]):
    """A measure at ranks 1..depth: averaged over topics, the ideal beside it, and per topic where asked for."""

    run = serializers.UUIDField()
    qrels = serializers.IntegerField()
    measure = serializers.CharField()
    depth = serializers.IntegerField()
    mean = serializers.ListField(child=serializers.FloatField())
    ideal = serializers.ListField(child=serializers.FloatField(), allow_null=True)
    topics = CurvePointsSerializer(many=True, required=False)


class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    qrels = serializers.IntegerField(source="qrels.version")

    class Meta:
        model = Evaluation
        fields = (
            "qrels", "scores", "engine_version", "state", "since", "attempts", "error_code", "error_message", "seconds",
        )  # fmt: skip


class NewEvaluationSerializer(serializers.Serializer[Any]):
    scores = serializers.ChoiceField(choices=("float64", "float32"))


class ParameterSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    default = serializers.CharField()
    text = serializers.CharField()


class MeasureSerializer(serializers.Serializer[Any]):
    """A measure as its docstring defines it."""

    name = serializers.CharField()
    summary = serializers.CharField()
    formula = serializers.CharField()
    range = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    elsewhere = serializers.CharField(allow_blank=True)
    cutoff = serializers.CharField()
    aggregate = serializers.CharField()
    lower_is_better = serializers.BooleanField()
    curve = serializers.BooleanField()
    aliases = serializers.ListField(child=serializers.CharField())
    trec_eval = serializers.CharField(allow_null=True)
    parameters = ParameterSerializer(many=True)
