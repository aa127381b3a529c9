"""The query parameters and fields that a request may have: unknown ones are refused.

An address reads the parameters that its OpenAPI description declares; there is no second list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, get_type_hints

from django.http import QueryDict
from rest_framework.mixins import ListModelMixin
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from metrics.engine.measures.spelling import meant
from runs.errors import InvalidInput
from runs.web.fields import ChoiceField

_NAMED = (
    "measures columns runs select sets systems tests family dis b depths preset rel statistics sizes differences qrels "
    "scopes draw"
)
# Parameters whose values are joined if they are repeated, with the separator: gain maps contain
# commas. An address that reads one value of these refuses several when it reads the value.
LISTS = dict.fromkeys(_NAMED.split(), ",") | {"gains": ";"}


class KnownParameters(BasePermission):
    """Refuse a query parameter that the address does not read, or that is given twice and read once.

    This is a permission class, although it is not about the user, because every view of the API has
    it without naming it.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        method = request.method or ""
        # If the view has no such method it answers 405.
        if hasattr(view, method.lower()):
            for refusal in refusals(request.query_params, parameters_read(view, method)):
                raise refusal
            if method == "DELETE" or method in getattr(view, "without_body", ()):
                check_fields(request.data, ())
        return True


def parameters_read(view: Any, method: str) -> list[str]:
    """Return the names of the query parameters that the view declares for a method, in the order of the description."""
    declared = getattr(getattr(view, method.lower()), "kwargs", {}).get("schema")
    reading = method in ("GET", "HEAD")
    # A form is sent to the address of its page, with the parameters of the page.
    names = list(getattr(view, "reads", ()))
    if declared:
        schema = declared()
        schema.view, schema.method = view, method
        names += [one.name for one in schema.get_override_parameters() if one.location == "query"]
    if isinstance(view, ListModelMixin) and reading:
        filters = getattr(view, "filterset_class", None)
        names += ["limit", "offset", *(filters.base_filters if filters else ())]
    return names


def refusals(
    given: QueryDict, known: Collection[str], kind: str = "parameter"
) -> Iterator[InvalidInput]:
    """Return the errors in the names of a query string, or of the fields of a form; each points to the name."""
    for name, values in given.lists():
        if name not in known:
            message = f"unknown {kind} {name[:40]!r}; {meant(name, known, 'this address reads')}"
            yield InvalidInput(message, code=f"unknown_{kind}", pointer=name)
        elif len(values) > 1 and name not in LISTS:
            message = f"{kind} {name!r} is given {len(values)} times; it takes one value"
            yield InvalidInput(message, code=f"repeated_{kind}", pointer=name)
        elif any("\0" in value for value in values):
            # PostgreSQL has no text with one, and no address reads it.
            message = f"{kind} {name!r} contains a NUL character; leave it out"
            yield InvalidInput(message, code="control_character", pointer=name)


def text_of(parameters: QueryDict) -> dict[str, str]:
    """Return parameters as text; repeated lists are joined."""
    joined = {name: separator.join(parameters.getlist(name)) for name, separator in LISTS.items()}
    last = {name: str(parameters.get(name, "")) for name in parameters}
    return {**last, **{name: text for name, text in joined.items() if text}}


def check_fields(given: Any, fields: Collection[str], answered: Collection[str] = ()) -> None:
    """Raise InvalidInput for the first field of a body that is unknown, or that only an answer has."""
    if not isinstance(given, Mapping):
        return
    for name in given:
        if name in fields:
            continue
        if name in answered:
            message = f"{name} cannot be set here; what can is {', '.join(fields)}"
            raise InvalidInput(message, code="read_only_field", pointer=f"/{name}")
        message = (
            f"unknown field {str(name)[:40]!r}; {meant(str(name), fields, 'the fields here are')}"
        )
        raise InvalidInput(message, code="unknown_field", pointer=f"/{str(name)[:200]}")


# A docstring would become the description of every serializer without one.
class KnownFields:
    # A mixin for serializers of input: it refuses unknown fields. `answered` is the TypedDict of
    # the answer: its other fields cannot be set, which the refusal says.
    answered: ClassVar[type[Any] | None] = None
    serializer_choice_field: Any = ChoiceField

    def to_internal_value(self, data: Any) -> Any:
        known: Any = self
        check_fields(
            data, list(known.fields), get_type_hints(self.answered) if self.answered else ()
        )
        return super().to_internal_value(data)  # type: ignore[misc]
