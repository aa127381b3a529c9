"""Metadata and costs as lines of a form: `key = value`."""

from __future__ import annotations

from typing import Any

from runs.errors import InvalidInput, Unprocessable
from runs.formats.parameter_lines import read_lines


def lines_in(text: str, what: str) -> Any:
    """Return the metadata or costs, as `what` says, of lines such as `k1 = 0.9`; the text itself if it is JSON, which a
    serializer reads.

    Raise InvalidInput, with the number of the line, for a line that cannot be read.
    """
    if text.lstrip().startswith("{"):
        return text
    try:
        return read_lines(text, what)
    except Unprocessable as error:
        raise InvalidInput(str(error), pointer=f"/{what}") from error
