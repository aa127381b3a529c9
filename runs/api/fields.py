"""Fields that refuse values that one of the databases would refuse later."""

from __future__ import annotations

import json
from typing import Annotated, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from metrics.engine.errors import MeasureError
from metrics.engine.grammar import MAX_MEASURES, name_in_collection
from runs.api.shapes import Kind

_MAX_JSON = 100_000
_MAX_DEPTH = 20


@extend_schema_field({"type": "object", "additionalProperties": True})
class JSONObjectField(serializers.Field[Any, Any, Any, Any]):
    """A JSON object, or its text in a form, without NUL, lone surrogates and NaN, and with limited size and depth."""

    default_error_messages = {
        "invalid": "must be a JSON object",
        "too_large": f"at most {_MAX_JSON:,} characters of JSON",
        "too_deep": f"at most {_MAX_DEPTH} levels of nesting",
        "text": "text with NUL characters or lone surrogates, or a number that is not finite",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = self._parsed(data) if isinstance(data, str) else data
        if not isinstance(value, dict):
            self.fail("invalid")
        if _depth(value) > _MAX_DEPTH:
            self.fail("too_deep")
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (ValueError, UnicodeEncodeError):
            self.fail("text")
        if "\\u0000" in text:
            self.fail("text")
        if len(text) > _MAX_JSON:
            self.fail("too_large")
        return value

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text) if len(text) <= _MAX_JSON else self.fail("too_large")
        except (ValueError, RecursionError):
            self.fail("invalid")

    def to_representation(self, value: Any) -> Any:
        return value


JSONObject = Annotated[dict[str, Any], Kind(JSONObjectField)]


def _depth(value: Any) -> int:
    """Return the levels of nesting, counted without recursion and no further than needed."""
    depth, layer = 0, [value]
    while layer and depth <= _MAX_DEPTH:
        depth += 1
        inner = [item for item in layer if isinstance(item, dict | list)]
        layer = [child for item in inner for child in (item.values() if isinstance(item, dict) else item)]
    return depth


class MeasureField(serializers.CharField):
    """A measure name in any spelling, converted to the canonical one, with `documents` only if the name has a number of
    them."""

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        try:
            return name_in_collection(text)
        except MeasureError as error:
            raise serializers.ValidationError(error.message, code=error.code) from error


class MeasureListField(serializers.ListField):
    child = MeasureField()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_empty=False, max_length=MAX_MEASURES, **kwargs)

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))
