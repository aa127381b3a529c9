"""The page on which the members of a team rename a key in the parameters of many of its runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.serializers import MetadataEditSerializer
from runs.api.tracking.edits import edit_many
from runs.errors import InvalidInput
from runs.models import Collection, Scope
from runs.web.access import visible_collection
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see

_FIELDS = ("filter", "name", "new")
# Of the runs that a check finds.
_NAMED = 20


class RenameParameterPage(FormPage):
    """Say which runs would change, which stores nothing, or rename the key in all of them."""

    scopes = {"POST": Scope.SUBMIT}
    reads = ("name",)
    fields = ("action", *_FIELDS)

    def get(self, request: Request, slug: str) -> HttpResponse:
        given = {"filter": "own:yes", "name": str(request.query_params.get("name", ""))}
        return _page(request, visible_collection(request, slug), given)

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection, checks = (
            visible_collection(request, slug),
            request.data.get("action") == "check",
        )
        given = {name: text.strip() for name, text in fields_of(request, *_FIELDS).items()}
        old, new = given.get("name", ""), given.get("new", "")
        try:
            for field, text in (("name", old), ("new", new)):
                if not text:
                    raise InvalidInput(
                        "write the name of a key, such as bm25.k1",
                        code="required",
                        pointer=f"/{field}",
                    )
            asked = {"filter": given.get("filter", ""), "rename": {old: new}, "dry_run": checks}
            serializer = MetadataEditSerializer(data=asked)
            serializer.is_valid(raise_exception=True)
            runs, edits = edit_many(request, collection, serializer.validated_data)
            if not edits:
                message = f"none of the {runs:,} runs of your teams that match has {old[:60]}"
                raise InvalidInput(message, pointer="/name")
        except (EvalHubError, APIException) as error:
            return _page(request, collection, given, refusal_of(error))
        if checks:
            named = [edit.run.tag for edit in edits[:_NAMED]]
            return _page(request, collection, given, runs=runs, named=named, changed=len(edits))
        done = f"{old} renamed to {new} in {len(edits):,} run{'' if len(edits) == 1 else 's'}."
        messages.success(request._request, done)
        return see(request, request.path)


def _page(
    request: Request,
    collection: Collection,
    given: dict[str, str],
    refused: Refusal | None = None,
    **told: Any,
) -> HttpResponse:
    context = {
        "collection": collection,
        "given": given,
        "refused": refused,
        "wrong": refused.fields if refused else {},
        **told,
    }
    return render(
        request._request, "runs/renaming.html", context, status=refused.status if refused else 200
    )
