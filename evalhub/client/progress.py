"""Show progress on a terminal: bars if rich is installed, otherwise a line for each file."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO


class Lines:
    """Write a line for each file when it is finished."""

    def __init__(self, out: TextIO, files: int) -> None:
        self._out, self._files, self._finished = out, files, 0
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def update(self, name: str, size: int, bytes_read: int) -> None:
        self._sizes[name] = size

    def finish(self, name: str, state: str) -> None:
        with self._lock:
            self._finished += 1
            size = f", {in_words(self._sizes[name])} sent" if name in self._sizes else ""
            self._out.write(f"{self._finished}/{self._files} {name}: {state}{size}\n")


class Bars:
    """Draw a bar for each file that is being sent, and one for all of them."""

    def __init__(self, bars: Any, files: int) -> None:
        self._bars, self._tasks = bars, dict[str, Any]()
        self._lock = threading.Lock()
        self._all = bars.add_task("files", total=files) if files > 1 else None

    def update(self, name: str, size: int, bytes_read: int) -> None:
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=size)
        self._bars.update(self._tasks[name], completed=bytes_read, total=size)

    def finish(self, name: str, state: str) -> None:
        with self._lock:
            task = self._tasks.pop(name, None)

        if task is not None:
            self._bars.remove_task(task)
        if self._all is not None:
            self._bars.advance(self._all)
        if state in ("refused", "not sent"):
            self._bars.console.print(f"{name}: {state}", markup=False, highlight=False)


def is_interactive(out: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a person reads the output: a terminal outside of CI."""
    return out.isatty() and not environment.get("CI") and environment.get("TERM") != "dumb"


@contextmanager
def progress(
    hub: Any, files: int, quiet: bool = False, out: TextIO | None = None
) -> Iterator[None]:
    """Show the progress of files that are sent in this context."""
    out = out or sys.stderr
    if quiet or not is_interactive(out):
        yield
        return

    try:
        if find_spec("rich"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TaskProgressColumn(),
            )
            with Progress(*columns, console=Console(file=out), transient=True) as bars:
                hub.watch(Bars(bars, files))
                yield
        else:
            hub.watch(Lines(out, files))
            yield
    finally:
        hub.watch(None)


class Table:
    """A table that is redrawn in place on a terminal."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live, self._lines, self._summary = is_interactive(self._out), 0, ""

    def show(self, text: str, summary: str) -> None:
        """Replace the text on a terminal; elsewhere write the summary if it has changed."""
        if not self._live:
            if summary != self._summary:
                self._out.write(f"{summary}\n")
            self._summary = summary
            return

        self.clear()
        # A terminal that does not know its size has 0 columns and lines.
        size = os.get_terminal_size(sys.stderr.fileno()) if sys.stderr.isatty() else (0, 0)
        width, height = size[0] or 100, size[1] or 25

        lines = text.splitlines()
        if len(lines) > height - 2:
            lines = [*lines[: height - 3], f"... and {len(lines) - height + 3} more"]

        self._out.write("".join(f"{line[: width - 1]}\n" for line in [*lines, summary]))
        self._out.flush()
        self._lines = len(lines) + 1

    def clear(self) -> None:
        """Erase the table."""
        if self._lines:
            # Go up by this number of lines, and erase to the end of the screen.
            self._out.write(f"\x1b[{self._lines}A\x1b[J")
        self._lines = 0


def in_words(size: int) -> str:
    """Return a number of bytes as a person reads it: 12.3 MB."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
