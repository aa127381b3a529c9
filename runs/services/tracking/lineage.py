"""The graph of runs: the parents of a run and the runs made from it, and links of a run."""

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
# Rows of one walk, in which a run may occur once for each level.
_MAX_ROWS = 20_000
_LONG = ("warnings", "known_warnings", "metadata", "costs", "ir_metadata", "description")
_EDGE, _RUN = RunParent._meta.db_table, Run._meta.db_table


@dataclass(frozen=True)
class Parent:
    """A run that another one was made from."""

    run: UUID
    relation: str = RunParent.Relation.DERIVED
    weight: float | None = None


@dataclass(frozen=True)
class Edge:
    """An edge that the reader sees.

    `parent` is None for a run that is withdrawn or deleted; its `name` stays.
    """

    child: UUID
    parent: UUID | None
    name: str
    relation: str
    weight: float | None


@dataclass(frozen=True)
class Tree:
    """The ancestors of a run (levels -1, -2, ...) and its descendants (1, 2, ...), and their edges.

    The nearest runs come first. `left_out` counts runs beyond 20 levels or 500 runs, as far as the
    walk reached them.
    """

    run: UUID
    levels: dict[UUID, int]
    runs: dict[UUID, Run]
    edges: list[Edge] = field(default_factory=list)
    left_out: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.edges


def find_parents(
    parents: Iterable[Parent], reader: Any, present: Iterable[UUID] = ()
) -> list[tuple[Parent, Run]]:
    """Return each parent with its run.

    The runs `present` are parents already, and may be withdrawn. Raise InvalidInput for another
    one that the reader does not see (`unknown_run`), for one that is named twice, and for more
    than 50.
    """
    requested = list(parents)
    if len(requested) > MAX_PARENTS:
        message = f"{len(requested)} parents; a run has at most {MAX_PARENTS}"
        raise InvalidInput(message, code="too_many_runs", pointer="/parents")

    ids = {parent.run for parent in requested}
    visible = Run.objects.visible_to(reader).select_related("team").in_bulk(ids)
    runs = {**Run.objects.select_related("team").in_bulk(ids & set(present)), **visible}

    edges = set()
    for number, parent in enumerate(requested):
        if parent.run not in runs:
            raise InvalidInput(
                f"there is no run {parent.run}",
                code="unknown_run",
                pointer=f"/parents/{number}/run",
            )

        if (parent.run, parent.relation) in edges:
            message = (
                f"run {runs[parent.run].tag} is named twice as {parent.relation}; name it once"
            )
            raise InvalidInput(message, pointer=f"/parents/{number}/run")

        edges.add((parent.run, parent.relation))

    return [(parent, runs[parent.run]) for parent in requested]


def store_parents(run: Run, parents: Iterable[tuple[Parent, Run]]) -> None:
    RunParent.objects.bulk_create(
        RunParent(
            child=run,
            parent=parent_run,
            parent_name=str(parent_run)[:200],
            relation=parent.relation,
            weight=parent.weight,
            position=position,
        )
        for position, (parent, parent_run) in enumerate(parents)
    )


def replace_parents(
    *, run: Run, parents: Iterable[Parent], reader: Any, origin: Origin = SYSTEM
) -> None:
    """Replace the parents of a run, which the caller has locked, by others.

    Parents that the reader does not see stay, and so do the names of deleted ones. Raise Conflict
    (`cycle`) for a parent that is the run itself or was made from it.
    """
    with transaction.atomic():
        old = list(RunParent.objects.visible_to(reader).filter(child=run).exclude(parent=None))
        new = find_parents(parents, reader, [edge.parent_id for edge in old if edge.parent_id])

        # Edges of these collections are changed by one request at a time, so that no two of them
        # close a cycle.
        pks = {run.collection_id, *(parent_run.collection_id for _, parent_run in new)}
        collections = Collection.objects.select_for_update().filter(pk__in=pks).order_by("pk")
        list(collections.values_list("pk"))

        descendants = _walk(run.pk, reader, up=False, levels=None)
        for number, (_, parent_run) in enumerate(new):
            if parent_run.pk in descendants:
                source = (
                    "itself"
                    if parent_run.pk == run.pk
                    else f"{parent_run.tag}, which was made from it"
                )

                raise Conflict(
                    f"{run.tag} cannot be made from {source}; remove the other edge first",
                    code="cycle",
                    pointer=f"/parents/{number}/run",
                )

        before = [_as_json(edge.parent_id, edge.relation, edge.weight) for edge in old]
        after = [_as_json(parent.run, parent.relation, parent.weight) for parent, _ in new]
        if before == after:
            return

        RunParent.objects.filter(pk__in=[edge.pk for edge in old]).delete()
        store_parents(run, new)
        record(
            origin,
            AuditEvent.Action.RUN_CHANGED,
            run,
            collection=run.collection,
            before={"parents": before},
            after={"parents": after},
        )


def _as_json(run: UUID | None, relation: str, weight: float | None) -> dict[str, Any]:
    return {"run": str(run), "relation": relation, "weight": weight}


def parents_of(run: Run, reader: Any) -> list[Edge]:
    """Return the edges to the parents of a run that the reader sees, in their order."""
    return _edges([run.pk], reader, None)


def _edges(children: Iterable[UUID], reader: Any, nodes: Iterable[UUID] | None) -> list[Edge]:
    """Return the visible edges of these children, to live parents only among the `nodes`."""
    allowed = None if nodes is None else set(nodes)
    rows = (
        RunParent.objects.visible_to(reader)
        .filter(child__in=list(children))
        .order_by("child", "position", "pk")
    )

    edges = []
    for edge in rows.select_related("parent__team").defer(*(f"parent__{name}" for name in _LONG)):
        live = edge.parent is not None and edge.parent.deleted_at is None
        if live and allowed is not None and edge.parent_id not in allowed:
            continue

        name = str(edge.parent) if live else edge.parent_name
        parent = edge.parent_id if live else None
        edges.append(Edge(edge.child_id, parent, name, edge.relation, edge.weight))

    return edges


def read_tree(run: Run, reader: Any) -> Tree:
    """Return the tree of a run, as far as it leads through runs that the reader sees."""
    above = _walk(run.pk, reader, up=True, levels=MAX_LEVELS + 1)
    below = _walk(run.pk, reader, up=False, levels=MAX_LEVELS + 1)
    levels = {**below, **{pk: -level for pk, level in above.items()}}
    ordered = sorted(levels, key=lambda pk: (abs(levels[pk]), levels[pk], pk))
    nodes = [pk for pk in ordered if abs(levels[pk]) <= MAX_LEVELS][:MAX_NODES]
    runs = Run.objects.select_related("team", "collection").defer(*_LONG).in_bulk(nodes)
    edges = _edges(nodes, reader, nodes)

    return Tree(run.pk, {pk: levels[pk] for pk in nodes}, runs, edges, len(ordered) - len(nodes))


def has_lineage(run: Run) -> bool:
    """Return whether a run has parents or children, seen or not."""
    return RunParent.objects.filter(Q(child=run) | Q(parent=run)).exists()


def _walk(start: UUID, reader: Any, *, up: bool, levels: int | None) -> dict[UUID, int]:
    """Return the runs that a walk along the edges reaches, with the lowest level of each.

    The level of the start is 0. The walk leads through runs that the reader sees. Without `levels`
    every run is visited once, and its level is 0.
    """
    try:
        visible, parameters = (
            Run.objects.visible_to(reader).order_by().values("pk").query.sql_with_params()
        )
    except EmptyResultSet:
        return {start: 0}

    near, far = ("child_id", "parent_id") if up else ("parent_id", "child_id")
    level, bound, limit = "0", "", ""

    if levels is not None:
        level, bound = "reached.level + 1", f"reached.level < {levels} AND "
        limit = f" LIMIT {_MAX_ROWS}"

    # Only names of tables and columns are interpolated, never user input.
    sql = (
        f"WITH RECURSIVE reached(run, level) AS (SELECT id, 0 FROM {_RUN} WHERE id = %s UNION "  # noqa: S608
        f"SELECT edge.{far}, {level} FROM reached JOIN {_EDGE} edge ON edge.{near} = reached.run "
        f"WHERE {bound}edge.{far} IN ({visible})) SELECT run, level FROM reached{limit}"
    )

    key = Run._meta.pk.get_db_prep_value(start, connection)

    levels_by_run: dict[UUID, int] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql, [key, *parameters])
        for run, reached in cursor.fetchall():
            pk = UUID(str(run))
            levels_by_run[pk] = min(reached, levels_by_run.get(pk, reached))

    return levels_by_run


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
        Link(link.kind, link.url, link.commit, link.title)
        for link in run.links.order_by("position", "pk")
    ]


def replace_links(*, run: Run, links: list[Link], origin: Origin = SYSTEM) -> None:
    """Replace the links of a run, which the caller has locked, by checked ones."""
    with transaction.atomic():
        before = links_of(run)
        if before == links:
            return

        run.links.all().delete()
        store_links(run, links)
        record(
            origin,
            AuditEvent.Action.RUN_CHANGED,
            run,
            collection=run.collection,
            before={"links": [vars(link) for link in before]},
            after={"links": [vars(link) for link in links]},
        )
