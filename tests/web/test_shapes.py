"""The description of an answer comes from the TypedDict that builds it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.web.shapes import Id, Kind, OneOf, Url, shape


class Inner(TypedDict):
    count: Annotated[int, Kind(serializers.IntegerField, min_value=1)]


class Base(TypedDict):
    id: UUID
    note: str


class Everything(Base):
    """What a shape can say."""

    at: datetime
    share: Annotated[float | None, "of all"]
    kind: Literal["a", "b"]
    mark: Annotated[str | None, OneOf(["up", "down"]), "where there is one"]
    run: Id
    next: Url | None
    names: list[str]
    rows: list[list[float | None]]
    states: dict[str, int]
    inner: Annotated[Inner, "one"]
    each: list[Inner]
    named: dict[str, Inner]
    late: NotRequired[Annotated[bool | None, "perhaps"]]


class Loose(TypedDict):
    thing: int | str


def described(answer: type[Any]) -> dict[str, Any]:
    """The components of an API with one address that answers so."""

    class View(APIView):
        @extend_schema(responses=shape(answer))
        def get(self, request: Request) -> Response:
            raise NotImplementedError

    schema = SchemaGenerator(patterns=[path("x/", View.as_view())]).get_schema(public=True)
    components: dict[str, Any] = schema["components"]["schemas"]
    return components


def test_every_kind_of_field_is_described_as_it_is_typed() -> None:
    components = described(Everything)
    component = components["Everything"]
    inner = {"$ref": "#/components/schemas/Inner"}
    assert component["description"] == "What a shape can say."
    assert [name for name in component["properties"] if name not in component["required"]] == [
        "late"
    ]
    assert component["properties"] == {
        "id": {"type": "string", "format": "uuid"},
        "note": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "share": {"type": "number", "format": "double", "nullable": True, "description": "of all"},
        "kind": {"$ref": "#/components/schemas/KindEnum"},
        "mark": {
            "nullable": True,
            "description": "where there is one\n\n* `up` - up\n* `down` - down",
            "oneOf": [
                {"$ref": "#/components/schemas/MarkEnum"},
                {"$ref": "#/components/schemas/NullEnum"},
            ],
        },
        "run": {"type": "string", "format": "uuid"},
        "next": {"type": "string", "format": "uri", "nullable": True},
        "names": {"type": "array", "items": {"type": "string"}},
        "rows": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": "number", "format": "double", "nullable": True},
            },
        },
        "states": {"type": "object", "additionalProperties": {"type": "integer"}},
        "inner": {"allOf": [inner], "description": "one"},
        "each": {"type": "array", "items": inner},
        "named": {"type": "object", "additionalProperties": inner},
        "late": {"type": "boolean", "nullable": True, "description": "perhaps"},
    }
    assert components["KindEnum"]["enum"] == ["a", "b"]
    assert components["MarkEnum"]["enum"] == ["up", "down"]


def test_a_shape_within_another_is_a_component_of_its_own() -> None:
    components = described(Everything)
    assert components["Inner"] == {
        "type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}, "required": ["count"],
    }  # fmt: skip


def test_a_shape_is_made_once() -> None:
    assert shape(Inner) is shape(Inner)


def test_a_type_without_a_description_is_refused() -> None:
    with pytest.raises(TypeError, match="has no description: name its field with Kind"):
        shape(Loose)


def test_no_answer_is_described_by_the_limits_of_what_is_sent() -> None:
    """A serializer of what comes in that also described an answer would say what can be written into each field."""
    schema = SchemaGenerator().get_schema(public=True)
    limits = {"readOnly", "maxLength", "pattern", "maxItems"}
    limited = [
        (name, field)
        for name, component in schema["components"]["schemas"].items()
        if not name.endswith("Request")
        for field, described in component.get("properties", {}).items()
        if limits & described.keys()
    ]
    assert not limited
