"""The API of runs and session sets: upload, list, change, withdraw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from metrics.services.queue.queueing import (
    cancel_evaluations,
    queue_evaluation,
    queue_submitted,
    restore_evaluations,
    try_damaged_again,
)
from metrics.services.queue.status import RunStatus, detailed_statuses, statuses
from runs import hooks
from runs.api import answers
from runs.api.collections.collections import FILE, download, either, upload_fields
from runs.api.serializers import (
    RemovalSerializer,
    RunSerializer,
    RunUploadSerializer,
    UploadSerializer,
)
from runs.api.submissions.session_serializers import SessionSetSerializer, SessionUploadSerializer
from runs.api.submissions.states import set_retry_after
from runs.errors import InvalidInput
from runs.models import Collection, Run, Scope, SessionSet, Team, User
from runs.services.submissions.runs import RunUpload, number_of
from runs.services.submissions.session_sets import SessionSetUpload, change_session_set
from runs.services.submissions.submissions import Upload, remove, restore, submit, withdraw
from runs.services.tracking.edits import change_run
from runs.web import conditions, idempotency
from runs.web.access import (
    lock_row,
    owned_submission,
    removable_run,
    visible_collection,
    visible_run,
    visible_submission,
    withdrawn_submission,
)
from runs.web.filters import RunFilter, SessionSetFilter
from runs.web.json_bodies import JSONParser, MergePatchParser
from runs.web.origin import origin_of
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS, StoredUpload, query_fields

SubmissionType = TypeVar("SubmissionType", Run, SessionSet)


@dataclass(frozen=True)
class Kind(Generic[SubmissionType]):
    """What the views of runs and of session sets do not share.

    `answer` makes the answer for an object, `check_answer` for a dry run; each has its shape.
    `selected` and `prefetched` are the relations that an answer reads.
    """

    model: type[SubmissionType]
    upload: type[Upload[SubmissionType]]
    upload_serializer: type[UploadSerializer]
    change_serializer: type[BaseSerializer[Any]]
    change: Callable[..., None]
    shape: type[BaseSerializer[Any]]
    answer: Callable[[Request, SubmissionType, RunStatus], Any]
    check_shape: type[BaseSerializer[Any]]
    check_answer: Callable[[SubmissionType], Any]
    withdrawal_parameters: tuple[OpenApiParameter, ...] = ()
    prefetched: tuple[str, ...] = ()
    selected: tuple[str, ...] = ("team", "collection")

    def response(
        self,
        request: Request,
        submission: SubmissionType,
        code: int = status.HTTP_200_OK,
        states: dict[str, RunStatus] | None = None,
    ) -> Response:
        """Answer with one object, its status and its address."""
        states = states or statuses([submission], request.user)
        data = self.answer(request, submission, states[str(submission.pk)])
        return Response(data, code, headers={"Location": data["url"]})

    def list_schema(self) -> Any:
        """Describe the list's POST."""
        existing_or_check = either(f"{self.model.__name__}OrCheck", self.shape, self.check_shape)
        return extend_schema(
            request={"multipart/form-data": self.upload_serializer},
            responses={202: self.shape, 200: existing_or_check},
            parameters=[*query_fields(self.upload_serializer), idempotency.PARAMETER],
        )

    def detail_schema(self) -> dict[str, Any]:
        """Describe the methods of one object."""
        return {
            "get": extend_schema(responses=self.shape),
            "patch": extend_schema(
                request=self.change_serializer,
                responses=self.shape,
                parameters=[conditions.PARAMETER],
            ),
            "delete": extend_schema(
                responses={204: None},
                parameters=[conditions.PARAMETER, *self.withdrawal_parameters],
            ),
        }

    def tag(self, submission: SubmissionType) -> str:
        """Return the ETag of an object."""
        meta: Any = self.change_serializer.Meta  # type: ignore[attr-defined]
        return conditions.tag_of(submission, meta.fields)


RUNS = Kind(
    model=Run,
    upload=RunUpload,
    upload_serializer=RunUploadSerializer,
    change_serializer=RunSerializer,
    change=change_run,
    shape=shape(answers.Run),
    answer=answers.run,
    check_shape=shape(answers.CheckedRun),
    check_answer=answers.checked_run,
    withdrawal_parameters=(
        OpenApiParameter(
            "drop_labels", OpenApiTypes.BOOL, description="true: delete the run's labels, too"
        ),
        OpenApiParameter(
            "reason", description="for organisers: why they take the run out of their collection"
        ),
    ),
    prefetched=("labels",),
    selected=("team", "collection", "system"),
)
SESSION_SETS = Kind(
    model=SessionSet,
    upload=SessionSetUpload,
    upload_serializer=SessionUploadSerializer,
    change_serializer=SessionSetSerializer,
    change=change_session_set,
    shape=shape(answers.SessionSet),
    answer=answers.session_set,
    check_shape=shape(answers.CheckedSessions),
    check_answer=answers.checked_sessions,
)


def _may_submit(request: Request, body: Any, collection: str) -> bool:
    visible = Collection.objects.visible_to(request.user).filter(slug=collection).exists()
    return visible and Team.objects.of(request.user).filter(slug=body["team"]).exists()


class SubmissionList(generics.ListAPIView[Any]):
    """The submissions of a collection, newest first; POST creates one."""

    kind: ClassVar[Kind[Any]]
    scopes = {"POST": Scope.SUBMIT}
    parser_classes = FILE_PARSERS

    def get_queryset(self) -> QuerySet[Any]:
        kind = self.kind
        collection = visible_collection(self.request, self.kwargs["collection"])
        visible: QuerySet[Any] = kind.model.objects.visible_to(self.request.user)
        submissions = visible.filter(collection=collection)
        return submissions.select_related(*kind.selected).prefetch_related(*kind.prefetched)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        submissions = list(self.paginate_queryset(self.filter_queryset(self.get_queryset())) or [])
        states = statuses(submissions, request.user)
        rows = [
            self.kind.answer(request, submission, states[str(submission.pk)])
            for submission in submissions
        ]

        return self.get_paginated_response(rows)

    @idempotency.idempotent(_may_submit)
    def post(self, request: Request, collection: str) -> Response:
        kind = self.kind
        visible = visible_collection(request, collection)

        # Called in the transaction that stores the submission.
        def accept(submission: Any) -> None:
            queue_submitted(submission)
            idempotency.remember(
                request, lambda: kind.response(request, submission, status.HTTP_202_ACCEPTED)
            )

        with upload_fields(request, kind.upload_serializer) as fields:
            dry_run = fields.pop("dry_run")
            for name, value in fields.items():
                if isinstance(value, StoredUpload):
                    fields[name] = value.path

            user, origin = cast(User, request.user), origin_of(request)
            upload = kind.upload(collection=visible, user=user, origin=origin, **fields)
            if dry_run:
                return Response(kind.check_answer(upload.check()))
            submission, new = submit(upload=upload, enqueue=accept, again=try_damaged_again)

        if new:
            return kind.response(request, submission, status.HTTP_202_ACCEPTED)
        # The same file was submitted before: `accept` was not called.
        idempotency.remember(request, lambda: kind.response(request, submission))
        return kind.response(request, submission)


@extend_schema_view(post=RUNS.list_schema())
class RunList(SubmissionList):
    """The runs of a collection, newest first; POST submits one."""

    kind = RUNS
    serializer_class = RUNS.shape
    filterset_class = RunFilter
    queryset = Run.objects.none()


@extend_schema_view(post=SESSION_SETS.list_schema())
class SessionSetList(SubmissionList):
    """The session sets of a collection, newest first; POST submits a session log."""

    kind = SESSION_SETS
    serializer_class = SESSION_SETS.shape
    filterset_class = SessionSetFilter
    queryset = SessionSet.objects.none()


class SubmissionDetail(APIView):
    """One submission with its status."""

    kind: ClassVar[Kind[Any]]
    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}
    conditional = ("PATCH", "DELETE")

    def get(self, request: Request, **key: UUID) -> Response:
        submission = visible_submission(request, self.kind.model, key[self.kind.model.KEY])
        states = detailed_statuses([submission], request.user)
        response = self.kind.response(request, submission, states=states)
        response["ETag"] = self.kind.tag(submission)
        set_retry_after(response, self.kind.model, states, request)

        return response

    def patch(self, request: Request, **key: UUID) -> Response:
        kind = self.kind
        with transaction.atomic():
            submission = lock_submission(request, kind, key[kind.model.KEY])
            serializer = kind.change_serializer(submission, request.data, partial=True)
            serializer.is_valid(raise_exception=True)
            changes, origin = serializer.validated_data, origin_of(request)
            kind.change(
                submission=submission, changes=changes, enqueue=queue_evaluation, origin=origin
            )

        updated = visible_submission(request, kind.model, submission.pk)
        response = kind.response(request, updated)
        response["ETag"] = kind.tag(updated)
        return response

    def delete(self, request: Request, **key: UUID) -> Response:
        drop_labels = request.query_params.get("drop_labels", "false")
        if drop_labels not in ("true", "false"):
            message = f"drop_labels={drop_labels[:40]}: drop_labels is true or false"
            raise InvalidInput(message, pointer="drop_labels")

        with transaction.atomic():
            submission = lock_submission(request, self.kind, key[self.kind.model.KEY])
            withdraw(
                submission=submission,
                cancel=cancel_evaluations,
                without_labels=drop_labels == "true",
                origin=origin_of(request),
            )

        return Response(status=status.HTTP_204_NO_CONTENT)


def lock_submission(request: Request, kind: Kind[SubmissionType], pk: UUID) -> SubmissionType:
    """Return the submission to change, and lock its row.

    Raise ChangedMeanwhile if it is not in the state that If-Match names.
    """
    lock_row(kind.model, pk)
    submission = owned_submission(request, kind.model, pk)
    conditions.check_unchanged(request, kind.tag(submission))
    return submission


@extend_schema_view(**RUNS.detail_schema())
class RunDetail(SubmissionDetail):
    """One run with its status and, while it waits, its place in the queue.

    PATCH changes its description and merges metadata and costs into its own (RFC 7396), DELETE
    withdraws it. With a `reason`, organisers take a run of any team out of their collection.
    """

    kind = RUNS
    parser_classes = (JSONParser, MergePatchParser)
    problems_of_bodies = (422,)

    def get(self, request: Request, **key: UUID) -> Response:
        response = super().get(request, **key)
        response.data["number"] = number_of(key["run"])
        return response

    def delete(self, request: Request, **key: UUID) -> Response:
        if "reason" not in request.query_params:
            return super().delete(request, **key)

        serializer = RemovalSerializer(data={"reason": request.query_params["reason"]})
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            lock_row(Run, key["run"])
            run = removable_run(request, key["run"])
            conditions.check_unchanged(request, self.kind.tag(run))
            remove(
                run=run,
                reason=serializer.validated_data["reason"],
                cancel=cancel_evaluations,
                origin=origin_of(request),
            )

        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(**SESSION_SETS.detail_schema())
class SessionSetDetail(SubmissionDetail):
    """One session set with its status and, while it waits, its place in the queue.

    PATCH changes its description, metadata and `judged_by`, DELETE withdraws it.
    """

    kind = SESSION_SETS


class SubmissionRestore(APIView):
    """Bring a withdrawn submission back."""

    kind: ClassVar[Kind[Any]]
    scopes = {"POST": Scope.SUBMIT}
    without_body = ("POST",)

    def post(self, request: Request, **key: UUID) -> Response:
        submission = withdrawn_submission(request, self.kind.model, key[self.kind.model.KEY])
        restore(submission=submission, enqueue=restore_evaluations, origin=origin_of(request))
        return self.kind.response(
            request, visible_submission(request, self.kind.model, submission.pk)
        )


@extend_schema_view(post=extend_schema(request=None, responses=RUNS.shape))
class RunRestore(SubmissionRestore):
    """Bring a withdrawn run back, with its evaluations; 409 if its file is deleted or its tag taken
    by now. The members of its team may, or where organisers took it out of their collection,
    these."""

    kind = RUNS


@extend_schema_view(post=extend_schema(request=None, responses=SESSION_SETS.shape))
class SessionSetRestore(SubmissionRestore):
    """Bring a withdrawn session set back, with its evaluations; 409 if its file is deleted or its
    tag taken by now. The members of its team may."""

    kind = SESSION_SETS


class SubmissionFile(APIView):
    """The submitted file, decompressed."""

    kind: ClassVar[Kind[Any]]

    @extend_schema(responses=FILE)
    def get(self, request: Request, **key: UUID) -> HttpResponseBase:
        submission = visible_submission(request, self.kind.model, key[self.kind.model.KEY])
        if isinstance(submission, Run):
            hooks.before_download.send(Run, run=submission, user=request.user)
        return download(submission.sha256, submission.file_name)


class RunFile(SubmissionFile):
    """The submitted file, decompressed."""

    kind = RUNS


class SessionSetFile(SubmissionFile):
    """The submitted log, decompressed."""

    kind = SESSION_SETS


class RunKnown(APIView):
    """The documents that the user of a run knew, as submitted with it, decompressed."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, run: UUID) -> HttpResponseBase:
        visible = visible_run(request, run)
        if not visible.known_sha256:
            raise Http404(f"run {visible.tag} came without known documents")
        return download(visible.known_sha256, f"{visible.tag}.known")
