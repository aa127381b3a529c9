"""The administration of accounts, teams, collections and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from runs.api.origin import origin_of
from runs.models import ApiToken, AuditEvent, Collection, Membership, Qrels, Run, SessionSet, Team, User
from runs.services.audit import record

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyUserAdmin = UserAdmin[User]
    MembershipsBase = admin.TabularInline[Membership, Any]
else:
    AnyAdmin = admin.ModelAdmin
    AnyUserAdmin = UserAdmin
    MembershipsBase = admin.TabularInline


Action = AuditEvent.Action


class ReadOnlyAdmin(AnyAdmin):
    """Facts that are shown and never changed here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class AuditedAdmin(AnyAdmin):
    """What is changed here is in the audit trail; `audited` names the actions for add, change and delete."""

    audited: tuple[str, str, str]

    def save_model(self, request: HttpRequest, obj: Model, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        before, after = _form_changes(form)
        self._record(request, self.audited[change], obj, before if change else {}, after)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self._record(request, self.audited[2], obj, {"name": str(obj)}, {})
        super().delete_model(request, obj)

    def save_formset(self, request: HttpRequest, form: ModelForm[Any], formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        for membership in formset.new_objects:
            self._record(request, Action.MEMBER_ADDED, membership, {}, {"role": membership.role})
        for membership, _ in formset.changed_objects:
            self._record(request, Action.MEMBER_CHANGED, membership, {}, {"role": membership.role})
        for membership in formset.deleted_objects:
            self._record(request, Action.MEMBER_REMOVED, membership, {"role": membership.role}, {})

    def get_actions(self, request: HttpRequest) -> Any:
        """Without deleting many at once, which is no transaction."""
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}

    def _record(self, request: HttpRequest, action: str, target: Model, before: Any, after: Any) -> None:
        collection = target if isinstance(target, Collection) and action != Action.COLLECTION_DELETED else None
        record(origin_of(request), action, target, collection=collection, before=before, after=after)


def _form_changes(form: ModelForm[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The fields that a form changes, before and after, as text; of a password only that it changed."""
    names = [name for name in form.changed_data if "password" not in name]
    before = {name: str(form.initial.get(name, "")) for name in names}
    after = {name: str(form.cleaned_data.get(name, "")) for name in names}
    return before, after | ({"password": "changed"} if len(names) < len(form.changed_data) else {})


class MembershipInline(MembershipsBase):
    model = Membership
    extra = 0
    autocomplete_fields = ("user", "team")


@admin.register(User)
class PersonAdmin(AuditedAdmin, AnyUserAdmin):
    """Accounts; a new one gets its personal team, as everywhere."""

    audited = (Action.USER_CREATED, Action.USER_CHANGED, Action.USER_DELETED)

    list_display = ("username", "email", "own_team", "is_staff", "is_active", "last_login")
    list_select_related = ("personal_team",)
    inlines = (MembershipInline,)

    @admin.display(description="team", ordering="personal_team__slug")
    def own_team(self, user: User) -> str:
        return str(getattr(user, "personal_team", "") or "")

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return self.inlines if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            Team.objects.create_personal(obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with transaction.atomic():
            answer = super().user_change_password(request, id, form_url)
            if isinstance(answer, HttpResponseRedirect):
                self._record(request, Action.USER_CHANGED, User.objects.get(pk=id), {}, {"password": "changed"})
        return answer


@admin.register(Team)
class TeamAdmin(AuditedAdmin):
    audited = (Action.TEAM_CREATED, Action.TEAM_CHANGED, Action.TEAM_DELETED)
    list_display = ("slug", "name", "personal_of", "created_at")
    list_select_related = ("personal_of",)
    list_filter = (("personal_of", admin.EmptyFieldListFilter),)
    search_fields = ("slug", "name", "memberships__user__username")
    readonly_fields = ("personal_of", "created_at")
    inlines = (MembershipInline,)


@admin.register(Collection)
class CollectionAdmin(AuditedAdmin):
    """Measures and the way scores are read change through the API, which checks them and evaluates the runs again;
    so does blindness, which ends with a release."""

    audited = (Action.COLLECTION_CREATED, Action.COLLECTION_CHANGED, Action.COLLECTION_DELETED)
    list_display = ("slug", "name", "team", "visibility", "blind", "simulated", "scores", "created_at")
    list_select_related = ("team",)
    list_filter = ("visibility", "blind", "simulated", "scores")
    search_fields = ("slug", "name", "description", "team__slug")
    autocomplete_fields = ("team",)
    readonly_fields = ("blind", "released_at", "measures", "scores", "created_at")


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


@admin.register(SessionSet)
class SessionSetAdmin(ReadOnlyAdmin):
    """Session sets, too, come and go through the API."""

    list_display = ("tag", "team", "collection", "judged_by", "sessions", "queries", "created_at", "deleted_at")
    list_select_related = ("team", "collection")
    list_filter = (("deleted_at", admin.EmptyFieldListFilter), "judged_by", "format", "collection")
    search_fields = ("tag", "team__slug", "collection__slug", "sha256")
    date_hierarchy = "created_at"


@admin.register(ApiToken)
class ApiTokenAdmin(AuditedAdmin):
    """Tokens are made through the API or `evalhub create_token`, which show their text once; here they end."""

    audited = (Action.TOKEN_CREATED, Action.TOKEN_CHANGED, Action.TOKEN_REVOKED)
    list_display = ("key", "name", "user", "created_at", "expires_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("key", "name", "user__username")
    fields = ("user", "name", "key", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at")
    readonly_fields = ("user", "key", "scopes", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Nobody changes the audit trail."""

    list_display = ("time", "action", "object_id", "actor", "token", "address")
    list_select_related = ("collection",)
    list_filter = ("action", "object_type", "collection")
    search_fields = ("actor", "object_id", "token", "request_id")
    date_hierarchy = "time"
