"""Shapes of session sets as they come in and go out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from runs.api.fields import FileReportSerializer
from runs.api.serializers import SubmissionSerializer, UploadSerializer
from runs.formats.sessions.reading import FORMATS
from runs.models import SessionSet


class SessionUploadSerializer(UploadSerializer):
    """A session log as it is sent."""

    format = serializers.ChoiceField(choices=tuple(FORMATS), required=False, default=None, allow_null=True)
    judged_by = serializers.ChoiceField(
        choices=SessionSet.JudgedBy.choices,
        required=False,
        default=SessionSet.JudgedBy.TOPIC,
        help_text="what the qrels have for a topic: the session's topic, the session, its queries; own: the log judges",
    )


class SessionSetSerializer(SubmissionSerializer):
    """A session set with its status; the view puts the statuses of all its sets into the context."""

    systems = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = SessionSet
        fields = (
            "id", "url", "collection", "team", "tag", "description", "metadata", "judged_by", "status", "sha256",
            "size", "format", "sessions", "queries", "empty_queries", "documents", "topics", "searchers", "systems",
            "judged_documents", "warnings", "created_at",
        )  # fmt: skip
        read_only_fields = tuple(name for name in fields if name not in ("description", "metadata", "judged_by"))


class CheckedSessionsSerializer(serializers.Serializer[Any]):
    """What a dry run answers."""

    tag = serializers.CharField()
    sha256 = serializers.CharField()
    size = serializers.IntegerField()
    format = serializers.CharField()
    sessions = serializers.IntegerField(read_only=True)
    queries = serializers.IntegerField(read_only=True)
    empty_queries = serializers.IntegerField()
    documents = serializers.IntegerField()
    topics = serializers.IntegerField()
    searchers = serializers.IntegerField()
    systems = serializers.ListField(child=serializers.CharField())
    judged_documents = serializers.IntegerField()
    warnings = FileReportSerializer()
