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

from metrics.engine.measures.spelling import suggest
from runs.errors import InvalidInput
from runs.web.fields import ChoiceField

_COMMA_LISTS = (
    "measures columns runs select sets systems tests family dis b depths preset rel statistics "
    "sizes differences qrels scopes draw teams baseline"
)
# Parameters that may be repeated, with what separates their values: gain maps contain commas. An
# address that reads one value of these refuses several when it reads the value.
LISTS = dict.fromkeys(_COMMA_LISTS.split(), ",") | {"gains": ";"}


class KnownParameters(BasePermission):
    """Refuse a query parameter that the address does not read, or that is repeated and read once.

    This is a permission class, although it is not about the user, because every view of the API has
    it without naming it.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        method = request.method or ""

        # If the view has no such method it answers 405.
        if hasattr(view, method.lower()):
            for problem in refusals(request.query_params, parameters_read(view, method)):
                raise problem

            if method == "DELETE" or method in getattr(view, "without_body", ()):
                check_fields(request.data, ())

        return True


def parameters_read(view: Any, method: str) -> list[str]:
    """Return the query parameters that the view declares for a method, as they are described."""
    # A form is sent to the address of its page, with the parameters of the page.
    names = list(getattr(view, "reads", ()))

    declared = getattr(getattr(view, method.lower()), "kwargs", {}).get("schema")
    if declared:
        schema = declared()
        schema.view, schema.method = view, method
        parameters = schema.get_override_parameters()
        names += [parameter.name for parameter in parameters if parameter.location == "query"]

    if isinstance(view, ListModelMixin) and method in ("GET", "HEAD"):
        filters = getattr(view, "filterset_class", None)
        names += ["limit", "offset", *(filters.base_filters if filters else ())]

    return names


def refusals(
    parameters: QueryDict, names: Collection[str], kind: str = "parameter"
) -> Iterator[InvalidInput]:
    """Return the errors in a query string, or in the fields of a form; each points to a name."""
    for name, values in parameters.lists():
        if name not in names:
            message = f"unknown {kind} {name[:40]!r}; {suggest(name, names, 'this address reads')}"
            yield InvalidInput(message, code=f"unknown_{kind}", pointer=name)
        elif len(values) > 1 and name not in LISTS:
            message = f"{kind} {name!r} is given {len(values)} times; it takes one value"
            yield InvalidInput(message, code=f"repeated_{kind}", pointer=name)
        elif any("\0" in value for value in values):
            # PostgreSQL cannot store it.
            message = f"{kind} {name!r} contains a NUL character; leave it out"
            yield InvalidInput(message, code="control_character", pointer=name)


def text_of(parameters: QueryDict) -> dict[str, str]:
    """Return parameters as text; the values of repeated lists are joined."""
    texts = {name: str(parameters.get(name, "")) for name in parameters}
    for name, separator in LISTS.items():
        if joined := separator.join(parameters.getlist(name)):
            texts[name] = joined

    return texts


def check_fields(
    body: Any, fields: Collection[str], answered: Collection[str] = (), place: str = ""
) -> None:
    """Raise InvalidInput for a field of a body that is unknown, or that only an answer has.

    `place` is that of the body in a list, as in /3.
    """
    if not isinstance(body, Mapping):
        return

    for name in body:
        if name in fields:
            continue

        if name in answered:
            message = f"{name} cannot be set here; what can is {', '.join(fields)}"
            raise InvalidInput(message, code="read_only_field", pointer=f"{place}/{name}")

        suggestion = suggest(str(name), fields, "the fields here are")
        raise InvalidInput(
            f"unknown field {str(name)[:40]!r}; {suggestion}",
            code="unknown_field",
            pointer=f"{place}/{str(name)[:200]}",
        )


# A docstring would become the description of every serializer without one.
class KnownFields:
    # A mixin for serializers of input: it refuses unknown fields. `answered` is the TypedDict of
    # the answer: its other fields cannot be set, which the refusal says.
    answered: ClassVar[type[Any] | None] = None
    serializer_choice_field: Any = ChoiceField

    def to_internal_value(self, data: Any) -> Any:
        serializer: Any = self
        answered = get_type_hints(self.answered) if self.answered else ()
        check_fields(data, list(serializer.fields), answered)
        return super().to_internal_value(data)  # type: ignore[misc]
