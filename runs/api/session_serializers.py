"""Shapes of session sets as they come in and go out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.reverse import reverse

from runs.api.fields import FileReportSerializer, JSONObjectField, ReportField
from runs.api.parameters import KnownFields
from runs.api.serializers import PersonalTeam, RunStatusSerializer, TeamField
from runs.formats.sessions.reading import FORMATS
from runs.formats.trec_run import TAG_RULE
from runs.models import SessionSet


class SessionUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    tag = serializers.RegexField(
        r"\A[A-Za-z0-9._-]{1,64}\Z", required=False, default=None, error_messages={"invalid": TAG_RULE}
    )
    team = TeamField(default=PersonalTeam())
    format = serializers.ChoiceField(choices=tuple(FORMATS), required=False, default=None, allow_null=True)
    judged_by = serializers.ChoiceField(
        choices=SessionSet.JudgedBy.choices,
        required=False,
        default=SessionSet.JudgedBy.TOPIC,
        help_text="what the qrels have for a topic: the session's topic, the session, its queries; own: the log judges",
    )
    description = serializers.CharField(max_length=20_000, required=False, default="", allow_blank=True)
    metadata = JSONObjectField(required=False, default=dict)
    dry_run = serializers.BooleanField(required=False, default=False)


class SessionSetSerializer(KnownFields, serializers.ModelSerializer[SessionSet]):
    """A session set with its status; the view puts the statuses of all its sets into the context."""

    url = serializers.SerializerMethodField()
    collection = serializers.SlugRelatedField(slug_field="slug", read_only=True)  # type: ignore[var-annotated]
    team = serializers.SlugRelatedField(slug_field="slug", read_only=True)  # type: ignore[var-annotated]
    metadata = JSONObjectField(required=False)
    systems = serializers.ListField(child=serializers.CharField(), read_only=True)
    warnings = ReportField()
    status = serializers.SerializerMethodField()

    class Meta:
        model = SessionSet
        fields = (
            "id", "url", "collection", "team", "tag", "description", "metadata", "judged_by", "status", "sha256",
            "size", "format", "sessions", "queries", "empty_queries", "documents", "topics", "searchers", "systems",
            "judged_documents", "warnings", "created_at",
        )  # fmt: skip
        read_only_fields = tuple(name for name in fields if name not in ("description", "metadata", "judged_by"))

    def get_url(self, session_set: SessionSet) -> str:
        return reverse("session-set", args=[session_set.pk], request=self.context["request"])

    def get_status(self, session_set: SessionSet) -> RunStatusSerializer:
        status = self.context["statuses"][str(session_set.pk)]
        return RunStatusSerializer(status).data  # type: ignore[return-value]


class CheckedSessionsSerializer(serializers.Serializer[Any]):
    """What a dry run answers."""

    tag = serializers.CharField()
    sha256 = serializers.CharField()
    size = serializers.IntegerField()
    format = serializers.CharField(source="summary.format")
    sessions = serializers.SerializerMethodField()
    queries = serializers.SerializerMethodField()
    empty_queries = serializers.IntegerField(source="summary.empty_queries")
    documents = serializers.IntegerField(source="summary.documents")
    topics = serializers.IntegerField()
    searchers = serializers.IntegerField()
    systems = serializers.ListField(child=serializers.CharField())
    judged_documents = serializers.IntegerField()
    warnings = FileReportSerializer(source="report")

    def get_sessions(self, checked: Any) -> int:
        return len(checked.summary.sessions)

    def get_queries(self, checked: Any) -> int:
        return sum(checked.summary.queries)
