"""The number of submissions that a team may make in a day, and has made."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from django.utils import timezone
from rest_framework.request import Request

from runs.models import Collection, QuotaCounter
from runs.pages.collections.manage.sections import ChangingSection, change_fields

_DAYS = 14


class QuotaPage(ChangingSection):
    """Set the quota of a collection."""

    address, template = "manage-quota-page", "runs/manage/quota.html"
    fields = ("daily_submissions",)

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        since = timezone.now().astimezone(UTC).date() - timedelta(days=_DAYS)
        counters = QuotaCounter.objects.filter(collection=collection, day__gt=since)
        stored = collection.daily_submissions or ""
        return {
            "used": list(counters.select_related("team").order_by("-day", "team__slug")[:200]),
            "days": _DAYS,
            "form_values": request.data
            if request.method == "POST"
            else {"daily_submissions": stored},
        }

    def change(self, request: Request, collection: Collection) -> str:
        number = str(request.data.get("daily_submissions", "")).strip()
        change_fields(request, collection, {"daily_submissions": number or None})
        return "Changes saved."
