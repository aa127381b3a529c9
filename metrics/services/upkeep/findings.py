"""What a look at rows and files finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where, what and what to do about it. A note is no fault, only something to know.

    `repair` does what can be done without losing anything.
    """

    code: str
    message: str
    repair: Callable[[], object] | None = None
    note: bool = False

    def __str__(self) -> str:
        return f"{'note' if self.note else 'wrong'} {self.code}: {self.message}"
