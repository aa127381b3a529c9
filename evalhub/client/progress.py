"""What is on its way, on standard error of a terminal: bars where rich is installed, else a line for each file."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO


class Lines:
    """A line for each file when its way has ended."""

    def __init__(self, out: TextIO, files: int) -> None:
        self._out, self._files, self._ended = out, files, 0
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def sent(self, name: str, size: int, so_far: int) -> None:
        self._sizes[name] = size

    def ended(self, name: str, state: str) -> None:
        with self._lock:
            self._ended += 1
            size = f", {in_words(self._sizes[name])} sent" if name in self._sizes else ""
            self._out.write(f"{self._ended}/{self._files} {name}: {state}{size}\n")


class Bars:
    """A bar for each file on its way, and one for all of them."""

    def __init__(self, bars: Any, files: int) -> None:
        self._bars, self._tasks = bars, dict[str, Any]()
        self._lock = threading.Lock()
        self._all = bars.add_task("files", total=files) if files > 1 else None

    def sent(self, name: str, size: int, so_far: int) -> None:
        with self._lock:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=size)
        self._bars.update(self._tasks[name], completed=so_far, total=size)

    def ended(self, name: str, state: str) -> None:
        with self._lock:
            task = self._tasks.pop(name, None)

        if task is not None:
            self._bars.remove_task(task)

        if self._all is not None:
            self._bars.advance(self._all)

        if state in ("refused", "not sent"):
            self._bars.console.print(f"{name}: {state}", markup=False, highlight=False)


def wanted(out: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody looks: a terminal, and no CI."""
    return out.isatty() and not environment.get("CI") and environment.get("TERM") != "dumb"


@contextmanager
def progress(
    hub: Any, files: int, quiet: bool = False, out: TextIO | None = None
) -> Iterator[None]:
    """Show what a server is sent while this lasts."""
    out = out or sys.stderr
    if quiet or not wanted(out):
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
    """A table that is drawn anew in place on a terminal, until it is closed."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._live, self._lines, self._last = wanted(self._out), 0, ""

    def show(self, text: str, summary: str) -> None:
        """Show a text of lines in place of the last one; where nobody looks, the summary where it has changed."""
        if not self._live:
            if summary != self._last:
                self._out.write(f"{summary}\n")
            self._last = summary
            return

        self.clear()
        (width, height), lines = _terminal_size(), text.splitlines()
        if len(lines) > height - 2:
            lines = [*lines[: height - 3], f"... and {len(lines) - height + 3} more"]

        self._out.write("".join(f"{line[: width - 1]}\n" for line in [*lines, summary]))
        self._out.flush()
        self._lines = len(lines) + 1

    def clear(self) -> None:
        """Take away what is shown."""
        if self._lines:
            # Up so many lines, and erase to the end of the screen.
            self._out.write(f"\x1b[{self._lines}A\x1b[J")
        self._lines = 0


def _terminal_size() -> tuple[int, int]:
    """Return columns and lines of the terminal; one that does not tell has 0."""
    found = os.get_terminal_size(sys.stderr.fileno()) if sys.stderr.isatty() else (0, 0)
    return found[0] or 100, found[1] or 25


def in_words(size: int) -> str:
    """Return a number of bytes as a person reads it: 12.3 MB."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
