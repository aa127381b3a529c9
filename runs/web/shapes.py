"""The content of an answer, written once: a TypedDict, and the serializer that describes it.

    class Caution(TypedDict):
        code: Annotated[str, OneOf(CODES)]
        message: Annotated[str, "for people to read"]
        topics: NotRequired[int | None]

    Caution(code="no_interval", message="...")   # a plain dict, checked by mypy
    @extend_schema(responses=shape(Caution))     # the component Caution of the OpenAPI description

The docstring of a TypedDict is the component's description, a text in `Annotated` the field's. `X |
None` may be null, and `NotRequired` left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from rest_framework import serializers

_FIELDS: dict[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    UUID: serializers.UUIDField,
    datetime: serializers.DateTimeField,
}


class Kind:
    """In `Annotated`: the field or serializer of a value, if its type is not specific enough."""

    def __init__(self, field: Callable[..., Any], **options: Any) -> None:
        self.field, self.options = field, options


class OneOf(Kind):
    """In `Annotated`: the choices of a value."""

    def __init__(self, choices: Iterable[Any]) -> None:
        super().__init__(serializers.ChoiceField, choices=tuple(choices))


Url = Annotated[str, Kind(serializers.URLField)]
# A UUID that is stored as text.
Id = Annotated[str, Kind(serializers.UUIDField)]


@cache
def shape(answer: type[Any]) -> type[serializers.Serializer[Any]]:
    """Return the serializer that describes a TypedDict, for `extend_schema`.

    Raise TypeError for a type without a description.
    """
    hints = get_type_hints(answer, include_extras=True)
    members: dict[str, Any] = {name: _field(hint) for name, hint in hints.items()}
    members |= {"__doc__": answer.__doc__, "__module__": answer.__module__}

    return cast(type[Any], type(f"{answer.__name__}Serializer", (serializers.Serializer,), members))


def _field(hint: Any) -> Any:
    """Unwrap a type, and return the field for it with the options of the wrappers."""
    options: dict[str, Any] = {}
    kind = None

    while (origin := get_origin(hint)) in (NotRequired, Annotated, Union, UnionType):
        hint, *others = get_args(hint)
        if origin is NotRequired:
            options["required"] = False
        elif origin is Annotated:
            kind = next((note for note in others if isinstance(note, Kind)), kind)
            texts = [note for note in others if isinstance(note, str)]
            options |= {"help_text": texts[-1]} if texts else {}
        elif others == [type(None)]:
            options["allow_null"] = True
        else:
            raise TypeError(f"{hint} or {others} has no description: name its field with Kind")

    kind = kind or _kind_of(hint)
    return kind.field(**kind.options, **options)


def _kind_of(hint: Any) -> Kind:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return OneOf(inside)

    if origin is list:
        item = inside[0]
        if is_typeddict(item):
            return Kind(shape(item), many=True)
        return Kind(serializers.ListField, child=_field(item))

    if origin is dict:
        return Kind(serializers.DictField, child=_field(inside[1]))
    if is_typeddict(hint):
        return Kind(shape(hint))
    if hint in _FIELDS:
        return Kind(_FIELDS[hint])

    raise TypeError(f"{hint} has no description: name its field with Kind")
