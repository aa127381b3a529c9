"""Shapes of what is computed."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.api.boards.serializers import BoardStatisticsSerializer, CautionSerializer, StandingSerializer
from metrics.engine.measures.undefined import REASONS
from metrics.models import Evaluation
from metrics.services.boards.states import BOARD_STATES
from runs.api.parameters import KnownFields


class MeanSerializer(serializers.Serializer[Any]):
    mean = serializers.FloatField(allow_null=True)
    topics = serializers.IntegerField(help_text="topics with a value")


AGGREGATES = ("mean", "sum", "geometric mean", "pooled ratio")


class RunMeanSerializer(MeanSerializer):
    aggregate = serializers.ChoiceField(choices=AGGREGATES, help_text="what `mean` is of the topics' values")


class BoundedMeanSerializer(MeanSerializer):
    low = serializers.FloatField(
        required=False, allow_null=True, help_text="of its interval, where asked for; it may lie beyond the range"
    )
    high = serializers.FloatField(required=False, allow_null=True)


class RunNameSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="pk")
    team = serializers.CharField(source="team.slug")
    tag = serializers.CharField()
    created_at = serializers.DateTimeField()


class CoverageSerializer(serializers.Serializer[Any]):
    answered = serializers.IntegerField(allow_null=True, help_text="null for a run that is not evaluated")
    judged = serializers.IntegerField()


class RowSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(choices=BOARD_STATES)
    stale = serializers.BooleanField()
    code = serializers.CharField(
        allow_blank=True,
        help_text="why a run waits or failed, as in its status, or has no rank: fewer_topics, other_topics, no_value",
    )
    reason = serializers.CharField(allow_blank=True)
    run = RunNameSerializer()
    coverage = CoverageSerializer()
    judged_at_10 = serializers.FloatField(allow_null=True, help_text="mean of Judged@10; null for a run without values")
    tied_documents = serializers.IntegerField()
    qrels = serializers.IntegerField()
    engine_version = serializers.CharField()
    values = serializers.DictField(child=BoundedMeanSerializer())
    statistics = StandingSerializer(required=False, allow_null=True)


class LeaderboardSerializer(serializers.Serializer[Any]):
    """A page of a leaderboard."""

    collection = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    measures = serializers.ListField(child=serializers.CharField())
    aggregates = serializers.DictField(
        child=serializers.ChoiceField(choices=AGGREGATES), help_text="what `mean` is, for each measure"
    )
    cautions = CautionSerializer(
        many=True,
        help_text="of measures that do not suit the judgements: gains that leave out levels, subtopics that are none",
    )
    sort = serializers.CharField()
    order = serializers.CharField()
    count = serializers.IntegerField(help_text="rows of all pages: those that the filter shows")
    ranked = serializers.IntegerField(help_text="runs that have a rank, whatever the filter shows")
    topics = serializers.IntegerField(help_text="topics that the mean of every ranked run covers")
    provisional = serializers.BooleanField(help_text="whether runs are still to be evaluated, so that ranks may change")
    states = serializers.DictField(child=serializers.IntegerField())
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    statistics = BoardStatisticsSerializer(required=False)
    results = RowSerializer(many=True)


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


class PlaceSerializer(serializers.Serializer[Any]):
    rank = serializers.IntegerField(allow_null=True)
    run = serializers.UUIDField()
    mean = serializers.FloatField(allow_null=True)
    topics = serializers.IntegerField(help_text="topics with a value")
    reason = serializers.CharField(allow_blank=True, help_text="why the run has no rank")


class CombinationSerializer(serializers.Serializer[Any]):
    measure = serializers.CharField()
    preset = serializers.CharField(allow_null=True)
    ties = serializers.BooleanField(help_text="whether two runs share a rank")
    tau_official = serializers.FloatField(allow_null=True, help_text="Kendall's tau with the official order")
    leaderboard = PlaceSerializer(many=True)


class WhatIfSerializer(serializers.Serializer[Any]):
    """The board under every combination; `tau` has a row and a column for each of them, in their order."""

    collection = serializers.CharField()
    qrels = serializers.IntegerField()
    scores = serializers.CharField()
    cautions = CautionSerializer(
        many=True,
        help_text="of measures that do not suit the judgements: gains that leave out levels, subtopics that are none",
    )
    runs = RunNameSerializer(many=True)
    official = CombinationSerializer(help_text="by the collection's first measure")
    combinations = CombinationSerializer(many=True)
    coefficient = serializers.CharField(help_text="tau-b, or tau-a where no board has ties and both are the same")
    tau = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)),
        help_text="of the runs that both boards rank; null where one has no order of them: one run, or all of one rank",
    )


class SideSerializer(RunNameSerializer):
    mean = serializers.FloatField(allow_null=True)
    topics = serializers.IntegerField(help_text="topics with a value")


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
