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
    """One of some words. The refusal of another has them all, and the one that may be meant."""

    def to_internal_value(self, data: Any) -> Any:
        try:
            return super().to_internal_value(data)
        except serializers.ValidationError as error:
            known = [str(choice) for choice in self.choices]
            message = f"{str(data)[:40]!r} is not one of {', '.join(known)}"
            near = closest(str(data), known)
            meant = f"; did you mean {near!r}?" if near else ""
            codes: Any = error.get_codes()
            raise serializers.ValidationError(f"{message}{meant}", code=codes[0]) from error


@extend_schema_field({"type": "object", "additionalProperties": True})
class JSONObjectField(serializers.Field[Any, Any, Any, Any]):
    """A JSON object, or its text in a form, without NUL, lone surrogates and NaN, and with limited size and depth."""

    default_error_messages = {
        "invalid": "must be a JSON object",
        "too_large": f"at most {MAX_JSON:,} characters of JSON",
        "too_deep": f"at most {MAX_DEPTH} levels of nesting",
        "text": "text with NUL characters or lone surrogates, or a number that is not finite",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = self._parsed(data) if isinstance(data, str) else data
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

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text) if len(text) <= MAX_JSON else self.fail("too_large")
        except (ValueError, RecursionError):
            self.fail("invalid")

    def to_representation(self, value: Any) -> Any:
        return value


JSONObject = Annotated[dict[str, Any], Kind(JSONObjectField)]


class MetadataField(JSONObjectField):
    """The metadata of a run, with a mapping for every dot in a key; a patch of it has the same form."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return read_metadata(super().to_internal_value(self._finite(data, "/metadata")))

    def _finite(self, data: Any, pointer: str) -> Any:
        """Return the object, which may be text in a form. Raise Unprocessable for a number that is not finite."""
        value = self._parsed(data) if isinstance(data, str) else data
        rest = [value] if _depth(value) <= MAX_DEPTH else []
        while rest:
            one = rest.pop()
            if isinstance(one, float) and not math.isfinite(one):
                message = f"{pointer[1:]} has a number that is not finite; leave it out, or write it as a text"
                raise Unprocessable(message, code="not_finite", pointer=pointer)
            rest += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        return value


class CostsField(MetadataField):
    """The costs of a run: by name a number, or {"value", "low", "high", "n"}."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return read_costs(JSONObjectField.to_internal_value(self, self._finite(data, "/costs")))


class CostsPatchField(CostsField):
    """A patch of costs, whose result is checked."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return JSONObjectField.to_internal_value(self, self._finite(data, "/costs"))


def _depth(value: Any) -> int:
    """Return the levels of nesting, counted without recursion and no further than needed."""
    depth, layer = 0, [value]
    while layer and depth <= MAX_DEPTH:
        depth += 1
        inner = [item for item in layer if isinstance(item, dict | list)]
        layer = [
            child for item in inner for child in (item.values() if isinstance(item, dict) else item)
        ]
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
