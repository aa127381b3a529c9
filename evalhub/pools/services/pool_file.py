"""The stored file of a pool, which never changes.

It is text, compressed by Zstandard and named by the SHA-256 of the text. Its first line is a JSON
object: the collection, the recipe, the seed and the runs. Each other line is a document: topic,
document, stratum, inclusion probability, contributors in hexadecimal digits and best rank, 0 where
no run has the document, separated by tabs. A document of a stratum that was not drawn is a line of
topic, document and stratum, after the drawn documents of its topic; format 1 did not have these.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import zstandard

from evalhub.pools.models import Pool
from evalhub.pools.services.pooling import PoolContent, PooledDocument
from runs.attention import keep_going
from runs.formats.scanning.pieces import Opener
from runs.services.storage.files import read_stored, upload_folder

FORMAT = "evalhub-pool-2"
_STEP = 1024 * 1024
_LEVEL = 9
# In the line of a document that was not drawn.
_UNDRAWN_TABS = 2


@dataclass(frozen=True)
class WrittenPool:
    """A file of a pool that waits in the folder of uploads; `size` is that of the text."""

    path: Path
    sha256: str
    size: int


@contextlib.contextmanager
def written_pool(header: dict[str, Any], content: PoolContent) -> Iterator[WrittenPool]:
    """Write the file of a pool; it is removed when the context ends, unless it was stored."""
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
        with zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file, closefd=False) as writer:
            for text in _lines(header, content):
                digest.update(text)
                size += len(text)
                writer.write(text)

        file.flush()
        os.fsync(file.fileno())
        yield WrittenPool(Path(file.name), digest.hexdigest(), size)


def _lines(header: dict[str, Any], content: PoolContent) -> Iterator[bytes]:
    first = {"format": FORMAT, **header}
    yield (json.dumps(first, ensure_ascii=False, sort_keys=True) + "\n").encode()

    for topic_id, documents in content.topics:
        keep_going()
        yield "".join(
            f"{topic_id}\t{document.doc_id}\t{document.stratum}\t{document.probability!r}\t"
            f"{document.contributors:x}\t{document.best_rank or 0}\n"
            for document in documents
        ).encode()
        yield "".join(
            f"{topic_id}\t{doc_id}\t{stratum}\n"
            for doc_id, stratum in sorted(content.undrawn.get(topic_id, {}).items())
        ).encode()


def read_topics(pool: Pool, topic_id: str | None = None) -> list[tuple[str, list[PooledDocument]]]:
    """Return the documents of each topic of a pool, or of one topic.

    The file is read to its end, where its SHA-256 is known. Raise the errors of `read_stored`.
    """
    start = f"{topic_id}\t".encode() if topic_id is not None else b""
    return read_stored(pool.sha256, lambda opener: _read(opener, start))


def read_undrawn(pool: Pool) -> dict[str, dict[str, int]]:
    """Return by topic the stratum of the documents of strata that were not drawn."""
    undrawn: dict[str, dict[str, int]] = {}
    for topic_id, doc_id, stratum in read_stored(pool.sha256, _read_undrawn):
        undrawn.setdefault(topic_id, {})[doc_id] = int(stratum)
    return undrawn


def _read_undrawn(opener: Opener) -> list[list[str]]:
    return [
        line.decode().split("\t")
        for line in _read_lines(opener)
        if line.count(b"\t") == _UNDRAWN_TABS
    ]


def documents_of(pool: Pool, topic_id: str) -> list[str]:
    """Return the documents of a topic of a pool, in bytewise order; none for another topic."""
    return [document.doc_id for _, rows in read_topics(pool, topic_id) for document in rows]


def _read(opener: Opener, start: bytes) -> list[tuple[str, list[PooledDocument]]]:
    lines = (
        line
        for line in _read_lines(opener)
        if line.startswith(start) and line.count(b"\t") != _UNDRAWN_TABS
    )
    rows = (line.decode().split("\t") for line in lines)
    return [
        (topic_id, [_document(*row[1:]) for row in group])
        for topic_id, group in groupby(rows, key=lambda row: row[0])
    ]


def _document(
    doc_id: str, stratum: str, probability: str, contributors: str, best_rank: str
) -> PooledDocument:
    return PooledDocument(
        doc_id=doc_id,
        stratum=int(stratum),
        probability=float(probability),
        contributors=int(contributors, 16),
        best_rank=int(best_rank) or None,
    )


def _read_lines(opener: Opener) -> Iterator[bytes]:
    """Yield the lines of documents."""
    reader, rest, is_first = opener(), b"", True
    while content := reader.read(_STEP):
        keep_going()
        *lines, rest = (rest + content).split(b"\n")
        yield from lines[1:] if is_first and lines else lines
        is_first = is_first and not lines
