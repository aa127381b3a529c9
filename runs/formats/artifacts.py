"""The types of artifacts: their names' endings, and the first bytes that belong to them."""

from __future__ import annotations

import codecs
import re

from runs.errors import UnsupportedFile
from runs.formats.compression import ZSTANDARD

# Bytes of a file from which its type is known.
START = 8192
# The possible first bytes of files by the ending of their names; none for text.
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
# Control characters that a text cannot have; logs have some for colours and progress bars.
_CONTROLS = frozenset(range(32)) - {*b"\t\n\f\r\b\x1b"}
# Texts that a browser would show as a page or as a picture with scripts.
_MARKUP = re.compile(rb"<(!doctype|html|head|body|script|svg|iframe|\?xml)\b", re.IGNORECASE)


def check_type(name: str, start: bytes) -> None:
    """Raise UnsupportedFile (`artifact_type`) for an artifact of an unknown or wrong type.

    The name must have a known ending, and the file's first bytes must be those of its type.
    """
    _, dot, ending = name.rpartition(".")
    kind = ending.lower() if dot else ""
    if kind not in TYPES:
        endings = ", ".join(TYPES)
        raise UnsupportedFile(
            f"{name}: an artifact's name ends with one of {endings}; "
            "compress other files with gzip, zstd or zip",
            code="artifact_type",
            pointer="/name",
        )

    signatures = TYPES[kind]
    if signatures:
        if not start.startswith(signatures):
            raise _wrong_type(name, f"its first bytes are not those of a {kind} file")
        return

    controls = _CONTROLS.intersection(start)
    if controls:
        raise _wrong_type(name, f"it has the byte 0x{min(controls):02x}, which no text has")

    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError as error:
        raise _wrong_type(name, f"byte {error.start + 1} is not UTF-8") from None

    if _MARKUP.match(text.lstrip("\ufeff \t\r\n\f").encode()):
        raise _wrong_type(name, "it begins like a page or a picture for a browser")


def _wrong_type(name: str, reason: str) -> UnsupportedFile:
    message = f"{name}: {reason}; send text, or a file whose ending says what it is"
    return UnsupportedFile(message, code="artifact_type", pointer="/file")
