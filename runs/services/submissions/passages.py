"""Runs of passages where documents are judged: each document with its best passage."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.formats.compression import Reader
from runs.formats.trec_run import check_run
from runs.services.storage.files import HASH_SEED, FileSource, upload_folder, upload_limits

# Bytes that are read at once; a line has no more.
_STEP = 1024 * 1024
_COLUMNS = 6


@dataclass(frozen=True)
class BestPassages:
    """A run of documents, in the folder of uploads, made of a run of `passages` passages."""

    path: Path
    separator: str
    passages: int

    @property
    def metadata(self) -> dict[str, object]:
        """Return what the metadata of the run say of it."""
        return {"passages": {"separator": self.separator, "number": self.passages}}


@contextlib.contextmanager
def best_passages(path: Path, separator: str, tag: str | None = None) -> Iterator[BestPassages]:
    """Write the run in which each document has the place of its best passage.

    The id of a passage is that of its document, the separator, and its own name; after the last
    separator of an id comes the name. An id without it is that of a document. A document has the
    score of its best passage. A header stays. The file is removed when the context ends, unless it was stored.

    Raise InvalidFile with every problem of the run of passages, InvalidInput where the lines of a
    topic are not together, or an id has no document.
    """
    limits = upload_limits()
    source = FileSource(path, limits)
    try:
        summary = check_run(source.open, tag=tag, limits=limits, seed=HASH_SEED)
        summary.report.check()
        if not summary.grouped:
            message = "with passages, the lines of a topic must be together; sort the file by topic"
            raise InvalidInput(message, code="topics_interleaved", pointer="/passages")

        with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
            _write(source.open(), separator.encode(), file)
            file.flush()
            yield BestPassages(Path(file.name), separator, summary.documents)
    finally:
        source.close()


def _write(reader: Reader, separator: bytes, file: IO[bytes]) -> None:
    """Write the best passages of each topic as soon as the next one begins."""
    topic, best = b"", dict[bytes, tuple[float, bytes, bytes]]()
    for number, line in enumerate(_lines(reader), 1):
        columns = line.split(maxsplit=_COLUMNS - 1)
        if line.startswith(b"#") or len(columns) < _COLUMNS:
            # A header, or an empty line.
            file.write(line + b"\n")
            continue

        if columns[0] != topic:
            _write_topic(topic, best, file)
            topic, best = columns[0], {}

        passage, score = columns[2], float(columns[4])
        document = passage.rpartition(separator)[0] if separator in passage else passage
        if not document:
            name = passage[:40].decode(errors="replace")
            message = f"line {number}: {name!r} has no document before {separator.decode()!r}"
            raise InvalidInput(message, code="bad_passage", pointer="/passages")

        if document not in best or score > best[document][0]:
            best[document] = score, columns[4], columns[5]

    _write_topic(topic, best, file)


def _write_topic(
    topic: bytes, best: dict[bytes, tuple[float, bytes, bytes]], file: IO[bytes]
) -> None:
    """Write documents by score; of equal scores the first one of the file comes first."""
    keep_going()
    ranked = sorted(best.items(), key=lambda item: -item[1][0])
    for rank, (document, (_, score, rest)) in enumerate(ranked, 1):
        file.write(b"%s Q0 %s %d %s %s\n" % (topic, document, rank, score, rest))


def _lines(reader: Reader) -> Iterator[bytes]:
    rest = b""
    while content := reader.read(_STEP):
        *lines, rest = (rest + content).split(b"\n")
        yield from lines
    if rest:
        yield rest
