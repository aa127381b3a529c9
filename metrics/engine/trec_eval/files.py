"""TREC runs and judgements as dictionaries, for the library: a strict reader that stops at the
first bad line.

The service reads uploads with a compiled scan that reports every bad line (`runs.formats`); this
one takes the same files and refuses the same lines, a line at a time and without any of it.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from metrics.engine.errors import InputError
from metrics.engine.measures.definition import MAX_LEVEL

# The score of each document of a topic; the level of each document and iteration of a topic. Rows
# are in the order of the file.
RunRows = dict[bytes, dict[bytes, float]]
QrelsRows = dict[bytes, dict[tuple[bytes, bytes], int]]
FilePath = str | os.PathLike[str]

_RUN_COLUMNS, _QRELS_COLUMNS = 6, 4
_GZIP, _BOM, _UTF16 = b"\x1f\x8b", b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    # Skippable frames, with which pzstd begins.
    **{bytes((first,)) + b"\x2a\x4d\x18": "Zstandard" for first in range(0x50, 0x60)},
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
}
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_COLUMN = re.compile(rb"[^ \t]+")
# A carriage return belongs to the end of a line; anywhere else it is a control character.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n|\Z)")


def read_run(path: FilePath) -> RunRows:
    """Read `topic Q0 document rank score tag`, plain or gzip. Raise InputError for a bad line."""
    run: RunRows = {}
    for number, columns in _lines(path, _RUN_COLUMNS, score_at=4):
        topic, document, text = columns[0], columns[2], columns[4]
        score = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(score):
            raise _problem(path, number, f"{_quoted(text)} is not a finite decimal number")

        documents = run.setdefault(topic, {})
        if document in documents:
            raise _problem(
                path,
                number,
                f"document {_quoted(document)} is listed twice for topic {_quoted(topic)}",
            )
        documents[document] = score

    return run


def read_qrels(path: FilePath) -> QrelsRows:
    """Read `topic iteration document level`, plain or gzip. Raise InputError for a bad line."""
    qrels: QrelsRows = {}
    for number, columns in _lines(path, _QRELS_COLUMNS, score_at=3):
        topic, iteration, document, text = columns[:4]
        level = int(text) if _WHOLE.fullmatch(text) and len(text) <= 100 else MAX_LEVEL + 1
        if abs(level) > MAX_LEVEL:
            raise _problem(
                path,
                number,
                f"{_quoted(text)} is not a whole number from -{MAX_LEVEL} to {MAX_LEVEL}",
            )

        if len(columns) > _QRELS_COLUMNS and _NUMBER.fullmatch(columns[4]):
            raise _problem(
                path,
                number,
                "a number follows the level: write four columns, topic 0 document level",
            )

        earlier = qrels.setdefault(topic, {}).setdefault((document, iteration), level)
        if earlier != level:
            message = (
                f"document {_quoted(document)} of topic {_quoted(topic)} has level {level} here "
                f"and {earlier} above"
            )
            raise _problem(path, number, message)

    return qrels


def _lines(path: FilePath, n_columns: int, score_at: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number, from 1, and the columns of every line except comments and blank lines."""
    content = _content(path)
    odd = _CONTROL.search(content) is not None
    for number, line in enumerate(content.split(b"\n"), 1):
        # Python splits at some control characters as well, which are a part of the column here.
        columns = _COLUMN.findall(line.removesuffix(b"\r")) if odd else line.split()
        if not columns:
            continue

        if columns[0].startswith(b"#"):
            if (
                len(columns[0]) > 1
                and len(columns) >= n_columns
                and _NUMBER.fullmatch(columns[score_at])
            ):
                raise _problem(
                    path,
                    number,
                    "a line that starts with # is a comment, but this one reads as data",
                )
            continue

        if odd and _CONTROL.search(b" ".join([*columns[:n_columns], b""])):
            raise _problem(path, number, "a control character inside a column")
        if len(columns) < n_columns:
            raise _problem(
                path, number, f"a line needs {n_columns} columns separated by spaces or tabs"
            )
        yield number, columns


def _content(path: FilePath) -> bytes:
    """Return the bytes of a file as UTF-8 text, decompressed and without their byte-order mark."""
    content = Path(path).read_bytes()
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(
                f"{path}: the gzip data is truncated, damaged or not readable"
            ) from error

    for start, name in _OTHERS.items():
        if content.startswith(start):
            raise InputError(f"{path}: this is a {name} file; plain text and gzip are read")

    if content.startswith(_UTF16):
        raise InputError(f"{path}: the file is UTF-16; write it as UTF-8")

    content = content.removeprefix(_BOM)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _problem(path, line, f"byte {content[error.start]:#04x} is not UTF-8") from error

    return content


def _problem(path: FilePath, line: int, message: str) -> InputError:
    return InputError(f"{path}:{line}: {message}")


def _quoted(text: bytes) -> str:
    return repr(text[:100].decode(errors="replace"))
