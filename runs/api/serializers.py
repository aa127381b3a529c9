"""Shapes of what comes in and goes out."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.reverse import reverse

from metrics.engine.measures.definition import MAX_DOCUMENTS
from metrics.services.queue.status import RUN_STATES
from runs.api.fields import FileReportSerializer, FileWarningSerializer, JSONObjectField, MeasureListField, ReportField
from runs.api.parameters import KnownFields
from runs.formats.trec_run import TAG_RULE
from runs.models import ApiToken, AuditEvent, Collection, Invitation, Membership, Qrels, Run, Scope, Team, Topic
from runs.models.collections import check_labels, check_measures


class TeamField(serializers.SlugRelatedField[Team]):
    """One of the caller's own teams, by its slug; the caller's personal team where none is named."""

    default_error_messages = {"not_owner": "only owners of team {team} can do this on its behalf"}

    def __init__(self, *, as_owner: bool = False, **kwargs: Any) -> None:
        self._as_owner = as_owner
        super().__init__(slug_field="slug", queryset=Team.objects.all(), **kwargs)

    def get_queryset(self) -> Any:
        return Team.objects.of(self.context["request"].user)

    def to_internal_value(self, data: Any) -> Team:
        team = super().to_internal_value(data)
        if self._as_owner and not Team.objects.led_by(self.context["request"].user).filter(pk=team.pk).exists():
            self.fail("not_owner", team=team)
        return team


class PersonalTeam:
    """Default of a team field."""

    requires_context = True

    def __call__(self, field: Any) -> Team:
        user = field.context["request"].user
        team: Team | None = Team.objects.filter(personal_of=user.pk).first()
        if team is None:
            raise serializers.ValidationError(
                "give the name of one of your teams: you have no personal team", code="required"
            )
        return team


class TeamSerializer(serializers.ModelSerializer[Team]):
    class Meta:
        model = Team
        fields = ("slug", "name", "created_at")


class NewTeamSerializer(KnownFields, serializers.Serializer[Any]):
    slug = serializers.RegexField(
        r"\A[a-z0-9][a-z0-9_-]{0,63}\Z", error_messages={"invalid": "use lower-case letters, digits, '_' and '-'"}
    )
    name = serializers.CharField(max_length=150)


class RoleSerializer(KnownFields, serializers.Serializer[Any]):
    role = serializers.ChoiceField(choices=Membership.Role.choices)


class NewMembershipSerializer(RoleSerializer):
    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(choices=Membership.Role.choices, default=Membership.Role.MEMBER)


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = Membership
        fields = ("username", "role")


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    team = serializers.CharField(source="team.slug", read_only=True)
    team_name = serializers.CharField(source="team.name", read_only=True)
    username = serializers.CharField(source="user.username", read_only=True)
    invited_by = serializers.CharField(source="invited_by.username", read_only=True, allow_null=True, default=None)

    class Meta:
        model = Invitation
        fields = ("team", "team_name", "username", "role", "invited_by", "created_at")


class CollectionSerializer(KnownFields, serializers.ModelSerializer[Collection]):
    team = TeamField(default=PersonalTeam(), as_owner=True)
    measures = MeasureListField(required=False)
    level_labels = JSONObjectField(required=False, validators=[check_labels])
    documents = serializers.IntegerField(min_value=1, max_value=MAX_DOCUMENTS, required=False, allow_null=True)
    daily_submissions = serializers.IntegerField(min_value=1, max_value=10**6, required=False, allow_null=True)
    active_qrels = serializers.IntegerField(
        source="active_version", read_only=True, allow_null=True, help_text="null where they are blind"
    )
    topics = serializers.IntegerField(source="topic_count", read_only=True)
    runs = serializers.IntegerField(source="run_count", read_only=True, help_text="those that the caller sees")

    session_sets = serializers.IntegerField(
        source="session_set_count", read_only=True, help_text="those that the caller sees"
    )

    class Meta:
        model = Collection
        fields = (
            "slug", "name", "description", "team", "visibility", "blind", "released_at", "daily_submissions",
            "simulated", "documents", "level_labels", "measures", "scores", "active_qrels", "topics", "runs",
            "session_sets", "created_at",
        )  # fmt: skip
        read_only_fields: tuple[str, ...] = ("released_at", "created_at")
        extra_kwargs: dict[str, Any] = {"slug": {"validators": []}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kept = self.instance or Collection()
        check_measures(attrs.get("measures", kept.measures), attrs.get("documents", kept.documents))
        return attrs

    def validate_slug(self, slug: str) -> str:
        for check in Collection._meta.get_field("slug").validators:
            check(slug)
        return slug


class CollectionChangeSerializer(CollectionSerializer):
    class Meta(CollectionSerializer.Meta):
        read_only_fields = ("slug", "team", "released_at", "created_at", "simulated")


class TopicSerializer(serializers.ModelSerializer[Topic]):
    class Meta:
        model = Topic
        fields = ("topic_id", "title", "fields")


class QrelsSerializer(serializers.ModelSerializer[Qrels]):
    warnings = ReportField()

    class Meta:
        model = Qrels
        fields = (
            "version", "active", "keyed_by", "iteration", "sha256", "size", "lines", "judgements", "topics", "levels",
            "warnings", "note", "created_at",
        )  # fmt: skip


class CheckedQrelsSerializer(serializers.Serializer[Any]):
    """What a dry run answers."""

    sha256 = serializers.CharField()
    iteration = serializers.ChoiceField(choices=Qrels.Iteration.choices, help_text="how it would be read")
    warnings = FileWarningSerializer(many=True)
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="warnings by code")


class QrelsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    note = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    keyed_by = serializers.ChoiceField(choices=Qrels.KeyedBy.choices, required=False, default=Qrels.KeyedBy.TOPIC)
    iteration = serializers.ChoiceField(
        choices=Qrels.Iteration.choices,
        required=False,
        default=None,
        allow_null=True,
        help_text="what the second column is: of subtopics, rounds of judging, or nothing; left out: what seems likely",
    )
    activate = serializers.BooleanField(required=False, default=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class TopicsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    format = serializers.ChoiceField(
        choices=("trec-sgml", "trec-xml", "jsonl", "tsv"), required=False, default=None, allow_null=True
    )


class TopicsAnswerSerializer(serializers.Serializer[Any]):
    format = serializers.CharField()
    topics = serializers.IntegerField()
    warnings = FileReportSerializer()


class UploadSerializer(KnownFields, serializers.Serializer[Any]):
    """A submission as it is sent."""

    file = serializers.FileField(allow_empty_file=True)
    tag = serializers.RegexField(
        r"\A[A-Za-z0-9._-]{1,64}\Z", required=False, default=None, error_messages={"invalid": TAG_RULE}
    )
    team = TeamField(default=PersonalTeam())
    description = serializers.CharField(max_length=20_000, required=False, default="", allow_blank=True)
    metadata = JSONObjectField(required=False, default=dict)
    dry_run = serializers.BooleanField(required=False, default=False)


class RunUploadSerializer(UploadSerializer):
    """A run as it is sent."""

    known = serializers.FileField(allow_empty_file=True, required=False, default=None)


class WaitingSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(min_value=1)
    seconds = serializers.FloatField(min_value=0)
    waits_for = serializers.ChoiceField(choices=("worker", "retry", "no_worker_alive"))


class RunStatusSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=RUN_STATES)
    since = serializers.DateTimeField()
    qrels = serializers.IntegerField(source="qrels_version", allow_null=True)
    code = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    queue = WaitingSerializer(allow_null=True)


class SubmissionSerializer(KnownFields, serializers.ModelSerializer[Any]):
    """A run or session set with its status; the view puts the statuses of all of them into the context."""

    url = serializers.SerializerMethodField()
    collection = serializers.SlugRelatedField(slug_field="slug", read_only=True)  # type: ignore[var-annotated]
    team = serializers.SlugRelatedField(slug_field="slug", read_only=True)  # type: ignore[var-annotated]
    metadata = JSONObjectField(required=False)
    warnings = ReportField()
    status = serializers.SerializerMethodField()

    def get_url(self, made: Any) -> str:
        return reverse(made.KEY.replace("_", "-"), args=[made.pk], request=self.context["request"])

    def get_status(self, made: Any) -> RunStatusSerializer:
        return RunStatusSerializer(self.context["statuses"][str(made.pk)]).data  # type: ignore[return-value]


class RunSerializer(SubmissionSerializer):
    """A run with its status; the view puts the statuses of all its runs into the context."""

    known_warnings = ReportField()

    class Meta:
        model = Run
        fields = (
            "id", "url", "collection", "team", "tag", "description", "metadata", "ir_metadata", "status", "sha256",
            "size", "lines", "documents", "topics", "tied_documents", "warnings", "known_sha256", "known_documents",
            "known_warnings", "created_at",
        )  # fmt: skip
        read_only_fields = tuple(name for name in fields if name not in ("description", "metadata"))


class CheckedRunSerializer(serializers.Serializer[Any]):
    """What a dry run answers."""

    tag = serializers.CharField()
    sha256 = serializers.CharField()
    size = serializers.IntegerField()
    lines = serializers.IntegerField()
    documents = serializers.IntegerField()
    topics = serializers.IntegerField(read_only=True)
    tied_documents = serializers.IntegerField()
    warnings = FileReportSerializer()
    known_sha256 = serializers.CharField()
    known_documents = serializers.IntegerField()
    known_warnings = ReportField()


class ScopesField(serializers.ListField):
    child = serializers.ChoiceField(choices=Scope.choices)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty=False, max_length=len(Scope), **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class TokenSerializer(KnownFields, serializers.ModelSerializer[ApiToken]):
    scopes = ScopesField(required=False, help_text="scopes of the token; default: read and submit")

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = ("key", "name", "scopes", "created_at", "expires_at", "last_used_at")
        read_only_fields = ("key", "created_at", "last_used_at")

    def validate_expires_at(self, moment: Any) -> Any:
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("must be in the future")
        return moment


class CollectionAuditSerializer(serializers.ModelSerializer[AuditEvent]):
    """An event without the address it came from, which is not the organisers' to know."""

    collection = serializers.SlugRelatedField(slug_field="slug", read_only=True)  # type: ignore[var-annotated]

    class Meta:
        model = AuditEvent
        fields: tuple[str, ...] = (
            "time", "action", "actor", "object_type", "object_id", "collection", "before", "after", "request_id",
        )  # fmt: skip


class AuditEventSerializer(CollectionAuditSerializer):
    class Meta(CollectionAuditSerializer.Meta):
        fields = (*CollectionAuditSerializer.Meta.fields, "token", "address")


class NewTokenSerializer(TokenSerializer):
    """A token just made: the only answer that holds its text."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")
