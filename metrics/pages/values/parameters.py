"""The parameters and costs of a run on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from metrics.pages.tracking.configurations import distinct_texts
from metrics.pages.tracking.parameters import filter_address
from metrics.services.boards.columns import shown_value
from metrics.services.boards.conditions import term_of_key
from metrics.services.question import run_id_in
from metrics.services.tracking.configurations import Change, read_configurations
from runs.formats.parameters import cost_leaves, flatten
from runs.models import Label, ParameterKey, Run
from runs.services.tracking.parameters import COST, PARAM

# Labels that name a baseline where the address names none, in this order.
_BASELINES = ("baseline", "main")


@dataclass(frozen=True)
class ParameterLine:
    """A parameter or cost: its value as text, a note, and the address of the runs with this value.

    The address is empty for a reader who sees no leaderboard.
    """

    name: str
    text: str
    note: str
    address: str


def parameter_lines(run: Run, scored: bool) -> list[ParameterLine]:
    """Return the parameters of a run, then its costs."""
    keys = {
        (key.space, key.name): key
        for key in ParameterKey.objects.filter(collection=run.collection).exclude(unit="")
    }
    board = reverse("collection-page", args=[run.collection.slug]) if scored else ""
    leaves = [(PARAM, leaf) for leaf in flatten(run.metadata).leaves]
    leaves += [(COST, leaf) for leaf in cost_leaves(run.costs)]

    lines = []
    for space, leaf in leaves:
        key, name = keys.get((space, leaf.name)), term_of_key(space, leaf.name)
        notes = [key.unit if key else "", _interval(run.costs[leaf.name]) if space == COST else ""]
        address = filter_address(board, name, leaf.value) if board and name else ""
        lines.append(
            ParameterLine(
                leaf.name, shown_value(leaf.value), ", ".join(filter(None, notes)), address
            )
        )

    return lines


def _interval(cost: Any) -> str:
    """Return the interval and the number of measurements of a cost."""
    if not isinstance(cost, dict):
        return ""

    ends = [shown_value(cost[end]) for end in ("low", "high") if end in cost]
    parts = [
        " to ".join(ends) if len(ends) == 2 else "",
        f"{cost['n']:,} measurements" if "n" in cost else "",
    ]

    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class ChangeLine:
    """A parameter that changed, with the texts of its value before and after."""

    change: Change
    before: str
    after: str


@dataclass(frozen=True)
class ChangesSince:
    """The changes in a run since a baseline, which `label` names if the address does not.

    `compared` is the number of parameters compared, and `address` the page of both runs.
    """

    baseline: Run
    label: str
    lines: list[ChangeLine]
    compared: int
    address: str


def changes_since(run: Run, reader: Any, query: Mapping[str, str]) -> ChangesSince | None:
    """Return the changes since the `baseline` of the address, or else a labelled run of the team.

    Return None without such a run; raise InvalidInput for a baseline that the reader does not see.
    """
    baseline, label = run_id_in(query, "baseline"), ""
    if baseline is None:
        labelled = labelled_baseline(run, reader)
        if labelled is None:
            return None
        label, baseline = labelled[0], str(labelled[1])

    if baseline == str(run.pk):
        return None

    both = read_configurations(
        collection=run.collection, reader=reader, runs=[str(run.pk)], baseline=baseline
    )
    if both.baseline is None or not both.compared:
        return None

    lines = []
    for change in both.changes(1):
        before, after = distinct_texts([change.before, change.after])
        lines.append(ChangeLine(change, before, after))

    page = reverse("configurations-page", args=[run.collection.slug])
    address = f"{page}?{urlencode({'runs': str(run.pk), 'baseline': baseline})}"

    return ChangesSince(both.baseline, label, lines, both.compared, address)


def labelled_baseline(run: Run, reader: Any) -> tuple[str, UUID] | None:
    """Return name and run of the label that names a baseline of the run's team."""
    labels = Label.objects.visible_to(reader).filter(
        collection=run.collection, team=run.team, name__in=_BASELINES
    )
    runs = dict(labels.order_by().values_list("name", "run_id"))
    return next(((name, runs[name]) for name in _BASELINES if name in runs), None)
