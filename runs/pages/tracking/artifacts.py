"""The page of a run's files, on which members of its team attach and delete them."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.collections.collections import upload_fields
from runs.api.tracking.artifacts import ArtifactUploadSerializer, attach_upload, check_body_size
from runs.errors import InvalidInput
from runs.formats.artifacts import TYPES
from runs.models import Artifact, Run, Scope
from runs.services.tracking.artifacts import delete_artifact
from runs.web.access import owned_run
from runs.web.forms import FormInput, FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of


class ArtifactFormSerializer(FormInput, ArtifactUploadSerializer):
    """The same fields as a form sends them."""


class RunArtifactsPage(FormPage):
    """Attach files to a run of the reader's team, and delete them."""

    scopes = {"POST": Scope.SUBMIT}
    fields = ("action", "file", "name")

    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        return _page(request, owned_run(request, run_id))

    def post(self, request: Request, run_id: UUID) -> HttpResponse:
        run = owned_run(request, run_id)
        try:
            check_body_size(request)
            act = _delete if request.data.get("action") == "delete" else _attach
            message = act(request, run)
        except (EvalHubError, APIException) as error:
            return _page(request, run, refusal_of(error))

        messages.success(request, message)
        return redirect_to(request, reverse("run-artifacts-page", args=[run.pk]))


def _attach(request: Request, run: Run) -> str:
    with upload_fields(request, ArtifactFormSerializer) as fields:
        artifact, new = attach_upload(request, run, fields)
    return f"{artifact.name} attached." if new else f"{artifact.name} was attached before."


def _delete(request: Request, run: Run) -> str:
    name = str(request.data.get("name", ""))
    artifact = Artifact.objects.filter(run=run, name=name, deleted_at=None).first()
    if artifact is None:
        raise InvalidInput(
            "this file has been deleted meanwhile; load the page again", pointer="/name"
        )

    artifact.run = run
    delete_artifact(artifact=artifact, origin=origin_of(request))
    return f"{name} deleted."


def _page(request: Request, run: Run, refusal: Refusal | None = None) -> HttpResponse:
    context = {
        "run": run,
        "artifacts": list(Artifact.objects.filter(run=run, deleted_at=None)),
        "types": TYPES,
        "most_bytes": settings.EVALHUB_MAX_ARTIFACT_BYTES,
        "deletable": True,
    }

    return render_form(request, "runs/artifacts.html", context, refusal)
