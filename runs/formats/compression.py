"""Open an uploaded file: gzip and Zstandard are recognised by their first bytes, not by a name."""

from __future__ import annotations

import io
import re
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from runs.errors import FileReport, FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

_GZIP = b"\x1f\x8b"
# A frame of content, or a skippable one, with which pzstd begins (RFC 8878, sections 3.1.1 and
# 3.1.2).
ZSTANDARD = (
    b"\x28\xb5\x2f\xfd",
    *(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60)),
)
# Enough of a file's start to recognise its format, and the formats that are refused by it.
_START = 512
_STEP = 1024 * 1024
_UNSUPPORTED = {
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zip": re.compile(rb"PK\x03\x04"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "7z": re.compile(rb"7z\xbc\xaf"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
    "tar": re.compile(rb".{257}ustar", re.DOTALL),
}
# A frame that requires a larger window than this is refused, which limits memory.
_ZSTANDARD_WINDOW = 8 * 1024 * 1024
# A block of four bytes can expand to 128 KiB: this many bytes are decompressed at a time, to at
# most 32 MiB.
_ZSTANDARD_STEP = 1024
# A gzip file ends with the size of its last member's content. If a Zstandard frame has no size, it
# is guessed by the usual ratio.
_GZIP_SIZE = 4
_USUAL_RATIO = 5


class Reader(Protocol):
    """The methods of a stream that the formats need."""

    def read(self, size: int = -1, /) -> bytes: ...


class _ZstandardReader:
    """Read Zstandard frames one after another.

    Unlike the library's own reader it notices a truncated frame.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

        # Like isal, it is only loaded for compressed files.
        import zstandard

        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTANDARD_WINDOW)
        self._frame: Any = None
        self._rest = b""
        self._decompressed = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        while not (content := self._decompressed.read(size)):
            compressed = self._rest or self._raw.read(_ZSTANDARD_STEP)
            if not compressed:
                break
            self._decompressed = io.BytesIO(self._decompress(compressed))

        if not content and self._frame is not None:
            raise EOFError("the last frame is cut short")
        return content

    def _decompress(self, compressed: bytes) -> bytes:
        self._frame = self._frame or self._decompressor.decompressobj()
        content: bytes = self._frame.decompress(compressed)
        self._rest = self._frame.unused_data
        if self._frame.eof:
            self._frame = None
        return content


class BoundedReader:
    """A decompressed stream that raises an error beyond the limits."""

    def __init__(self, raw: BinaryIO, encoding: str, limits: Limits) -> None:
        self._raw = raw
        self._encoding = encoding
        self._limits = limits
        self._stream: Reader = _decompressor(raw, encoding)
        self._size = 0

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` decompressed bytes.

        Raise InvalidFile if the compression is broken, FileTooLarge beyond the limit.
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(_STEP), b""))

        try:
            content = self._stream.read(min(size, self._limits.bytes_out - self._size + 1))
        except Exception as error:
            # With an error number of the system, the disk has failed: the data may be sound.
            is_system_error = isinstance(error, OSError) and error.errno
            if self._encoding == "plain" or is_system_error:
                raise
            if not isinstance(error, _decompression_errors()):
                raise

            report = FileReport()
            code = "bad_gzip" if self._encoding == "gzip" else "bad_zstd"
            report.problem(
                0,
                code,
                f"the {self._encoding} data is truncated, damaged or not readable ({error})",
            )

            raise InvalidFile(report) from error

        if not self._size and self._encoding != "plain" and not self._limits.archives:
            _refuse_unsupported(content)
            inner_encoding = encoding_of(content)
            if inner_encoding != "plain":
                raise UnsupportedFile(
                    f"the {self._encoding} data holds {inner_encoding} data; compress the file once"
                )

        self._size += len(content)
        if self._size > self._limits.bytes_out:
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
    """Return the file's content, decompressed."""
    return open_stream(path.open("rb"), limits)


def open_stream(raw: BinaryIO, limits: Limits) -> BoundedReader:
    """Return the decompressed content of an open, seekable file.

    Raise UnsupportedFile for archives and other compressions.
    """
    raw.seek(0)
    start = raw.read(_START)
    raw.seek(0)

    if not limits.archives:
        try:
            _refuse_unsupported(start)
        except UnsupportedFile:
            raw.close()
            raise

    return BoundedReader(raw, encoding_of(start), limits)


def _refuse_unsupported(start: bytes) -> None:
    for name, magic in _UNSUPPORTED.items():
        if magic.match(start):
            raise UnsupportedFile(f"{name} files are not read; send plain text, gzip or Zstandard")


def encoding_of(start: bytes) -> str:
    """Return 'gzip', 'zstd' or 'plain', from a file's first bytes."""
    if start.startswith(_GZIP):
        return "gzip"
    return "zstd" if start.startswith(ZSTANDARD) else "plain"


def content_size(raw: BinaryIO) -> int:
    """Return the decompressed size of an open, seekable file, as far as the file says."""
    raw.seek(0)
    start = raw.read(_START)
    size = raw.seek(0, io.SEEK_END)
    encoding = encoding_of(start)
    if encoding == "gzip" and size >= _GZIP_SIZE:
        raw.seek(-_GZIP_SIZE, io.SEEK_END)
        return max(size, int.from_bytes(raw.read(_GZIP_SIZE), "little"))

    if encoding == "zstd":
        import zstandard

        try:
            frame_size: int = zstandard.frame_content_size(start)
        except zstandard.ZstdError:
            frame_size = -1

        # A skippable frame has a size of 0, and the frames after it have their own.
        return frame_size if frame_size > 0 else size * _USUAL_RATIO

    return size


def _decompression_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the decompressors, which are only loaded for compressed files."""
    import zstandard
    from isal import isal_zlib

    own = (isal_zlib.error, zstandard.ZstdError)
    return (EOFError, OSError, OverflowError, zlib.error, *own)  # type: ignore[return-value]


def _decompressor(raw: BinaryIO, encoding: str) -> Reader:
    if encoding == "gzip":
        from isal import igzip

        reader: Reader = igzip.open(raw, "rb")  # type: ignore[no-untyped-call]
        return reader

    if encoding == "zstd":
        return _ZstandardReader(raw)
    return raw


def in_memory(content: bytes, limits: Limits) -> BoundedReader:
    """Return the decompressed content of bytes."""
    return open_stream(io.BytesIO(content), limits)
