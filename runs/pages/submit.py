"""The page that checks and submits a run."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from runs.api.access import visible_collection
from runs.api.origin import origin_of
from runs.api.serializers import RunUploadSerializer
from runs.api.views import upload_fields
from runs.errors import InvalidFile
from runs.models import Collection, Scope, Team, User
from runs.pages.forms import FormPage, OfForm, see
from runs.services.runs import RunUpload
from runs.services.submissions import submit
from runs.views import problem_of


class RunFormSerializer(OfForm, RunUploadSerializer):
    """The same fields as a form sends them."""


class SubmitPage(FormPage):
    """Check a run file, which stores nothing, or submit it."""

    scopes = {"POST": Scope.SUBMIT}

    def get(self, request: Request, slug: str) -> HttpResponse:
        return _page(request, visible_collection(request, slug))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        try:
            with upload_fields(request, RunFormSerializer) as fields:
                upload = _upload(request, collection, fields)
                if request.data.get("action") == "check":
                    return _page(request, collection, checked=upload.check())
                run, _ = submit(upload=upload, enqueue=queue_submitted, again=try_damaged_again)
        except (EvalHubError, APIException) as error:
            return _refusal(request, collection, error)
        return see(request, reverse("run-page", args=[run.pk]))


def _upload(request: Request, collection: Collection, fields: dict[str, Any]) -> RunUpload:
    known = fields["known"]
    return RunUpload(
        collection=collection,
        team=fields["team"],
        user=cast(User, request.user),
        file=fields["file"].path,
        known=known.path if known else None,
        tag=fields["tag"],
        description=fields["description"],
        origin=origin_of(request),
    )


def _refusal(request: Request, collection: Collection, error: EvalHubError | APIException) -> HttpResponse:
    """Return the page with the problems: line by line for a file, field by field for the form."""
    status, detail = problem_of(error)
    if isinstance(error, ValidationError) and "file" in error.get_full_details():
        detail = "choose a file first"
    report = error.report if isinstance(error, InvalidFile) else None
    return _page(request, collection, status, refused=detail, report=report)


def _page(request: Request, collection: Collection, status: int = 200, **told: Any) -> HttpResponse:
    context = {
        "collection": collection,
        "teams": list(Team.objects.of(request.user)),
        "given": request.data if request.method == "POST" else {},
        "endpoint": request.build_absolute_uri(reverse("runs", args=[collection.slug])),
        **told,
    }
    return render(request._request, "runs/submit.html", context, status=status)
