"""The topics of a collection: check a file of them, and replace them by its topics."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from rest_framework.request import Request

from runs.api.collections.collections import upload_fields
from runs.api.serializers import TopicsUploadSerializer
from runs.formats.topics.reading import FORMATS
from runs.models import Collection
from runs.pages.collections.manage.sections import ChangingSection
from runs.services.collections.collections import check_topics, import_topics
from runs.services.storage.reports import report_as_json
from runs.web.forms import FormInput
from runs.web.origin import origin_of

_TOPICS_OF_A_PAGE = 100
# Topics that a check lists.
_MAX_LISTED = 10


class TopicsFormSerializer(FormInput, TopicsUploadSerializer):
    """The same fields as a form sends them."""


class TopicsPage(ChangingSection):
    """List the topics; check or upload a file of them."""

    address, template = "manage-topics-page", "runs/manage/topics.html"
    reads = ("page",)

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        pages = Paginator(collection.topics.order_by("position"), _TOPICS_OF_A_PAGE)
        return {
            "page": pages.get_page(request.query_params.get("page")),
            "formats": list(FORMATS),
            "form_values": request.data if request.method == "POST" else {},
        }

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        with upload_fields(request, TopicsFormSerializer) as fields:
            upload = {"upload": fields["file"].path, "format": fields["format"]}
            if request.data.get("action") == "check":
                return self.show(request, collection, checked=_check(collection, **upload))
            _, number, report = import_topics(
                collection=collection, origin=origin_of(request), **upload
            )

        warnings = sum(report.counts.values())
        warned = f", with {warnings:,} warnings" if warnings else ""
        return f"{number:,} topics uploaded{warned}."


def _check(collection: Collection, **upload: Any) -> dict[str, Any]:
    """Return the contents of a file, and what they would change."""
    file_format, topics, report = check_topics(**upload)
    stored_ids = set(collection.topics.values_list("topic_id", flat=True))
    ids = {topic.topic_id for topic in topics}
    return {
        "format": file_format,
        "topics": len(topics),
        "new": len(ids - stored_ids),
        "removed": len(stored_ids - ids),
        "first": topics[:_MAX_LISTED],
        "warnings": report_as_json(report),
    }
