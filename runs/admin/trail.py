"""The audit trail."""

from __future__ import annotations

from django.contrib import admin

from runs.admin.parts import ReadOnlyAdmin
from runs.models import AuditEvent


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The audit trail, which is never changed."""

    list_display = (
        "time",
        "action",
        "object_type",
        "object_id",
        "collection",
        "actor",
        "token",
        "address",
    )
    list_select_related = ("collection",)
    list_filter = ("action", "object_type", "collection")
    search_fields = ("actor", "object_id", "token", "request_id", "address")
    date_hierarchy = "time"
