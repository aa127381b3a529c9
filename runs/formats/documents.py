"""Titles of documents: columns `doc_id<TAB>title[<TAB>snippet]`, or JSON, one object a line.

    AP880212-0047	Reports of a merger	Two makers of sugar said today that ...

    {"_id": "AP880212-0047", "title": "Reports of a merger", "text": "Two makers of sugar said ..."}

The second form is that of BEIR's corpus.jsonl. Titles and snippets become a line of text each, and
are cut to what a page shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from runs.errors import FileReport
from runs.formats.lines import read_lines
from runs.formats.scanning.pieces import Opener

MAX_DOCUMENTS = 1_000_000
MAX_TITLE = 300
MAX_SNIPPET = 240
_MAX_ID_BYTES = 1024
_MAX_LINE = 4 * 1024 * 1024
# Lists and objects in a line, which take more memory than their bytes.
_MAX_BRACKETS = 100_000
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ID_NAMES = ("_id", "id", "docno", "doc_id", "docid")
_SNIPPET_NAMES = ("snippet", "text", "abstract", "contents", "body")
_NOT_IN_ID = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
# Control characters, marks that change the direction of the text after them, half surrogate pairs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_CUT = "\N{HORIZONTAL ELLIPSIS}"
_COLUMNS = "a line is an id, a tab and a title, and optionally another tab and a snippet"


class DocumentText(NamedTuple):
    """A document as pages show it; title and snippet may be empty."""

    doc_id: str
    title: str
    snippet: str


class _BadLine(Exception):
    """A problem of a line: a code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read_documents(open_documents: Opener, report: FileReport) -> Iterator[DocumentText]:
    """Yield the documents of a file; problems and warnings go to the report.

    Raise InvalidFile after the last line if there is any problem, or when 50 are listed.
    """
    line_of_id: dict[int, int] = {}
    parse = None

    # Blank lines count as documents: together with them a file has at most as many lines.
    for line, content in read_lines(open_documents(), report, 2 * MAX_DOCUMENTS, _MAX_LINE):
        if not content.strip():
            continue

        if len(line_of_id) >= MAX_DOCUMENTS:
            message = (
                f"the file has more than {MAX_DOCUMENTS:,} documents; send those that runs and "
                "judgements name"
            )
            report.problem(line, "too_many_documents", message)
            report.check()

        if parse is None:
            parse = _parse_object if content.lstrip().startswith(b"{") else _parse_columns

        try:
            document = _document(report, line, *parse(_decode(line, content)))

            # A set of hashes is smaller than the ids; Python's hashes have a secret seed.
            first = line_of_id.setdefault(hash(document.doc_id), line)
            if first != line:
                message = f"document {_quote(document.doc_id)} is already in line {first}"
                raise _BadLine("duplicate_document", message)
        except _BadLine as problem:
            report.problem(line, problem.code, problem.message)
            report.stop_when_full(line)
        else:
            yield document

    if not line_of_id and not report.problems:
        report.problem(0, "no_documents", "the file contains no documents")
    report.check()


def _decode(line: int, content: bytes) -> str:
    if line == 1 and content.startswith(_UTF16):
        raise _BadLine("undecodable_bytes", "the file is UTF-16; send it as UTF-8")

    try:
        return content.decode()
    except UnicodeDecodeError as error:
        message = f"byte {content[error.start]:#04x} is not UTF-8; send the file as UTF-8"
        raise _BadLine("undecodable_bytes", message) from error


def _parse_columns(text: str) -> tuple[str, str, str]:
    columns = text.rstrip("\r").split("\t", 3)
    if len(columns) < 2:
        raise _BadLine("too_few_columns", _COLUMNS)
    if len(columns) > 3:
        raise _BadLine("too_many_columns", _COLUMNS)
    return columns[0].strip(" "), columns[1], columns[2] if len(columns) > 2 else ""


def _parse_object(text: str) -> tuple[str, str, str]:
    if len(text) > _MAX_BRACKETS and text.count("{") + text.count("[") > _MAX_BRACKETS:
        raise _BadLine("bad_json", f"more than {_MAX_BRACKETS:,} lists and objects in a line")

    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"each line must be a JSON object; column {error.colno}: {error.msg}"
        raise _BadLine("bad_json", message) from error
    except RecursionError as error:
        raise _BadLine("bad_json", "the object is nested too deeply") from error
    except ValueError as error:
        # A number of more digits than Python reads.
        raise _BadLine("bad_json", "a number has too many digits") from error

    if not isinstance(record, dict):
        raise _BadLine("bad_json", "each line must be a JSON object")

    doc_id = next((record[name] for name in _ID_NAMES if record.get(name) is not None), "")
    if isinstance(doc_id, bool) or not isinstance(doc_id, str | int):
        raise _BadLine("bad_doc_id", "the document id must be a string or a whole number")

    snippet_name = next((name for name in _SNIPPET_NAMES if record.get(name)), "")
    return str(doc_id), _text(record, "title"), _text(record, snippet_name)


def _text(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _BadLine("bad_text", f"{name!r} must be a string")
    return value


def _check_id(doc_id: str) -> None:
    if not doc_id:
        raise _BadLine("missing_doc_id", "the document has no id")
    if _NOT_IN_ID.search(doc_id):
        message = (
            f"document id {_quote(doc_id)} has white space, a control character "
            "or half a surrogate pair"
        )
        raise _BadLine("bad_doc_id", message)
    if len(doc_id.encode()) > _MAX_ID_BYTES:
        message = f"document id {_quote(doc_id)}... has more than {_MAX_ID_BYTES:,} bytes"
        raise _BadLine("bad_doc_id", message)


def _document(report: FileReport, line: int, doc_id: str, title: str, snippet: str) -> DocumentText:
    """Return the document with title and snippet as lines of text that are not too long."""
    _check_id(doc_id)
    document = DocumentText(doc_id, _shorten(title, MAX_TITLE), _shorten(snippet, MAX_SNIPPET))

    if _INVISIBLE.search(document.title + document.snippet):
        message = "control characters in titles and snippets are left out"
        report.warning(line, "control_character", message)
        document = DocumentText(
            doc_id, _INVISIBLE.sub("", document.title), _INVISIBLE.sub("", document.snippet)
        )

    # A snippet is usually the whole text of a document, and is cut without a warning.
    if len(title) > MAX_TITLE and document.title.endswith(_CUT):
        message = f"titles of more than {MAX_TITLE:,} characters are cut"
        report.warning(line, "title_cut", message)

    return document


def _shorten(text: str, most: int) -> str:
    """Return a text with single spaces, cut after a word if it is too long."""
    # Most texts are much longer than what is kept of them.
    piece = text.lstrip()[: 4 * most]
    words = " ".join(piece.split())
    if len(words) <= most and len(piece) < 4 * most:
        return words
    return words[:most].rsplit(" ", 1)[0][: most - 1] + _CUT


def _quote(doc_id: str) -> str:
    return repr(doc_id[:100])
