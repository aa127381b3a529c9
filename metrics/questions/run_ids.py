"""Read the ids of runs from a query string."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from runs.errors import InvalidInput


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
    return [] if text == "all" else list(dict.fromkeys([*run_ids_in({"family": text}, "family"), *runs]))


def _run_id(text: str, name: str) -> str:
    try:
        return str(UUID(text.strip()))
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer=name) from error
