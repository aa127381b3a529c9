"""The parameters and costs of a run on its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from metrics.pages.boards.parameters import filter_address
from metrics.services.boards.columns import shown_value
from metrics.services.boards.conditions import written
from runs.formats.parameters import cost_leaves, flatten
from runs.models import ParameterKey, Run
from runs.services.parameters import COST, PARAM


@dataclass(frozen=True)
class ParameterLine:
    """A parameter or cost: its value as text, what else is known of it, and the address of the leaderboard of the runs
    with this value, empty where there is none to see."""

    name: str
    text: str
    note: str
    address: str


def parameter_lines(run: Run, scored: bool) -> list[ParameterLine]:
    """Return the parameters of a run, then its costs."""
    keys = {
        (key.space, key.name): key for key in ParameterKey.objects.filter(collection=run.collection).exclude(unit="")
    }
    board = reverse("collection-page", args=[run.collection.slug]) if scored else ""
    leaves = [(PARAM, leaf) for leaf in flatten(run.metadata).leaves]
    leaves += [(COST, leaf) for leaf in cost_leaves(run.costs)]
    lines = []
    for space, leaf in leaves:
        key, name = keys.get((space, leaf.name)), written(space, leaf.name)
        notes = [key.unit if key else "", _interval(run.costs[leaf.name]) if space == COST else ""]
        address = filter_address(board, name, leaf.value) if board and name else ""
        lines.append(ParameterLine(leaf.name, shown_value(leaf.value), ", ".join(filter(None, notes)), address))
    return lines


def _interval(cost: Any) -> str:
    """Return what is known of a cost beside its value."""
    if not isinstance(cost, dict):
        return ""
    ends = [shown_value(cost[end]) for end in ("low", "high") if end in cost]
    parts = [" to ".join(ends) if len(ends) == 2 else "", f"{cost['n']:,} measurements" if "n" in cost else ""]
    return ", ".join(filter(None, parts))
