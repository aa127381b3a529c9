"""The documents of a collection: where they can be read, and a file of their titles."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request

from runs.api.collections.collections import upload_fields
from runs.api.serializers import DocumentsUploadSerializer
from runs.models import Collection
from runs.pages.collections.manage.sections import ChangingSection, change_fields
from runs.services.collections.documents import (
    check_documents,
    delete_documents,
    import_documents,
)
from runs.services.storage.reports import report_as_json
from runs.web.forms import FormInput, fields_of
from runs.web.origin import origin_of

# Documents that a check or the page lists.
_LISTED = 10


class DocumentsFormSerializer(FormInput, DocumentsUploadSerializer):
    """The same fields as a form sends them."""


class DocumentsPage(ChangingSection):
    """Edit the link of documents; check, upload or delete titles."""

    address, template = "manage-documents-page", "runs/manage/documents.html"
    fields = ("action", "document_url")

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        stored = {"document_url": collection.document_url}
        fields = fields_of(request, *stored) if request.method == "POST" else {}
        titles = collection.document_titles.order_by("doc_id")
        return {
            "form_values": {**stored, **fields},
            "number": titles.count(),
            "documents": titles[:_LISTED],
        }

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        action = request.data.get("action")
        if action == "link":
            change_fields(request, collection, fields_of(request, "document_url"))
            return "Changes saved."

        if action == "delete":
            number = delete_documents(collection=collection, origin=origin_of(request))
            return f"Titles of {number:,} documents deleted."

        with upload_fields(request, DocumentsFormSerializer) as fields:
            path = fields["file"].path
            if action == "check":
                summary = check_documents(upload=path, first=_LISTED)
                warnings = report_as_json(summary.report)
                return self.show(request, collection, checked=summary, warnings=warnings)
            summary = import_documents(
                collection=collection, upload=path, origin=origin_of(request)
            )

        warnings_number = sum(summary.report.counts.values())
        warned = f", with {warnings_number:,} warnings" if warnings_number else ""
        return f"{summary.documents:,} documents uploaded{warned}."
