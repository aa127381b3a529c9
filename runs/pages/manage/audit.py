"""The audit trail of a collection."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from rest_framework.request import Request

from runs.models import AuditEvent, Collection
from runs.pages.manage.sections import Section

_EVENTS_OF_A_PAGE = 50


class AuditPage(Section):
    """List the changes of a collection, its runs and its judgements, newest first."""

    address, template = "manage-audit-page", "runs/manage/audit.html"
    reads = ("page",)

    def about(self, request: Request, collection: Collection) -> dict[str, Any]:
        # Without addresses, which organisers must not see.
        events = AuditEvent.objects.filter(collection=collection).defer("address", "token")
        return {"page": Paginator(events, _EVENTS_OF_A_PAGE).get_page(request.query_params.get("page"))}
