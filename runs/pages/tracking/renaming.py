"""The page on which members of a team rename a key in the parameters of many of its runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.serializers import MetadataEditSerializer
from runs.api.tracking.edits import edit_many
from runs.errors import InvalidInput
from runs.models import Collection, Scope
from runs.web.access import visible_collection
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form

_FIELDS = ("filter", "name", "new")
# Runs that a check lists by their tags.
_MAX_LISTED = 20


class RenameParameterPage(FormPage):
    """Check which runs would change, or rename the key in all of them."""

    scopes = {"POST": Scope.SUBMIT}
    reads = ("name",)
    fields = ("action", *_FIELDS)

    def get(self, request: Request, slug: str) -> HttpResponse:
        fields = {"filter": "own:yes", "name": str(request.query_params.get("name", ""))}
        return _page(request, visible_collection(request, slug), fields)

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        dry_run = request.data.get("action") == "check"
        fields = {name: text.strip() for name, text in fields_of(request, *_FIELDS).items()}
        old, new = fields.get("name", ""), fields.get("new", "")
        try:
            for field, text in (("name", old), ("new", new)):
                if not text:
                    raise InvalidInput(
                        "write the name of a key, such as bm25.k1",
                        code="required",
                        pointer=f"/{field}",
                    )

            body = {"filter": fields.get("filter", ""), "rename": {old: new}, "dry_run": dry_run}
            serializer = MetadataEditSerializer(data=body)
            serializer.is_valid(raise_exception=True)
            runs, edits = edit_many(request, collection, serializer.validated_data)
            if not edits:
                message = f"none of the {runs:,} runs of your teams that match has {old[:60]}"
                raise InvalidInput(message, pointer="/name")
        except (EvalHubError, APIException) as error:
            return _page(request, collection, fields, refusal_of(error))

        if dry_run:
            tags = [edit.run.tag for edit in edits[:_MAX_LISTED]]
            return _page(request, collection, fields, runs=runs, tags=tags, changed=len(edits))

        plural = "" if len(edits) == 1 else "s"
        messages.success(request, f"{old} renamed to {new} in {len(edits):,} run{plural}.")
        return redirect_to(request, request.path)


def _page(
    request: Request,
    collection: Collection,
    fields: dict[str, str],
    refusal: Refusal | None = None,
    **result: Any,
) -> HttpResponse:
    context = {"collection": collection, "form_values": fields, **result}
    return render_form(request, "runs/renaming.html", context, refusal)
