"""Judgements without the topics that phases of campaigns exclude, as versions of their own.

Every value, mean and interval under such a version, and every file of it, is without these topics.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runs.models import Collection, Phase
from runs.services.storage.files import StoredFile, upload_folder

_STEP = 1024 * 1024


def excluded_topics_of(collection: Collection) -> set[str]:
    """Return the topics that any phase on a collection excludes."""
    return set(reasons_of_exclusion(collection))


def reasons_of_exclusion(collection: Collection) -> dict[str, str]:
    """Return the reason for each topic that phases on a collection exclude, by topic id."""
    rows = Phase.objects.filter(collection=collection, excluded_topics__isnull=False).order_by("pk")
    reasons: dict[str, list[str]] = {}
    for topics, reason in rows.values_list("excluded_topics", "excluded_reason"):
        for topic in topics or ():
            reasons.setdefault(topic, []).append(reason)

    return {topic: "; ".join(dict.fromkeys(reasons[topic])) for topic in sorted(reasons)}


@contextmanager
def written_without(sha256: str, topics: Iterable[str]) -> Iterator[Path]:
    """Write the lines of stored judgements, without those of these topics, to a temporary file."""
    excluded = {topic.encode() for topic in topics}

    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
        for line in _lines(sha256):
            words = line.split(None, 1)
            if words and words[0] not in excluded:
                file.write(line)

        file.flush()
        yield Path(file.name)


def _lines(sha256: str) -> Iterator[bytes]:
    stored, rest = StoredFile(sha256), b""
    try:
        while chunk := stored.read(_STEP):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line + b"\n" for line in lines)
    finally:
        stored.close()

    yield rest
