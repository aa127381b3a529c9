"""Metadata and costs as lines of a form: `key = value`."""

from __future__ import annotations

from typing import Any

from runs.errors import InvalidInput, Unprocessable
from runs.formats.parameter_lines import read_lines


def lines_in(text: str, field: str) -> Any:
    """Return the values in lines such as `k1 = 0.9`, for a field: metadata or costs.

    JSON is returned as it is, because a serializer reads it. Raise InvalidInput, with the number of
    the line, for a line that cannot be read.
    """
    if text.lstrip().startswith("{"):
        return text

    try:
        return read_lines(text, "parameters" if field == "metadata" else field)
    except Unprocessable as error:
        raise InvalidInput(str(error), pointer=f"/{field}") from error
