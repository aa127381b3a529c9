"""The lineage on the page of a run: the tree of runs above and below it, links, and proposed
parents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from runs.formats.links import header_baselines
from runs.models import Run, RunLink
from runs.services.tracking.lineage import Edge, Tree

_MOST_LINES = 200


@dataclass
class Branch:
    """A run in the tree with the edge that leads to it, and the branches behind it.

    `run` is None if it is withdrawn or gone; the branches of a run that is there `again` are shown
    elsewhere.
    """

    run: Run | None
    name: str
    relation: str
    weight: float | None
    again: bool = False
    inner: list[Branch] = field(default_factory=list)


@dataclass(frozen=True)
class Lineage:
    """The lineage of a run as its page shows it."""

    above: list[Branch]
    below: list[Branch]
    links: list[RunLink]
    proposed: list[Run]
    left_out: int

    @property
    def is_empty(self) -> bool:
        return not (self.above or self.below or self.links or self.proposed)


def read_lineage(run: Run, tree: Tree | None, reader: Any, may_change: bool) -> Lineage:
    """Return the lineage of a run from the tree that the reader sees, None if it has no edges."""
    links = list(run.links.order_by("position", "pk"))
    above: list[Branch] = []
    below: list[Branch] = []
    left_out = 0

    if tree:
        # Both directions share the lines that a page has room for.
        left_out, room = tree.left_out, [_MOST_LINES]
        above, below = (_branches(tree, run.pk, up, {run.pk}, room) for up in (True, False))
        left_out += max(0, -room[0])

    proposed: list[Run] = []

    if may_change and (tags := header_baselines(run.ir_metadata)):
        candidates = (
            Run.objects.visible_to(reader)
            .filter(collection=run.collection, tag__in=tags)
            .exclude(pk=run.pk)
        )
        parents = [branch.run.pk for branch in above if branch.run]
        proposed = list(
            candidates.exclude(pk__in=parents)
            .select_related("team")
            .order_by("tag", "team__slug")[:10]
        )

    return Lineage(above, below, links, proposed, left_out)


def _branches(tree: Tree, pk: UUID, up: bool, passed: set[UUID], room: list[int]) -> list[Branch]:
    """Return the branches behind a run.

    Each run is followed once, and `room` counts down the lines that are left.
    """
    branches: list[tuple[Branch, UUID | None]] = []
    for edge in tree.edges:
        if (edge.child if up else edge.parent) != pk:
            continue
        other = edge.parent if up else edge.child
        room[0] -= 1
        if room[0] >= 0:
            branches.append((_branch(tree, edge, other, up), other))

    for branch, other in branches:
        if other is None:
            continue
        branch.again = other in passed
        if not branch.again:
            passed.add(other)
            branch.inner = _branches(tree, other, up, passed, room)

    return [branch for branch, _ in branches]


def _branch(tree: Tree, edge: Edge, other: UUID | None, up: bool) -> Branch:
    run = tree.runs.get(other) if other else None
    name = edge.name if up or run is None else str(run)
    return Branch(run, name, f"{edge.relation} {'from' if up else 'into'}", edge.weight)


def lineage_state(tree: Tree | None) -> tuple[Hashable, ...]:
    """Return the edges and runs of the reader's page, which may be of other collections."""
    if tree is None:
        return ()

    return (
        tuple(tree.levels.items()),
        tuple(tree.edges),
        tuple(_names(tree.runs.values())),
        tree.left_out,
    )


def _names(runs: Iterable[Run]) -> Iterable[tuple[str, str]]:
    return ((str(run), run.collection.slug) for run in runs)
