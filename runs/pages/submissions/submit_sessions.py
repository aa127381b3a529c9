"""The page that checks and submits a session log."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from runs.api.collections.collections import upload_fields
from runs.api.submissions.session_serializers import SessionUploadSerializer
from runs.formats.sessions.reading import FORMATS
from runs.models import Collection, Scope, SessionSet, Team, User
from runs.pages.tracking.metadata import lines_in
from runs.services.submissions.session_sets import SessionSetUpload
from runs.services.submissions.submissions import submit
from runs.web.access import visible_collection
from runs.web.forms import FormInput, FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of

_JUDGED_BY = {
    SessionSet.JudgedBy.TOPIC.value: "the topic of the session",
    SessionSet.JudgedBy.SESSION.value: "the session",
    SessionSet.JudgedBy.QUERY.value: "each query of the session",
    SessionSet.JudgedBy.OWN.value: "the log, in which the searchers judged",
}


class SessionsFormSerializer(FormInput, SessionUploadSerializer):
    """The same fields as a form sends them."""

    def to_internal_value(self, data: Any) -> Any:
        fields = dict(data.items())
        if fields.get("metadata"):
            fields["metadata"] = lines_in(fields["metadata"], "metadata")
        return super().to_internal_value(fields)


class SubmitSessionsPage(FormPage):
    """Check a session log, which stores nothing, or submit it."""

    scopes = {"POST": Scope.SUBMIT}

    def get(self, request: Request, slug: str) -> HttpResponse:
        return _page(request, visible_collection(request, slug))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        try:
            with upload_fields(request, SessionsFormSerializer) as fields:
                file = fields.pop("file")
                # A page checks by its own button.
                del fields["dry_run"]
                upload = SessionSetUpload(
                    collection=collection,
                    user=cast(User, request.user),
                    origin=origin_of(request),
                    file=file.path,
                    **fields,
                )

                if request.data.get("action") == "check":
                    return _page(request, collection, checked=upload.check())

                session_set, _ = submit(
                    upload=upload, enqueue=queue_submitted, again=try_damaged_again
                )
        except (EvalHubError, APIException) as error:
            return _page(request, collection, refusal_of(error))

        return redirect_to(request, reverse("session-set-page", args=[session_set.pk]))


def _page(
    request: Request,
    collection: Collection,
    refusal: Refusal | None = None,
    checked: SessionSet | None = None,
) -> HttpResponse:
    context = {
        "collection": collection,
        "teams": list(Team.objects.of(request.user)),
        # In a lab's collection, its members submit for the lab.
        "form_values": request.data if request.method == "POST" else {"team": collection.team.slug},
        "formats": list(FORMATS),
        "ways": _JUDGED_BY,
        "checked": checked,
    }

    return render_form(request, "runs/submit_sessions.html", context, refusal)
