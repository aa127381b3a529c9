"""Shapes of what is computed."""

from __future__ import annotations

from typing import Annotated, Any

from rest_framework import serializers

from metrics.api.answers import Aggregate, Caution, Coverage, Mean, RunName
from metrics.engine.measures.undefined import REASONS
from metrics.models import Evaluation
from runs.api.parameters import KnownFields
from runs.api.shapes import shape

CautionSerializer, CoverageSerializer, RunNameSerializer = shape(Caution), shape(Coverage), shape(RunName)


class RunMean(Mean):
    aggregate: Annotated[Aggregate, "what `mean` is of the topics' values"]


class Side(RunName):
    mean: float | None
    topics: Annotated[int, "topics with a value"]


RunMeanSerializer, SideSerializer = shape(RunMean), shape(Side)


class TopicValuesSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    values = serializers.DictField(child=serializers.FloatField(allow_null=True))
    undefined = serializers.DictField(
        child=serializers.ChoiceField(choices=tuple(REASONS)), help_text="why a value is null, for each that is"
    )


class ReadFromSerializer(serializers.Serializer[Any]):
    run = serializers.UUIDField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    engine_version = serializers.CharField()
    stale = serializers.BooleanField()
    coverage = CoverageSerializer()


class RunValuesSerializer(ReadFromSerializer):
    """A run's values."""

    cautions = CautionSerializer(
        many=True,
        help_text="of measures that do not suit the judgements: gains that leave out levels, subtopics that are none",
    )
    means = serializers.DictField(child=RunMeanSerializer())
    topics = TopicValuesSerializer(many=True)


def _figures(text: str = "", **options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(), help_text=text, **options)


class CurvePointsSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    values = _figures()


class ReadingsSerializer(serializers.Serializer[Any]):
    needed = serializers.ListField(
        child=serializers.IntegerField(allow_null=True),
        allow_null=True,
        help_text="for each rank, the rank at which the run has what the ideal has there; null where it never has, and "
        "in whole for a curve that may fall",
    )
    missed = _figures("the ideal minus the actual mean")
    missed_percent = serializers.ListField(
        child=serializers.FloatField(allow_null=True), help_text="of the ideal; null where that is 0"
    )
    ideal_horizontal_from = serializers.IntegerField(
        allow_null=True, help_text="the last rank at which the ideal gains anything: where to stop"
    )


class MeanCurveSerializer(serializers.Serializer[Any]):
    mean = _figures("averaged over topics")
    low = _figures(
        "of the interval of the mean, which may lie beyond the range; null with fewer than two topics", allow_null=True
    )
    high = _figures(allow_null=True)
    topics = CurvePointsSerializer(many=True, required=False)


class CurveSerializer(MeanCurveSerializer):
    measure = serializers.CharField()
    ideal = _figures("the ideal's averaged over topics")
    readings = ReadingsSerializer(required=False)


class RunCurvesSerializer(ReadFromSerializer):
    """Measures at ranks 1..depth: averaged over topics, the ideal beside it, and per topic where asked for."""

    depth = serializers.IntegerField()
    confidence = serializers.FloatField()
    curves = CurveSerializer(many=True)


class LevelCurveSerializer(MeanCurveSerializer):
    rel = serializers.IntegerField(help_text="lowest relevant level")


class PrecisionRecallSerializer(ReadFromSerializer):
    """Interpolated precision at points of recall, one curve for each lowest relevant level."""

    interp = serializers.CharField()
    rounding = serializers.CharField(allow_null=True)
    confidence = serializers.FloatField()
    recall = _figures("the points")
    curves = LevelCurveSerializer(many=True)


class TopicDifferenceSerializer(serializers.Serializer[Any]):
    topic_id = serializers.CharField()
    a = serializers.FloatField(allow_null=True)
    b = serializers.FloatField(allow_null=True)
    difference = serializers.FloatField(allow_null=True, help_text="a minus b")


class DifferenceSerializer(serializers.Serializer[Any]):
    """Two runs topic by topic."""

    collection = serializers.CharField()
    measure = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    a = SideSerializer()
    b = SideSerializer()
    wins = serializers.IntegerField(help_text="topics on which a is better")
    ties = serializers.IntegerField()
    losses = serializers.IntegerField()
    undefined = serializers.IntegerField(help_text="topics on which one of them has no value")
    order = serializers.CharField()
    topics = TopicDifferenceSerializer(many=True)


class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    qrels = serializers.IntegerField(source="qrels.version")

    class Meta:
        model = Evaluation
        fields = (
            "qrels", "scores", "engine_version", "state", "since", "attempts", "error_code", "error_message", "seconds",
        )  # fmt: skip


class RankedDocumentSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(min_value=1)
    doc_id = serializers.CharField()
    score = serializers.FloatField()
    level = serializers.IntegerField(allow_null=True, help_text="null where nobody judged the document")
    gain = serializers.FloatField()
    sum = serializers.FloatField(allow_null=True, help_text="of gains down to this rank; null below rank 1000")
    tied = serializers.BooleanField(help_text="whether another document of the topic has this score")


class RankingSerializer(ReadFromSerializer):
    """What a run answers to one topic."""

    topic_id = serializers.CharField()
    count = serializers.IntegerField(help_text="documents in the whole ranking")
    documents = RankedDocumentSerializer(many=True)


class NewEvaluationSerializer(KnownFields, serializers.Serializer[Any]):
    scores = serializers.ChoiceField(choices=("float64", "float32"))


class ProgressSerializer(serializers.Serializer[Any]):
    """How far the evaluation of a collection has come."""

    qrels = serializers.IntegerField(source="qrels.version")
    scores = serializers.CharField()
    total = serializers.IntegerField(help_text="live runs")
    evaluated = serializers.IntegerField()
    states = serializers.DictField(child=serializers.IntegerField())
    done = serializers.BooleanField(help_text="nothing waits any more; what failed stays failed")


class ParameterSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    default = serializers.CharField()
    text = serializers.CharField()


class MeasureSerializer(serializers.Serializer[Any]):
    """A measure as its docstring defines it."""

    name = serializers.CharField()
    of = serializers.ChoiceField(choices=("runs", "sessions"), help_text="what it gives a value to")
    summary = serializers.CharField()
    formula = serializers.CharField()
    range = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    elsewhere = serializers.CharField(allow_blank=True)
    cutoff = serializers.CharField()
    default_cutoff = serializers.IntegerField(allow_null=True, help_text="of an optional cutoff that is left out")
    aggregate = serializers.CharField()
    lower_is_better = serializers.BooleanField()
    curve = serializers.BooleanField()
    aliases = serializers.ListField(child=serializers.CharField())
    trec_eval = serializers.CharField(allow_null=True)
    parameters = ParameterSerializer(many=True)
