"""Find a run that a form names, where a list would not have them all."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from runs.errors import InvalidInput
from runs.models import Run


def named_run(text: str, runs: QuerySet[Run], pointer: str) -> UUID:
    """Return the id that is named by itself, by a tag, or by a collection and a tag.

    `robust04/bm25` is a tag in a collection. Raise InvalidInput (`unknown_run`) for a tag that none
    of these runs has, or several.
    """
    try:
        return UUID(text)
    except ValueError:
        pass

    collection, _, tag = text.rpartition("/")
    matches = runs.filter(tag=tag)

    if collection:
        matches = matches.filter(collection__slug=collection)

    keys = list(matches.order_by().values_list("pk", flat=True)[:2])
    if len(keys) != 1:
        which = "several of these runs are" if keys else "none of these runs is"
        message = f"{which} called {text[:80]!r}; write collection/tag, or the id of a run"
        raise InvalidInput(message, code="unknown_run", pointer=pointer)

    return keys[0]
