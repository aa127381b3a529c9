"""The findings of a check of rows and files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One fault: its kind, its place and the advice. A note is not a fault, only information.

    `repair` repairs it if that loses nothing.
    """

    code: str
    message: str
    repair: Callable[[], object] | None = None
    note: bool = False

    def __str__(self) -> str:
        return f"{'note' if self.note else 'wrong'} {self.code}: {self.message}"
