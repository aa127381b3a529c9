"""Fields that refuse values that one of the databases would refuse later."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import MAX_MEASURES, name_in_collection
from metrics.engine.measures.spelling import closest
from runs.errors import Unprocessable
from runs.formats.parameters import MAX_DEPTH, MAX_JSON, read_costs, read_metadata
from runs.web.shapes import Kind


class ChoiceField(serializers.ChoiceField):
    """One of some words. The error of another word lists them, and suggests the nearest."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return super().to_internal_value(data)
        except serializers.ValidationError as error:
            words = [str(choice) for choice in self.choices]
            message = f"{str(data)[:40]!r} is not one of {', '.join(words)}"
            if nearest := closest(str(data), words):
                message += f"; did you mean {nearest!r}?"

            codes: Any = error.get_codes()
            raise serializers.ValidationError(message, code=codes[0]) from error


@extend_schema_field({"type": "object", "additionalProperties": True})
class JSONObjectField(serializers.Field[Any, Any, Any, Any]):
    """A JSON object or its text: finite numbers, storable text, limited size and depth."""

    default_error_messages = {
        "invalid": "must be a JSON object",
        "too_large": f"at most {MAX_JSON:,} characters of JSON",
        "too_deep": f"at most {MAX_DEPTH} levels of nesting",
        "text": "text with NUL characters or lone surrogates, or a number that is not finite",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = self._decode(data)
        if not isinstance(value, dict):
            self.fail("invalid")

        if _depth(value) > MAX_DEPTH:
            self.fail("too_deep")

        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (ValueError, UnicodeEncodeError):
            self.fail("text")

        if "\\u0000" in text:
            self.fail("text")

        if len(text) > MAX_JSON:
            self.fail("too_large")

        return value

    def _decode(self, data: Any) -> Any:
        """Return the value, decoded if it is the text of a form."""
        if not isinstance(data, str):
            return data

        if len(data) > MAX_JSON:
            self.fail("too_large")

        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            self.fail("invalid")

    def to_representation(self, value: Any) -> Any:
        return value


JSONObject = Annotated[dict[str, Any], Kind(JSONObjectField)]


class MetadataField(JSONObjectField):
    """The metadata of a run, or a patch of it, with a mapping for every dot in a key."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return read_metadata(super().to_internal_value(self._decode_finite(data, "/metadata")))

    def _decode_finite(self, data: Any, pointer: str) -> Any:
        """Return the decoded value. Raise Unprocessable for a number that is not finite."""
        decoded = self._decode(data)
        rest = [decoded] if _depth(decoded) <= MAX_DEPTH else []
        while rest:
            value = rest.pop()
            if isinstance(value, dict):
                rest += value.values()
            elif isinstance(value, list):
                rest += value
            elif isinstance(value, float) and not math.isfinite(value):
                message = (
                    f"{pointer[1:]} has a number that is not finite; "
                    "leave it out, or write it as a text"
                )
                raise Unprocessable(message, code="not_finite", pointer=pointer)

        return decoded


class CostsField(MetadataField):
    """The costs of a run: by name a number, or {"value", "low", "high", "n"}."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        costs = self._decode_finite(data, "/costs")
        return read_costs(JSONObjectField.to_internal_value(self, costs))


class CostsPatchField(CostsField):
    """A patch of costs; its result is checked."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return JSONObjectField.to_internal_value(self, self._decode_finite(data, "/costs"))


def _depth(value: Any) -> int:
    """Return the levels of nesting, counted without recursion and no further than needed."""
    depth, layer = 0, [value]
    while layer and depth <= MAX_DEPTH:
        depth += 1
        children: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                children += item.values()
            elif isinstance(item, list):
                children += item

        layer = children

    return depth


class MeasureField(serializers.CharField):
    """A measure name in any spelling, converted to the canonical one.

    It has `documents` only if the name has a number of them.
    """

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
