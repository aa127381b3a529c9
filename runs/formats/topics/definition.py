"""The text of one topic, and the list that checks topics while they are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runs.errors import FileReport
from runs.formats.limits import DEFAULT_LIMITS

# A collection may have as many topics as a run.
MAX_TOPICS = DEFAULT_LIMITS.topics
MAX_TEXT = 100_000
MAX_ID_BYTES = 1024
# The most characters of one line, including JSON's escapes and the markup between texts.
MAX_LINE = 10 * MAX_TEXT
ID_NAMES = ("_id", "id", "qid", "query_id", "topic_id", "number", "num", "identifier")
TITLE_NAMES = ("title", "query", "text")
FIELD_NAMES = {"desc": "description", "narr": "narrative"}
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOT_IN_ID = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_ASCII_SPACE = " \t\n\r"


@dataclass(frozen=True, slots=True)
class TopicText:
    """A topic: a title on one line, its other texts by name, and its attributes.

    `attributes` is None where the file says nothing of them.
    """

    topic_id: str
    title: str
    fields: dict[str, str]
    attributes: dict[str, str] | None = None


@dataclass(slots=True)
class TopicList:
    """The topics that were read so far; problems go to the report."""

    report: FileReport
    topics: list[TopicText] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        line: int,
        topic_id: str,
        texts: Mapping[str, str],
        attributes: dict[str, str] | None = None,
    ) -> None:
        """Check and add a topic. Its title is the first non-empty text of title, query and text."""
        if len(self.topics) >= MAX_TOPICS:
            self.report.problem(
                line, "too_many_topics", f"the file has more than {MAX_TOPICS:,} topics"
            )
            self.report.check()

        self._check_id(line, topic_id)
        fields = {name: text.strip() for name, text in texts.items() if text.strip()}
        title_name = next((name for name in TITLE_NAMES if name in fields), "")
        topic = TopicText(
            topic_id, " ".join(fields.pop(title_name, "").split()), fields, attributes
        )
        self._check_texts(line, topic)
        self.report.stop_when_full(line)
        self.topics.append(topic)

    def refuse(self, line: int, code: str, message: str) -> None:
        """Report a line that is not a topic. Raise InvalidFile if the list of problems is full."""
        self.report.problem(line, code, message)
        self.report.stop_when_full(line)

    def takes(self, line: int, text: str) -> bool:
        """Return whether a line is short enough to be parsed, and report it otherwise.

        A parsed column or key takes more memory than its bytes.
        """
        if len(text) > MAX_LINE:
            self.refuse(line, "text_too_long", f"the line has more than {MAX_LINE:,} characters")
        return len(text) <= MAX_LINE

    def _check_id(self, line: int, topic_id: str) -> None:
        quoted_id = repr(topic_id[:100])
        if not topic_id:
            self.report.problem(line, "missing_topic_id", "the topic has no id")
        elif _NOT_IN_ID.search(topic_id):
            message = (
                f"topic id {quoted_id} has white space, a control character "
                "or half a surrogate pair"
            )
            self.report.problem(line, "bad_topic_id", message)
        elif len(topic_id.encode()) > MAX_ID_BYTES:
            self.report.problem(
                line,
                "bad_topic_id",
                f"topic id {quoted_id}... has more than {MAX_ID_BYTES:,} bytes",
            )
        elif topic_id in self.lines:
            message = f"topic {quoted_id} of line {line} is already in line {self.lines[topic_id]}"
            self.report.problem(line, "duplicate_topic", message)

        self.lines.setdefault(topic_id, line)

    def _check_texts(self, line: int, topic: TopicText) -> None:
        everything = "\n".join([topic.title, *topic.fields, *topic.fields.values()])
        if len(everything) > MAX_TEXT:
            self.report.problem(
                line, "text_too_long", f"the topic has more than {MAX_TEXT:,} characters"
            )

        if match := CONTROL.search(everything):
            self.report.problem(
                line, "control_character", f"the topic has the control character {match[0]!r}"
            )

        if match := _SURROGATE.search(everything):
            message = f"the topic has {match[0]!r}, half a surrogate pair, which UTF-8 cannot hold"
            self.report.problem(line, "undecodable_bytes", message)


def gather_texts(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return texts by name, with short names written out.

    Texts of the same name become paragraphs of one text.
    """
    parts: dict[str, list[str]] = {}

    for name, text in pairs:
        if text.strip():
            parts.setdefault(FIELD_NAMES.get(name, name), []).append(text.strip())

    return {name: "\n\n".join(texts) for name, texts in parts.items()}


def take_id(texts: dict[str, str]) -> str:
    """Remove and return the text that is the id, or an empty text if there is none."""
    id_name = next((name for name in ID_NAMES if name in texts), "")
    return texts.pop(id_name, "").strip(_ASCII_SPACE)
