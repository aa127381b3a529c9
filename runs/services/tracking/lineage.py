"""The graph of runs: from which runs a run was made, and which were made from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection, transaction
from django.db.models import Q

from runs.errors import Conflict, InvalidInput
from runs.formats.links import Link
from runs.models import AuditEvent, Collection, Run, RunLink, RunParent
from runs.services.audit.trail import SYSTEM, Origin, record

MAX_PARENTS, MAX_LEVELS, MAX_NODES = 50, 20, 500
# Rows of one walk, in which a run may stand once for each level.
_MAX_ROWS = 20_000
_LONG = ("warnings", "known_warnings", "metadata", "costs", "ir_metadata", "description")
_EDGE, _RUN = RunParent._meta.db_table, Run._meta.db_table


@dataclass(frozen=True)
class Parent:
    """A run from which another one is said to be made."""

    run: UUID
    relation: str = RunParent.Relation.DERIVED
    weight: float | None = None


@dataclass(frozen=True)
class Edge:
    """An edge that the reader sees. `parent` is None for a run that is withdrawn or gone, whose `name` stays."""

    child: UUID
    parent: UUID | None
    name: str
    relation: str
    weight: float | None


@dataclass(frozen=True)
class Tree:
    """The runs from which a run was made (levels -1, -2, ...) and those made from it (1, 2, ...), nearest first, and
    the edges among them. `left_out` counts those beyond 20 levels or 500 runs, as far as they were
    walked."""

    run: UUID
    levels: dict[UUID, int]
    runs: dict[UUID, Run]
    edges: list[Edge] = field(default_factory=list)
    left_out: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.edges


def find_parents(
    parents: Iterable[Parent], reader: Any, kept: Iterable[UUID] = ()
) -> list[tuple[Parent, Run]]:
    """Return the runs of parents. Raise InvalidInput for one that the reader does not see (`unknown_run`) or that is
    there twice, and for more than 50; withdrawn ones among `kept` stay."""
    named = list(parents)
    if len(named) > MAX_PARENTS:
        message = f"{len(named)} parents; a run has at most {MAX_PARENTS}"
        raise InvalidInput(message, code="too_many_runs", pointer="/parents")
    ids = {parent.run for parent in named}
    seen = Run.objects.visible_to(reader).select_related("team").in_bulk(ids)
    found = {**Run.objects.select_related("team").in_bulk(ids & set(kept)), **seen}
    asked = set()
    for number, parent in enumerate(named):
        if parent.run not in found:
            raise InvalidInput(
                f"there is no run {parent.run}",
                code="unknown_run",
                pointer=f"/parents/{number}/run",
            )
        if (parent.run, parent.relation) in asked:
            message = (
                f"run {found[parent.run].tag} is named twice as {parent.relation}; name it once"
            )
            raise InvalidInput(message, pointer=f"/parents/{number}/run")
        asked.add((parent.run, parent.relation))
    return [(parent, found[parent.run]) for parent in named]


def store_parents(run: Run, parents: Iterable[tuple[Parent, Run]]) -> None:
    RunParent.objects.bulk_create(
        RunParent(
            child=run,
            parent=found,
            parent_name=str(found)[:200],
            relation=parent.relation,
            weight=parent.weight,
            position=position,
        )
        for position, (parent, found) in enumerate(parents)
    )


def replace_parents(
    *, run: Run, parents: Iterable[Parent], reader: Any, origin: Origin = SYSTEM
) -> None:
    """Replace the parents of a run, which the caller has locked, by others.

    What the reader does not see of the present ones stays, and so do the names of runs that are
    gone. Raise Conflict (`cycle`) where a parent is the run or was made from it.
    """
    with transaction.atomic():
        old = list(RunParent.objects.visible_to(reader).filter(child=run).exclude(parent=None))
        found = find_parents(parents, reader, [edge.parent_id for edge in old if edge.parent_id])
        # Edges of these collections are changed by one request at a time, so that no two of them
        # close a cycle.
        collections = {run.collection_id, *(parent.collection_id for _, parent in found)}
        list(
            Collection.objects.select_for_update()
            .filter(pk__in=collections)
            .order_by("pk")
            .values_list("pk")
        )
        below = _reached(run.pk, reader, up=False, levels=None)
        for number, (_, parent) in enumerate(found):
            if parent.pk in below:
                what = "itself" if parent.pk == run.pk else f"{parent.tag}, which was made from it"
                message = f"{run.tag} cannot be made from {what}; remove the other edge first"
                raise Conflict(message, code="cycle", pointer=f"/parents/{number}/run")
        before = [_told(edge.parent_id, edge.relation, edge.weight) for edge in old]
        after = [_told(parent.run, parent.relation, parent.weight) for parent, _ in found]
        if before == after:
            return
        RunParent.objects.filter(pk__in=[edge.pk for edge in old]).delete()
        store_parents(run, found)
        told: dict[str, Any] = {"before": {"parents": before}, "after": {"parents": after}}
        record(origin, AuditEvent.Action.RUN_CHANGED, run, collection=run.collection, **told)


def _told(run: UUID | None, relation: str, weight: float | None) -> dict[str, Any]:
    return {"run": str(run), "relation": relation, "weight": weight}


def parents_of(run: Run, reader: Any) -> list[Edge]:
    """Return the edges to the parents of a run that the reader sees, in their order."""
    return _edges([run.pk], reader, None)


def _edges(children: Iterable[UUID], reader: Any, nodes: Iterable[UUID] | None) -> list[Edge]:
    """Return the visible edges of these children; to live parents only if they are among the nodes."""
    kept = None if nodes is None else set(nodes)
    rows = (
        RunParent.objects.visible_to(reader)
        .filter(child__in=list(children))
        .order_by("child", "position", "pk")
    )
    found = []
    for edge in rows.select_related("parent__team").defer(*(f"parent__{name}" for name in _LONG)):
        live = edge.parent is not None and edge.parent.deleted_at is None
        if live and kept is not None and edge.parent_id not in kept:
            continue
        name = str(edge.parent) if live else edge.parent_name
        parent = edge.parent_id if live else None
        found.append(Edge(edge.child_id, parent, name, edge.relation, edge.weight))
    return found


def read_tree(run: Run, reader: Any) -> Tree:
    """Return the tree of a run, as far as it leads through runs that the reader sees."""
    above = _reached(run.pk, reader, up=True, levels=MAX_LEVELS + 1)
    below = _reached(run.pk, reader, up=False, levels=MAX_LEVELS + 1)
    levels = {**below, **{pk: -level for pk, level in above.items()}}
    ordered = sorted(levels, key=lambda pk: (abs(levels[pk]), levels[pk], pk))
    shown = [pk for pk in ordered if abs(levels[pk]) <= MAX_LEVELS][:MAX_NODES]
    known = Run.objects.select_related("team", "collection").defer(*_LONG).in_bulk(shown)
    edges = _edges(shown, reader, shown)
    return Tree(run.pk, {pk: levels[pk] for pk in shown}, known, edges, len(ordered) - len(shown))


def has_lineage(run: Run) -> bool:
    """Return whether a run has parents or children, seen or not."""
    return RunParent.objects.filter(Q(child=run) | Q(parent=run)).exists()


def _reached(start: UUID, reader: Any, *, up: bool, levels: int | None) -> dict[UUID, int]:
    """Return the runs that a walk along the edges reaches, with the level at which it first does; 0 for its start.

    The walk leads through runs that the reader sees. Without `levels` every run is visited once,
    and its level is 0.
    """
    try:
        seen, seen_parameters = (
            Run.objects.visible_to(reader).order_by().values("pk").query.sql_with_params()
        )
    except EmptyResultSet:
        return {start: 0}
    here, there = ("child_id", "parent_id") if up else ("parent_id", "child_id")
    level, bound = (
        ("0", "") if levels is None else ("reached.level + 1", f"reached.level < {levels} AND ")
    )
    # The names are those of tables and columns, nothing that anybody has sent.
    sql = (
        f"WITH RECURSIVE reached(run, level) AS (SELECT id, 0 FROM {_RUN} WHERE id = %s UNION "  # noqa: S608
        f"SELECT edge.{there}, {level} FROM reached JOIN {_EDGE} edge ON edge.{here} = reached.run "
        f"WHERE {bound}edge.{there} IN ({seen})) SELECT run, level FROM reached"
    )
    sql += "" if levels is None else f" LIMIT {_MAX_ROWS}"
    key = Run._meta.pk.get_db_prep_value(start, connection)
    found: dict[UUID, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql, [key, *seen_parameters])
        for run, reached in cursor.fetchall():
            pk = UUID(str(run))
            found[pk] = min(reached, found.get(pk, reached))
    return found


def store_links(run: Run, links: Iterable[Link]) -> None:
    RunLink.objects.bulk_create(
        RunLink(
            run=run,
            kind=link.kind,
            url=link.url,
            commit=link.commit,
            title=link.title,
            position=position,
        )
        for position, link in enumerate(links)
    )


def links_of(run: Run) -> list[Link]:
    return [
        Link(one.kind, one.url, one.commit, one.title)
        for one in run.links.order_by("position", "pk")
    ]


def replace_links(*, run: Run, links: list[Link], origin: Origin = SYSTEM) -> None:
    """Replace the links of a run, which the caller has locked; they were checked."""
    with transaction.atomic():
        before = links_of(run)
        if before == links:
            return
        run.links.all().delete()
        store_links(run, links)
        told: dict[str, Any] = {
            "before": {"links": [vars(link) for link in before]}, "after": {"links": [vars(link) for link in links]},
        }  # fmt: skip
        record(origin, AuditEvent.Action.RUN_CHANGED, run, collection=run.collection, **told)
