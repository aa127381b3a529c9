"""Topics as columns: `topic_id<TAB>query`, one topic a line."""

from __future__ import annotations

from runs.errors import FileReport
from runs.formats.topics.definition import TopicList, TopicText


def read(content: str, report: FileReport) -> list[TopicText]:
    """Return the topics: the query is the title, other columns are fields column_3, column_4 ..."""
    topics = TopicList(report)
    for line, text in enumerate(content.split("\n"), 1):
        if text.strip() and topics.takes(line, text):
            _read_line(topics, line, text.split("\t"))

    return topics.topics


def _read_line(topics: TopicList, line: int, columns: list[str]) -> None:
    if len(columns) < 2:
        topics.refuse(line, "too_few_columns", "a line needs a topic id, a tab and a query")
        return

    texts = {"title": columns[1]}
    texts.update((f"column_{number}", text) for number, text in enumerate(columns[2:], 3))
    topics.add(line, columns[0].strip(" "), texts)
