"""Warn of what the server says about a file that it has taken, and of what was done to a file."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from .errors import UploadWarning

# Lines that a warning names at most.
_LINES = 3


def warn(text: str) -> None:
    """Warn where the code outside this package calls it."""
    level, frame = 1, inspect.currentframe()
    while frame and str(frame.f_globals.get("__name__")).startswith(__package__ or ""):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UploadWarning, stacklevel=max(2, level))


def warn_of_report(
    name: str, answer: dict[str, Any], *, field: str = "warnings", without: Sequence[str] = ()
) -> None:
    """Warn of each kind of irregularity in the report of a file that is called `name`.

    Those with a code of `without` are left out.
    """
    report = answer.get(field) or []
    for entry in report.get("warnings", []) if isinstance(report, dict) else report:
        if entry["code"] not in without:
            warn(f"{name}: {text_of(entry)}")


def text_of(entry: dict[str, Any]) -> str:
    """Return a warning of the server with its code, its number and its first lines."""
    count, lines = int(entry.get("count", 1)), entry.get("lines") or []
    place = ""
    if lines:
        first = ", ".join(str(line) for line in lines[:_LINES])
        others = count - len(lines[:_LINES])
        more = f" and {others:,} more" if others > 0 else ""
        place = f" ({'line' if count == 1 else 'lines'} {first}{more})"
    elif count > 1 and f"{count:,}" not in entry["message"]:
        place = f" ({count:,} times)"

    return f"{entry['code']}: {entry['message']}{place}"
