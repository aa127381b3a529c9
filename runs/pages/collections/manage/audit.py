"""The audit trail of a collection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.core.paginator import Paginator
from rest_framework.request import Request

from runs.models import AuditEvent, Collection
from runs.pages.collections.manage.sections import Section

_EVENTS_OF_A_PAGE = 50


def texts_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the names and values of an event as texts; a value that is not a text becomes JSON."""

    def text_of(value: Any) -> str:
        if value is None:
            return "not set"
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return [(name, text_of(value)) for name, value in values.items()]


class AuditPage(Section):
    """List the changes of a collection, its runs and its judgements, newest first."""

    address, template = "manage-audit-page", "runs/manage/audit.html"
    reads = ("page",)

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        # Without addresses, which organisers must not see.
        events = AuditEvent.objects.filter(collection=collection).defer("address", "token")
        page = Paginator(events, _EVENTS_OF_A_PAGE).get_page(request.query_params.get("page"))
        return {
            "page": page,
            "events": [(event, texts_of(event.before), texts_of(event.after)) for event in page],
        }
