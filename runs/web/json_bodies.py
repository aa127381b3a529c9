"""JSON bodies: text that cannot be stored or returned is refused before a field reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework import parsers

from runs.errors import InvalidInput
from runs.formats.yaml_values import MAX_BYTES, UnusableYaml, read_yaml

_SURROGATE = re.compile(r"[\ud800-\udfff]")
# All except tab and line ends. A field refuses NUL in its value, as in a form.
_CONTROL = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONTROL_IN_NAME = re.compile(r"[\x00-\x1f\x7f]")
_HALF_PAIR = "has half a surrogate pair, which UTF-8 cannot hold; write a whole character"


class JSONParser(parsers.JSONParser):
    """JSON without control characters and half surrogate pairs, which no answer could contain."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded body.

        Raise InvalidInput, which points to the text with a forbidden character, also for values
        that are nested too deeply to decode.
        """
        try:
            decoded = super().parse(stream, media_type, dict(parser_context or {}))
        except RecursionError as error:
            raise InvalidInput("a value is nested too deeply", code="out_of_range") from error

        _check_text(decoded)
        return decoded


class MergePatchParser(JSONParser):
    """The same as a patch of RFC 7396."""

    media_type = "application/merge-patch+json"


class YAMLParser(parsers.BaseParser):
    """YAML as plain data, with the same rules for its texts."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded body. Raise the errors of `mapping_of`."""
        return mapping_of(stream.read(MAX_BYTES + 1))


def mapping_of(content: bytes) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raise InvalidInput for YAML that cannot be used, and where `JSONParser` does.
    """
    try:
        decoded = read_yaml(content)
    except UnusableYaml as error:
        raise InvalidInput(f"the YAML cannot be used: {error}", code="parse_error") from error

    if not isinstance(decoded, dict):
        raise InvalidInput("the file is a mapping of names to values", code="parse_error")

    _check_text(decoded)
    return decoded


def _check_text(decoded: Any) -> None:
    """Raise InvalidInput for text with a character that no answer could contain."""
    rest = [("", decoded)]
    while rest:
        pointer, value = rest.pop()
        if isinstance(value, dict):
            if any(_SURROGATE.search(name) for name in value):
                raise _problem(pointer, f"the name of a field {_HALF_PAIR}")
            if any(_CONTROL_IN_NAME.search(name) for name in value):
                raise _problem(pointer, "the name of a field has a control character")
            rest += ((f"{pointer}/{name}", inner) for name, inner in reversed(value.items()))
        elif isinstance(value, list):
            items = [(f"{pointer}/{place}", inner) for place, inner in enumerate(value)]
            rest += reversed(items)
        elif isinstance(value, str):
            if _SURROGATE.search(value):
                raise _problem(pointer, f"the text {_HALF_PAIR}")

            if control := _CONTROL.search(value):
                message = f"the text has the control character {control[0]!r}; leave it out"
                raise _problem(pointer, message)


def _problem(pointer: str, message: str) -> InvalidInput:
    return InvalidInput(message, pointer=pointer[:200] or None)
