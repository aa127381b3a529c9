"""Topic files of every supported format, recognised by their content."""

from __future__ import annotations

import re
from collections.abc import Callable

from runs.errors import FileReport, FileTooLarge, UnsupportedFile
from runs.formats.topics import jsonl as topics_jsonl
from runs.formats.topics import sgml as topics_sgml
from runs.formats.topics import tsv as topics_tsv
from runs.formats.topics import xml as topics_xml
from runs.formats.topics.definition import CONTROL, TopicText

FORMATS: dict[str, Callable[[str, FileReport], list[TopicText]]] = {
    "trec-sgml": topics_sgml.read,
    "trec-xml": topics_xml.read,
    "jsonl": topics_jsonl.read,
    "tsv": topics_tsv.read,
}
# Lines of the largest permitted file in the format with the most lines.
MAX_LINES = 5_000_000
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_TOP = re.compile(r"<top[\s>]", re.IGNORECASE)


def read_topics(
    content: bytes, format: str | None = None
) -> tuple[str, list[TopicText], FileReport]:
    """Return the format, the topics in file order and a report of warnings.

    Raise InvalidFile if there is a problem.
    """
    if format is not None and format not in FORMATS:
        formats = ", ".join(FORMATS)
        raise UnsupportedFile(f"no topic format {format!r}; known are {formats}", pointer="format")

    report = FileReport()
    if max(content.count(b"\n"), content.count(b"\r")) > MAX_LINES:
        raise FileTooLarge(f"more than {MAX_LINES:,} lines of topics", code="too_many_lines")

    text = decode_text(content, report)
    if CONTROL.search(text):
        for line, line_text in enumerate(text.split("\n"), 1):
            if match := CONTROL.search(line_text):
                report.problem(
                    line, "control_character", f"the line has the control character {match[0]!r}"
                )
                report.stop_when_full(line)

    report.check()
    name = format or detect_format(text)
    topics = FORMATS[name](text, report)
    if not topics and not report.problems:
        report.problem(0, "no_topics", f"the file contains no topics (read as {name})")

    report.check()
    return name, topics, report


def detect_format(text: str) -> str:
    """Return the probable format of a text; a text without JSON and tags is read as columns."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return "jsonl"
    if start == "<":
        return "trec-sgml" if _TOP.search(text) else "trec-xml"
    return "tsv"


def decode_text(content: bytes, report: FileReport) -> str:
    """Return a file as text with lines that end in \\n; what is not UTF-8 is a problem."""
    if content.startswith(_UTF16):
        report.problem(1, "undecodable_bytes", "the file is UTF-16; send it as UTF-8")
        return ""

    content = content.removeprefix(_BOM).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        message = f"byte {content[error.start]:#04x} is not UTF-8; send the file as UTF-8"
        report.problem(line, "undecodable_bytes", message)
        return ""
