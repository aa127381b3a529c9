"""Read runs: a path, bytes, a file, a dictionary, a table, scored documents, or a run of ranx.

They are told apart by their shape, so that no library is imported for it. A run that is not a file
yet is written in the six columns of trec_eval, in the order in which EvalHub evaluates it: score
descending, then doc_id descending bytewise.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from .converting import (
    JSON,
    MSMARCO,
    TRIPLES,
    QrelsConverter,
    RunConverter,
    form_of_run,
    is_foreign_qrels,
    looks_like_qrels,
)
from .errors import BadSource
from .value_converting import ValuesConverter

# Tags that programs write into every run, in lower case: they name no run.
GENERIC = frozenset(
    ("pyterrier", "anserini", "pyserini", "faiss", "run", "test", "standard", "q0", "0", "ranx")
)
# Files of ranx, which are read with ranx or pandas.
_RANX = (".lz4", ".parquet")
_ENDINGS = (".gz", ".zst", ".run", ".res", ".txt", ".trec", ".tsv", ".json", ".jsonl", *_RANX)
_GZIP = b"\x1f\x8b"
# A file begins with a frame of content, or as files of pzstd with a skippable one.
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)))
_MIN_COMPRESSED = 64 * 1024
_MAX_IN_MEMORY = 16 * 1024 * 1024
_CHUNK = 1024 * 1024
_NOT_IN_TAG = re.compile(r"[^A-Za-z0-9._-]+")
_TOPIC, _DOCUMENT = ("qid", "query_id", "q_id", "topic", "topic_id"), ("docno", "doc_id", "docid")
_WHITE_SPACE = re.compile(r"\s")
_NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Source:
    """A file that can be sent, as often as needed: `open` reads it from its beginning.

    `tag` names the run: the tag of its user, the one in the file, or the name of the file if that tag
    is a generic one. `sha256` is that of the decompressed bytes, "" if unknown. `identical` has the
    topics that retrieve a document with the id of the topic, but not for a run that came as a file;
    `dropped` says whether these documents were left out. `note` says what was recognised and done
    where the file was converted.
    """

    name: str
    body: IO[bytes]
    tag: str
    sha256: str
    identical: tuple[str, ...] = ()
    dropped: bool = False
    note: str = ""

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open a reader of its own: retries and threads never share a position."""
        if isinstance(self.body, io.BytesIO):
            yield io.BytesIO(self.body.getbuffer())
        else:
            with Path(self.body.name).open("rb") as file:
                yield file


def size_of(source: Source) -> int:
    """Return the number of bytes of a file that are sent."""
    if isinstance(source.body, io.BytesIO):
        return source.body.getbuffer().nbytes
    return Path(source.body.name).stat().st_size


def read_source(run: Any, tag: str | None = None, *, drop_identical: bool = False) -> Source:
    """Return the file of a run in any shape; raise BadSource for anything else.

    `drop_identical` leaves out documents that have the id of their topic, as BEIR does before it
    evaluates.
    """
    if isinstance(run, Source):
        return run

    ranx_name = None
    if isinstance(run, str | os.PathLike):
        path = Path(run)
        if not path.is_file():
            raise BadSource(f"{path}: there is no such file")

        if path.suffix.lower() in _RANX:
            run, ranx_name = _read_ranx(path), tag_of_name(path.name)
        else:
            run = path

    if isinstance(run, Path):
        with run.open("rb") as file:
            return _read_run(file, str(run), tag, drop_identical)

    if isinstance(run, bytes | bytearray | memoryview) or hasattr(run, "read"):
        body = run if hasattr(run, "read") else io.BytesIO(run)
        return _read_run(body, str(getattr(run, "name", "run")), tag, drop_identical)

    return _write_results(run, tag, ranx_name, drop_identical)


def _read_run(file: IO[bytes], name: str, tag: str | None, drop_identical: bool) -> Source:
    """Return the run in an open file, converted if it has another form than six columns."""
    short_name = Path(name).name
    file, start = _start_of(file)
    form = form_of_run(start)
    if looks_like_qrels(start):
        raise BadSource(
            f"{name} looks like judgements, not like a run; upload it with evh qrels upload "
            f"COLLECTION {name}. If these are scores of a run: {_convert_triples(name)}"
        )
    if form == TRIPLES:
        raise BadSource(
            f"{name} has three columns, and its third does not begin with rank 1; if it is a "
            f"score: {_convert_triples(name)}"
        )

    if form in (JSON, MSMARCO):
        converter = RunConverter(
            name, form, tag or tag_of_name(short_name), True, drop_identical=drop_identical
        )
        source = _copy_converted(converter, file, short_name)
        identical = tuple(converter.identical)
        return replace(source, identical=identical, dropped=drop_identical)

    if drop_identical:
        raise BadSource(
            "drop_identical is for results that are a dictionary, a table, rows or a JSON file, "
            "not for a run file"
        )
    return _copy(file, short_name, tag)


def _convert_triples(name: str) -> str:
    """Return the line that converts a run of three columns."""
    return f"evh convert run {name} --from triples --to {tag_of_name(Path(name).name)}.run"


def read_qrels(file: Any, scale: int | None = None) -> Source:
    """Return the file of judgements, converted if it has another form than TREC's four columns.

    `file` is a path, bytes or an open file; `scale` multiplies every level. Raise BadSource for
    anything else, and for a level that is not a whole number then.
    """
    name = str(file) if isinstance(file, str | os.PathLike) else getattr(file, "name", "qrels")
    with _opened(file) as body:
        body, start = _start_of(body)
        if scale is None and not is_foreign_qrels(start):
            return _copy(body, Path(str(name)).name, None)

        is_json = form_of_run(start) == JSON
        converter = QrelsConverter(str(name), scale, is_json)
        return _copy_converted(converter, body, Path(str(name)).name)


def convert(
    converter: RunConverter | QrelsConverter | ValuesConverter, file: Path
) -> Iterator[str]:
    """Yield the lines of a file, which may be compressed with gzip, as `converter` makes them."""
    with file.open("rb") as body:
        yield from _lines_in(converter, body)


def _lines_in(
    converter: RunConverter | QrelsConverter | ValuesConverter, file: IO[bytes]
) -> Iterator[str]:
    is_gzip = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    try:
        yield from converter.lines(
            cast(IO[bytes], gzip.GzipFile(fileobj=file)) if is_gzip else file
        )
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{converter.name} is not a whole gzip file: {error}") from error


def _copy_converted(
    converter: RunConverter | QrelsConverter | ValuesConverter, file: IO[bytes], name: str
) -> Source:
    tag = getattr(converter, "tag", None)
    lines = io.BufferedReader(_Lines(_lines_in(converter, file)), _CHUNK)
    source = _copy(lines, name, tag)
    return replace(source, note=converter.note())


class _Lines(io.RawIOBase):
    """Lines of text as a file of bytes."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._rest = lines, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            line = next(self._lines, None)
            if line is None:
                return 0
            self._rest = line.encode()

        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _start_of(file: IO[bytes]) -> tuple[IO[bytes], bytes]:
    """Return a file at its beginning that can be read again, and its first bytes, decompressed."""
    seekable = getattr(file, "seekable", None)
    if seekable is None or not seekable() or file.tell():
        # What is left of a pipe, or of a file that was read in part.
        copy = cast(IO[bytes], tempfile.TemporaryFile(prefix="evh-"))  # noqa: SIM115
        shutil.copyfileobj(file, copy, _CHUNK)
        copy.seek(0)
        file = copy

    start = file.read(_MIN_COMPRESSED)
    file.seek(0)
    if start.startswith(_ZSTD):
        return file, b""
    if start.startswith(_GZIP):
        # A damaged file is refused when it is read completely.
        start = b""
        with suppress(OSError, EOFError, zlib.error):
            start = gzip.GzipFile(fileobj=file).read(_MIN_COMPRESSED)
        file.seek(0)

    return file, start


def _write_results(
    run: Any, tag: str | None, ranx_name: str | None, drop_identical: bool
) -> Source:
    """Write a run that is not a file yet into one; `ranx_name` is the name of a file of ranx."""
    if type(run).__module__.partition(".")[0] == "ranx" and hasattr(run, "to_dict"):
        ranx_name = ranx_name or getattr(run, "name", None)
        run = run.to_dict()

    name = tag or ranx_name or ""
    if not name or name.lower() in GENERIC:
        raise BadSource(
            "a run that comes without a file has no name; give it a tag, as in submit(results, "
            "tag='bm25')"
        )

    results = by_topic(run)
    identical = tuple(topic for topic, ranking in results.items() if topic in ranking)
    if drop_identical:
        for topic in identical:
            del results[topic][topic]
        if not any(results.values()):
            raise BadSource("no document is left: each has the id of its topic")

    content = "".join(six_columns(results, name)).encode()
    source = _copy(io.BytesIO(content), f"{name}.run", name)
    return replace(source, identical=identical, dropped=drop_identical)


def _read_ranx(path: Path) -> Any:
    """Return the run in a file that ranx has written; one in Parquet is a table of pandas."""
    library = "pandas" if path.suffix.lower() == ".parquet" else "ranx"
    try:
        if library == "pandas":
            import pandas

            read = pandas.read_parquet
        else:
            import ranx

            read = ranx.Run.from_file
    except ImportError as error:
        raise BadSource(
            f"{path} can be read where {library} is installed: pip install {library} ({error})"
        ) from error

    try:
        return read(str(path))
    except Exception as error:  # the readers raise anything
        raise BadSource(f"{path} cannot be read: {error}") from error


def read_file(file: Any) -> Source:
    """Return a file of judgements, topics or sessions: a path, bytes or an open file.

    Raise BadSource for anything else.
    """
    with _opened(file) as body:
        return _copy(body, Path(str(getattr(body, "name", "run"))).name, None)


@contextmanager
def _opened(file: Any) -> Iterator[IO[bytes]]:
    """Open a path, bytes or an open file; raise BadSource for anything else."""
    if isinstance(file, str | os.PathLike):
        if not Path(file).is_file():
            raise BadSource(f"{file}: there is no such file")
        with Path(file).open("rb") as opened:
            yield opened
    elif isinstance(file, bytes | bytearray | memoryview):
        yield io.BytesIO(file)
    elif hasattr(file, "read"):
        yield file
    else:
        raise BadSource(
            f"a {type(file).__name__} is not a file; give a path, bytes or an open file"
        )


def read_as_it_is(file: Any, name: str | None = None) -> Source:
    """Return a file that is sent as it is, never compressed: a path, bytes or an open file.

    Bytes need a `name`. Raise BadSource for anything else.
    """
    if isinstance(file, str | os.PathLike):
        path = Path(file)
        if not path.is_file():
            raise BadSource(f"{path}: there is no such file")
        file, name = path.read_bytes(), name or path.name
    elif hasattr(file, "read"):
        name = name or Path(str(getattr(file, "name", ""))).name
        file = file.read()

    if not isinstance(file, bytes | bytearray | memoryview):
        raise BadSource(
            f"a {type(file).__name__} is not a file; give a path, bytes or a file opened in "
            "binary mode"
        )
    if not name:
        raise BadSource(
            "bytes have no name; say what the file is called, as in attach(content, 'config.yaml')"
        )
    return Source(name, io.BytesIO(file), "", hashlib.sha256(file).hexdigest())


def _copy(file: IO[bytes], name: str, tag: str | None) -> Source:
    """Copy a file to where it can be read again, and compress a large one."""
    start = file.read(_MIN_COMPRESSED)
    if not start:
        raise BadSource(f"{name} is empty")

    compressed = start.startswith((_GZIP, *_ZSTD))
    compress = not compressed and len(start) == _MIN_COMPRESSED
    digest = hashlib.sha256()
    # The temporary file lives as long as its source.
    body = cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="evh-"))  # noqa: SIM115
    # Without name and time in its header, the same run always has the same bytes.
    writer = gzip.GzipFile("", "wb", 1, body, 0) if compress else None

    chunk = start
    while chunk:
        digest.update(chunk)
        (writer or body).write(chunk)
        chunk = file.read(_CHUNK)

    if writer:
        writer.close()
    body.flush()

    file_tag, sha256 = _first_tag(start), digest.hexdigest()
    if start.startswith(_GZIP):
        file_tag, sha256 = _read_gzip(body, name)
    elif compressed:
        sha256 = ""

    if body.tell() <= _MAX_IN_MEMORY:
        body.seek(0)
        with body:
            body = io.BytesIO(body.read())

    return Source(name, body, tag or _choose_tag(file_tag, name), sha256)


def _read_gzip(body: IO[bytes], name: str) -> tuple[str, str]:
    """Return the tag in a gzip file and the SHA-256 of its content."""
    digest = hashlib.sha256()
    try:
        with gzip.open(Path(body.name), "rb") as file:
            chunk = file.read(_CHUNK)
            tag = _first_tag(chunk)
            while chunk:
                digest.update(chunk)
                chunk = file.read(_CHUNK)
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{name} is not a whole gzip file: {error}") from error

    return tag, digest.hexdigest()


def _first_tag(start: bytes) -> str:
    """Return the sixth column of the first line that is not a comment."""
    for line in start.splitlines():
        columns = line.decode(errors="replace").split()
        if columns and not columns[0].startswith("#"):
            return columns[5] if len(columns) >= 6 else ""
    return ""


def tag_of_file(path: Path) -> str:
    """Return the tag that a file gives its run; raise BadSource for a file that cannot be read."""
    if path.suffix.lower() in _RANX:
        return tag_of_name(path.name)

    start = _read_start(path)
    return (
        tag_of_name(path.name) if form_of_run(start) else _choose_tag(_first_tag(start), path.name)
    )


def is_run(path: Path) -> bool:
    """Return whether a file may be a run, by its first line that is not a comment.

    Such a line has five columns or more, with a rank or a score in its place, or it is one of a
    form that is converted. The server checks the other lines, and files that are compressed by
    zstandard.
    """
    if path.suffix.lower() in _RANX:
        return True

    start = _read_start(path)
    if start.startswith(_ZSTD) or form_of_run(start) in (JSON, MSMARCO):
        return True

    for line in start.splitlines():
        columns = line.split()
        if columns and not columns[0].startswith(b"#"):
            return len(columns) >= 5 and any(_NUMBER.fullmatch(column) for column in columns[3:5])

    return False


def form_of_file(path: Path) -> str:
    """Return the form of a run in a file, as `form_of_run`; raise BadSource if it cannot be read."""
    return form_of_run(_read_start(path))


def _read_start(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed; raise BadSource if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_MIN_COMPRESSED)
        if start.startswith(_GZIP):
            with gzip.open(path, "rb") as decompressed:
                start = decompressed.read(_MIN_COMPRESSED)
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{path} cannot be read: {error}") from error

    return start


def _choose_tag(tag: str, name: str) -> str:
    """Return the tag in a file, or one from its name if that tag is a generic one."""
    return tag if tag and tag.lower() not in GENERIC else tag_of_name(name)


def tag_of_name(name: str) -> str:
    """Return the tag for a file's name: without suffixes, in the characters that a tag may have."""
    while name.lower().endswith(_ENDINGS):
        name = name.rpartition(".")[0]
    return _NOT_IN_TAG.sub("-", name).strip("-")[:64] or "run"


def by_topic(run: Any) -> dict[str, dict[str, float]]:
    """Return a dictionary, a table or scored documents as {topic: {document: score}}.

    Raise BadSource for anything else, and for ids and scores that a run must not have.
    """
    results: dict[str, dict[str, float]] = {}
    for topic, document, score in _rows_of(run):
        topic, document = str(topic), str(document)
        if not topic or not document or _WHITE_SPACE.search(topic + document):
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

        ranking = results.setdefault(topic, {})
        if document in ranking:
            raise BadSource(f"topic {topic}: document {document} is there twice")

        ranking[document] = value

    if not results:
        raise BadSource("the run has no documents")
    return results


def _rows_of(run: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield topic, document and score of all rows."""
    if isinstance(run, Mapping):
        for topic, ranking in run.items():
            if not isinstance(ranking, Mapping):
                raise BadSource(
                    f"topic {topic}: {type(ranking).__name__} is not a dictionary of scores by "
                    "document"
                )
            for document, score in ranking.items():
                yield topic, document, score
    elif hasattr(run, "columns"):
        columns = [list(run[_column(run, names)]) for names in (_TOPIC, _DOCUMENT, ("score",))]
        yield from zip(*columns, strict=True)
    elif isinstance(run, Iterable):
        yield from map(_triple, run)
    else:
        raise BadSource(
            f"a {type(run).__name__} is not a run; give a path, bytes, a dictionary, a table or "
            "rows"
        )


def _column(table: Any, names: tuple[str, ...]) -> str:
    for name in names:
        if name in table.columns:
            return name
    raise BadSource(
        f"the table has no column {' or '.join(names)}; it has {', '.join(map(str, table.columns))}"
    )


def _triple(row: Any) -> tuple[Any, Any, Any]:
    """Return topic, document and score of a tuple or a scored document of ir_measures."""
    if hasattr(row, "query_id"):
        return row.query_id, row.doc_id, row.score

    try:
        topic, document, score = row
    except (TypeError, ValueError):
        raise BadSource(f"{row!r} is not a triple of topic, document and score") from None

    return topic, document, score


def six_columns(run: dict[str, dict[str, float]], tag: str) -> Iterator[str]:
    """Yield the lines of a run file, with scores that read back as the same numbers."""
    for topic, ranking in run.items():
        ranked = sorted(ranking.items(), key=lambda item: (item[1], item[0].encode()), reverse=True)
        for rank, (document, score) in enumerate(ranked, 1):
            yield f"{topic} Q0 {document} {rank} {score!r} {tag}\n"
