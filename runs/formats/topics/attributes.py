"""Attributes of topics: columns below a header, or JSON, one object a line.

    topic	type	language
    301	navigational	en

    {"topic": "301", "type": "navigational", "language": "en"}

Keys are stored in small letters; an empty value is none.
"""

from __future__ import annotations

from collections.abc import Iterator

from runs.errors import FileReport
from runs.formats.topics.attribute_list import TOPIC, AttributeList, attributes_in
from runs.formats.topics.definition import ID_NAMES
from runs.formats.topics.jsonl import parse_object
from runs.formats.topics.reading import decode_text

_ID_KEYS = (TOPIC, *ID_NAMES)
# The longest line: every key with its longest value, as JSON may escape them.
_MAX_LINE = 100_000


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

            values = attributes_in(record)
        except RecursionError:
            report.problem(line, "bad_json", "the object is nested too deeply")
            report.stop_when_full(line)
        except ValueError as error:
            report.problem(line, "bad_json", str(error))
            report.stop_when_full(line)
        else:
            attributes.check_keys(line, values)
            attributes.add(line, str(topic_id), values)
