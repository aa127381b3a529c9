"""The topics of a collection, and their attributes: check a file, and replace them by its own."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from rest_framework.request import Request

from runs.api.collections.collections import upload_fields
from runs.api.serializers import AttributesUploadSerializer, TopicsUploadSerializer
from runs.errors import FileReport
from runs.formats.topics.reading import FORMATS
from runs.models import Collection
from runs.pages.collections.manage.sections import ChangingSection
from runs.services.collections.topic_attributes import (
    attributes_of,
    delete_attributes,
    import_attributes,
)
from runs.services.collections.topics import check_topics, import_topics
from runs.services.storage.reports import report_as_json
from runs.web.forms import FormInput
from runs.web.origin import origin_of

_TOPICS_OF_A_PAGE = 100
# Topics that a check lists.
_MAX_LISTED = 10


class TopicsFormSerializer(FormInput, TopicsUploadSerializer):
    """The same fields as a form sends them."""


class AttributesFormSerializer(FormInput, AttributesUploadSerializer):
    """The same fields as a form sends them."""


class TopicsPage(ChangingSection):
    """List the topics with their attributes; check, upload or delete these."""

    address, template = "manage-topics-page", "runs/manage/topics.html"
    reads = ("page",)

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        pages = Paginator(collection.topics.order_by("position"), _TOPICS_OF_A_PAGE)
        page = pages.get_page(request.query_params.get("page"))
        attributes = attributes_of(collection, [topic.topic_id for topic in page])
        keys = sorted({key for values in attributes.values() for key in values})

        return {
            "page": page,
            "keys": keys,
            "attributed": collection.topic_attributes.count(),
            "lines": [
                (topic, [attributes.get(topic.topic_id, {}).get(key, "") for key in keys])
                for topic in page
            ],
            "formats": list(FORMATS),
            "form_values": request.data if request.method == "POST" else {},
        }

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        action = str(request.data.get("action", ""))
        if action.endswith("-attributes"):
            return self._change_attributes(request, collection, action)

        with upload_fields(request, TopicsFormSerializer) as fields:
            upload = {"upload": fields["file"].path, "format": fields["format"]}
            if action == "check":
                return self.show(request, collection, checked=_check(collection, **upload))
            summary = import_topics(collection=collection, origin=origin_of(request), **upload)

        attributes = " with their attributes" if summary.keys is not None else ""
        return f"{len(summary.topics):,} topics uploaded{attributes}{_warned(summary.report)}."

    def _change_attributes(
        self, request: Request, collection: Collection, action: str
    ) -> str | HttpResponse:
        origin = origin_of(request)
        if action == "delete-attributes":
            number = delete_attributes(collection=collection, origin=origin)
            return f"Attributes of {number:,} topics deleted."

        with upload_fields(request, AttributesFormSerializer) as fields:
            summary = import_attributes(
                collection=collection,
                upload=fields["file"].path,
                dry_run=action == "check-attributes",
                origin=origin,
            )

        if action == "check-attributes":
            warnings = report_as_json(summary.report)
            return self.show(request, collection, checked_attributes=summary, warnings=warnings)
        return f"Attributes of {summary.topics:,} topics uploaded{_warned(summary.report)}."


def _warned(report: FileReport) -> str:
    warnings = sum(report.counts.values())
    return f", with {warnings:,} warnings" if warnings else ""


def _check(collection: Collection, **upload: Any) -> dict[str, Any]:
    """Return the contents of a file, and what they would change."""
    summary = check_topics(**upload)
    topics = summary.topics
    stored_ids = set(collection.topics.values_list("topic_id", flat=True))
    ids = {topic.topic_id for topic in topics}
    return {
        "format": summary.format,
        "keys": summary.keys,
        "topics": len(topics),
        "new": len(ids - stored_ids),
        "removed": len(stored_ids - ids),
        "first": topics[:_MAX_LISTED],
        "warnings": report_as_json(summary.report),
    }
