"""Writes that a reading causes: they wait until its snapshot of the database has ended."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

# The writes to do after the open snapshot, each with whether to do it after an error, too; None if
# no snapshot is open. metrics.services.snapshots opens and closes it.
WRITES: ContextVar[list[tuple[Callable[[], object], bool]] | None] = ContextVar(
    "writes", default=None
)


def after_snapshot(write: Callable[[], object], *, always: bool = False) -> None:
    """Call `write` after the open snapshot has ended, or immediately if none is open.

    With `always`, call it also if an error ends the snapshot.
    """
    waiting = WRITES.get()
    if waiting is None:
        write()
    else:
        waiting.append((write, always))
