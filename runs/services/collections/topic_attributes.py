"""The attributes of a collection's topics: replaced together by a file, and read as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from django.db import connection, transaction

from runs.errors import FileReport
from runs.formats.compression import open_file
from runs.formats.topics.attributes import read_attributes
from runs.models import AuditEvent, Collection
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.collections import locked_collection
from runs.services.storage.files import upload_limits
from runs.services.storage.reports import warn_of_outside

_BATCH = 1000
# Attributes are read into memory.
_MAX_BYTES = 16 * 1024 * 1024
_INSERT = """
    INSERT INTO runs_topicattributes (collection_id, topic_id, attributes) VALUES (%s, %s, %s)
"""


@dataclass(frozen=True)
class AttributesSummary:
    """The content of a file: its number of topics, and of distinct values by key."""

    topics: int
    keys: dict[str, int]
    report: FileReport


def import_attributes(
    *, collection: Collection, upload: Path, dry_run: bool = False, origin: Origin = SYSTEM
) -> AttributesSummary:
    """Replace the attributes of the collection's topics by those of a file, or only check it.

    Raise InvalidFile with every problem; then nothing is changed.
    """
    with open_file(upload, replace(upload_limits(), bytes_out=_MAX_BYTES)) as stream:
        attributes, report = read_attributes(stream.read())

    listed = list(collection.topics.order_by("position").values_list("topic_id", flat=True))
    if qrels := collection.active_qrels:
        listed += qrels.topic_ids
    if listed:
        warn_of_outside(report, attributes.topics, listed, "among the collection's topics")

    keys = {key: len(values) for key, values in sorted(attributes.values.items())}
    if not dry_run:
        replace_attributes(collection, attributes.topics, keys, origin)

    return AttributesSummary(len(attributes.topics), keys, report)


def delete_attributes(*, collection: Collection, origin: Origin = SYSTEM) -> int:
    """Delete the attributes of the collection's topics. Return the number of topics that had any."""
    with transaction.atomic():
        locked = locked_collection(collection)
        number, _ = locked.topic_attributes.order_by().delete()
        Collection.objects.filter(pk=locked.pk).update(attribute_keys=[])
        if number:
            record(
                origin,
                AuditEvent.Action.TOPIC_ATTRIBUTES_DELETED,
                locked,
                collection=locked,
                before={"topics": number},
            )

    return number


def attribute_keys(collection: Collection) -> list[str]:
    """Return the keys of the attributes of a collection's topics; none without attributes."""
    if collection.attribute_keys is not None:
        return list(collection.attribute_keys)
    return sorted({key for values in attributes_of(collection).values() for key in values})


def attributes_of(
    collection: Collection, topic_ids: list[str] | None = None
) -> dict[str, dict[str, str]]:
    """Return the values by topic and key, of all topics or of some."""
    rows = collection.topic_attributes.order_by("pk")
    if topic_ids is not None:
        rows = rows.filter(topic_id__in=topic_ids)

    return {
        topic_id: dict(sorted(values.items()))
        for topic_id, values in rows.values_list("topic_id", "attributes")
    }


def replace_attributes(
    collection: Collection,
    attributes: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, int],
    origin: Origin,
) -> None:
    """Replace the attributes of the collection's topics by these, by topic and key.

    `keys` has the number of distinct values of each key.
    """
    with transaction.atomic():
        locked = locked_collection(collection)
        before, _ = locked.topic_attributes.order_by().delete()
        rows = [
            (locked.pk, topic_id, json.dumps(values)) for topic_id, values in attributes.items()
        ]
        with connection.cursor() as cursor:
            for start in range(0, len(rows), _BATCH):
                cursor.executemany(_INSERT, rows[start : start + _BATCH])

        of_values = [key for key, values in keys.items() if values]
        Collection.objects.filter(pk=locked.pk).update(attribute_keys=of_values)
        record(
            origin,
            AuditEvent.Action.TOPIC_ATTRIBUTES_REPLACED,
            locked,
            collection=locked,
            before={"topics": before},
            after={"topics": len(rows), "keys": list(keys)},
        )
