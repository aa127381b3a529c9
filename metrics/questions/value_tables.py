"""The forms of value tables: what declares a measure, what comes with a table, and who sends it."""

from __future__ import annotations

from typing import Any, cast

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from metrics.engine.measures.external import MAX_VALUE
from metrics.services.values.value_tables import Sender
from runs.models import (
    ApiToken,
    Collection,
    ExternalMeasure,
    Scope,
    User,
    ValueTable,
    can_see_scores,
)
from runs.models.text import check_line, check_text
from runs.web.fields import ChoiceField, JSONObjectField
from runs.web.parameters import KnownFields


class MeasureDeclarationSerializer(KnownFields, serializers.Serializer[Any]):
    """A measure to declare."""

    name = serializers.CharField(max_length=62, help_text="with or without x: in front")
    direction = ChoiceField(
        choices=ExternalMeasure.Direction.choices, help_text="which values are better"
    )
    low = serializers.FloatField(required=False, allow_null=True, default=None)
    high = serializers.FloatField(required=False, allow_null=True, default=None)
    unit = serializers.CharField(
        max_length=20, required=False, default="", allow_blank=True, validators=[check_line],
        help_text="such as ms",
    )  # fmt: skip
    description = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True, validators=[check_text]
    )
    aggregate = ChoiceField(
        choices=ExternalMeasure.Aggregation.choices,
        required=False,
        default=ExternalMeasure.Aggregation.MEAN,
    )
    missing = ChoiceField(
        choices=ExternalMeasure.Missing.choices,
        required=False,
        default=ExternalMeasure.Missing.UNDEFINED,
        help_text="the value of a topic that tables lack, of a run that they have",
    )
    # Declared fields are no attributes of the class.
    source = ChoiceField(  # type: ignore[assignment]
        choices=ExternalMeasure.Source.choices,
        required=False,
        default=ExternalMeasure.Source.ORGANISER,
    )

    def validate_name(self, name: str) -> str:
        return name.removeprefix("x:")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("low", "high"):
            bound = attrs.get(name)
            if bound is not None and not abs(bound) <= MAX_VALUE:
                message = f"write a number from -{MAX_VALUE:g} to {MAX_VALUE:g}"
                raise serializers.ValidationError({name: message})
        return attrs


class MeasureChangeSerializer(MeasureDeclarationSerializer):
    """What of a declaration changes; its name stays."""

    name = None  # type: ignore[assignment]


class ValueTableSerializer(KnownFields, serializers.Serializer[Any]):
    """A table to upload."""

    file = serializers.FileField(allow_empty_file=True)
    note = serializers.CharField(
        max_length=500, required=False, default="", allow_blank=True, validators=[check_text]
    )
    tool = serializers.CharField(
        max_length=200, required=False, default="", allow_blank=True, validators=[check_line],
        help_text="the program that computed the values",
    )  # fmt: skip
    tool_version = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True, validators=[check_line]
    )
    provenance = JSONObjectField(required=False, default=dict)
    dry_run = serializers.BooleanField(required=False, default=False)


def tables_seen_by(user: Any, collection: Collection) -> QuerySet[ValueTable]:
    """Return the tables of a collection, the last one first; while it is blind the user's own."""
    tables = collection.value_tables.select_related("created_by").order_by("-number")
    return tables if can_see_scores(user, collection) else tables.filter(created_by=user.pk or 0)


def sender_of(request: Request, collection: Collection) -> Sender:
    """Return who sends a table. A token without the scope `manage` does not speak for organisers."""
    user = cast(User, request.user)
    organises = Collection.objects.managed_by(user).filter(pk=collection.pk).exists()
    if isinstance(request.auth, ApiToken):
        organises = organises and Scope.MANAGE in request.auth.scopes
    return Sender(user, organises)
