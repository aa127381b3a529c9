"""Opening an uploaded file: gzip and Zstandard are recognised by their first bytes, never by a file name."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import zstandard
from isal import igzip, isal_zlib

from metrics.engine.errors import FileReport, FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.limits import Limits

_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UNREAD = {
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"7z\xbc\xaf": "7z",
    b"\x04\x22\x4d\x18": "lz4",
}
# A frame asking for a larger window than this is refused: memory is bounded by it.
_ZSTANDARD_WINDOW = 8 * 1024 * 1024
_ERRORS: tuple[Any, ...] = (EOFError, OSError, zlib.error, isal_zlib.error, zstandard.ZstdError)


class Reader(Protocol):
    """What the formats need of a stream."""

    def read(self, size: int = -1, /) -> bytes: ...


class BoundedReader:
    """A decompressed stream that stops with an error instead of growing without bound."""

    def __init__(self, raw: BinaryIO, encoding: str, limits: Limits) -> None:
        self._raw = raw
        self._encoding = encoding
        self._limits = limits
        self._stream: Reader = _decompressor(raw, encoding)
        self._given = 0

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` decompressed bytes; InvalidFile where the compression is broken, FileTooLarge past the cap."""
        room = self._limits.bytes_out - self._given + 1
        try:
            content = self._stream.read(room if size < 0 else min(size, room))
        except _ERRORS as error:
            if self._encoding == "plain":
                raise
            raise _broken(self._encoding, error) from error
        self._given += len(content)
        if self._given > self._limits.bytes_out:
            message = f"more than {self._limits.bytes_out:,} bytes after decompression"
            raise FileTooLarge(message, code="decompressed_too_large")
        return content

    def close(self) -> None:
        self._raw.close()

    def __enter__(self) -> BoundedReader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_file(path: Path, limits: Limits) -> BoundedReader:
    """The file's content, decompressed."""
    return open_stream(path.open("rb"), limits)


def open_stream(raw: BinaryIO, limits: Limits) -> BoundedReader:
    """The content of an open, seekable file, decompressed; UnsupportedFile for archives and other compressions."""
    raw.seek(0)
    start = raw.read(8)
    raw.seek(0)
    for magic, name in _UNREAD.items():
        if start.startswith(magic):
            raise UnsupportedFile(f"{name} files are not read; send plain text, gzip or Zstandard")
    return BoundedReader(raw, encoding_of(start), limits)


def encoding_of(start: bytes) -> str:
    """'gzip', 'zstd' or 'plain', from a file's first bytes."""
    if start.startswith(_GZIP):
        return "gzip"
    return "zstd" if start.startswith(_ZSTANDARD) else "plain"


def _decompressor(raw: BinaryIO, encoding: str) -> Reader:
    if encoding == "gzip":
        return cast(Reader, igzip.open(raw, "rb"))  # type: ignore[no-untyped-call]
    if encoding == "zstd":
        window = zstandard.ZstdDecompressor(max_window_size=_ZSTANDARD_WINDOW)
        return window.stream_reader(raw, read_across_frames=True)
    return raw


def _broken(encoding: str, error: Exception) -> InvalidFile:
    report = FileReport()
    code = "bad_gzip" if encoding == "gzip" else "bad_zstd"
    report.problem(0, code, f"the {encoding} data is truncated or damaged ({error})")
    return InvalidFile(report)


def in_memory(content: bytes, limits: Limits) -> BoundedReader:
    """The same for bytes at hand."""
    return open_stream(io.BytesIO(content), limits)
