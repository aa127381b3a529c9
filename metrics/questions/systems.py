"""The parameters of questions about a system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.errors import InvalidInput
from runs.models import Collection, System


def system_in(parameters: Mapping[str, str], reader: Any) -> System:
    """Return the system that `team/name` names.

    Raise InvalidInput (`unknown_system`) for one that the reader does not see.
    """
    text = parameters.get("system", "")
    team, _, slug = text.partition("/")
    visible = System.objects.visible_to(reader).select_related("team")
    system = visible.filter(team__slug=team, slug=slug).first() if slug else None

    if system is None:
        message = (
            f"system={text[:120]}: name a system that you see as team/name; systems/ lists them"
        )
        raise InvalidInput(message, code="unknown_system", pointer="system")

    return system


def default_measure(collection: Collection) -> str:
    """Return the first measure of a collection whose value of a run is a mean over topics."""
    measures = (collection.measure(name) for name in collection.measures)
    return next((measure.name for measure in measures if not measure.pools), "nDCG@10")
