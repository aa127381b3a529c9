"""Teams and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest

from runs.admin.parts import Action, AuditedAdmin, number_of
from runs.errors import Conflict
from runs.models import Collection, Membership, Run, SessionSet, Team
from runs.services.campaigns.teams import check_may_organise

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    MembershipsBase = admin.TabularInline[Membership, Any]
    FormSetBase = BaseInlineFormSet[Membership, Any, Any]
else:
    MembershipsBase = admin.TabularInline
    FormSetBase = BaseInlineFormSet


class MembershipFormSet(FormSetBase):
    """The members of a team that is not personal: one of them must be an owner, as in the API."""

    def clean(self) -> None:
        super().clean()
        kept = [form.cleaned_data for form in self.forms if form.is_valid() and form.cleaned_data]
        roles = [fields.get("role") for fields in kept if not fields.get("DELETE")]
        if not any(self.errors) and Membership.Role.OWNER not in roles:
            raise ValidationError("A team needs an owner.")
        # A new team has no campaign yet.
        for fields in kept if self.instance.pk else ():
            if fields.get("role") == Membership.Role.OWNER and not fields.get("DELETE"):
                try:
                    check_may_organise(self.instance, fields["user"])
                except Conflict as refusal:
                    raise ValidationError(refusal.message) from refusal


class MembershipInline(MembershipsBase):
    """The members of a team. Those of a personal team do not change."""

    model = Membership
    formset = MembershipFormSet
    extra = 0
    autocomplete_fields = ("user",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_add_permission(request, obj) and not _is_personal(obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not _is_personal(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_personal(obj)


class ShownMemberships(MembershipsBase):
    """The teams of a user; they are changed in the team, which keeps an owner."""

    model = Membership
    extra = 0
    fields = readonly_fields = ("team", "role")
    show_change_link = False

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("team", "user")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _is_personal(team: Any) -> bool:
    return isinstance(team, Team) and team.personal_of_id is not None


@admin.register(Team)
class TeamAdmin(AuditedAdmin):
    """Teams with their members. A team that has submitted something or owns a collection is not deleted."""

    audited = (Action.TEAM_CREATED, Action.TEAM_CHANGED, Action.TEAM_DELETED)
    settled = ("slug",)
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
    readonly_fields = ("personal_of", "created_at")
    inlines = (MembershipInline,)

    def get_queryset(self, request: HttpRequest) -> Any:
        live = {"deleted_at": None}
        return (
            super()
            .get_queryset(request)
            .annotate(
                member_count=number_of(Membership.objects.all(), "team"),
                collection_count=number_of(Collection.objects.all(), "team"),
                run_count=number_of(Run.objects.filter(**live), "team"),
                session_set_count=number_of(SessionSet.objects.filter(**live), "team"),
            )
        )

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

    def save_formset(
        self, request: HttpRequest, form: ModelForm[Any], formset: Any, change: bool
    ) -> None:
        super().save_formset(request, form, formset, change)
        for membership in formset.new_objects:
            self._record(request, Action.MEMBER_ADDED, membership, {}, {"role": membership.role})
        for membership, _ in formset.changed_objects:
            self._record(request, Action.MEMBER_CHANGED, membership, {}, {"role": membership.role})
        for membership in formset.deleted_objects:
            self._record(request, Action.MEMBER_REMOVED, membership, {"role": membership.role}, {})

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse to delete a personal team, which is deleted with its user."""
        return super().has_delete_permission(request, obj) and not _is_personal(obj)
