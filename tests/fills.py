"""Fill the database of a test with what an earlier test of this process wrote, without the requests that led to it.

The API needs 15 ms for a small collection and 20 ms for a run; to write the same rows and files again takes 2 ms. This
works on SQLite alone, where the end of a test's transaction resets the sequences of keys, so that rows get the same
keys in every test.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection

from runs.models import User

Made = TypeVar("Made")


@dataclass(frozen=True)
class Filled:
    """What a fill wrote, and what it returned.

    `statements` are those that changed the database, each with its parameters and whether it was for many rows; `files`
    are the contents of the data folder's new files by their paths in it.
    """

    statements: list[tuple[str, Any, bool]]
    files: dict[Path, bytes]
    returned: Any


# A fill is known by the sequences of keys and the users at the start, the fills before it, and its name.
KEPT: dict[tuple[Hashable, ...], Filled] = {}


class Fills:
    """The fills of one test.

    A fill is repeated if it follows the same fills as before and nothing else was written in between. Without `repeat`,
    everything goes through the API.
    """

    def __init__(self, folder: Path, repeat: bool) -> None:
        self._folder = folder
        self._repeat = repeat and connection.vendor == "sqlite" and connection.in_atomic_block
        self._done: tuple[Hashable, ...] = ()
        self._changes = -1

    def fill(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """Do what `make` does, and return a copy of what it returns; `name` tells it from every other fill."""
        if self._repeat and not self._done:
            with connection.cursor() as cursor:
                keys = cursor.execute(
                    "SELECT name, seq FROM sqlite_sequence ORDER BY name"
                ).fetchall()
            self._done = (*keys, *User.objects.order_by("pk").values_list("pk", "username"))
        elif self._repeat:
            self._repeat = connection.connection.total_changes == self._changes
        if not self._repeat:
            return make()
        self._done = (*self._done, name)
        if self._done not in KEPT:
            KEPT[self._done] = self._record(make)
        else:
            self._write(KEPT[self._done])
        self._changes = connection.connection.total_changes
        made: Made = copy.deepcopy(KEPT[self._done].returned)
        return made

    def _record(self, make: Callable[[], Any]) -> Filled:
        statements = []

        def note(
            execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
        ) -> Any:
            if not sql.startswith("SELECT"):
                statements.append((sql, params, many))
            return execute(sql, params, many, context)

        before = self._files()
        with connection.execute_wrapper(note):
            returned = make()
        files = {
            path: content for path, content in self._files().items() if before.get(path) != content
        }
        return Filled(statements, files, returned)

    def _files(self) -> dict[Path, bytes]:
        paths = (path for path in self._folder.rglob("*") if path.is_file())
        return {path.relative_to(self._folder): path.read_bytes() for path in paths}

    def _write(self, filled: Filled) -> None:
        with connection.cursor() as cursor:
            for sql, params, many in filled.statements:
                (cursor.executemany if many else cursor.execute)(sql, params)
        for path, content in filled.files.items():
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / path).write_bytes(content)
