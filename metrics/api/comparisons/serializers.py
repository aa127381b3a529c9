"""Questions as JSON bodies."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from metrics.services.comparisons.comparison import MAX_RUNS
from metrics.services.question import (
    MAX_BASELINES,
    Baselines,
    Integer,
    Measures,
    Number,
    Parameter,
    Question,
    RunId,
    RunIds,
    Several,
)
from runs.models import Collection
from runs.services.tracking.labels import PREFIX
from runs.web.fields import ChoiceField
from runs.web.parameters import KnownFields

_TEXT = serializers.CharField
_RUN_SCHEMA = {"type": "string", "format": "uuid"}
_Field = serializers.Field[Any, Any, Any, Any]


class RunField(serializers.UUIDField):
    """A run by its id, or by a label."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str) and data.startswith(PREFIX):
            return data
        return super().to_internal_value(data)


@extend_schema_field(
    {"oneOf": [_RUN_SCHEMA, {"type": "array", "items": _RUN_SCHEMA, "maxItems": MAX_BASELINES}]}
)
class BaselinesField(serializers.ListField):
    """Baselines: a list of runs, or one run."""

    child = RunField()

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            return [self.child.run_validation(data)]
        return super().to_internal_value(data)


def body_of(question: type[Question], name: str) -> type[serializers.Serializer[Any]]:
    """Return the serializer of a question as a body: parameters with several values are lists."""
    fields = {kind.name: _field(kind) for kind in question.parameters()}
    document = f"The parameters of {name} as a body, with the same defaults as in the address."
    return type(
        f"{name}Serializer", (KnownFields, serializers.Serializer), {"__doc__": document, **fields}
    )


def parameters_in(body: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of an address from the data that such a serializer validated."""
    return {
        name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in body.items()
    }


def _field(kind: Parameter) -> _Field:
    field: Any = partial(ChoiceField, choices=kind.choices) if kind.choices else _TEXT
    if kind.choices == tuple(Collection.Scores.values):
        # The same enumeration as that of collections in the description.
        field = partial(ChoiceField, choices=Collection.Scores.choices)

    match kind:
        case RunIds(names_all=names_all):
            run = _TEXT(max_length=250) if names_all else RunField()
            field = partial(serializers.ListField, child=run, max_length=MAX_RUNS)
        case Baselines():
            field = partial(BaselinesField, max_length=MAX_BASELINES)
        case RunId():
            field = RunField
        case Measures(most=most):
            field = partial(serializers.ListField, child=_TEXT(max_length=500), max_length=most)
        case Several(of=of):
            word = ChoiceField(choices=of.choices) if of.choices else _TEXT()
            field = partial(serializers.ListField, child=word)
        case Integer(low=low, high=high):
            field = partial(serializers.IntegerField, min_value=low, max_value=high)
        case Number():
            field = serializers.FloatField

    return cast(_Field, field(required=False, help_text=kind.description))
