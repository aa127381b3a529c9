"""JSON bodies: text that cannot be stored or sent back is refused before a field sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework import parsers

from runs.errors import InvalidInput

_SURROGATE = re.compile(r"[\ud800-\udfff]")


class JSONParser(parsers.JSONParser):
    """JSON without half surrogate pairs, which no encoding of an answer could repeat."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the decoded body; InvalidInput points to the text that has half a surrogate pair."""
        decoded = super().parse(stream, media_type, dict(parser_context or {}))
        rest = [("", decoded)]
        while rest:
            pointer, value = rest.pop()
            if isinstance(value, dict):
                if any(map(_SURROGATE.search, value)):
                    _refuse(pointer, "the name of a field")
                rest += ((f"{pointer}/{name}", inner) for name, inner in reversed(value.items()))
            elif isinstance(value, list):
                rest += ((f"{pointer}/{place}", inner) for place, inner in reversed([*enumerate(value)]))
            elif isinstance(value, str) and _SURROGATE.search(value):
                _refuse(pointer, "the text")
        return decoded


def _refuse(pointer: str, what: str) -> None:
    message = f"{what} has half a surrogate pair, which UTF-8 cannot hold; write a whole character"
    raise InvalidInput(message, pointer=pointer[:200] or None)
