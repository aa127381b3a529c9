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
from runs.web.forms import OfForm
from runs.web.origin import origin_of

_TOPICS_OF_A_PAGE = 100
_NAMED = 10


class TopicsFormSerializer(OfForm, TopicsUploadSerializer):
    """The same fields as a form sends them."""


class TopicsPage(ChangingSection):
    """List the topics; check or upload a file of them."""

    address, template = "manage-topics-page", "runs/manage/topics.html"
    reads = ("page",)

    def about(self, request: Request, collection: Collection) -> dict[str, Any]:
        pages = Paginator(collection.topics.order_by("position"), _TOPICS_OF_A_PAGE)
        return {
            "page": pages.get_page(request.query_params.get("page")),
            "formats": list(FORMATS),
            "given": request.data if request.method == "POST" else {},
        }

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        with upload_fields(request, TopicsFormSerializer) as fields:
            upload = {"upload": fields["file"].path, "format": fields["format"]}
            if request.data.get("action") == "check":
                return self.show(request, collection, checked=_checked(collection, **upload))
            _, number, report = import_topics(
                collection=collection, origin=origin_of(request), **upload
            )
        warnings = sum(report.counts.values())
        return f"{number:,} topics uploaded{f', with {warnings:,} warnings' if warnings else ''}."


def _checked(collection: Collection, **upload: Any) -> dict[str, Any]:
    """Return what a file holds, and what it would change."""
    found, topics, report = check_topics(**upload)
    there = set(collection.topics.values_list("topic_id", flat=True))
    ids = {one.topic_id for one in topics}
    return {
        "format": found,
        "topics": len(topics),
        "new": len(ids - there),
        "gone": len(there - ids),
        "first": topics[:_NAMED],
        "warnings": report_as_json(report),
    }
