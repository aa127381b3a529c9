"""Who asks, as far as a condition on rows has to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reader:
    """What a condition on rows has to know of the user who asks."""

    pk: Any
    is_authenticated: bool
    is_staff: bool


def is_staff(user: Any) -> bool:
    return bool(user.is_authenticated and user.is_staff)


def reader_of(user: Any) -> Reader:
    """Return what a condition has to know of a user."""
    return Reader(user.pk, user.is_authenticated, is_staff(user))
