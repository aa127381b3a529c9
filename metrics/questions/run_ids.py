"""Read the runs that a query string names: by their ids, or by labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from runs.errors import InvalidInput
from runs.models import Collection, Run
from runs.services.tracking.labels import PREFIX, find_labelled

# The parameters that name runs.
_NAMING = ("runs", "family", "baseline", "run", "other")


def without_labels(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the parameters with the id of its run in place of every label, so that answers and what is stored name
    runs by their ids. Raise InvalidInput (`unknown_label`, `ambiguous_label`) for a label that
    names no run."""
    given = dict(parameters)
    for name in _NAMING:
        if PREFIX in given.get(name, ""):
            parts = [part.strip() for part in given[name].split(",")]
            found = [
                str(find_labelled(collection=collection, reader=reader, text=part, pointer=name))
                if part.startswith(PREFIX)
                else part
                for part in parts
            ]
            given[name] = ",".join(found)
    return given


def shown_without_labels(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the same for a page, which shows what is wrong with a parameter in its place: a label that names no run
    stays as it is."""
    given = dict(parameters)
    for name in _NAMING:
        try:
            given.update(
                without_labels({name: given[name]} if name in given else {}, collection, reader)
            )
        except InvalidInput:
            continue
    return given


def shown_without_tags(
    parameters: Mapping[str, str], name: str, collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the parameters of a page with the id of the run in place of a tag, such as `bm25` or `lab/bm25`; one that
    names no run, or several, stays as it is. Every reader who sees a run means the same one."""
    text = parameters.get(name, "").strip()
    if not text or text.startswith(PREFIX) or _is_id(text):
        return dict(parameters)
    team, _, tag = text.rpartition("/")
    seen = Run.objects.visible_to(reader).filter(collection=collection, tag=tag)
    found = (seen.filter(team__slug=team) if team else seen).values_list("pk", flat=True)[:2]
    return {**parameters, name: str(found[0])} if len(found) == 1 else dict(parameters)


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
