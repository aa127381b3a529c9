"""Checks of names and descriptions, for the API, pages and the administration alike."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

# Marks that change the direction of the text after them: with them a name looks like another.
_DIRECTION_MARKS = "\u202a-\u202e\u2066-\u2069"
_NOT_IN_A_LINE = re.compile(f"[\\x00-\\x1f\\x7f-\\x9f\u2028\u2029{_DIRECTION_MARKS}]")
_NOT_IN_A_TEXT = re.compile(f"[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f{_DIRECTION_MARKS}]")

# A DOI, without the address of its resolver.
DOI_RULE = r"10\.[0-9]{4,9}/[^\s<>\"\\{}]{1,200}"
DOI_SAID = "write it as 10.5281/zenodo.1234567"


def check_line(text: str) -> None:
    """Refuse control characters, line ends and marks of the text's direction in a name."""
    _refuse(text, _NOT_IN_A_LINE)


def check_text(text: str) -> None:
    """Refuse the same in a description, which may have several lines and tabs."""
    _refuse(text, _NOT_IN_A_TEXT)


def _refuse(text: str, characters: re.Pattern[str]) -> None:
    if match := characters.search(text):
        message = (
            f"the text has the invisible character U+{ord(match[0]):04X} "
            f"at position {match.start() + 1}; leave it out"
        )
        raise ValidationError(message, code="control_character")
