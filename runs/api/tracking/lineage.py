"""The API of lineage: the parents of a run, its tree, and its links."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs.formats.links import KINDS
from runs.models import Run, RunParent, Scope
from runs.services.tracking.lineage import (
    links_of,
    parents_of,
    read_tree,
    replace_links,
    replace_parents,
)
from runs.web.access import lock_row, owned_run, visible_run
from runs.web.lineage_fields import LinksField, ParentsField
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, shape


class RunLinkAnswer(TypedDict):
    """An address that belongs to a run."""

    kind: Annotated[str, OneOf(KINDS)]
    url: str
    commit: str
    title: str


class RunLinks(TypedDict):
    run: UUID
    links: list[RunLinkAnswer]


class RunParentAnswer(TypedDict):
    """A run from which another one was made."""

    run: Annotated[UUID | None, "null for one that was withdrawn or is gone; its name stays"]
    name: Annotated[str, "team/tag"]
    relation: Annotated[str, OneOf(RunParent.Relation.choices)]
    weight: float | None


class RunParents(TypedDict):
    run: UUID
    parents: list[RunParentAnswer]


class TreeNode(TypedDict):
    run: UUID
    team: str
    tag: str
    collection: str
    level: Annotated[int, "0 the run itself, -1 its parents, 1 its children, ..."]


class TreeEdge(TypedDict):
    child: UUID
    parent: Annotated[UUID | None, "null for one that was withdrawn or is gone; its name stays"]
    name: Annotated[str, "of the parent, as team/tag"]
    relation: Annotated[str, OneOf(RunParent.Relation.choices)]
    weight: float | None


class RunTree(TypedDict):
    """What a run was made from, and what was made from it."""

    run: UUID
    nodes: Annotated[
        list[TreeNode], "the nearest first; 500 at most, up to 20 levels above and below"
    ]
    edges: list[TreeEdge]
    left_out: Annotated[int, "runs beyond these limits, as far as they were counted"]


class ParentsSerializer(KnownFields, serializers.Serializer[Any]):
    """All parents of a run."""

    parents = ParentsField()


class LinksSerializer(KnownFields, serializers.Serializer[Any]):
    """All links of a run."""

    links = LinksField()


class RunParentList(APIView):
    """The runs from which a run was made; PUT replaces them."""

    scopes = {"PUT": Scope.SUBMIT}

    @extend_schema(responses=shape(RunParents))
    def get(self, request: Request, run: UUID) -> Response:
        return Response(_parents(request, visible_run(request, run)))

    @extend_schema(request=ParentsSerializer, responses=shape(RunParents))
    def put(self, request: Request, run: UUID) -> Response:
        with transaction.atomic():
            locked_run = _lock_run(request, run)
            serializer = ParentsSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            parents = serializer.validated_data["parents"]
            replace_parents(
                run=locked_run,
                parents=parents,
                reader=request.user,
                origin=origin_of(request),
            )

        return Response(_parents(request, locked_run))


class RunLinkList(APIView):
    """The links of a run; PUT replaces them."""

    scopes = {"PUT": Scope.SUBMIT}
    problems_of_bodies = (422,)

    @extend_schema(responses=shape(RunLinks))
    def get(self, request: Request, run: UUID) -> Response:
        return Response(_links(visible_run(request, run)))

    @extend_schema(request=LinksSerializer, responses=shape(RunLinks))
    def put(self, request: Request, run: UUID) -> Response:
        with transaction.atomic():
            locked_run = _lock_run(request, run)
            serializer = LinksSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            replace_links(
                run=locked_run, links=serializer.validated_data["links"], origin=origin_of(request)
            )

        return Response(_links(locked_run))


class RunTreeView(APIView):
    """What a run was made from and what was made from it, as far as the caller sees these runs."""

    @extend_schema(responses=shape(RunTree))
    def get(self, request: Request, run: UUID) -> Response:
        visible = visible_run(request, run)
        tree = read_tree(visible, request.user)
        nodes = []
        for pk, level in tree.levels.items():
            # Runs that the caller does not see have a level, too.
            if node := tree.runs.get(pk):
                nodes.append(
                    TreeNode(
                        run=node.pk,
                        team=node.team.slug,
                        tag=node.tag,
                        collection=node.collection.slug,
                        level=level,
                    )
                )

        edges = [
            TreeEdge(
                child=edge.child,
                parent=edge.parent,
                name=edge.name,
                relation=edge.relation,
                weight=edge.weight,
            )
            for edge in tree.edges
        ]

        return Response(RunTree(run=visible.pk, nodes=nodes, edges=edges, left_out=tree.left_out))


def _lock_run(request: Request, pk: UUID) -> Run:
    """Return a run that the caller may change, and lock its row."""
    lock_row(Run, pk)
    return owned_run(request, pk)


def _parents(request: Request, run: Run) -> RunParents:
    parents = [
        RunParentAnswer(run=edge.parent, name=edge.name, relation=edge.relation, weight=edge.weight)
        for edge in parents_of(run, request.user)
    ]
    return RunParents(run=run.pk, parents=parents)


def _links(run: Run) -> RunLinks:
    links = [
        RunLinkAnswer(kind=link.kind, url=link.url, commit=link.commit, title=link.title)
        for link in links_of(run)
    ]
    return RunLinks(run=run.pk, links=links)
