"""Runs as they come: a path, bytes, a file, a dictionary, a table, scored documents, a ranx Run or a file of one.

They are told apart by their shape, so that no library is imported for it. What is no file yet is
written in the six columns of trec_eval, in the order in which EvalHub evaluates it: score
descending, then doc_id descending bytewise.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import re
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from .errors import BadSource

# What programs write as the tag of every run, in lower case; none of these says which run it is.
GENERIC = frozenset(
    ("pyterrier", "anserini", "pyserini", "faiss", "run", "test", "standard", "q0", "0", "ranx")
)
# Files of ranx; of these only the second is read with it.
_RANX = (".json", ".lz4", ".parquet")
_ENDINGS = (".gz", ".zst", ".run", ".res", ".txt", ".trec", *_RANX)
_GZIP = b"\x1f\x8b"
# A frame of content, or a skippable one, with which pzstd begins.
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)))
_COMPRESSED_FROM = 64 * 1024
_IN_MEMORY = 16 * 1024 * 1024
_PIECE = 1024 * 1024
_NO_TAG = re.compile(r"[^A-Za-z0-9._-]+")
_TOPIC, _DOCUMENT = ("qid", "query_id", "q_id", "topic", "topic_id"), ("docno", "doc_id", "docid")
_ILL = re.compile(r"\s")
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Source:
    """A file ready to be sent, as often as it takes: `open` gives it from its beginning.

    `tag` names the run: what its user says, or the tag in the file, or the file's name where that
    tag is a generic one. `sha256` is that of the decompressed bytes, "" where it is not known.
    `identical` has the topics for which a document of the topic's own id is retrieved, which no
    file is searched for; `dropped` says whether these documents were left out.
    """

    name: str
    body: IO[bytes]
    tag: str
    sha256: str
    identical: tuple[str, ...] = ()
    dropped: bool = False

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Give a reader of its own: several tries or threads never share a position."""
        if isinstance(self.body, io.BytesIO):
            yield io.BytesIO(self.body.getbuffer())
        else:
            with Path(self.body.name).open("rb") as file:
                yield file


def size_of(source: Source) -> int:
    """Return the number of bytes that are sent of a file."""
    if isinstance(source.body, io.BytesIO):
        return source.body.getbuffer().nbytes
    return Path(source.body.name).stat().st_size


def read_source(given: Any, tag: str | None = None, *, drop_identical: bool = False) -> Source:
    """Return what is to be sent of a run of any shape; BadSource for what is none.

    `drop_identical` leaves out documents whose id is that of the topic, as BEIR does before it
    evaluates.
    """
    if isinstance(given, Source):
        return given

    named = None
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if not path.is_file():
            raise BadSource(f"{path}: there is no such file")

        if path.suffix.lower() in _RANX:
            given, named = _of_ranx(path), tag_of_name(path.name)
        else:
            given = path

    plain = isinstance(given, bytes | bytearray | memoryview | Path) or hasattr(given, "read")
    if plain and drop_identical:
        raise BadSource(
            "drop_identical is for results that are a dictionary, a table or rows, not for a run "
            "file"
        )

    if isinstance(given, Path):
        with given.open("rb") as file:
            return _of_bytes(file, given.name, tag)

    if plain:
        body = given if hasattr(given, "read") else io.BytesIO(given)
        return _of_bytes(body, Path(str(getattr(given, "name", "run"))).name, tag)

    return _of_results(given, tag, named, drop_identical)


def _of_results(given: Any, tag: str | None, named: str | None, drop_identical: bool) -> Source:
    """Write results as a run file; `named` is what their file is called, if they have one."""
    if type(given).__module__.partition(".")[0] == "ranx" and hasattr(given, "to_dict"):
        named = named or getattr(given, "name", None)
        given = given.to_dict()

    name = tag or named or ""
    if not name or name.lower() in GENERIC:
        raise BadSource(
            "a run that comes without a file has no name; give it a tag, as in submit(results, "
            "tag='bm25')"
        )

    results = by_topic(given)
    identical = tuple(topic for topic, ranking in results.items() if topic in ranking)
    if drop_identical:
        for topic in identical:
            del results[topic][topic]
        if not any(results.values()):
            raise BadSource("no document is left: each has the id of its topic")

    source = _of_bytes(
        io.BytesIO("".join(six_columns(results, name)).encode()), f"{name}.run", name
    )
    return replace(source, identical=identical, dropped=drop_identical)


def _of_ranx(path: Path) -> Any:
    """Return the run of a file that ranx has written; the one in Parquet is a table of pandas."""
    if path.suffix.lower() == ".json":
        try:
            return json.loads(path.read_bytes())
        except ValueError as error:
            raise BadSource(f"{path} is not the JSON of a run: {error}") from error

    needed = "pandas" if path.suffix.lower() == ".parquet" else "ranx"
    try:
        if needed == "pandas":
            import pandas

            read = pandas.read_parquet
        else:
            import ranx

            read = ranx.Run.from_file
    except ImportError as error:
        raise BadSource(
            f"{path} can be read where {needed} is installed: pip install {needed} ({error})"
        ) from error

    try:
        return read(str(path))
    except Exception as error:  # whatever the readers raise
        raise BadSource(f"{path} cannot be read: {error}") from error


def read_file(given: Any) -> Source:
    """Return what is to be sent of judgements, topics, session logs: a path, bytes or a file; BadSource for others."""
    if not isinstance(given, str | os.PathLike | bytes | bytearray | memoryview) and not hasattr(
        given, "read"
    ):
        raise BadSource(
            f"a {type(given).__name__} is not a file; give a path, bytes or an open file"
        )

    if not isinstance(given, str | os.PathLike):
        return read_source(given)
    if not Path(given).is_file():
        raise BadSource(f"{given}: there is no such file")

    with Path(given).open("rb") as file:
        return read_source(file)


def read_as_it_is(given: Any, name: str | None = None) -> Source:
    """Return a file that is sent as it is, never compressed: a path, bytes or a file; BadSource for others.

    Bytes have no name of their own.
    """
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        if not path.is_file():
            raise BadSource(f"{path}: there is no such file")
        given, name = path.read_bytes(), name or path.name
    elif hasattr(given, "read"):
        name = name or Path(str(getattr(given, "name", ""))).name
        given = given.read()

    if not isinstance(given, bytes | bytearray | memoryview):
        raise BadSource(
            f"a {type(given).__name__} is not a file; give a path, bytes or a file opened in "
            "binary mode"
        )

    if not name:
        raise BadSource(
            "bytes have no name; say what the file is called, as in attach(content, 'config.yaml')"
        )
    return Source(name, io.BytesIO(given), "", hashlib.sha256(given).hexdigest())


def _of_bytes(file: IO[bytes], name: str, tag: str | None) -> Source:
    """Copy a file to where it can be read again, compressed where that is worth it."""
    start = file.read(_COMPRESSED_FROM)
    if not start:
        raise BadSource(f"{name} is empty")

    packed = start.startswith((_GZIP, *_ZSTD))
    shrink = not packed and len(start) == _COMPRESSED_FROM
    digest = hashlib.sha256()
    # It lives as long as its source.
    body = cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="evh-"))  # noqa: SIM115
    # No name and no time within: the same run is the same bytes whenever it is sent.
    writer = gzip.GzipFile("", "wb", 1, body, 0) if shrink else None

    piece = start
    while piece:
        digest.update(piece)
        (writer or body).write(piece)
        piece = file.read(_PIECE)

    if writer:
        writer.close()

    body.flush()
    own, sha256 = _first_tag(start), digest.hexdigest()
    if start.startswith(_GZIP):
        own, sha256 = _unpacked(body, name)
    elif packed:
        sha256 = ""

    if body.tell() <= _IN_MEMORY:
        body.seek(0)
        with body:
            body = io.BytesIO(body.read())

    return Source(name, body, tag or _named(own, name), sha256)


def _unpacked(body: IO[bytes], name: str) -> tuple[str, str]:
    """Return the tag in a gzip file and the SHA-256 of what it holds."""
    digest, own = hashlib.sha256(), ""
    try:
        with gzip.open(Path(body.name), "rb") as file:
            piece = file.read(_PIECE)
            own = _first_tag(piece)

            while piece:
                digest.update(piece)
                piece = file.read(_PIECE)
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{name} is not a whole gzip file: {error}") from error

    return own, digest.hexdigest()


def _first_tag(start: bytes) -> str:
    """Return the sixth column of the first line that is no comment."""
    for line in start.splitlines():
        columns = line.decode(errors="replace").split()
        if columns and not columns[0].startswith("#"):
            return columns[5] if len(columns) >= 6 else ""
    return ""


def tag_of_file(path: Path) -> str:
    """Return the tag that a file gives its run, of its first lines alone; BadSource for what cannot be read."""
    if path.suffix.lower() in _RANX:
        return tag_of_name(path.name)
    return _named(_first_tag(_start_of(path)), path.name)


def is_run(path: Path) -> bool:
    """Whether a file may be a run, by its first line that is no comment: five columns or more, a rank or a score in
    its place. What its other lines hold is the server's to say, and so is what is packed by
    zstandard."""
    if path.suffix.lower() in _RANX:
        return True

    start = _start_of(path)
    if start.startswith(_ZSTD):
        return True

    for line in start.splitlines():
        columns = line.split()
        if columns and not columns[0].startswith(b"#"):
            return len(columns) >= 5 and any(_NUMBER.fullmatch(column) for column in columns[3:5])

    return False


def _start_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; BadSource for what cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_COMPRESSED_FROM)
        if start.startswith(_GZIP):
            with gzip.open(path, "rb") as unpacked:
                start = unpacked.read(_COMPRESSED_FROM)
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{path} cannot be read: {error}") from error

    return start


def _named(own: str, name: str) -> str:
    return own if own and own.lower() not in GENERIC else tag_of_name(name)


def tag_of_name(name: str) -> str:
    """Return the tag that a file's name gives: without its endings, of the letters that a tag may have."""
    while name.lower().endswith(_ENDINGS):
        name = name.rpartition(".")[0]
    return _NO_TAG.sub("-", name).strip("-")[:64] or "run"


def by_topic(given: Any) -> dict[str, dict[str, float]]:
    """Return a dictionary, a table or scored documents as {topic: {document: score}}; BadSource for what is none."""
    if isinstance(given, Mapping):
        rows: Iterable[tuple[Any, Any, Any]] = (
            (topic, document, score)
            for topic, ranking in given.items()
            for document, score in _ranking(topic, ranking)
        )
    elif hasattr(given, "columns"):
        rows = zip(
            *(list(given[_column(given, names)]) for names in (_TOPIC, _DOCUMENT, ("score",))),
            strict=True,
        )
    elif isinstance(given, Iterable):
        rows = (_triple(row) for row in given)
    else:
        raise BadSource(
            f"a {type(given).__name__} is not a run; give a path, bytes, a dictionary, a table or "
            "rows"
        )

    found: dict[str, dict[str, float]] = {}
    for topic, document, score in rows:
        topic, document = str(topic), str(document)
        if not topic or not document or _ILL.search(topic + document):
            raise BadSource(
                f"topic {topic!r}, document {document!r}: an id is empty or has white space"
            )

        try:
            value = float(score)
        except (TypeError, ValueError):
            raise BadSource(
                f"topic {topic}, document {document}: the score {score!r} is not a number"
            ) from None

        if not math.isfinite(value):
            raise BadSource(f"topic {topic}, document {document}: the score is {value}")

        ranking = found.setdefault(topic, {})
        if document in ranking:
            raise BadSource(f"topic {topic}: document {document} is there twice")

        ranking[document] = value

    if not found:
        raise BadSource("the run has no documents")
    return found


def _ranking(topic: Any, ranking: Any) -> Iterable[tuple[Any, Any]]:
    if not isinstance(ranking, Mapping):
        raise BadSource(
            f"topic {topic}: {type(ranking).__name__} is not a dictionary of scores by document"
        )
    return ranking.items()


def _column(table: Any, names: tuple[str, ...]) -> str:
    for name in names:
        if name in table.columns:
            return name
    raise BadSource(
        f"the table has no column {' or '.join(names)}; it has {', '.join(map(str, table.columns))}"
    )


def _triple(row: Any) -> tuple[Any, Any, Any]:
    """Return topic, document and score of a tuple, or of a scored document of ir_measures or ir_datasets."""
    if hasattr(row, "query_id"):
        return row.query_id, row.doc_id, row.score

    try:
        topic, document, score = row
    except (TypeError, ValueError):
        raise BadSource(f"{row!r} is not a triple of topic, document and score") from None

    return topic, document, score


def six_columns(run: dict[str, dict[str, float]], tag: str) -> Iterator[str]:
    """Yield the lines of a run file. Scores are the shortest texts that read back as the same numbers."""
    for topic, ranking in run.items():
        ranked = sorted(ranking.items(), key=lambda one: (one[1], one[0].encode()), reverse=True)
        for rank, (document, score) in enumerate(ranked, 1):
            yield f"{topic} Q0 {document} {rank} {score!r} {tag}\n"
