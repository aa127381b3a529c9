"""The room that a text takes, and texts made to fit: readers have their own fonts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

# Widths in ems of the widest font of the pages' stack, so that no reader's font needs more.
_CLASSES = ((0.4, " .,:;'`|!ijlI"), (0.5, '"()[]{}/\\-_fJrst*'), (1.0, "mMwW%@"))
_CAPITAL, _OTHER, _WIDE, _BOLD = 0.76, 0.64, 1.0, 1.12
_WIDTHS = {
    **{
        character: _CAPITAL if character.isupper() else _OTHER for character in map(chr, range(128))
    },
    **{character: width for width, characters in _CLASSES for character in characters},
}
# The share of a shortened name that is before the ellipsis: where one share leaves names alike,
# another one may not.
_SHARES = (0.6, 0.8, 0.45, 1.0, 0.3)
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# The letters of a title in a tooltip, at most.
_TITLE = 120
NO_TITLES: Mapping[str, str] = MappingProxyType({})


def with_title(name: str, titles: Mapping[str, str]) -> str:
    """Return the id of a topic or a document with its title, if it has one."""
    title = titles.get(name, "")
    if not title:
        return name
    return f"{name}: {title if len(title) <= _TITLE else title[:_TITLE] + _ELLIPSIS}"


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the pixels that the text takes at most."""
    widths = [_WIDTHS.get(character) or _width(character) for character in text]
    return size * sum(widths) * (_BOLD if bold else 1.0)


def _width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WFA" else _CAPITAL


def shortened_names(names: list[str], room: float, size: float) -> list[str]:
    """Return the names, shortened so that as many as possible stay different."""
    best: list[str] = []
    for share in _SHARES:
        texts = [shortened(name, room, size, share=share) for name in names]
        if len(set(texts)) > len(set(best)):
            best = texts

    return best


def shortened(text: str, room: float, size: float, *, share: float = _SHARES[0]) -> str:
    """Return the text, or both of its ends with an ellipsis between them.

    `share` is the part of the kept text that is before the ellipsis.
    """
    # Both ends: a number in front of a name, or at its end, stays.
    if width_of(text, size) <= room:
        return text

    width = room - width_of(_ELLIPSIS, size)
    head = _fitting(text, share * width, size)
    rest = text[: head - 1 : -1] if head else text[::-1]
    tail = _fitting(rest, width - width_of(text[:head], size), size)

    return text[:head] + _ELLIPSIS + (text[-tail:] if tail else "")


def _fitting(text: str, room: float, size: float) -> int:
    """Return how many characters of the beginning of the text have room."""
    for index in range(len(text)):
        room -= size * _width(text[index])
        if room < 0:
            return index
    return len(text)


def wrapped(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """Return the text in lines that have room; long words are broken, after a sign if possible."""
    lines = [""]
    for word in text.split():
        if lines[-1] and width_of(f"{lines[-1]} {word}", size, bold=bold) > room:
            lines.append("")

        lines[-1] = f"{lines[-1]} {word}".strip()
        while width_of(lines[-1], size, bold=bold) > room:
            fits = max(1, _fitting(lines[-1], room / (_BOLD if bold else 1.0), size))
            signs = [
                match.end()
                for match in re.finditer(r"[-_./,;:)]", lines[-1][:fits])
                if match.end() > fits // 2
            ]
            end = signs[-1] if signs else fits
            lines[-1:] = [lines[-1][:end], lines[-1][end:]]

    return lines
