"""Judgements without the topics that phases of campaigns exclude: versions of their own, made of a version with all.

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
    """Return why each topic is excluded that phases on a collection exclude, in the order of their ids."""
    rows = Phase.objects.filter(collection=collection, excluded_topics__isnull=False).order_by("pk")
    why: dict[str, list[str]] = {}
    for topics, reason in rows.values_list("excluded_topics", "excluded_reason"):
        for topic in topics or ():
            why.setdefault(topic, []).append(reason)
    return {topic: "; ".join(dict.fromkeys(why[topic])) for topic in sorted(why)}


@contextmanager
def written_without(sha256: str, topics: Iterable[str]) -> Iterator[Path]:
    """Write the lines of stored judgements, without those of these topics, to a file that lasts as long as this."""
    left_out = {topic.encode() for topic in topics}
    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
        for line in _lines(sha256):
            words = line.split(None, 1)
            if words and words[0] not in left_out:
                file.write(line)
        file.flush()
        yield Path(file.name)


def _lines(sha256: str) -> Iterator[bytes]:
    stored, rest = StoredFile(sha256), b""
    try:
        while piece := stored.read(_STEP):
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in whole)
    finally:
        stored.close()
    yield rest
