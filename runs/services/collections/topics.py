"""The topics of a collection: replaced together by a file, with their attributes if it has any."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from django.db import connection, transaction

from runs.errors import FileReport
from runs.formats.compression import open_file
from runs.formats.topics.definition import TopicText
from runs.formats.topics.reading import read_topics
from runs.models import AuditEvent, Collection
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.collections import locked_collection
from runs.services.collections.topic_attributes import replace_attributes
from runs.services.storage.files import upload_limits

_BATCH = 1000
_INSERT_TOPIC = """
    INSERT INTO runs_topic (collection_id, topic_id, "position", title, fields)
    VALUES (%s, %s, %s, %s, %s)
"""
# Topics are read into memory; a collection may have as many as a run.
_MAX_BYTES = 64 * 1024 * 1024
# The largest files take almost half a gigabyte: a process reads one at a time.
_READING = threading.Lock()


@dataclass(frozen=True)
class TopicsSummary:
    """The content of a file: its format and its topics."""

    format: str
    topics: list[TopicText]
    report: FileReport

    @cached_property
    def attributes(self) -> dict[str, dict[str, str]] | None:
        """Return the attributes by topic, None for a file that says nothing of them."""
        attributes = {
            topic.topic_id: topic.attributes
            for topic in self.topics
            if topic.attributes is not None
        }
        return attributes or None

    @cached_property
    def keys(self) -> dict[str, int] | None:
        """Return the number of distinct values by the key of an attribute, None as above."""
        if self.attributes is None:
            return None

        values: dict[str, set[str]] = {}
        for attributes in self.attributes.values():
            for key, value in attributes.items():
                values.setdefault(key, set()).add(value)

        return {key: len(values[key]) for key in sorted(values)}


def check_topics(*, upload: Path, format: str | None = None) -> TopicsSummary:
    """Return the content of a file.

    Raise InvalidFile with every problem.
    """
    with _READING, open_file(upload, replace(upload_limits(), bytes_out=_MAX_BYTES)) as stream:
        return TopicsSummary(*read_topics(stream.read(), format))


def import_topics(
    *,
    collection: Collection,
    upload: Path,
    format: str | None = None,
    dry_run: bool = False,
    origin: Origin = SYSTEM,
) -> TopicsSummary:
    """Replace the collection's topics by those of a file, or only check the file.

    A file with attributes replaces those of all topics, too; another one leaves them as they are.
    """
    summary = check_topics(upload=upload, format=format)
    if dry_run:
        return summary

    topics = summary.topics
    with transaction.atomic():
        locked = locked_collection(collection)
        before = {"topics": locked.topics.count()}
        locked.topics.all().delete()
        _insert_topics(locked, topics)
        after = {"topics": len(topics), "format": summary.format}
        action = AuditEvent.Action.TOPICS_REPLACED
        record(origin, action, locked, collection=locked, before=before, after=after)

        if summary.attributes is not None:
            replace_attributes(locked, summary.attributes, summary.keys or {}, origin)

    return summary


def _insert_topics(collection: Collection, topics: list[TopicText]) -> None:
    """Insert the topics without model objects.

    With them it would take twice as long, and other connections cannot write to SQLite meanwhile.
    """
    with connection.cursor() as cursor:
        for start in range(0, len(topics), _BATCH):
            batch = enumerate(topics[start : start + _BATCH], start)
            rows = [
                (collection.pk, topic.topic_id, position, topic.title, json.dumps(topic.fields))
                for position, topic in batch
            ]
            cursor.executemany(_INSERT_TOPIC, rows)
