"""The types of artifacts: what a file may be called, and what it then begins with."""

from __future__ import annotations

import codecs
import re

from runs.errors import UnsupportedFile
from runs.formats.compression import ZSTANDARD

# Enough of a file to tell what it is.
START = 8192
# By the ending of the name: what a file of this type begins with; nothing for text.
TYPES: dict[str, tuple[bytes, ...]] = {
    **dict.fromkeys(
        ("txt", "md", "log", "json", "jsonl", "yaml", "toml", "patch", "csv", "tsv"), ()
    ),
    "pdf": (b"%PDF-",),
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpg": (b"\xff\xd8\xff",),
    "gz": (b"\x1f\x8b",),
    "zst": ZSTANDARD,
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
# Colours and progress bars of logs.
_CONTROLS = frozenset(range(32)) - {*b"\t\n\f\r\b\x1b"}
# What a browser would show as a page or as a picture with scripts.
_MARKUP = re.compile(rb"<(!doctype|html|head|body|script|svg|iframe|\?xml)\b", re.IGNORECASE)


def check_type(name: str, start: bytes) -> None:
    """Raise UnsupportedFile (`artifact_type`) if the name has no known ending, or if the file's first bytes are not
    those of its type."""
    _, dot, ending = name.rpartition(".")
    kind = ending.lower() if dot else ""
    if kind not in TYPES:
        known = ", ".join(TYPES)
        message = f"{name}: an artifact's name ends with one of {known}; compress other files with gzip, zstd or zip"
        raise UnsupportedFile(message, code="artifact_type", pointer="/name")
    begins = TYPES[kind]
    if begins:
        if not start.startswith(begins):
            raise _unlike(name, f"its first bytes are not those of a {kind} file")
        return
    controls = _CONTROLS.intersection(start)
    if controls:
        raise _unlike(name, f"it has the byte 0x{min(controls):02x}, which no text has")
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError as error:
        raise _unlike(name, f"byte {error.start + 1} is not UTF-8") from None
    if _MARKUP.match(text.lstrip("\ufeff \t\r\n\f").encode()):
        raise _unlike(name, "it begins like a page or a picture for a browser")


def _unlike(name: str, why: str) -> UnsupportedFile:
    message = f"{name}: {why}; send text, or a file whose ending says what it is"
    return UnsupportedFile(message, code="artifact_type", pointer="/file")
