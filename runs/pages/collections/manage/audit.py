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
    """Return the names of an event's values with the values as they are read: what is no text as JSON."""

    def text_of(value: Any) -> str:
        if value is None:
            return "not set"
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return [(name, text_of(value)) for name, value in values.items()]


class AuditPage(Section):
    """List the changes of a collection, its runs and its judgements, newest first."""

    address, template = "manage-audit-page", "runs/manage/audit.html"
    reads = ("page",)

    def about(self, request: Request, collection: Collection) -> dict[str, Any]:
        # Without addresses, which organisers must not see.
        events = AuditEvent.objects.filter(collection=collection).defer("address", "token")
        page = Paginator(events, _EVENTS_OF_A_PAGE).get_page(request.query_params.get("page"))
        return {
            "page": page,
            "events": [(one, texts_of(one.before), texts_of(one.after)) for one in page],
        }
