"""Input about campaigns, with the checks of each field."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evalhub.campaigns.api import answers, phase_answers
from evalhub.campaigns.services.campaigns import MAX_AGREEMENTS
from evalhub.campaigns.services.phase_times import read_time, read_zone
from evalhub.campaigns.services.teams import DECISIONS, MAX_AT_ONCE
from runs.api.serializers import PersonalTeam, TeamField, UploadSerializer
from runs.models import Agreement, Campaign, Collection, Entry, Participation, Phase
from runs.models.campaigns.campaigns import LICENCE_RULE, LICENCE_SAID, SLUG_RULE, SLUG_RULE_SAID
from runs.models.text import DOI_RULE, DOI_SAID, check_line, check_text
from runs.web.fields import (
    ChoiceField,
    CostsField,
    JSONObjectField,
    MeasureField,
    MeasureListField,
    MetadataField,
)
from runs.web.parameters import KnownFields

_MAX_NUMBER = 1_000_000
# Characters of the title of a measure, and decimals of a mean.
MAX_TITLE, MAX_DECIMALS = 40, 6


def _slug(**options: Any) -> serializers.RegexField:
    return serializers.RegexField(
        rf"\A{SLUG_RULE}\Z", error_messages={"invalid": SLUG_RULE_SAID}, **options
    )


def _line(length: int, **options: Any) -> serializers.CharField:
    return serializers.CharField(max_length=length, validators=[check_line], **options)


def _confirm() -> serializers.BooleanField:
    return serializers.BooleanField(
        required=False, default=False, help_text="a time more than 90 days away is meant"
    )


def _text(length: int, **options: Any) -> serializers.CharField:
    return serializers.CharField(
        max_length=length, validators=[check_text], allow_blank=True, **options
    )


class TimeField(serializers.CharField):
    """ISO 8601 with its offset, or a day alone, which is read in the zone of the request."""

    def __init__(self, **options: Any) -> None:
        help_text = "ISO 8601 with an offset; or a day, in the zone: an end is the end of that day"
        super().__init__(max_length=40, **{"help_text": help_text, **options})


class TimesSerializer(KnownFields, serializers.Serializer[Any]):
    # Fields that are read together with the zone. A day in one of `ends` means its end.
    times: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        default_zone = self.instance.zone if isinstance(self.instance, Phase) else "UTC"
        zone = read_zone(attrs["zone"]) if attrs.get("zone") else default_zone
        for name in self.times:
            if attrs.get(name):
                attrs[name] = read_time(attrs[name], zone, name=name, ends=name in self.ends)

        if "zone" in self.fields and "zone" in attrs:
            attrs["zone"] = zone

        return attrs


def _doi(help_text: str) -> serializers.RegexField:
    return serializers.RegexField(
        rf"\A{DOI_RULE}\Z",
        max_length=220,
        required=False,
        allow_blank=True,
        error_messages={"invalid": DOI_SAID},
        help_text=help_text,
    )


class MeasureTitlesField(JSONObjectField):
    """Short titles by measure; an empty object is null."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        measure, title = MeasureField(), _line(MAX_TITLE)
        titles = {}
        for name, text in super().to_internal_value(data).items():
            try:
                titles[measure.run_validation(name)] = title.run_validation(text)
            except serializers.ValidationError as error:
                reasons = " ".join(map(str, error.detail))
                raise serializers.ValidationError(f"{name[:100]}: {reasons}") from error

        if len(set(titles.values())) < len(titles):
            raise serializers.ValidationError("two measures have the same title")

        return titles or None  # type: ignore[return-value]


class CampaignChangeSerializer(TimesSerializer):
    """The fields of a campaign that can be changed."""

    answered = answers.Campaign
    times = ends = ("registration_closes_at", "roster_closes_at", "anonymous_until")
    name = _line(200)
    summary = _line(500, required=False, allow_blank=True)
    guidelines = _text(50_000, required=False)
    contact = serializers.EmailField(max_length=254, required=False, allow_blank=True)
    licence = serializers.RegexField(
        LICENCE_RULE,
        max_length=64,
        required=False,
        allow_blank=True,
        error_messages={"invalid": LICENCE_SAID},
        help_text="SPDX identifier of the licence of snapshots, such as CC-BY-4.0",
    )
    rights = _line(500, required=False, allow_blank=True)
    citation_authors = _line(
        1000,
        required=False,
        allow_blank=True,
        help_text="whom citations name, as in: Lima, Ana; Kim, Bo",
    )
    paper_doi, judgements_doi = (
        _doi("of the overview paper"),
        _doi("of the judgements, where they are published"),
    )
    registration = ChoiceField(choices=Campaign.Registration.choices, required=False)
    registration_closes_at = TimeField(required=False, allow_null=True)
    roster_closes_at = TimeField(required=False, allow_null=True)
    max_team_size = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, allow_null=True
    )
    tag_scope = ChoiceField(choices=Campaign.TagScope.choices, required=False)
    anonymous_until = TimeField(required=False, allow_null=True)
    names = ChoiceField(choices=Campaign.Names.choices, required=False)


class CampaignSerializer(CampaignChangeSerializer):
    """A campaign to create."""

    slug = _slug()
    team = TeamField(default=PersonalTeam(), as_owner=True)
    collections = serializers.DictField(
        child=serializers.CharField(max_length=100),
        required=False,
        help_text="with `from`: by short name, "
        "the collections that take the place of those of the phases",
    )

    def validate_collections(self, slugs: dict[str, str]) -> dict[str, Collection]:
        visible = Collection.objects.visible_to(self.context["request"].user).filter(
            slug__in=list(slugs.values())[:100]
        )
        by_slug = {collection.slug: collection for collection in visible}
        if missing := [slug for slug in slugs.values() if slug not in by_slug]:
            raise serializers.ValidationError(
                f"there is no collection {missing[0]!r}", code="invalid"
            )

        return {old: by_slug[new] for old, new in slugs.items()}


class PhaseChangeSerializer(TimesSerializer):
    """The fields of a phase that can be changed."""

    answered = phase_answers.Phase
    times = ("opens_at", "closes_at", "late_closes_at", "freeze_board_at")
    ends = ("closes_at", "late_closes_at")
    name = _line(200)
    description = _text(20_000, required=False)
    place = serializers.IntegerField(
        min_value=0, max_value=1_000, required=False, help_text="in the list of phases"
    )
    collection = serializers.SlugRelatedField(slug_field="slug", queryset=Collection.objects.all())
    kind = ChoiceField(choices=Phase.Kind.choices, required=False)
    opens_at = TimeField()
    closes_at = TimeField()
    late_closes_at = TimeField(required=False, allow_null=True)
    zone = serializers.CharField(
        max_length=64, required=False, help_text="AoE, UTC or a name as Europe/Lisbon"
    )
    measures = MeasureListField(required=False)
    measure_titles = MeasureTitlesField(
        required=False,
        allow_null=True,
        help_text='heads of columns: {"nDCG(gains=\'exp\')@10": "nDCG@10"}',
    )
    decimals = serializers.IntegerField(
        min_value=1,
        max_value=MAX_DECIMALS,
        required=False,
        allow_null=True,
        help_text="of means on leaderboards and in tables for papers; null: 4",
    )
    slots = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, allow_null=True
    )
    attempts_daily = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, allow_null=True
    )
    attempts_total = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, allow_null=True
    )
    run_types = serializers.JSONField(
        required=False, help_text='[{"key": "automatic", "label": "Automatic"}]'
    )
    form = serializers.JSONField(
        required=False,
        help_text='[{"key": "first_stage", "type": "text", '
        '"label": "First stage", "required": true}]',
    )
    feedback = ChoiceField(choices=Phase.Feedback.choices, required=False)
    freeze_board_at = TimeField(
        required=False,
        allow_null=True,
        help_text="teams that see the leaderboard as feedback see no later entry of others there",
    )
    selection = ChoiceField(choices=Phase.Selection.choices, required=False)
    chosen_max = serializers.IntegerField(min_value=1, max_value=1_000, required=False)
    must_answer_all = serializers.BooleanField(required=False)
    max_documents = serializers.IntegerField(
        min_value=1,
        max_value=_MAX_NUMBER,
        required=False,
        allow_null=True,
        help_text="of a run, for each topic",
    )
    naming = _line(
        100,
        required=False,
        allow_blank=True,
        help_text="of tags, as in {team}-{run_type}-{priority}",
    )

    def validate_collection(self, collection: Collection) -> Collection:
        visible = Collection.objects.visible_to(self.context["request"].user)
        if not visible.filter(pk=collection.pk).exists():
            raise serializers.ValidationError("there is no such collection", code="invalid")

        return collection


class PhasePatchSerializer(PhaseChangeSerializer):
    """The fields of a phase that is there."""

    excluded_topics = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=10_000, required=False,
        help_text="topics that do not count, until results are released to anybody",
    )  # fmt: skip
    excluded_reason = _line(
        500, required=False, allow_blank=True, help_text="why, for all who see results"
    )
    confirm = _confirm()


class PhaseSerializer(PhaseChangeSerializer):
    """A phase to create."""

    slug = _slug()


class ExtensionSerializer(TimesSerializer):
    times = ends = ("closes_at",)
    closes_at = TimeField()
    zone = serializers.CharField(max_length=64, required=False)
    reason = _line(500)
    team = serializers.CharField(
        max_length=64, required=False, allow_null=True, default=None, help_text="null: all"
    )
    confirm = _confirm()


class CancelledExtensionSerializer(KnownFields, serializers.Serializer[Any]):
    closes_at = serializers.DateTimeField()
    reason = _line(500)
    team = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)


class ReasonSerializer(KnownFields, serializers.Serializer[Any]):
    reason = _line(500)


class OptionalReasonSerializer(KnownFields, serializers.Serializer[Any]):
    reason = _line(500, required=False, allow_blank=True, default="")


class AgreementSerializer(KnownFields, serializers.Serializer[Any]):
    """An agreement to add."""

    answered = answers.CampaignAgreement
    title = _line(200)
    text = serializers.CharField(max_length=50_000, validators=[check_text])
    required_of = ChoiceField(
        choices=Agreement.RequiredOf.choices,
        required=False,
        default=Agreement.RequiredOf.EACH_MEMBER,
    )


class SignatureSerializer(KnownFields, serializers.Serializer[Any]):
    typed_name = _line(150)


class RegistrationSerializer(KnownFields, serializers.Serializer[Any]):
    """A team to register, with the agreements that the caller signs."""

    answered = answers.Participation
    team = TeamField(default=PersonalTeam(), as_owner=True)
    name = _line(150, required=False, help_text="as it is shown; default: the team's")
    affiliation = _line(300, required=False, allow_blank=True)
    agreements = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=MAX_AGREEMENTS,
    )
    typed_name = _line(150, required=False, default="", allow_blank=True)


class ParticipationInvitationSerializer(KnownFields, serializers.Serializer[Any]):
    username = serializers.CharField(
        max_length=150, required=False, allow_null=True, default=None, help_text="null: make a link"
    )


class ParticipationChangeSerializer(TimesSerializer):
    answered = answers.Participation
    times = ends = ("anonymous_until",)
    anonymous_until = TimeField(required=False)
    zone = serializers.CharField(max_length=64, required=False)
    state = ChoiceField(choices=Participation.State.choices, required=False)
    reason = _line(
        500, required=False, allow_blank=True, default="", help_text="of a removal or withdrawal"
    )
    name = _line(150, required=False)
    affiliation = _line(300, required=False, allow_blank=True)


class TeamDecisionsSerializer(KnownFields, serializers.Serializer[Any]):
    """A decision of organisers about many teams."""

    state = ChoiceField(choices=DECISIONS)
    teams = serializers.ListField(
        child=serializers.CharField(max_length=64),
        required=False,
        default=list,
        max_length=MAX_AT_ONCE,
        help_text="their short names",
    )
    all_requested = serializers.BooleanField(
        required=False, default=False, help_text="all teams that wait for a decision"
    )
    reason = _line(
        500, required=False, allow_blank=True, default="", help_text="of a removal: required"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if bool(attrs["teams"]) == attrs["all_requested"]:
            raise serializers.ValidationError(
                {"teams": "name teams, or set all_requested: one of the two"}, code="invalid"
            )

        return attrs


class _EntryFields(serializers.Serializer[Any]):
    run_type = serializers.CharField(max_length=31, required=False, default="", allow_blank=True)
    priority = serializers.IntegerField(
        min_value=1, max_value=_MAX_NUMBER, required=False, default=None, allow_null=True
    )
    answers = JSONObjectField(
        required=False, default=dict, help_text="to the form of the phase, by key"
    )
    role = ChoiceField(
        choices=Entry.Role.choices, required=False, default=Entry.Role.COMPETING,
        help_text="others than competing are for organisers",
    )  # fmt: skip
    label = _line(  # type: ignore[assignment]
        100, required=False, default="", allow_blank=True, help_text="of a baseline"
    )
    on_behalf_of = serializers.CharField(
        max_length=64,
        required=False,
        default=None,
        help_text="for organisers: the team for which they enter",
    )
    reason = _line(
        500, required=False, default="", allow_blank=True, help_text="why the organisers do so"
    )


class EntryUploadSerializer(_EntryFields, UploadSerializer):
    """A run to enter."""

    team = None  # type: ignore[assignment]
    metadata = MetadataField(required=False, default=dict)
    costs = CostsField(required=False, default=dict)


class StoredEntrySerializer(KnownFields, _EntryFields):
    """A run of the team's in the collection, to enter."""

    run = serializers.UUIDField()


class EntryChangeSerializer(KnownFields, serializers.Serializer[Any]):
    answered = answers.Entry
    run_type = serializers.CharField(max_length=31, required=False, allow_blank=True)
    answers = JSONObjectField(required=False)
    chosen = serializers.BooleanField(
        required=False, help_text="for the official leaderboard, where teams choose"
    )
    published = serializers.BooleanField(
        required=False,
        help_text="true shows an entry of a phase of kind afterwards to others; it stays so",
    )
    paper = _line(
        500,
        required=False,
        allow_blank=True,
        help_text="address or DOI of the paper about the run; its team or the organisers, any time",
    )

    def validate_published(self, published: bool) -> bool:
        if not published:
            raise serializers.ValidationError("what was published stays so")
        return published


class PrioritiesSerializer(KnownFields, serializers.Serializer[Any]):
    order = serializers.ListField(
        child=serializers.CharField(max_length=64),
        max_length=1_000,
        help_text="tags, the most wanted first",
    )
