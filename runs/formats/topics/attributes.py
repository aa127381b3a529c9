"""Attributes of topics: columns below a header, or JSON, one object a line.

    topic	type	language
    301	navigational	en

    {"topic": "301", "type": "navigational", "language": "en"}

Keys are stored in small letters; an empty value is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from runs.errors import FileReport
from runs.formats.topics.definition import ID_NAMES, MAX_ID_BYTES, MAX_TOPICS
from runs.formats.topics.jsonl import parse_object
from runs.formats.topics.reading import decode_text

MAX_KEYS, MAX_DISTINCT, MAX_VALUE = 50, 200, 100
# Computed keys, which no file can set: `words` of the title, `relevant` documents, and the id.
WORDS, RELEVANT, TOPIC = "words", "relevant", "topic"
COMPUTED_KEYS = (WORDS, RELEVANT, TOPIC)
_ID_KEYS = (TOPIC, *ID_NAMES)
_KEY = re.compile(r"[a-z_][a-z0-9_.-]{0,39}")
_NOT_IN_ID = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_NOT_IN_VALUE = re.compile(
    '[\x00-\x1f\x7f-\x9f"\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
# The longest line: every key with its longest value, as JSON may escape them.
_MAX_LINE = 100_000
_BOOLEANS = {True: "true", False: "false"}


@dataclass(slots=True)
class AttributeList:
    """The attributes that were read so far, by topic; problems go to the report."""

    report: FileReport
    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    # The distinct values of each key.
    values: dict[str, set[str]] = field(default_factory=dict)

    def add(self, line: int, topic_id: str, attributes: Mapping[str, str]) -> None:
        """Check and add the attributes of a topic."""
        if len(self.topics) >= MAX_TOPICS:
            self.report.problem(
                line, "too_many_topics", f"the file has more than {MAX_TOPICS:,} topics"
            )
            self.report.check()

        quoted_id = repr(topic_id[:100])
        if not topic_id:
            self.report.problem(line, "missing_topic_id", "the line has no topic id")
        elif _NOT_IN_ID.search(topic_id) or len(topic_id.encode()) > MAX_ID_BYTES:
            message = f"{quoted_id} cannot be a topic id: write it without white space"
            self.report.problem(line, "bad_topic_id", message)
        elif topic_id in self.lines:
            message = f"topic {quoted_id} is already in line {self.lines[topic_id]}"
            self.report.problem(line, "duplicate_topic", message)

        stripped = {key: value.strip() for key, value in attributes.items()}
        for key, value in stripped.items():
            if value:
                self._check_value(line, key, value)

        self.report.stop_when_full(line)
        self.lines.setdefault(topic_id, line)
        self.topics[topic_id] = {key: value for key, value in stripped.items() if value}

    def check_keys(self, line: int, keys: Iterable[str]) -> None:
        """Report keys that cannot be stored."""
        for key in keys:
            if key in self.values:
                continue

            self.values[key] = set()
            if key in COMPUTED_KEYS:
                message = f"{key!r} is computed for every topic; use another key"
                self.report.problem(line, "reserved_key", message)
            elif not _KEY.fullmatch(key):
                message = (
                    f"{key[:100]!r} is not a key: write up to 40 letters, digits, dots, _ and -, "
                    "and begin with a letter"
                )
                self.report.problem(line, "bad_key", message)
            elif len(self.values) == MAX_KEYS + 1:
                self.report.problem(
                    line, "too_many_keys", f"the file has more than {MAX_KEYS} keys"
                )

    def _check_value(self, line: int, key: str, value: str) -> None:
        if len(value) > MAX_VALUE:
            message = f"the {key} has more than {MAX_VALUE} characters"
            self.report.problem(line, "text_too_long", message)
        elif match := _NOT_IN_VALUE.search(value):
            message = f"the {key} has {match[0]!r}, which no value can have"
            self.report.problem(line, "bad_value", message)
        else:
            values = self.values[key]
            values.add(value)
            if len(values) == MAX_DISTINCT + 1:
                message = f"{key} has more than {MAX_DISTINCT} values; write ranges instead"
                self.report.problem(line, "too_many_values", message)


def read_attributes(content: bytes) -> tuple[AttributeList, FileReport]:
    """Return the attributes of a file by topic, and a report for warnings.

    Raise InvalidFile if there is a problem.
    """
    report = FileReport()
    attributes = AttributeList(report)
    text = decode_text(content, report)
    report.check()

    lines = [(line, part) for line, part in enumerate(text.split("\n"), 1) if part.strip()]
    read_lines = _read_objects if text.lstrip().startswith("{") else _read_columns
    read_lines(attributes, _short_lines(report, lines))
    if not attributes.topics and not report.problems:
        report.problem(0, "no_topics", "the file contains no topics")

    report.check()
    return attributes, report


def _short_lines(report: FileReport, lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for line, text in lines:
        if len(text) > _MAX_LINE:
            message = f"the line has more than {_MAX_LINE:,} characters"
            report.problem(line, "text_too_long", message)
            report.stop_when_full(line)
        else:
            yield line, text


def _read_columns(attributes: AttributeList, lines: Iterator[tuple[int, str]]) -> None:
    report = attributes.report
    line, header = next(lines, (0, ""))
    first, *keys = [name.strip().lower() for name in header.split("\t")]
    if not line:
        return
    if first not in _ID_KEYS or not keys:
        message = (
            "the first line names the columns with tabs between them: topic, and then the keys, "
            "such as topic<tab>type"
        )
        report.problem(line, "bad_header", message)
        report.check()
    if len(set(keys)) < len(keys):
        report.problem(line, "duplicate_key", "the first line names a key twice")
        report.check()

    attributes.check_keys(line, keys)
    report.check()

    for number, text in lines:
        topic_id, *values = text.split("\t")
        if len(values) > len(keys):
            message = (
                f"the line has {len(values) + 1} columns; the first line names {len(keys) + 1}"
            )
            report.problem(number, "too_many_columns", message)
            report.stop_when_full(number)
        else:
            attributes.add(number, topic_id.strip(" "), dict(zip(keys, values, strict=False)))


def _read_objects(attributes: AttributeList, lines: Iterator[tuple[int, str]]) -> None:
    report = attributes.report
    for line, text in lines:
        try:
            record = parse_object(text)
            id_name = next((name for name in _ID_KEYS if record.get(name) is not None), "")
            topic_id = record.pop(id_name, "")
            if isinstance(topic_id, bool) or not isinstance(topic_id, str | int):
                raise ValueError("the topic id must be a string or a whole number")

            values = {key.lower(): _as_text(key, value) for key, value in record.items()}
            if len(values) < len(record):
                raise ValueError("two keys differ in case only; keys are stored in small letters")
        except RecursionError:
            report.problem(line, "bad_json", "the object is nested too deeply")
            report.stop_when_full(line)
        except ValueError as error:
            report.problem(line, "bad_json", str(error))
            report.stop_when_full(line)
        else:
            attributes.check_keys(line, values)
            attributes.add(line, str(topic_id), values)


def _as_text(key: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return _BOOLEANS[value]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return json.dumps(value, allow_nan=False)
    raise ValueError(f"the value of {key[:100]!r} must be a text, a number, true or false")
