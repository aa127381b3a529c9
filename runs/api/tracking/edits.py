"""The API that edits the metadata of stored runs, one or many at once, and reads earlier edits."""

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
from runs.api.submissions.submissions import lock_submission, respond_with_tag
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
        request=MetadataSerializer, responses=shape(answers.Run), parameters=[conditions.PARAMETER]
    )
    def put(self, request: Request, run: UUID) -> Response:
        """Replace the metadata of a run as a whole."""
        with transaction.atomic():
            locked_run = lock_submission(request, Run, run)
            serializer = MetadataSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            metadata: dict[str, Any] = serializer.validated_data["metadata"]
            replace_metadata(run=locked_run, metadata=metadata, origin=origin_of(request))

        return respond_with_tag(request, visible_run(request, run))


class RunHistory(APIView):
    """The edits of a run's metadata and costs; the first one has what was submitted."""

    @extend_schema(responses=shape(EditHistory))
    def get(self, request: Request, run: UUID) -> Response:
        visible = visible_run(request, run)
        names_shown = may_see_actors(request.user, visible)
        edits = [
            RunEdit(
                time=edit.time,
                actor=edit.actor if names_shown else None,
                changes=[
                    ChangedValue(
                        space=change.space,
                        name=change.name,
                        before=change.before,
                        after=change.after,
                    )
                    for change in edit.changes
                ],
            )
            for edit in history_of(visible)
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
        """Change the metadata of many runs, all or none: merge `metadata` into each, and `rename`
        keys."""
        serializer = MetadataEditSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        body = serializer.validated_data
        runs, edits = edit_many(request, visible_collection(request, collection), body)
        return Response(
            EditedRuns(
                dry_run=body["dry_run"],
                runs=runs,
                changed=len(edits),
                results=[edited_run(edit) for edit in edits],
            )
        )


def edit_many(
    request: Request, collection: Collection, body: dict[str, Any]
) -> tuple[int, list[Edit]]:
    """Change the metadata of the runs that a body names, or with `dry_run` of none.

    Return the number of these runs, and the edits that change one.
    """
    _check_body(body)
    with transaction.atomic():
        runs = list(_lock_runs(request, collection, body))
        edits = edit_runs(
            collection=collection,
            runs=runs,
            patch=body.get("metadata"),
            names=body.get("rename"),
        )

        changing = [edit for edit in edits if edit.differing]
        if not body["dry_run"]:
            save_edits(collection, changing, origin_of(request))

    return len(runs), changing


def _check_body(body: dict[str, Any]) -> None:
    """Raise InvalidInput unless the body says which runs, in one way, and what to do."""
    if ("runs" in body) == ("filter" in body):
        message = (
            "say which runs: their ids in runs, or a filter that selects some of yours; "
            "give one of the two"
        )
        raise InvalidInput(message, code="required", pointer="/runs")

    if "metadata" not in body and "rename" not in body:
        message = 'say what to change: metadata to merge, or rename, such as {"old": "new"}'
        raise InvalidInput(message, code="required", pointer="/metadata")

    if len(body.get("runs", ())) > MAX_RUNS:
        raise _too_many(len(body["runs"]))


def _lock_runs(request: Request, collection: Collection, body: dict[str, Any]) -> QuerySet[Run]:
    """Return the runs to change, and lock their rows.

    Raise InvalidInput for too many runs and for an id that is not of a visible run, NotAllowed for
    a run of another team.
    """
    visible = Run.objects.visible_to(request.user).filter(collection=collection)
    if "filter" in body:
        note_filter(request, collection, body["filter"])
        own = visible.owned_by(request.user)
        pks = list(
            matching_runs(collection, body["filter"], request.user, own).values_list(
                "pk", flat=True
            )
        )
        if len(pks) > MAX_RUNS:
            raise _too_many(len(pks))
    else:
        pks = list(dict.fromkeys(body["runs"]))
        visible_pks = set(visible.filter(pk__in=pks).values_list("pk", flat=True))
        if missing := [pk for pk in pks if pk not in visible_pks]:
            message = f"{missing[0]} is no run of collection {collection.slug}"
            raise InvalidInput(message, code="unknown_run", pointer="/runs")

        own_pks = set(
            visible.owned_by(request.user).filter(pk__in=pks).values_list("pk", flat=True)
        )
        if others := [pk for pk in pks if pk not in own_pks]:
            raise NotAllowed(
                f"run {others[0]} belongs to another team; only its members may change it"
            )

    # In the order of their keys, so that two requests never wait for each other.
    return Run.objects.select_for_update().filter(pk__in=pks, deleted_at=None).order_by("pk")


def _too_many(count: int) -> InvalidInput:
    return InvalidInput(
        f"{count:,} runs; a request changes at most {MAX_RUNS:,}",
        code="too_many_runs",
        pointer="/runs",
    )


def edited_run(edit: Edit) -> EditedRun:
    changes = [
        ChangedValue(space=SPACES[column], name=name, before=before, after=after)
        for column, pairs in edit.differing.items()
        for name, (before, after) in pairs.items()
    ]

    return EditedRun(run=str(edit.run.pk), tag=edit.run.tag, changes=changes)
