"""Sessions as JSON, one object a line.

    {"session_id": "s1", "topic_id": "301", "searcher": "u7", "system": "A", "queries": [
        {"text": "organized crime", "time": 4.1, "documents": ["d1", "d7"], "scores": [9.1, 8.3],
         "clicked": ["d7"], "judged": {"d7": 2}, "scanned": 2},
        {"text": "transnational crime", "documents": []}]}

A session may have `"searcher_attributes": {"years": 7, "role": "physician"}` of its searcher, and
`"known": ["d3"]`, documents that the searcher knew before. Only `session_id` and `queries` are
required, and in a query `documents`, in their order. `ranks` are their ranks, if some documents are
not listed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from metrics.engine.judgement.ranking import RankedBlock
from metrics.engine.sessions.blocks import SessionBlock
from runs.errors import FileReport
from runs.formats.limits import Limits
from runs.formats.lines import read_lines
from runs.formats.scanning.pieces import Opener
from runs.formats.sessions.listing import QueryText, SessionList, SessionText

_MAX_DIGITS, _MAX_NUMBER = 400, 1e15
# Keys of an object, most of them unknown and ignored; and lists and objects in a line, which take
# more memory than their bytes.
_MAX_KEYS, _MAX_BRACKETS = 100, 100_000
_SESSION_FIELDS = {
    "session_id": "session_id",
    "id": "session_id",
    "session": "session_id",
    "topic_id": "topic_id",
    "topic": "topic_id",
    "searcher": "searcher",
    "system": "system",
}


class _Refused(Exception):
    """A problem of a line: a code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read(
    open_sessions: Opener, report: FileReport, limits: Limits, seed: int, grouped: bool = True
) -> Iterator[SessionBlock]:
    """Yield the sessions of a file in blocks; problems go to the report."""
    session_list, invalid_bytes = SessionList(report, limits, seed), 0

    for line, content in read_lines(open_sessions(), report, limits.lines, limits.session_length):
        if content.strip():
            problems = len(report.problems)
            _read_line(session_list, line, content)
            invalid_bytes += len(content) if len(report.problems) > problems else 0
            report.stop_when_full(line, at_once=invalid_bytes > limits.session_length)
            yield from session_list.take()

    yield from session_list.take(rest=True)


def read_one(
    open_sessions: Opener, place: int, report: FileReport, limits: Limits
) -> Iterator[SessionBlock]:
    """Yield the session at a place, from 0, of a file that was checked before.

    The lines above it are not parsed.
    """
    session_list = SessionList(report, limits, 0)

    for line, content in read_lines(open_sessions(), report, limits.lines, limits.session_length):
        if content.strip():
            if place == 0:
                _read_line(session_list, line, content)
                break
            place -= 1

    yield from session_list.take(rest=True)


def _read_line(session_list: SessionList, line: int, content: bytes) -> None:
    try:
        session = _session(line, _parse(content), session_list.report)
    except _Refused as refusal:
        session_list.report.problem(line, refusal.code, refusal.message)
    else:
        session_list.add(session)


def _parse(content: bytes) -> dict[str, Any]:
    if len(content) > _MAX_BRACKETS and content.count(b"{") + content.count(b"[") > _MAX_BRACKETS:
        raise _Refused("bad_json", f"more than {_MAX_BRACKETS:,} lists and objects in a line")

    try:
        record = _DECODER.decode(content.decode())
    except UnicodeDecodeError as error:
        message = f"byte {content[error.start]:#04x} is not UTF-8; send the file as UTF-8"
        raise _Refused("undecodable_bytes", message) from error
    except json.JSONDecodeError as error:
        message = f"each line must be a JSON object; column {error.colno}: {error.msg}"
        raise _Refused("bad_json", message) from error
    except RecursionError as error:
        raise _Refused("bad_json", "the object is nested too deeply") from error
    except ValueError as error:
        raise _Refused("bad_json", str(error)) from error

    if not isinstance(record, dict):
        raise _Refused("bad_json", "each line must be a JSON object")

    return record


def _whole_number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(digits)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("an object has a key twice")
    return record


_DECODER = json.JSONDecoder(
    parse_int=_whole_number, parse_constant=_refuse, object_pairs_hook=_without_repeated_keys
)


def _session(line: int, record: dict[str, Any], report: FileReport) -> SessionText:
    session = SessionText(line)
    _check_keys(record)
    queries = record.pop("queries", None)

    if (attributes := record.pop("searcher_attributes", None)) is not None:
        session.attributes = _attributes(attributes)

    if (known := record.pop("known", None)) is not None:
        if not _has_only(known, str):
            raise _Refused("bad_value", f"`known` must be {_STRINGS}")
        session.known = known

    for key, value in record.items():
        if key not in _SESSION_FIELDS:
            message = f"{key[:100]!r} of a session is not known and ignored"
            report.warning(line, "unknown_key", message, kind=message)
        elif value is not None:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise _Refused("bad_value", f"`{key}` must be a string or a whole number")
            setattr(session, _SESSION_FIELDS[key], str(value))

    if not isinstance(queries, list):
        raise _Refused("bad_queries", "`queries` must be a list of objects")

    session.queries = [_query(line, query, report) for query in queries]
    return session


def _attributes(value: object) -> dict[str, float | str]:
    """Return the attributes of a searcher that are not null."""
    if not isinstance(value, dict):
        raise _Refused(
            "bad_attributes", "`searcher_attributes` must be an object of numbers and strings"
        )

    attributes = {name: attribute for name, attribute in value.items() if attribute is not None}
    for name, attribute in attributes.items():
        if not isinstance(attribute, str) and (
            type(attribute) not in (int, float) or not abs(attribute) < _MAX_NUMBER
        ):
            raise _Refused(
                "bad_attributes", f"attribute {name[:100]!r} must be a number or a string"
            )

    return attributes


def _check_keys(record: dict[str, Any]) -> None:
    if len(record) > _MAX_KEYS:
        raise _Refused("bad_value", f"an object has more than {_MAX_KEYS} keys")


def _query(line: int, record: object, report: FileReport) -> QueryText:
    if not isinstance(record, dict):
        raise _Refused("bad_queries", "each query must be an object")

    _check_keys(record)
    query = QueryText(line)

    for key, value in record.items():
        if key not in _QUERY_FIELDS:
            message = f"{key[:100]!r} of a query is not known and ignored"
            report.warning(line, "unknown_key", message, kind=message)
        elif value is not None:
            is_valid, rule = _QUERY_FIELDS[key]
            if not is_valid(value):
                raise _Refused("bad_value", f"`{key}` must be {rule}")
            setattr(query, key, value)

    if not isinstance(record.get("documents"), list):
        raise _Refused(
            "bad_value", "`documents` must be a list of document ids, empty where nothing was found"
        )

    return query


def _has_only(value: object, *types: type) -> bool:
    """Return whether a list has only items of exactly these types: True is not a number."""
    return isinstance(value, list) and set(map(type, value)) <= set(types)


def _has_levels(value: object) -> bool:
    return isinstance(value, Mapping) and set(map(type, value.values())) <= {int}


_STRINGS = "a list of document ids, each a string"
_QUERY_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "time": (
        lambda value: type(value) in (int, float) and abs(value) < 1e15,
        "a number of seconds",
    ),
    "documents": (lambda value: _has_only(value, str), _STRINGS),
    "ranks": (lambda value: _has_only(value, int), "a list of whole numbers"),
    "scores": (
        lambda value: _has_only(value, int, float) and all(abs(v) < 1e300 for v in value),
        "a list of numbers",
    ),
    "clicked": (lambda value: _has_only(value, str), _STRINGS),
    "judged": (_has_levels, "an object of levels, whole numbers, by document id"),
    "scanned": (
        lambda value: type(value) is int and 0 <= value < 10**9,
        "a number of documents, 0 or above",
    ),
}


def write(blocks: Iterator[SessionBlock]) -> Iterator[bytes]:
    """Yield the canonical form of sessions, in UTF-8.

    Keys are in the order above, without empty ones, and there are no spaces.
    """
    for block in blocks:
        content = block.data.tobytes()
        for index, session in enumerate(block.sessions):
            queries = range(int(block.query_starts[index]), int(block.query_starts[index + 1]))
            record: dict[str, Any] = {"session_id": session.session_id.decode()}

            for key in ("topic_id", "searcher", "system"):
                if value := getattr(session, key):
                    record[key] = value.decode()

            if session.attributes:
                record["searcher_attributes"] = json.loads(session.attributes)

            if block.known is not None and (known := _known_ids(block.known, index)):
                record["known"] = known

            record["queries"] = [_query_record(block, content, query) for query in queries]
            yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _known_ids(block: RankedBlock, session: int) -> list[str]:
    rows = slice(*block.topic_starts[session : session + 2].tolist())
    spans = zip(block.doc_starts[rows].tolist(), block.doc_ends[rows].tolist(), strict=True)
    return [block.data[start:end].tobytes().decode() for start, end in spans]


def _query_record(block: SessionBlock, content: bytes, index: int) -> dict[str, Any]:
    query, rows = block.queries[index], slice(*block.document_starts[index : index + 2].tolist())
    ranks, scores = block.ranks[rows].tolist(), block.scores[rows].tolist()
    spans = zip(block.doc_starts[rows].tolist(), block.doc_ends[rows].tolist(), strict=True)
    scanned = int(block.scanned[index])
    record = {
        "text": query.text or None,
        "time": query.time,
        "documents": [content[start:end].decode() for start, end in spans],
        "ranks": None if ranks == list(range(1, len(ranks) + 1)) else ranks,
        "scores": None if not scores or any(map(math.isnan, scores)) else scores,
        "clicked": [doc.decode() for doc in query.clicked] or None,
        "judged": {doc.decode(): level for doc, level in query.judged.items()} or None,
        "scanned": scanned if scanned >= 0 else None,
    }

    return {key: value for key, value in record.items() if value is not None}
