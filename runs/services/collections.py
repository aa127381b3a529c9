"""Creating collections and giving them topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction

from metrics.engine.errors import Conflict, FileReport
from runs.formats.compression import open_file
from runs.formats.topics import read_topics
from runs.models import Collection, Topic
from runs.services.files import upload_limits

_BATCH = 1000
# Topics are read whole; a million of them fit.
_MAX_BYTES = 64 * 1024 * 1024


def create_collection(**fields: Any) -> Collection:
    """A new, empty collection; Conflict where the slug is taken."""
    try:
        with transaction.atomic():
            return Collection.objects.create(**fields)
    except IntegrityError as error:
        slug = fields["slug"]
        if not Collection.objects.filter(slug=slug).exists():
            raise
        raise Conflict(f"a collection {slug!r} exists already", code="slug_taken", pointer="/slug") from error


def import_topics(*, collection: Collection, upload: Path, format: str | None = None) -> tuple[str, int, FileReport]:
    """Replace the collection's topics by those of a file; returns the format found, their number and the report."""
    with open_file(upload, replace(upload_limits(), bytes_out=_MAX_BYTES)) as stream:
        found, topics, report = read_topics(stream.read(), format)
    rows = [
        Topic(collection=collection, topic_id=topic.topic_id, position=position, title=topic.title, fields=topic.fields)
        for position, topic in enumerate(topics)
    ]
    with transaction.atomic():
        Collection.objects.select_for_update().get(pk=collection.pk)
        collection.topics.all().delete()
        Topic.objects.bulk_create(rows, _BATCH)
    return found, len(rows), report
