"""The administration of accounts, teams, collections and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest

from runs.models import ApiToken, Collection, Membership, Qrels, Run, Team, User

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyUserAdmin = UserAdmin[User]
    MembershipsBase = admin.TabularInline[Membership, Any]
else:
    AnyAdmin = admin.ModelAdmin
    AnyUserAdmin = UserAdmin
    MembershipsBase = admin.TabularInline


class ReadOnlyAdmin(AnyAdmin):
    """Facts that are shown and never changed here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class MembershipInline(MembershipsBase):
    model = Membership
    extra = 0
    autocomplete_fields = ("user", "team")


@admin.register(User)
class PersonAdmin(AnyUserAdmin):
    """Accounts; a new one gets its personal team, as everywhere."""

    list_display = ("username", "email", "own_team", "is_staff", "is_active", "last_login")
    list_select_related = ("personal_team",)
    inlines = (MembershipInline,)

    @admin.display(description="team", ordering="personal_team__slug")
    def own_team(self, user: User) -> str:
        return str(getattr(user, "personal_team", "") or "")

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm[User], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            Team.objects.create_personal(obj)


@admin.register(Team)
class TeamAdmin(AnyAdmin):
    list_display = ("slug", "name", "personal_of", "created_at")
    list_select_related = ("personal_of",)
    list_filter = (("personal_of", admin.EmptyFieldListFilter),)
    search_fields = ("slug", "name", "memberships__user__username")
    readonly_fields = ("personal_of", "created_at")
    inlines = (MembershipInline,)


@admin.register(Collection)
class CollectionAdmin(AnyAdmin):
    """Measures and the way scores are read change through the API, which checks them and evaluates the runs again."""

    list_display = ("slug", "name", "team", "visibility", "simulated", "scores", "created_at")
    list_select_related = ("team",)
    list_filter = ("visibility", "simulated", "scores")
    search_fields = ("slug", "name", "description", "team__slug")
    autocomplete_fields = ("team",)
    readonly_fields = ("measures", "scores", "created_at")


@admin.register(Qrels)
class QrelsAdmin(ReadOnlyAdmin):
    list_display = ("collection", "version", "active", "judgements", "lines", "note", "created_by", "created_at")
    list_select_related = ("collection", "created_by")
    list_filter = ("active", "collection")
    search_fields = ("collection__slug", "note", "sha256")
    exclude = ("topic_ids",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("topic_ids")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs come and go through the API, which keeps their files and evaluations in step."""

    list_display = ("tag", "team", "collection", "documents", "topics", "tied_documents", "created_at", "deleted_at")
    list_select_related = ("team", "collection")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter), "collection")
    search_fields = ("tag", "team__slug", "collection__slug", "sha256")
    date_hierarchy = "created_at"


@admin.register(ApiToken)
class ApiTokenAdmin(AnyAdmin):
    """Tokens are made through the API or `evalhub create_token`, which show their text once; here they end."""

    list_display = ("key", "name", "user", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("key", "name", "user__username")
    fields = ("user", "name", "key", "created_at", "last_used_at", "expires_at", "revoked_at")
    readonly_fields = ("user", "key", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False
