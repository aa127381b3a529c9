"""Caution: what a reader of a result must know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caution:
    """Something a reader of the result must know: a stable code and a sentence."""

    code: str
    message: str
