"""The API of runs and session sets: upload, list, change, withdraw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from metrics.services.queue.queueing import (
    cancel_evaluations,
    queue_evaluation,
    queue_replicated,
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
from runs.services.audit.trail import Origin
from runs.services.submissions.replicates import change_replicate, check_has_file
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

# A run or a session set.
SubmissionType = TypeVar("SubmissionType", Run, SessionSet)
_Method = TypeVar("_Method", bound=Callable[..., Response])
_Shape = type[BaseSerializer[Any]]

_RUN, _SESSION_SET = shape(answers.Run), shape(answers.SessionSet)


def _describe_upload(
    serializer: type[UploadSerializer], answer: _Shape, checked: _Shape
) -> Callable[[_Method], _Method]:
    """Describe the POST of a list: it answers with a submission, or with what a dry run found."""
    name = "RunOrCheck" if answer is _RUN else "SessionSetOrCheck"
    return extend_schema(
        request={"multipart/form-data": serializer},
        responses={202: answer, 200: either(name, answer, checked)},
        parameters=[*query_fields(serializer), idempotency.PARAMETER],
    )


def _describe_change(
    serializer: type[BaseSerializer[Any]], answer: _Shape
) -> Callable[[_Method], _Method]:
    return extend_schema(request=serializer, responses=answer, parameters=[conditions.PARAMETER])


def _may_submit(request: Request, body: Any, collection: str) -> bool:
    visible = Collection.objects.visible_to(request.user).filter(slug=collection).exists()
    return visible and Team.objects.of(request.user).filter(slug=body["team"]).exists()


class _SubmissionList(generics.ListAPIView[Any]):
    """The submissions of a collection, newest first."""

    scopes = {"POST": Scope.SUBMIT}
    parser_classes = FILE_PARSERS

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        submissions = list(self.paginate_queryset(self.filter_queryset(self.get_queryset())) or [])
        states = statuses(submissions, request.user)
        rows = [
            _answer(request, submission, states[str(submission.pk)]) for submission in submissions
        ]

        return self.get_paginated_response(rows)


class RunList(_SubmissionList):
    """The runs of a collection, newest first; POST submits one."""

    serializer_class = _RUN
    filterset_class = RunFilter
    queryset = Run.objects.none()

    def get_queryset(self) -> QuerySet[Run]:
        runs = _submissions(self.request, Run, self.kwargs["collection"])
        return runs.select_related("system").prefetch_related("labels")

    @_describe_upload(RunUploadSerializer, _RUN, shape(answers.CheckedRun))
    @idempotency.idempotent(_may_submit)
    def post(self, request: Request, collection: str) -> Response:
        return _submit(request, collection, RunUpload, RunUploadSerializer, answers.checked_run)


class SessionSetList(_SubmissionList):
    """The session sets of a collection, newest first; POST submits a session log."""

    serializer_class = _SESSION_SET
    filterset_class = SessionSetFilter
    queryset = SessionSet.objects.none()

    def get_queryset(self) -> QuerySet[SessionSet]:
        return _submissions(self.request, SessionSet, self.kwargs["collection"])

    @_describe_upload(SessionUploadSerializer, _SESSION_SET, shape(answers.CheckedSessions))
    @idempotency.idempotent(_may_submit)
    def post(self, request: Request, collection: str) -> Response:
        return _submit(
            request,
            collection,
            SessionSetUpload,
            SessionUploadSerializer,
            answers.checked_sessions,
        )


class RunDetail(APIView):
    """One run with its status and, while it waits, its place in the queue.

    PATCH changes its description, merges metadata and costs into its own (RFC 7396), and makes it a
    replicate or a single run; DELETE withdraws it. With a `reason`, organisers take a run of any
    team out of their collection.
    """

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}
    conditional = ("PATCH", "DELETE")
    parser_classes = (JSONParser, MergePatchParser)
    problems_of_bodies = (422,)

    @extend_schema(responses=_RUN)
    def get(self, request: Request, run: UUID) -> Response:
        response = _detail(request, visible_run(request, run))
        response.data["number"] = number_of(run)
        return response

    @_describe_change(RunSerializer, _RUN)
    def patch(self, request: Request, run: UUID) -> Response:
        return _change(request, Run, run, RunSerializer, _change_run)

    @extend_schema(
        responses={204: None},
        parameters=[
            conditions.PARAMETER,
            OpenApiParameter(
                "drop_labels", OpenApiTypes.BOOL, description="true: delete the run's labels, too"
            ),
            OpenApiParameter(
                "reason",
                description="for organisers: why they take the run out of their collection",
            ),
        ],
    )
    def delete(self, request: Request, run: UUID) -> Response:
        if "reason" not in request.query_params:
            drop_labels = request.query_params.get("drop_labels", "false")
            if drop_labels not in ("true", "false"):
                message = f"drop_labels={drop_labels[:40]}: drop_labels is true or false"
                raise InvalidInput(message, pointer="drop_labels")

            return _withdraw(request, Run, run, without_labels=drop_labels == "true")

        serializer = RemovalSerializer(data={"reason": request.query_params["reason"]})
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            lock_row(Run, run)
            removable = removable_run(request, run)
            conditions.check_unchanged(request, tag_of(removable))
            remove(
                run=removable,
                reason=serializer.validated_data["reason"],
                cancel=cancel_evaluations,
                origin=origin_of(request),
            )

        return Response(status=status.HTTP_204_NO_CONTENT)


class SessionSetDetail(APIView):
    """One session set with its status and, while it waits, its place in the queue.

    PATCH changes its description, metadata and `judged_by`, DELETE withdraws it.
    """

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}
    conditional = ("PATCH", "DELETE")

    @extend_schema(responses=_SESSION_SET)
    def get(self, request: Request, session_set: UUID) -> Response:
        return _detail(request, visible_submission(request, SessionSet, session_set))

    @_describe_change(SessionSetSerializer, _SESSION_SET)
    def patch(self, request: Request, session_set: UUID) -> Response:
        return _change(request, SessionSet, session_set, SessionSetSerializer, change_session_set)

    @extend_schema(responses={204: None}, parameters=[conditions.PARAMETER])
    def delete(self, request: Request, session_set: UUID) -> Response:
        return _withdraw(request, SessionSet, session_set)


class RunRestore(APIView):
    """Bring a withdrawn run back, with its evaluations; 409 if its file is deleted or its tag taken
    by now. The members of its team may, or where organisers took it out of their collection,
    these."""

    scopes = {"POST": Scope.SUBMIT}
    without_body = ("POST",)

    @extend_schema(request=None, responses=_RUN)
    def post(self, request: Request, run: UUID) -> Response:
        return _restore(request, Run, run)


class SessionSetRestore(APIView):
    """Bring a withdrawn session set back, with its evaluations; 409 if its file is deleted or its
    tag taken by now. The members of its team may."""

    scopes = {"POST": Scope.SUBMIT}
    without_body = ("POST",)

    @extend_schema(request=None, responses=_SESSION_SET)
    def post(self, request: Request, session_set: UUID) -> Response:
        return _restore(request, SessionSet, session_set)


class RunFile(APIView):
    """The submitted file, decompressed."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, run: UUID) -> HttpResponseBase:
        visible = visible_run(request, run)
        check_has_file(visible)
        hooks.before_download.send(Run, run=visible, user=request.user)
        return download(visible.sha256, visible.file_name)


class SessionSetFile(APIView):
    """The submitted log, decompressed."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, session_set: UUID) -> HttpResponseBase:
        visible = visible_submission(request, SessionSet, session_set)
        return download(visible.sha256, visible.file_name)


class RunKnown(APIView):
    """The documents that the user of a run knew, as submitted with it, decompressed."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, run: UUID) -> HttpResponseBase:
        visible = visible_run(request, run)
        if not visible.known_sha256:
            raise Http404(f"run {visible.tag} came without known documents")
        return download(visible.known_sha256, f"{visible.tag}.known")


def _submissions(
    request: Request, model: type[SubmissionType], slug: str
) -> QuerySet[SubmissionType]:
    """Return the submissions of a collection that the user sees."""
    visible: QuerySet[SubmissionType] = model.objects.visible_to(request.user)
    submissions = visible.filter(collection=visible_collection(request, slug))
    return submissions.select_related("team", "collection")


def _answer(request: Request, submission: Run | SessionSet, state: RunStatus) -> Any:
    if isinstance(submission, Run):
        return answers.run(request, submission, state)
    return answers.session_set(request, submission, state)


def _respond(
    request: Request,
    submission: Run | SessionSet,
    code: int = status.HTTP_200_OK,
    states: dict[str, RunStatus] | None = None,
) -> Response:
    """Answer with one submission, its status and its address."""
    states = states or statuses([submission], request.user)
    data = _answer(request, submission, states[str(submission.pk)])
    return Response(data, code, headers={"Location": data["url"]})


def tag_of(submission: Run | SessionSet) -> str:
    """Return the ETag of a submission."""
    serializer = RunSerializer if isinstance(submission, Run) else SessionSetSerializer
    return conditions.tag_of(submission, serializer.Meta.fields)


def _submit(
    request: Request,
    slug: str,
    upload_of: Callable[..., Upload[Any]],
    serializer: type[UploadSerializer],
    check_answer: Callable[[Any], Any],
) -> Response:
    """Store and queue the uploaded file, or only check it."""
    collection = visible_collection(request, slug)

    # Called in the transaction that stores the submission.
    def accept(submission: Any) -> None:
        queue_submitted(submission)
        idempotency.remember(
            request, lambda: _respond(request, submission, status.HTTP_202_ACCEPTED)
        )

    with upload_fields(request, serializer) as fields:
        dry_run = fields.pop("dry_run")
        for name, value in fields.items():
            if isinstance(value, StoredUpload):
                fields[name] = value.path

        user, origin = cast(User, request.user), origin_of(request)
        upload = upload_of(collection=collection, user=user, origin=origin, **fields)
        if dry_run:
            with upload.prepared() as ready:
                return Response(check_answer(ready.check()))
        submission, new = submit(upload=upload, enqueue=accept, again=try_damaged_again)

    if new:
        return _respond(request, submission, status.HTTP_202_ACCEPTED)
    # The same file was submitted before: `accept` was not called.
    idempotency.remember(request, lambda: _respond(request, submission))
    return _respond(request, submission)


def respond_with_tag(
    request: Request,
    submission: Run | SessionSet,
    states: dict[str, RunStatus] | None = None,
) -> Response:
    """Answer with one submission and its ETag, for If-Match."""
    response = _respond(request, submission, states=states)
    response["ETag"] = tag_of(submission)
    return response


def _detail(request: Request, submission: Run | SessionSet) -> Response:
    states = detailed_statuses([submission], request.user)
    response = respond_with_tag(request, submission, states)
    set_retry_after(response, type(submission), states, request)

    return response


def lock_submission(request: Request, model: type[SubmissionType], pk: UUID) -> SubmissionType:
    """Return the submission to change, and lock its row.

    Raise ChangedMeanwhile if it is not in the state that If-Match names.
    """
    lock_row(model, pk)
    submission = owned_submission(request, model, pk)
    conditions.check_unchanged(request, tag_of(submission))
    return submission


def _change(
    request: Request,
    model: type[SubmissionType],
    pk: UUID,
    serializer_class: type[BaseSerializer[Any]],
    change: Callable[..., None],
) -> Response:
    with transaction.atomic():
        submission = lock_submission(request, model, pk)
        serializer = serializer_class(submission, request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changes, origin = serializer.validated_data, origin_of(request)
        change(submission=submission, changes=changes, enqueue=queue_evaluation, origin=origin)

    return respond_with_tag(request, visible_submission(request, model, pk))


def _change_run(
    *, submission: Run, changes: dict[str, Any], enqueue: Callable[..., object], origin: Origin
) -> None:
    """Change what describes a run, and then whose replicate it is."""
    described = {name: value for name, value in changes.items() if name != "replicate"}
    change_run(submission=submission, changes=described, enqueue=enqueue, origin=origin)
    if "replicate" in changes:
        change_replicate(
            run=submission, name=changes["replicate"], renew=queue_replicated, origin=origin
        )


def _withdraw(
    request: Request, model: type[SubmissionType], pk: UUID, *, without_labels: bool = False
) -> Response:
    with transaction.atomic():
        withdraw(
            submission=lock_submission(request, model, pk),
            cancel=cancel_evaluations,
            without_labels=without_labels,
            origin=origin_of(request),
        )

    return Response(status=status.HTTP_204_NO_CONTENT)


def _restore(request: Request, model: type[SubmissionType], pk: UUID) -> Response:
    submission = withdrawn_submission(request, model, pk)
    restore(submission=submission, enqueue=restore_evaluations, origin=origin_of(request))
    return _respond(request, visible_submission(request, model, pk))
