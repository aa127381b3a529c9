"""The lines of an uploaded file, read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

from runs.errors import FileReport, FileTooLarge
from runs.formats.compression import Reader

_PIECE = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


def read_lines(
    stream: Reader, report: FileReport, max_lines: int, max_length: int
) -> Iterator[tuple[int, bytes]]:
    """Yield every line with its number.

    Raise InvalidFile for a line that is too long, FileTooLarge for too many lines.
    """
    line, rest = 0, b""

    for chunk in iter(lambda: stream.read(_PIECE), b""):
        *lines_in_chunk, rest = ((rest or b"") + chunk).split(b"\n")
        if line + len(lines_in_chunk) > max_lines:
            raise FileTooLarge(f"more than {max_lines:,} lines", code="too_many_lines")

        for content in lines_in_chunk:
            line += 1
            yield line, content.removeprefix(_BOM) if line == 1 else content

        if len(rest) > max_length:
            report.problem(
                line + 1, "line_too_long", f"the line has more than {max_length:,} bytes"
            )
            report.check()

    yield line + 1, rest.removeprefix(_BOM) if line == 0 else rest
