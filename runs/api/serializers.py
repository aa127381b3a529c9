"""Input with the checks of each field; `answers` has the output."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from metrics.engine.measures.definition import MAX_DOCUMENTS
from runs.api import answers
from runs.formats.parameters import MAX_KEY
from runs.formats.trec_run import TAG_RULE
from runs.models import Collection, ParameterKey, Qrels, Run, Team
from runs.models.collections.collections import check_labels, check_measures
from runs.models.submissions.runs import SYSTEM_RULE, SYSTEM_RULE_MESSAGE
from runs.models.text import check_line, check_text
from runs.models.tracking.labels import NAME_RULE, NAME_RULE_MESSAGE
from runs.services.collections.authorship import MAX_PROMPT
from runs.services.submissions.replicates import REPLICATE_RULE_MESSAGE
from runs.services.submissions.runs import FAIL, KINDS, RANKING, VERSION
from runs.services.tracking.experiments import find_experiment
from runs.web.fields import (
    ChoiceField,
    CostsField,
    CostsPatchField,
    JSONObjectField,
    MeasureListField,
    MetadataField,
)
from runs.web.lineage_fields import LinksField, ParentsField
from runs.web.parameters import KnownFields


class TeamField(serializers.SlugRelatedField[Team]):
    """One of the caller's own teams, by its slug; by default the caller's personal team."""

    default_error_messages = {"not_owner": "only owners of team {team} can do this on its behalf"}

    def __init__(self, *, as_owner: bool = False, **kwargs: Any) -> None:
        self._as_owner = as_owner
        super().__init__(slug_field="slug", queryset=Team.objects.all(), **kwargs)

    def get_queryset(self) -> Any:
        return Team.objects.of(self.context["request"].user)

    def to_internal_value(self, data: Any) -> Team:
        team = super().to_internal_value(data)
        led = Team.objects.led_by(self.context["request"].user)
        if self._as_owner and not led.filter(pk=team.pk).exists():
            self.fail("not_owner", team=team)
        return team


class PersonalTeam:
    """The default of a team field."""

    requires_context = True

    def __call__(self, field: Any) -> Team:
        user = field.context["request"].user
        team: Team | None = Team.objects.filter(personal_of=user.pk).first()
        if team is None:
            raise serializers.ValidationError(
                "give the name of one of your teams: you have no personal team", code="required"
            )
        return team


class CollectionTeam(PersonalTeam):
    """The default of the team of a submission: that of the collection for its members, as on the
    page that submits; otherwise the personal one."""

    def __call__(self, field: Any) -> Team:
        request = field.context["request"]
        # Addresses of pages name it `slug`.
        names = request.resolver_match.kwargs
        slug = names["collection"] if "collection" in names else names["slug"]
        team: Team | None = Team.objects.of(request.user).filter(collections__slug=slug).first()
        return team or super().__call__(field)


class CollectionSerializer(KnownFields, serializers.ModelSerializer[Collection]):
    """A collection to create."""

    answered = answers.Collection
    team = TeamField(default=PersonalTeam(), as_owner=True)
    measures = MeasureListField(required=False)
    level_labels = JSONObjectField(required=False, validators=[check_labels])
    documents = serializers.IntegerField(
        min_value=1, max_value=MAX_DOCUMENTS, required=False, allow_null=True
    )
    daily_submissions = serializers.IntegerField(
        min_value=1, max_value=10**6, required=False, allow_null=True
    )

    class Meta:
        model = Collection
        fields: tuple[str, ...] = (
            "slug", "name", "description", "team", "visibility", "blind", "daily_submissions",
            "simulated", "documents", "document_url", "level_labels", "measures", "scores",
        )  # fmt: skip
        extra_kwargs: dict[str, Any] = {"slug": {"validators": []}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        collection = self.instance or Collection()
        measures = attrs.get("measures", collection.measures)
        qrels = collection.active_qrels if self.instance and "measures" in attrs else None
        check_measures(measures, collection, attrs.get("documents", collection.documents), qrels)
        return attrs

    def validate_slug(self, slug: str) -> str:
        for check in Collection._meta.get_field("slug").validators:
            check(slug)
        return slug


class CollectionChangeSerializer(CollectionSerializer):
    """The fields of a collection that can be changed."""

    class Meta(CollectionSerializer.Meta):
        fields = (
            "name", "description", "team", "visibility", "blind", "daily_submissions",
            "documents", "document_url", "level_labels", "measures", "scores",
        )  # fmt: skip


class QrelsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    note = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True, validators=[check_text]
    )
    keyed_by = ChoiceField(
        choices=Qrels.KeyedBy.choices, required=False, default=Qrels.KeyedBy.TOPIC
    )
    iteration = ChoiceField(
        choices=Qrels.Iteration.choices,
        required=False,
        default=None,
        allow_null=True,
        help_text="what the second column is: of subtopics, rounds of judging, or nothing; "
        "left out: what seems likely",
    )
    sampling = ChoiceField(
        choices=Qrels.Sampling.choices,
        required=False,
        default=Qrels.Sampling.NONE,
        help_text="how the judged documents were drawn. strata: lines are topic, stratum, document, "
        "level, or topic, 0, document, stratum, level, with level -1 for documents that were not "
        "drawn; probabilities: topic, 0, document, level, probability",
    )
    ignore_sampling = serializers.BooleanField(
        required=False,
        default=False,
        help_text="evaluate by all measures, with documents outside the sample as not relevant",
    )
    author_kind = ChoiceField(
        choices=Qrels.AuthorKind.choices[1:],
        required=False,
        default="",
        allow_blank=True,
        help_text="who judged: persons, a model, clicks, or several of these",
    )
    author = serializers.CharField(
        max_length=200, required=False, default="", allow_blank=True, validators=[check_line],
        help_text="the name of the judge",
    )  # fmt: skip
    model = serializers.CharField(
        max_length=200, required=False, default="", allow_blank=True, validators=[check_line],
        help_text="the model that judged, with its version",
    )  # fmt: skip
    prompt = serializers.CharField(
        max_length=MAX_PROMPT, required=False, default="", allow_blank=True,
        trim_whitespace=False, validators=[check_text], help_text="its prompt",
    )  # fmt: skip
    prompt_sha256 = serializers.RegexField(
        r"\A[0-9a-fA-F]{64}\Z",
        required=False,
        default="",
        allow_blank=True,
        help_text="of the prompt as UTF-8, where that is not sent",
        error_messages={"invalid": "write 64 hexadecimal digits"},
    )
    # Declared fields are no attributes of the class.
    parent = serializers.IntegerField(  # type: ignore[assignment]
        min_value=1, max_value=10**6, required=False, default=None, allow_null=True,
        help_text="the version from which this one was made",
    )  # fmt: skip
    derivation = ChoiceField(
        choices=Qrels.Derivation.choices,
        required=False,
        default=Qrels.Derivation.NONE,
        help_text="filled: all judgements of the parent and more; replaced: the same documents "
        "judged again; sampled: some judgements of the parent",
    )
    produced_at = serializers.DateTimeField(
        required=False, default=None, allow_null=True, help_text="when the judgements were made"
    )
    activate = serializers.BooleanField(required=False, default=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class TopicsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    format = ChoiceField(
        choices=("trec-sgml", "trec-xml", "jsonl", "tsv"),
        required=False,
        default=None,
        allow_null=True,
    )
    dry_run = serializers.BooleanField(required=False, default=False)


class AttributesUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class DocumentsUploadSerializer(KnownFields, serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class UploadSerializer(KnownFields, serializers.Serializer[Any]):
    """A submission to create."""

    file = serializers.FileField(allow_empty_file=True)
    tag = serializers.RegexField(
        r"\A[A-Za-z0-9._-]{1,64}\Z",
        required=False,
        default=None,
        error_messages={"invalid": TAG_RULE},
    )
    team = TeamField(default=PersonalTeam())
    description = serializers.CharField(
        max_length=20_000, required=False, default="", allow_blank=True, validators=[check_text]
    )
    metadata = JSONObjectField(required=False, default=dict)
    dry_run = serializers.BooleanField(required=False, default=False)


class RunUploadSerializer(UploadSerializer):
    """A run to create."""

    team = TeamField(default=CollectionTeam())
    metadata = MetadataField(required=False, default=dict)
    costs = CostsField(
        required=False,
        default=dict,
        help_text='{"latency_ms": 12.1, "index_bytes": {"value": 9, "low": 8, "high": 10}}',
    )
    known = serializers.FileField(allow_empty_file=True, required=False, default=None)
    passages = serializers.RegexField(
        r"\A[^\s\x00-\x1f]{1,16}\Z",
        required=False,
        allow_blank=True,
        default="",
        error_messages={
            "invalid": "the text between document and passage, such as #: 1 to 16 characters "
            "without spaces"
        },
        help_text="the run ranks passages, with ids such as D1#7, and documents are judged: the "
        "text between them, such as #; each document is stored with its best passage",
    )
    kind = ChoiceField(
        choices=KINDS,
        required=False,
        default=RANKING,
        help_text="values: a run without a ranking, with an empty file; its values come from tables",
    )
    system = serializers.RegexField(
        rf"\A{SYSTEM_RULE}\Z",
        required=False,
        default=None,
        error_messages={"invalid": SYSTEM_RULE_MESSAGE},
        help_text="the run becomes the next version of this system of the team; "
        "without a tag it is called system-v4",
    )
    if_taken = ChoiceField(
        choices=(FAIL, VERSION),
        required=False,
        default=FAIL,
        help_text="where another run of the team has the tag: fail, "
        "or become the next version of its system",
    )
    replicate = serializers.RegexField(
        rf"\A{SYSTEM_RULE}\Z",
        required=False,
        default=None,
        error_messages={"invalid": REPLICATE_RULE_MESSAGE},
        help_text="the run is a replicate, such as a seed or fold, of the system of this name: a "
        "run of that name has the means over its replicates for each topic; without a tag the "
        "replicate is called name-r1",
    )
    parents = ParentsField(
        required=False,
        default=list,
        help_text='runs it was made from: [{"run": id, "relation": "fused", "weight": 0.4}]',
    )
    links = LinksField(
        required=False,
        default=list,
        help_text='[{"kind": "code", "url": "https://...", "commit": "", "title": ""}]',
    )
    experiment = serializers.CharField(
        required=False,
        default=None,
        max_length=64,
        help_text="short name or id of an experiment of the team",
    )
    label = serializers.RegexField(  # type: ignore[assignment]
        rf"\A{NAME_RULE}\Z",
        required=False,
        default=None,
        help_text="a label of the team, which is moved to the run",
        error_messages={"invalid": NAME_RULE_MESSAGE},
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["replicate"] and (attrs["system"] or attrs["if_taken"] != FAIL):
            message = "a replicate is not a version: send replicate without system and if_taken"
            raise serializers.ValidationError({"replicate": message}, code="invalid")

        if attrs["experiment"]:
            attrs["experiment"] = find_experiment(attrs["team"], attrs["experiment"])
        return attrs


class RunSerializer(KnownFields, serializers.ModelSerializer[Run]):
    """The fields of a run that can be changed."""

    answered = answers.Run
    metadata = MetadataField(
        required=False, help_text="merged into the metadata of the run: null removes a key"
    )
    costs = CostsPatchField(
        required=False, help_text="merged into the costs of the run: null removes one"
    )
    replicate = serializers.RegexField(
        rf"\A{SYSTEM_RULE}\Z",
        required=False,
        allow_null=True,
        error_messages={"invalid": REPLICATE_RULE_MESSAGE},
        help_text="the run becomes a replicate of the system of this name; null: a single run again",
    )

    class Meta:
        model = Run
        fields = ("description", "metadata", "costs", "replicate")


class RemovalSerializer(KnownFields, serializers.Serializer[Any]):
    """Why organisers take a run out of their collection."""

    reason = serializers.CharField(max_length=500, validators=[check_line])


class MetadataEditSerializer(KnownFields, serializers.Serializer[Any]):
    """One change of the metadata of many runs: of those named, or of the own ones that a filter
    selects."""

    runs = serializers.ListField(child=serializers.UUIDField(), required=False, allow_empty=False)
    filter = serializers.CharField(required=False, max_length=1_000)
    metadata = MetadataField(
        required=False, help_text="merged into that of each run: null removes a key"
    )
    rename = serializers.DictField(
        child=serializers.CharField(max_length=MAX_KEY),
        required=False,
        allow_empty=False,
        help_text='other names of keys: {"old": "new"}',
    )
    dry_run = serializers.BooleanField(required=False, default=False)


class ParameterKeySerializer(KnownFields, serializers.ModelSerializer[ParameterKey]):
    """What organisers say of a parameter."""

    class Meta:
        model = ParameterKey
        fields = ("unit", "note", "role")
