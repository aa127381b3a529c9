"""Runs that a form names, where a list does not have them all."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from runs.errors import InvalidInput
from runs.models import Run


def named_run(text: str, runs: QuerySet[Run], pointer: str) -> UUID:
    """Return the one of these runs with this id, tag, or tag in a collection, such as `robust04/bm25`. Raise
    InvalidInput (`unknown_run`) for what names none of them, or several."""
    try:
        return UUID(text)
    except ValueError:
        pass
    collection, _, tag = text.rpartition("/")
    found = runs.filter(tag=tag, **({"collection__slug": collection} if collection else {}))
    keys = list(found.order_by().values_list("pk", flat=True)[:2])
    if len(keys) != 1:
        said = "several of these runs are" if keys else "none of these runs is"
        message = f"{said} called {text[:80]!r}; write collection/tag, or the id of a run"
        raise InvalidInput(message, code="unknown_run", pointer=pointer)
    return keys[0]
