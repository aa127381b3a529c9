"""The base of the sections of a collection's management: navigation, permission and errors."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_judged
from runs.api.serializers import CollectionChangeSerializer
from runs.models import Collection, Scope
from runs.services.collections.collections import change_collection
from runs.web import conditions
from runs.web.access import managed_collection
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access

# The sections in the order of their navigation: the name of the address, and the title.
SECTIONS = {
    "manage-page": "General",
    "manage-topics-page": "Topics",
    "manage-judgements-page": "Judgements",
    "manage-documents-page": "Documents",
    "manage-measures-page": "Measures",
    "manage-access-page": "Access",
    "manage-quota-page": "Quota",
    "manage-withdrawn-page": "Withdrawn",
    "manage-audit-page": "Audit",
}


class Section(FormPage):
    """A section of the management of a collection, for its organisers."""

    access = {"GET": Access.ORGANISERS}
    address: ClassVar[str]
    template: ClassVar[str]

    def get(self, request: Request, slug: str) -> HttpResponse:
        return self.show(request, managed_collection(request, slug))

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        """Return what the template of the section reads, in addition to the base's."""
        return {}

    def show(
        self,
        request: Request,
        collection: Collection,
        refusal: Refusal | None = None,
        **results: Any,
    ) -> HttpResponse:
        """Return the page. After a refusal it shows what was typed instead of what is stored."""
        context = {
            "collection": collection,
            "sections": [
                (reverse(name, args=[collection.slug]), title) for name, title in SECTIONS.items()
            ],
            "here": reverse(self.address, args=[collection.slug]),
            "title": SECTIONS[self.address],
            **self.section_context(request, collection),
            **results,
        }

        response = render_form(request, self.template, context, refusal)
        response["Cache-Control"] = "no-store"
        return response


class ChangingSection(Section):
    """A section with a form. `change` does what it says, and returns a sentence or a page."""

    scopes = {"POST": Scope.MANAGE}

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = managed_collection(request, slug)
        try:
            result = self.change(request, collection)
        except (EvalHubError, APIException) as error:
            # Read it again: the change may have set fields before it failed.
            return self.show(request, managed_collection(request, slug), refusal_of(error))

        if isinstance(result, HttpResponse):
            return result
        messages.success(request, result)
        return redirect_to(request, reverse(self.address, args=[slug]))

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        raise NotImplementedError


def tag_of(collection: Collection) -> str:
    """Return the ETag of a collection, as the API has it."""
    return conditions.tag_of(collection, CollectionChangeSerializer.Meta.fields)


def change_fields(
    request: Request, collection: Collection, fields: dict[str, Any], expected_tag: str = ""
) -> None:
    """Change fields of a collection as PATCH does.

    Raise ChangedMeanwhile if the collection has another ETag than an expected one.
    """
    with transaction.atomic():
        row = Collection.objects.select_for_update().select_related("team").get(pk=collection.pk)
        if expected_tag:
            conditions.check_same(expected_tag, tag_of(row))
        serializer = CollectionChangeSerializer(
            row, fields, partial=True, context={"request": request}
        )
        serializer.is_valid(raise_exception=True)
        change_collection(
            collection=row,
            changes=serializer.validated_data,
            enqueue=queue_judged,
            origin=origin_of(request),
        )
