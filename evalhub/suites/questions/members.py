"""Read the collections of a suite from a request."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from evalhub.suites.models import GROUP_LENGTH, MEASURE_LENGTH, NOTE_LENGTH, Suite
from evalhub.suites.services.suites import MAX_MEMBERS, MAX_WEIGHT, MemberRequest
from metrics.services.question import MAX_VERSION
from runs.api.serializers import PersonalTeam, TeamField
from runs.errors import InvalidInput
from runs.models.text import check_line
from runs.parameters import number_in
from runs.web.parameters import KnownFields

# The columns of a line of text.
_COLUMNS = ("collection", "measure", "weight", "group")


class MemberSerializer(KnownFields, serializers.Serializer[Any]):
    collection = serializers.CharField(max_length=64)
    measure = serializers.CharField(
        max_length=MEASURE_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        help_text="default: the first measure of the collection",
    )
    weight = serializers.FloatField(required=False, default=1.0)
    group = serializers.CharField(
        max_length=GROUP_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        validators=[check_line],
        help_text="each group counts the same in the mean of groups",
    )
    qrels = serializers.IntegerField(
        min_value=1,
        max_value=MAX_VERSION,
        required=False,
        default=None,
        allow_null=True,
        help_text="a version of the judgements; default: whichever is active",
    )


class SuiteVersionSerializer(KnownFields, serializers.Serializer[Any]):
    """The collections of a version in their order."""

    members = MemberSerializer(many=True)
    note = serializers.CharField(
        max_length=NOTE_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        validators=[check_line],
    )

    def validate_members(self, members: list[dict[str, Any]]) -> list[MemberRequest]:
        if not 0 < len(members) <= MAX_MEMBERS:
            raise serializers.ValidationError(f"a suite has 1 to {MAX_MEMBERS} collections")
        return [MemberRequest(**fields) for fields in members]


class SuiteSerializer(SuiteVersionSerializer):
    """A suite with its first version."""

    slug = serializers.CharField(max_length=64, validators=Suite._meta.get_field("slug").validators)
    name = serializers.CharField(max_length=200, validators=[check_line])
    description = serializers.CharField(
        max_length=20_000,
        required=False,
        default="",
        allow_blank=True,
        validators=Suite._meta.get_field("description").validators,
    )
    team = TeamField(default=PersonalTeam(), as_owner=True)


def members_in(text: str) -> list[dict[str, Any]]:
    """Return the fields of members from lines of text: a collection, perhaps with @ and a version
    of its judgements, a measure, a weight and a group, with blanks between them.

    Raise InvalidInput, which names the line.
    """
    members = []
    lines = [(number, line.split(None, 3)) for number, line in enumerate(text.splitlines(), 1)]
    for number, parts in lines:
        if not parts:
            continue
        fields: dict[str, Any] = dict(zip(_COLUMNS, parts, strict=False))
        fields["collection"], _, version = fields["collection"].partition("@")
        try:
            if version:
                fields["qrels"] = int(version.removeprefix("v"))
            if "weight" in fields:
                fields["weight"] = number_in("members", fields["weight"], 0.0, MAX_WEIGHT)
        except (ValueError, InvalidInput) as error:
            message = (
                f"line {number}: write a collection, a measure, a weight and a group, as in "
                "scifact nDCG@10 1 science"
            )
            raise InvalidInput(message, code="bad_suite", pointer="/members") from error
        members.append(fields)
    return members


def lines_of(members: list[MemberRequest]) -> str:
    """Return members as lines of text."""
    lines = []
    for member in members:
        pinned = f"@{member.qrels}" if member.qrels else ""
        # As many digits as the same number needs.
        weight = repr(member.weight).removesuffix(".0")
        parts = (f"{member.collection}{pinned}", member.measure, weight, member.group)
        lines.append(" ".join(part for part in parts if part))
    return "\n".join(lines)
