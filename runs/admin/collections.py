"""Collections, their topics, the versions of their judgements, and the use of quotas."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from runs.admin.parts import ReadOnlyAdmin
from runs.models import Collection, Qrels, QuotaCounter, Topic
from runs.web.access import collections_of


@admin.register(Collection)
class CollectionAdmin(ReadOnlyAdmin):
    """Collections with their contents; they have pages to manage them."""

    list_display = (
        "slug", "name", "team", "visibility", "scores_are", "judgements", "topics", "runs",
        "session_sets", "daily_submissions", "simulated", "created_at",
    )  # fmt: skip
    list_select_related = ("team",)
    list_filter = (
        "visibility",
        "blind",
        "shown_to",
        ("released_at", admin.EmptyFieldListFilter),
        "simulated",
        "scores",
    )
    search_fields = ("slug", "name", "description", "team__slug")
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        ordering = self.get_ordering(request)
        collections = collections_of(request.user)
        return collections.order_by(*ordering) if ordering else collections

    def view_on_site(self, collection: Collection) -> str:
        return reverse("collection-page", args=[collection.slug])

    @admin.display(description="scores", ordering="blind")
    def scores_are(self, collection: Collection) -> str:
        if collection.blind:
            return f"shown to {collection.disclosure.label}" if collection.shown_to else "blind"
        return f"released {collection.released_at:%Y-%m-%d}" if collection.released_at else "open"

    @admin.display(description="active qrels", ordering="active_version")
    def judgements(self, collection: Any) -> str:
        return f"v{collection.active_version}" if collection.active_version else "none"

    @admin.display(ordering="topic_count")
    def topics(self, collection: Any) -> int:
        return int(collection.topic_count)

    @admin.display(ordering="run_count")
    def runs(self, collection: Any) -> int:
        return int(collection.run_count)

    @admin.display(ordering="session_set_count")
    def session_sets(self, collection: Any) -> int:
        return int(collection.session_set_count)


@admin.register(Topic)
class TopicAdmin(ReadOnlyAdmin):
    """Topics, which are only replaced together, by a file."""

    list_display = ("topic_id", "title", "collection", "position")
    list_select_related = ("collection",)
    list_filter = ("collection",)
    search_fields = ("topic_id", "title", "collection__slug")


@admin.register(Qrels)
class QrelsAdmin(ReadOnlyAdmin):
    """Versions of judgements, which come as files and never change."""

    list_display = (
        "version_name", "active", "keyed_by", "iteration", "judgements", "topics", "bytes", "note",
        "created_by", "created_at",
    )  # fmt: skip
    list_select_related = ("collection", "created_by")
    list_filter = ("active", "keyed_by", "collection")
    search_fields = ("collection__slug", "note", "sha256")
    date_hierarchy = "created_at"
    exclude = ("topic_ids",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("topic_ids")

    @admin.display(description="version", ordering="collection__slug")
    def version_name(self, qrels: Qrels) -> str:
        return str(qrels)

    @admin.display(description="size", ordering="size")
    def bytes(self, qrels: Qrels) -> str:
        return filesizeformat(qrels.size)


@admin.register(QuotaCounter)
class QuotaCounterAdmin(ReadOnlyAdmin):
    """The number of submissions of a team on a day, and the quota of the collection."""

    list_display = ("day", "collection", "team", "used", "allowed")
    list_select_related = ("collection", "team")
    list_filter = ("collection",)
    search_fields = ("team__slug", "collection__slug")
    date_hierarchy = "day"
    ordering = ("-day", "collection", "team")

    @admin.display(ordering="collection__daily_submissions")
    def allowed(self, counter: QuotaCounter) -> str:
        return str(counter.collection.daily_submissions or "any number")
