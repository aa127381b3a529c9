"""Read the runs that a query string names by their ids, labels or tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from metrics.services.question import MAX_BASELINES
from runs.errors import InvalidInput
from runs.models import Collection, Run
from runs.services.tracking.labels import PREFIX, find_labelled

# The parameters that name runs.
_NAMING = ("runs", "family", "baseline", "run", "other")


def without_labels(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the parameters with the id of its run in place of every label.

    Raise InvalidInput (`unknown_label`, `ambiguous_label`) for a label that names no run.
    """
    by_id = dict(parameters)
    for name in _NAMING:
        if PREFIX not in by_id.get(name, ""):
            continue

        runs = [part.strip() for part in by_id[name].split(",")]
        for index, text in enumerate(runs):
            if text.startswith(PREFIX):
                pk = find_labelled(collection=collection, reader=reader, text=text, pointer=name)
                runs[index] = str(pk)

        by_id[name] = ",".join(runs)

    return by_id


def shown_without_labels(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the same for a page, where a label that names no run stays as it is.

    The page shows what is wrong with a parameter in its place.
    """
    by_id = dict(parameters)
    for name in _NAMING:
        try:
            by_id |= without_labels(
                {name: by_id[name]} if name in by_id else {}, collection, reader
            )
        except InvalidInput:
            continue

    return by_id


def shown_without_tags(
    parameters: Mapping[str, str], name: str, collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the parameters of a page with the ids of runs in place of their tags in one of them.

    A tag is `bm25` or `lab/bm25`; several have commas between them. One that names no run, or
    several, stays as it is. Every reader who sees a run means the same one.
    """
    text = parameters.get(name, "").strip()
    if not text:
        return dict(parameters)

    # A tag may contain commas.
    by_id = _id_of(text, collection, reader)
    parts = text.split(",")
    if by_id == text and 1 < len(parts) <= MAX_BASELINES:
        by_id = ",".join(_id_of(part.strip(), collection, reader) for part in parts)

    return {**parameters, name: by_id}


def _id_of(text: str, collection: Collection, reader: Any) -> str:
    """Return the id of the run that has this tag, or the text where there is no such run."""
    if not text or text.startswith(PREFIX) or _is_id(text):
        return text

    team, _, tag = text.rpartition("/")
    runs = Run.objects.visible_to(reader).filter(collection=collection, tag=tag)
    if team:
        runs = runs.filter(team__slug=team)

    pks = runs.values_list("pk", flat=True)[:2]
    return str(pks[0]) if len(pks) == 1 else text


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False

    return True
