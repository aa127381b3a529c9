"""Read-only admin of campaigns, phases, teams and entries; organisers change them on the desk."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from runs.admin.parts import ReadOnlyAdmin, number_of
from runs.models import Campaign, CampaignMember, Entry, Participation, Phase


@admin.register(Campaign)
class CampaignAdmin(ReadOnlyAdmin):
    """Campaigns, with how many phases and teams each has."""

    list_display = (
        "slug",
        "name",
        "team",
        "state",
        "registration",
        "phases",
        "teams",
        "created_at",
    )
    list_select_related = ("team",)
    list_filter = ("state", "registration")
    search_fields = ("slug", "name", "team__slug")
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        counts = {
            "phase_count": Phase.objects.all(),
            "team_count": Participation.objects.filter(state="accepted"),
        }
        rows = super().get_queryset(request)

        return rows.annotate(
            **{name: number_of(counted_rows, "campaign") for name, counted_rows in counts.items()}
        )

    def view_on_site(self, campaign: Any) -> str:
        return reverse("campaign-desk-page", args=[campaign.slug])

    @admin.display(ordering="phase_count")
    def phases(self, campaign: Any) -> int:
        return int(campaign.phase_count)

    @admin.display(ordering="team_count", description="accepted teams")
    def teams(self, campaign: Any) -> int:
        return int(campaign.team_count)


@admin.register(Phase)
class PhaseAdmin(ReadOnlyAdmin):
    """Phases, with how many runs are entered."""

    list_display = (
        "slug",
        "campaign",
        "kind",
        "collection",
        "opens_at",
        "closes_at",
        "paused_at",
        "entered",
    )
    list_select_related = ("campaign", "collection")
    list_filter = ("kind",)
    search_fields = ("slug", "campaign__slug", "collection__slug")
    date_hierarchy = "closes_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        entered = number_of(Entry.objects.filter(state=Entry.State.ENTERED), "phase")
        return super().get_queryset(request).annotate(entry_count=entered)

    @admin.display(ordering="entry_count")
    def entered(self, phase: Any) -> int:
        return int(phase.entry_count)


@admin.register(Participation)
class ParticipationAdmin(ReadOnlyAdmin):
    """Teams in campaigns, with how many people take part with each."""

    list_display = ("name", "team", "campaign", "state", "people", "requested_at", "accepted_at")
    list_select_related = ("team", "campaign")
    list_filter = ("state",)
    search_fields = ("name", "team__slug", "campaign__slug", "members__user__username")
    date_hierarchy = "requested_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        people = number_of(CampaignMember.objects.filter(left_at=None), "participation")
        return super().get_queryset(request).annotate(people_count=people)

    @admin.display(ordering="people_count")
    def people(self, participation: Any) -> int:
        return int(participation.people_count)


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    """Entries with the instants of their arrival."""

    list_display = (
        "number",
        "phase",
        "participation",
        "run",
        "role",
        "state",
        "priority",
        "arrived_at",
        "late",
    )
    list_select_related = (
        "phase__campaign",
        "participation__team",
        "participation__campaign",
        "run__collection",
        "run__team",
    )
    list_filter = ("state", "role", "late")
    search_fields = (
        "run__tag",
        "run__sha256",
        "phase__campaign__slug",
        "participation__team__slug",
    )
    date_hierarchy = "arrived_at"
