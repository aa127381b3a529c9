"""Read the runs that a query string names: by their ids, or by labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from runs.errors import InvalidInput
from runs.models import Collection, Run
from runs.services.labels import PREFIX, find_labelled

# The parameters that name runs.
_NAMING = ("runs", "family", "baseline", "run", "other")


def without_labels(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> dict[str, str]:
    """Return the parameters with the id of its run in place of every label, so that answers and what is stored name
    runs by their ids. Raise InvalidInput (`unknown_label`, `ambiguous_label`) for a label that names no run."""
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


def run_ids_in(parameters: Mapping[str, str], name: str = "runs") -> list[str]:
    """Return the named runs; an empty list means all."""
    return [_run_id(run, name) for run in parameters.get(name, "").split(",") if run]


def run_id_in(parameters: Mapping[str, str], name: str) -> str | None:
    return _run_id(parameters[name], name) if parameters.get(name) else None


def family_in(parameters: Mapping[str, str], runs: list[str]) -> list[str] | None:
    """Return the runs among which `runs` are tested; an empty list means all, None that `runs` are the family."""
    text = parameters.get("family", "").strip()
    if not text or (text == "all" and not runs):
        return None
    if not runs:
        message = "family needs runs=: it names the runs from which those of runs= were selected"
        raise InvalidInput(message, pointer="family")
    return (
        []
        if text == "all"
        else list(dict.fromkeys([*run_ids_in({"family": text}, "family"), *runs]))
    )


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _run_id(text: str, name: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        if text.strip().startswith(PREFIX):
            message = f"{text[:120]} names no run that you see here, or runs of several teams: write {PREFIX}TEAM/NAME"
            raise InvalidInput(message, code="unknown_label", pointer=name) from error
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer=name) from error
