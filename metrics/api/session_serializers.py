"""Shapes of what is computed of session sets."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.models import SessionEvaluation


def _figures(text: str = "", **options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=text, **options)


def _counts(text: str = "") -> serializers.ListField:
    return serializers.ListField(child=serializers.IntegerField(), help_text=text)


class SessionMeanSerializer(serializers.Serializer[Any]):
    mean = serializers.FloatField(allow_null=True)
    sessions = serializers.IntegerField(help_text="sessions with a value")


class SessionCoverageSerializer(serializers.Serializer[Any]):
    judged = serializers.IntegerField(help_text="sessions with judgements")
    sessions = serializers.IntegerField()


class ReadFromSetSerializer(serializers.Serializer[Any]):
    session_set = serializers.UUIDField()
    qrels = serializers.IntegerField(allow_null=True, help_text="null where the log judges itself")
    judged_by = serializers.CharField()
    engine_version = serializers.CharField()
    stale = serializers.BooleanField()
    coverage = SessionCoverageSerializer()


class SessionNameSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="place in the log, from 1")
    session_id = serializers.CharField()
    topic_id = serializers.CharField()
    searcher = serializers.CharField(allow_blank=True)
    system = serializers.CharField(allow_blank=True)


class SystemMeansSerializer(serializers.Serializer[Any]):
    system = serializers.CharField(allow_blank=True)
    means = serializers.DictField(child=SessionMeanSerializer())


class SessionValuesSerializer(SessionNameSerializer):
    queries = serializers.IntegerField()
    values = serializers.DictField(child=serializers.FloatField(allow_null=True))


class PagedSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class SetValuesSerializer(ReadFromSetSerializer, PagedSerializer):
    """A session set's values."""

    means = serializers.DictField(child=SessionMeanSerializer(), help_text="over the chosen sessions")
    systems = SystemMeansSerializer(many=True)
    sessions = SessionValuesSerializer(many=True)


class SessionEvaluationSerializer(serializers.ModelSerializer[SessionEvaluation]):
    qrels = serializers.IntegerField(source="qrels.version", allow_null=True, default=None)

    class Meta:
        model = SessionEvaluation
        fields = (
            "qrels", "judged_by", "engine_version", "state", "since", "attempts", "sessions_judged", "error_code",
            "error_message", "seconds",
        )  # fmt: skip
