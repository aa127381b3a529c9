"""Topics as JSON, one object a line: BEIR's queries.jsonl and the queries of ir_datasets.

An object under the key `attributes` has the attributes of the topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runs.errors import FileReport
from runs.formats.topics.attribute_list import AttributeList, attributes_in
from runs.formats.topics.definition import ID_NAMES, TopicList, TopicText, gather_texts

_MAX_DIGITS = 1000


def _whole_number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS:,} digits")
    return int(digits)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_int=_whole_number, parse_constant=_refuse)


def read(content: str, report: FileReport) -> list[TopicText]:
    """Return the topics: every key except the id is a text, and so is every key in `metadata`."""
    topics, attributes = TopicList(report), AttributeList(report)
    for line, text in enumerate(content.split("\n"), 1):
        if text.strip() and topics.takes(line, text):
            _read_line(topics, attributes, line, text)

    return topics.topics


def _read_line(topics: TopicList, attributes: AttributeList, line: int, text: str) -> None:
    values = None
    try:
        record = parse_object(text)
        id_name = next((name for name in ID_NAMES if record.get(name) is not None), "")
        topic_id = record.pop(id_name, "")
        if isinstance(record.get("attributes"), dict):
            values = attributes_in(record.pop("attributes"))

        texts = gather_texts(_texts(record))
    except RecursionError:
        topics.refuse(line, "bad_json", "the object is nested too deeply")
    except ValueError as error:
        topics.refuse(line, "bad_json", str(error))
    else:
        if isinstance(topic_id, bool) or not isinstance(topic_id, str | int):
            topics.refuse(line, "bad_topic_id", "the topic id must be a string or a whole number")
        else:
            if values is not None:
                attributes.check_keys(line, values)
                attributes.add_values(line, str(topic_id), values)
                values = attributes.topics[str(topic_id)]

            topics.add(line, str(topic_id), texts, values)


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object of a line. Raise ValueError or RecursionError."""
    try:
        record = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"each line must be a JSON object; column {error.colno}: {error.msg}"
        ) from error

    if not isinstance(record, dict):
        raise ValueError("each line must be a JSON object")
    return record


def _texts(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    metadata = record.get("metadata")
    if isinstance(metadata, dict):
        record = {**record, "metadata": None}
    else:
        metadata = {}

    for name, value in [*record.items(), *metadata.items()]:
        yield name, _as_text(value)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, allow_nan=False)
    )
