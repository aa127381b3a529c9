"""The fields of parents and links, of a submission and of their own addresses."""

from __future__ import annotations

import json
import math
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from runs.formats.links import KINDS, Link, check_links
from runs.formats.parameters import MAX_JSON
from runs.models import RunParent
from runs.services.tracking.lineage import Parent
from runs.web.fields import ChoiceField
from runs.web.parameters import KnownFields

_MAX_ENTRIES = 1_000


class ParentSerializer(KnownFields, serializers.Serializer[Any]):
    """A parent of a run."""

    run = serializers.UUIDField(help_text="a run that you see, of any collection")
    relation = ChoiceField(
        choices=RunParent.Relation.choices, required=False, default=RunParent.Relation.DERIVED.value
    )
    weight = serializers.FloatField(
        required=False, default=None, allow_null=True, help_text="such as of a fusion"
    )

    def validate_weight(self, weight: float | None) -> float | None:
        if weight is not None and not math.isfinite(weight):
            raise serializers.ValidationError("a weight is a finite number", code="not_finite")
        return weight


class LinkSerializer(KnownFields, serializers.Serializer[Any]):
    """A link of a run."""

    kind = ChoiceField(choices=KINDS)
    url = serializers.CharField(help_text="http or https")
    commit = serializers.CharField(required=False, default="", allow_blank=True)
    title = serializers.CharField(required=False, default="", allow_blank=True)


class _JSONList(serializers.Field[Any, Any, Any, Any]):
    """A JSON list of objects, or its text in a form."""

    default_error_messages = {
        "invalid": "must be a JSON list of objects",
        "too_large": f"at most {MAX_JSON:,} characters of JSON and {_MAX_ENTRIES:,} entries",
    }
    child: type[serializers.Serializer[Any]]

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, str):
            try:
                data = json.loads(data) if len(data) <= MAX_JSON else self.fail("too_large")
            except (ValueError, RecursionError):
                self.fail("invalid")

        if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
            self.fail("invalid")

        if len(data) > _MAX_ENTRIES:
            self.fail("too_large")

        serializer: Any = self.child(data=data, many=True)
        serializer.is_valid(raise_exception=True)
        return list(serializer.validated_data)

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(ParentSerializer(many=True))
class ParentsField(_JSONList):
    """The parents of a run."""

    child = ParentSerializer

    def to_internal_value(self, data: Any) -> list[Parent]:
        return [Parent(**parent) for parent in super().to_internal_value(data)]


@extend_schema_field(LinkSerializer(many=True))
class LinksField(_JSONList):
    """The links of a run."""

    child = LinkSerializer

    def to_internal_value(self, data: Any) -> list[Link]:
        return check_links(Link(**link) for link in super().to_internal_value(data))
