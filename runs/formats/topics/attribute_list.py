"""The attributes of topics as texts by key, and the list that checks them while they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runs.errors import FileReport
from runs.formats.topics.definition import MAX_ID_BYTES, MAX_TOPICS

MAX_KEYS, MAX_DISTINCT, MAX_VALUE = 50, 200, 100
# Computed keys, which no file can set: `words` of the title, `relevant` documents, and the id.
WORDS, RELEVANT, TOPIC = "words", "relevant", "topic"
COMPUTED_KEYS = (WORDS, RELEVANT, TOPIC)
_KEY = re.compile(r"[a-z_][a-z0-9_.-]{0,39}")
_NOT_IN_ID = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_NOT_IN_VALUE = re.compile(
    '[\x00-\x1f\x7f-\x9f"\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
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

        self.add_values(line, topic_id, attributes)
        self.lines.setdefault(topic_id, line)

    def add_values(self, line: int, topic_id: str, attributes: Mapping[str, str]) -> None:
        """Check and add the attributes of a topic with an id that is checked elsewhere."""
        stripped = {key: value.strip() for key, value in attributes.items()}
        for key, value in stripped.items():
            if value:
                self._check_value(line, key, value)

        self.report.stop_when_full(line)
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


def attributes_in(record: Mapping[str, object]) -> dict[str, str]:
    """Return the attributes of a JSON object by their keys in small letters.

    Raise ValueError for a value that is no text, number or truth value, and for two equal keys.
    """
    values = {key.lower(): _as_text(key, value) for key, value in record.items()}
    if len(values) < len(record):
        raise ValueError("two keys differ in case only; keys are stored in small letters")
    return values


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
