"""Teams and their members."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from runs.admin.parts import AnyInline, ReadOnly, ReadOnlyAdmin, number_of
from runs.models import Collection, Membership, Run, SessionSet, Team


class Members(ReadOnly, AnyInline):
    """The members of a team."""

    model = Membership
    fields = ("user", "role")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("team", "user")


@admin.register(Team)
class TeamAdmin(ReadOnlyAdmin):
    """Teams with their members."""

    list_display = (
        "slug",
        "name",
        "personal_of",
        "members",
        "collections",
        "runs",
        "session_sets",
        "created_at",
    )
    list_select_related = ("personal_of",)
    list_filter = (("personal_of", admin.EmptyFieldListFilter),)
    search_fields = ("slug", "name", "memberships__user__username")
    date_hierarchy = "created_at"
    inlines = (Members,)

    def get_queryset(self, request: HttpRequest) -> Any:
        counts = {
            "member_count": number_of(Membership.objects.all(), "team"),
            "collection_count": number_of(Collection.objects.all(), "team"),
            "run_count": number_of(Run.objects.filter(deleted_at=None), "team"),
            "session_set_count": number_of(SessionSet.objects.filter(deleted_at=None), "team"),
        }

        return super().get_queryset(request).annotate(**counts)

    @admin.display(ordering="member_count")
    def members(self, team: Any) -> int:
        return int(team.member_count)

    @admin.display(ordering="collection_count")
    def collections(self, team: Any) -> int:
        return int(team.collection_count)

    @admin.display(ordering="run_count")
    def runs(self, team: Any) -> int:
        return int(team.run_count)

    @admin.display(ordering="session_set_count")
    def session_sets(self, team: Any) -> int:
        return int(team.session_set_count)
