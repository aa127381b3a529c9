"""Files of a command line, which can be opened repeatedly; pipes are kept in memory."""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO

from runs.errors import FileTooLarge
from runs.formats.compression import BoundedReader, content_size, open_stream
from runs.formats.limits import Limits


class LocalFile:
    """A file, `-` for standard input, or a pipe; it raises OSError and errors of `open_stream`."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self._limits = limits
        self._opened: BoundedReader | None = None
        self._content: bytes | None = None

    def size(self) -> int:
        """Return the size after decompression, as far as the file itself has it."""
        with self._raw() as raw:
            return content_size(raw)

    def open(self) -> BoundedReader:
        """Return the content from its beginning, decompressed; an earlier stream is closed."""
        self.close()
        self._opened = open_stream(self._raw(), self._limits)
        return self._opened

    def close(self) -> None:
        if self._opened:
            self._opened.close()

    def _raw(self) -> BinaryIO:
        name, limit = self.name, self._limits.bytes_in
        is_pipe = os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
        if name != "-" and not is_pipe:
            return open(name, "rb")

        if self._content is None:
            self._content = _read(name, limit)

        if len(self._content) > limit:
            raise FileTooLarge(f"more than {limit:,} bytes from a pipe; use a file instead")
        return io.BytesIO(self._content)


def _read(name: str, limit: int) -> bytes:
    """Return the content of a pipe, or one byte more than the limit."""
    if name == "-":
        return sys.stdin.buffer.read(limit + 1)
    with open(name, "rb") as pipe:
        return pipe.read(limit + 1)
