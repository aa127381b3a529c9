"""The API that edits the metadata of stored runs, one or many at once, and that reads earlier edits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.boards.matching import matching_runs
from runs.api import answers
from runs.api.serializers import MetadataEditSerializer
from runs.api.submissions.submissions import RUNS, locked
from runs.errors import InvalidInput, NotAllowed
from runs.models import Collection, ParameterKey, Run, Scope, Team
from runs.services.tracking.edits import (
    SPACES,
    Edit,
    edit_runs,
    history_of,
    replace_metadata,
    save_edits,
)
from runs.web import conditions
from runs.web.access import note_filter, visible_collection, visible_run
from runs.web.fields import MetadataField
from runs.web.json_bodies import JSONParser, MergePatchParser
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import Id, Kind, OneOf, shape

MAX_RUNS = 1_000

# Any value of metadata.
AnyValue = Annotated[Any, Kind(serializers.JSONField, allow_null=True)]


class MetadataSerializer(KnownFields, serializers.Serializer[Any]):
    """The whole metadata of a run."""

    answered = answers.Run
    metadata = MetadataField()


class ChangedValue(TypedDict):
    space: Annotated[str, OneOf(ParameterKey.Space.choices)]
    name: str
    before: Annotated[AnyValue, "null where it was not set"]
    after: AnyValue


class RunEdit(TypedDict):
    time: datetime
    actor: Annotated[
        str | None, "user name; null for readers outside the run's team and the organisers"
    ]
    changes: list[ChangedValue]


class EditHistory(TypedDict):
    """The edits of a run's metadata and costs."""

    run: Id
    edits: Annotated[list[RunEdit], "the first one first"]


class EditedRun(TypedDict):
    run: Id
    tag: str
    changes: list[ChangedValue]


class EditedRuns(TypedDict):
    """What was changed, or would be."""

    dry_run: bool
    runs: Annotated[int, "those that were named or selected"]
    changed: int
    results: Annotated[list[EditedRun], "those that are changed"]


class RunMetadata(APIView):
    """The metadata of a run."""

    scopes = {"PUT": Scope.SUBMIT}
    conditional = ("PUT",)
    problems_of_bodies = (422,)

    @extend_schema(
        request=MetadataSerializer, responses=RUNS.shape, parameters=[conditions.PARAMETER]
    )
    def put(self, request: Request, run: UUID) -> Response:
        """Replace the metadata of a run as a whole."""
        with transaction.atomic():
            found = locked(request, RUNS, run)
            serializer = MetadataSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            metadata: dict[str, Any] = serializer.validated_data["metadata"]
            replace_metadata(run=found, metadata=metadata, origin=origin_of(request))
        changed = visible_run(request, run)
        response = RUNS.response(request, changed)
        response["ETag"] = RUNS.tag(changed)
        return response


class RunHistory(APIView):
    """The edits of a run's metadata and costs; the first one has what was submitted."""

    @extend_schema(responses=shape(EditHistory))
    def get(self, request: Request, run: UUID) -> Response:
        found = visible_run(request, run)
        named = may_see_actors(request.user, found)
        edits = [
            RunEdit(
                time=edit.time,
                actor=edit.actor if named else None,
                changes=[
                    ChangedValue(space=one.space, name=one.name, before=one.before, after=one.after)
                    for one in edit.changes
                ],
            )
            for edit in history_of(found)
        ]
        return Response(EditHistory(run=str(run), edits=edits))


def may_see_actors(user: Any, run: Run) -> bool:
    """Return whether the reader may see who edited a run: its team, and the organisers."""
    if Team.objects.of(user).filter(pk=run.team_id).exists():
        return True
    return Collection.objects.managed_by(user).filter(pk=run.collection_id).exists()


class RunsMetadata(APIView):
    """The metadata of many runs of a collection."""

    scopes = {"PATCH": Scope.SUBMIT}
    problems_of_bodies = (422,)
    parser_classes = (JSONParser, MergePatchParser)

    @extend_schema(request=MetadataEditSerializer, responses=shape(EditedRuns))
    def patch(self, request: Request, collection: str) -> Response:
        """Change the metadata of many runs, all or none: merge `metadata` into each, and `rename` keys."""
        serializer = MetadataEditSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        runs, edits = edit_many(request, visible_collection(request, collection), asked)
        return Response(
            EditedRuns(
                dry_run=asked["dry_run"],
                runs=runs,
                changed=len(edits),
                results=list(map(_edited, edits)),
            )
        )


def edit_many(
    request: Request, collection: Collection, asked: dict[str, Any]
) -> tuple[int, list[Edit]]:
    """Change the metadata of the runs that a body names, or with `dry_run` none; return their number and the changes of
    those that it changes."""
    _check(asked)
    with transaction.atomic():
        runs = list(_chosen(request, collection, asked))
        patch, names = asked.get("metadata"), asked.get("rename")
        edits = [
            edit
            for edit in edit_runs(collection=collection, runs=runs, patch=patch, names=names)
            if edit.differing
        ]
        if not asked["dry_run"]:
            save_edits(collection, edits, origin_of(request))
    return len(runs), edits


def _check(asked: dict[str, Any]) -> None:
    """Raise InvalidInput unless the body says which runs, in one way, and what to do."""
    if ("runs" in asked) == ("filter" in asked):
        message = "say which runs: their ids in runs, or a filter that selects some of yours; give one of the two"
        raise InvalidInput(message, code="required", pointer="/runs")
    if "metadata" not in asked and "rename" not in asked:
        message = 'say what to change: metadata to merge, or rename, such as {"old": "new"}'
        raise InvalidInput(message, code="required", pointer="/metadata")
    if len(asked.get("runs", ())) > MAX_RUNS:
        raise _too_many(len(asked["runs"]))


def _chosen(request: Request, collection: Collection, asked: dict[str, Any]) -> QuerySet[Run]:
    """Return the runs to change, locked. Raise InvalidInput for an id of no visible run and for too many runs,
    NotAllowed for a run of another team."""
    seen = Run.objects.visible_to(request.user).filter(collection=collection)
    if "filter" in asked:
        note_filter(request, collection, asked["filter"])
        own = seen.owned_by(request.user)
        wanted = list(
            matching_runs(collection, asked["filter"], request.user, own).values_list(
                "pk", flat=True
            )
        )
        if len(wanted) > MAX_RUNS:
            raise _too_many(len(wanted))
    else:
        wanted = list(dict.fromkeys(asked["runs"]))
        known = set(seen.filter(pk__in=wanted).values_list("pk", flat=True))
        if missing := [pk for pk in wanted if pk not in known]:
            message = f"{missing[0]} is no run of collection {collection.slug}"
            raise InvalidInput(message, code="unknown_run", pointer="/runs")
        owned = set(seen.owned_by(request.user).filter(pk__in=wanted).values_list("pk", flat=True))
        if others := [pk for pk in wanted if pk not in owned]:
            raise NotAllowed(
                f"run {others[0]} belongs to another team; only its members may change it"
            )
    # In the order of their keys, so that two requests never wait for each other.
    return Run.objects.select_for_update().filter(pk__in=wanted, deleted_at=None).order_by("pk")


def _too_many(count: int) -> InvalidInput:
    return InvalidInput(
        f"{count:,} runs; a request changes at most {MAX_RUNS:,}",
        code="too_many_runs",
        pointer="/runs",
    )


def _edited(edit: Edit) -> EditedRun:
    changes = [
        ChangedValue(space=SPACES[column], name=name, before=before, after=after)
        for column, pairs in edit.differing.items()
        for name, (before, after) in pairs.items()
    ]
    return EditedRun(run=str(edit.run.pk), tag=edit.run.tag, changes=changes)
