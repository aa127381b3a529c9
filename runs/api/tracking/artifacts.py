"""The API of artifacts: files of a run, always sent as attachments that browsers do not open."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, TypedDict, cast
from uuid import UUID

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from runs import models
from runs.api.collections.collections import upload_fields
from runs.models import Run, Scope, User
from runs.models.tracking.artifacts import NAME_RULE
from runs.services.storage.files import StoredFile
from runs.services.tracking.artifacts import attach, check_artifact_size, delete_artifact
from runs.web.access import owned_run, visible_run
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields
from runs.web.shapes import Url, shape
from runs.web.uploads import MultiPartParser, RawFileParser, query_fields

# The bytes that a form may have in addition to the file.
_FORM_BYTES = 1024 * 1024
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_ .+=@()-]+")
_NAME_MESSAGE = (
    "a name has 1 to 200 letters A-Z a-z, digits, blanks and _ . + = @ ( ) -, begins with a "
    "letter, digit or _, and has an ending"
)


class Artifact(TypedDict):
    """A file beside a run; its address is that of its content."""

    name: str
    url: Url
    sha256: Annotated[str, "of the file as it was sent"]
    size: Annotated[int, "bytes"]
    created_at: datetime


class ArtifactUploadSerializer(KnownFields, serializers.Serializer[Any]):
    """A file to attach to a run."""

    file = serializers.FileField(allow_empty_file=True)
    name = serializers.RegexField(
        rf"\A{NAME_RULE}\Z",
        required=False,
        default="",
        error_messages={"invalid": _NAME_MESSAGE},
        help_text="default: the name of the file",
    )

    def validate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Take the name from the file by default."""
        return {**fields, "name": fields["name"] or name_of_file(fields["file"].name)}


def name_of_file(name: str) -> str:
    """Return the name of an artifact for that of its file, with hyphens for other characters."""
    return _NOT_IN_NAMES.sub("-", name).lstrip(" .+=@()-")[-200:] or "file"


def artifact_answer(artifact: models.Artifact, request: Request) -> Artifact:
    url = reverse("artifact", args=[artifact.run_id, artifact.name], request=request)
    return Artifact(
        name=artifact.name,
        url=url,
        sha256=artifact.sha256,
        size=artifact.size,
        created_at=artifact.created_at,
    )


def attach_upload(
    request: Request, run: Run, fields: dict[str, Any]
) -> tuple[models.Artifact, bool]:
    """Attach the file of a request to a run, for the API and the page alike."""
    user, origin = cast(User, request.user), origin_of(request)
    return attach(run=run, name=fields["name"], file=fields["file"].path, user=user, origin=origin)


def check_body_size(request: Request) -> None:
    """Refuse a body that is too large before it is read."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if length.isascii() and length.isdigit():
        check_artifact_size(max(0, int(length) - _FORM_BYTES))


class ArtifactList(AnswerList[models.Artifact]):
    """The files beside a run, by name; POST attaches one."""

    serializer_class = shape(Artifact)
    scopes = {"POST": Scope.SUBMIT}
    parser_classes = (MultiPartParser, RawFileParser)
    queryset = models.Artifact.objects.none()

    def get_queryset(self) -> QuerySet[models.Artifact]:
        run = visible_run(self.request, self.kwargs["run"])
        return models.Artifact.objects.filter(run=run, deleted_at=None)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response([artifact_answer(row, request) for row in page])

    @extend_schema(
        request={"multipart/form-data": ArtifactUploadSerializer},
        responses={201: shape(Artifact), 200: shape(Artifact)},
        parameters=query_fields(ArtifactUploadSerializer),
    )
    def post(self, request: Request, run: UUID) -> Response:
        owned = owned_run(request, run)
        check_body_size(request)
        with upload_fields(request, ArtifactUploadSerializer) as fields:
            artifact, new = attach_upload(request, owned, fields)

        data = artifact_answer(artifact, request)
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(data, code, headers={"Location": data["url"]})


class ArtifactDetail(APIView):
    """The content of a file beside a run, always as an attachment; DELETE deletes it."""

    scopes = {"DELETE": Scope.SUBMIT}

    @extend_schema(
        responses={
            (200, "application/octet-stream"): OpenApiResponse(OpenApiTypes.BINARY, "the file")
        }
    )
    def get(self, request: Request, run: UUID, artifact: str) -> FileResponse:
        attachment = _artifact(visible_run(request, run), artifact)
        response = FileResponse(
            StoredFile(attachment.sha256),
            as_attachment=True,
            filename=attachment.name,
            content_type="application/octet-stream",
        )

        response.block_size = 1024 * 1024
        response["X-Content-Type-Options"] = "nosniff"
        response["Content-Security-Policy"] = "sandbox; default-src 'none'"
        return response

    @extend_schema(responses={204: None})
    def delete(self, request: Request, run: UUID, artifact: str) -> Response:
        delete_artifact(
            artifact=_artifact(owned_run(request, run), artifact), origin=origin_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


def _artifact(run: Run, name: str) -> models.Artifact:
    artifact = models.Artifact.objects.filter(run=run, name=name, deleted_at=None).first()
    if artifact is None:
        raise Http404(f"run {run.tag} has no file {name!r}")
    artifact.run = run
    return artifact
