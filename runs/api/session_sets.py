"""The API of session sets: logs of searchers' sessions, uploaded, listed, changed, taken away."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.queue.queueing import cancel_evaluations, queue_evaluation, queue_submitted
from metrics.services.queue.status import RunStatus, detailed_statuses, statuses
from runs.api import idempotency
from runs.api.access import owned_session_set, visible_collection, visible_session_set
from runs.api.filters import SessionSetFilter
from runs.api.origin import origin_of
from runs.api.session_serializers import CheckedSessionsSerializer, SessionSetSerializer, SessionUploadSerializer
from runs.api.uploads import FILE_PARSERS, query_fields
from runs.api.views import FILE, download, either, upload_fields
from runs.models import Scope, SessionSet, User
from runs.services.session_sets import (
    SessionSubmission,
    change_session_set,
    check_session_set,
    delete_session_set,
    submit_session_set,
)

_ENDINGS = {"jsonl": "jsonl", "trec-xml": "xml", "columns": "txt"}


class SessionSetList(generics.ListAPIView[SessionSet]):
    """The session sets of a collection, newest first; POST submits a session log."""

    serializer_class = SessionSetSerializer
    scopes = {"POST": Scope.SUBMIT}
    parser_classes = FILE_PARSERS
    filterset_class = SessionSetFilter
    queryset = SessionSet.objects.none()

    def get_queryset(self) -> QuerySet[SessionSet]:
        if getattr(self, "swagger_fake_view", False):
            return SessionSet.objects.none()
        found = visible_collection(self.request, self.kwargs["collection"])
        sets = SessionSet.objects.visible_to(self.request.user).filter(collection=found)
        return sets.select_related("team", "collection")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        sets = list(self.paginate_queryset(self.filter_queryset(self.get_queryset())) or [])
        context = {"request": request, "statuses": statuses(sets, request.user)}
        return self.get_paginated_response(SessionSetSerializer(sets, many=True, context=context).data)

    @extend_schema(
        request={"multipart/form-data": SessionUploadSerializer},
        responses={
            202: SessionSetSerializer,
            200: either("SessionSetOrCheck", SessionSetSerializer, CheckedSessionsSerializer),
        },
        parameters=[*query_fields(SessionUploadSerializer), idempotency.PARAMETER],
    )
    @idempotency.idempotent
    def post(self, request: Request, collection: str) -> Response:
        found = visible_collection(request, collection)
        with upload_fields(request, SessionUploadSerializer) as fields:
            path, dry_run = fields.pop("file").path, fields.pop("dry_run")
            fields["origin"] = origin_of(request)
            submission = SessionSubmission(collection=found, user=cast(User, request.user), upload=path, **fields)
            if dry_run:
                checked = check_session_set(submission=submission)
                return Response(CheckedSessionsSerializer(checked).data)
            made, new = submit_session_set(submission=submission, enqueue=lambda made: _accept(request, made))
        if new:
            return _response(request, made, status.HTTP_202_ACCEPTED)
        idempotency.remember(request, lambda: _response(request, made))
        return _response(request, made)


def _accept(request: Request, made: SessionSet) -> None:
    """In the transaction that stores the set: queue its evaluation, remember what the request is answered."""
    queue_submitted(made)
    idempotency.remember(request, lambda: _response(request, made, status.HTTP_202_ACCEPTED))


def _response(
    request: Request, made: SessionSet, code: int = status.HTTP_200_OK, known: dict[str, RunStatus] | None = None
) -> Response:
    """One set with its status, and where to ask for it again."""
    context = {"request": request, "statuses": known or statuses([made], request.user)}
    data = SessionSetSerializer(made, context=context).data
    return Response(data, code, headers={"Location": data["url"]})


class SessionSetDetail(APIView):
    """One session set with its status and, while it waits, its place in the queue.

    PATCH changes its description and metadata and what it is judged by, DELETE takes it away.
    """

    scopes = {"PATCH": Scope.SUBMIT, "DELETE": Scope.SUBMIT}

    @extend_schema(responses=SessionSetSerializer)
    def get(self, request: Request, session_set: UUID) -> Response:
        found = visible_session_set(request, session_set)
        return _response(request, found, known=detailed_statuses(found, request.user))

    @extend_schema(request=SessionSetSerializer, responses=SessionSetSerializer)
    def patch(self, request: Request, session_set: UUID) -> Response:
        found = owned_session_set(request, session_set)
        context = {"request": request, "statuses": statuses([found], request.user)}
        serializer = SessionSetSerializer(found, request.data, partial=True, context=context)
        serializer.is_valid(raise_exception=True)
        changes, origin = serializer.validated_data, origin_of(request)
        change_session_set(session_set=found, changes=changes, enqueue=queue_evaluation, origin=origin)
        return _response(request, visible_session_set(request, session_set))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, session_set: UUID) -> Response:
        found = owned_session_set(request, session_set)
        with transaction.atomic():
            delete_session_set(session_set=found, origin=origin_of(request))
            cancel_evaluations(found)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SessionSetFile(APIView):
    """The submitted log, decompressed."""

    @extend_schema(responses=FILE)
    def get(self, request: Request, session_set: UUID) -> HttpResponseBase:
        found = visible_session_set(request, session_set)
        return download(found.sha256, f"{found.tag}.{_ENDINGS[found.format]}")
