"""Accounts, their groups and their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from runs.admin.parts import Action, AuditedAdmin, number_of
from runs.admin.teams import ShownMemberships
from runs.models import ApiToken, Team, User
from runs.services.accounts import disable_user, enable_user
from runs.services.audit import Origin
from runs.services.tokens import revoke_token

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    AnyUserAdmin = UserAdmin[User]
else:
    AnyUserAdmin = UserAdmin


def _permissions_here(site: admin.AdminSite) -> QuerySet[Permission]:
    """Return the permissions with an effect: those of the models in the administration."""
    models = {model._meta.model_name for model in site._registry}
    apps = {model._meta.app_label for model in site._registry}
    known = Permission.objects.filter(
        content_type__app_label__in=apps, content_type__model__in=models
    )
    return known.select_related("content_type").order_by(
        "content_type__app_label", "content_type__model", "codename"
    )


@admin.register(User)
class PersonAdmin(AuditedAdmin, AnyUserAdmin):
    """Accounts; a new one gets its personal team, as everywhere. Only superusers decide who is staff and what staff may
    do here, because other staff who change accounts could otherwise create one with all permissions."""

    audited = (Action.USER_CREATED, Action.USER_CHANGED, Action.USER_DELETED)
    list_display = (
        "username", "email", "own_team", "teams", "working_tokens", "is_staff", "is_active", "last_login",
        "date_joined",
    )  # fmt: skip
    list_select_related = ("personal_team",)
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    date_hierarchy = "date_joined"
    inlines = (ShownMemberships,)
    actions = ("disable", "enable")

    def get_queryset(self, request: HttpRequest) -> Any:
        tokens = number_of(ApiToken.objects.usable(), "user")
        teams = number_of(Team.members.through._default_manager.all(), "user")
        return super().get_queryset(request).annotate(working_tokens=tokens, teams=teams)

    @admin.display(description="own team", ordering="personal_team__slug")
    def own_team(self, user: User) -> str:
        return str(getattr(user, "personal_team", "") or "")

    @admin.display(ordering="teams")
    def teams(self, user: Any) -> int:
        return int(user.teams)

    @admin.display(description="tokens", ordering="working_tokens")
    def working_tokens(self, user: Any) -> int:
        return int(user.working_tokens)

    @admin.action(description="Disable: no login, no token", permissions=["alter"])
    def disable(self, request: HttpRequest, chosen: QuerySet[User]) -> HttpResponse | None:
        question = "Disable these accounts? They can no longer log in, and their tokens stop working. Their submissions stay."
        return self.carry_out(request, chosen, _disable, done="Disabled", question=question)

    @admin.action(description="Enable", permissions=["alter"])
    def enable(self, request: HttpRequest, chosen: QuerySet[User]) -> HttpResponse | None:
        return self.carry_out(request, chosen, _enable, done="Enabled")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_change_permission(request, obj) and self._is_within_reach(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_delete_permission(request, obj) and self._is_within_reach(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Make facts read-only: dates, and whether an account is disabled, which an action changes."""
        facts = (
            *super().get_readonly_fields(request, obj),
            "is_active",
            "last_login",
            "date_joined",
        )
        powers = ("is_staff", "is_superuser", "groups", "user_permissions")
        return facts if request.user.is_superuser else (*facts, *powers)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "user_permissions":
            kwargs["queryset"] = _permissions_here(self.admin_site)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_inlines(self, request: HttpRequest, obj: User | None) -> Any:
        return self.inlines if obj else ()

    def save_model(
        self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            Team.objects.create_personal(obj)

    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        with transaction.atomic():
            answer = super().user_change_password(request, id, form_url)
            if isinstance(answer, HttpResponseRedirect):
                self._record(
                    request,
                    Action.USER_CHANGED,
                    User.objects.get(pk=id),
                    {},
                    {"password": "changed"},
                )
        return answer

    def _is_within_reach(self, request: HttpRequest, user: Any) -> bool:
        """Return whether the user may change an account. Only superusers change accounts of superusers and staff,
        because setting a password gives its permissions. One's own account is always allowed."""
        mighty = (
            user is not None and (user.is_superuser or user.is_staff) and user.pk != request.user.pk
        )
        return not mighty or bool(request.user.is_superuser)


def _disable(user: User, origin: Origin) -> None:
    disable_user(user=user, origin=origin)


def _enable(user: User, origin: Origin) -> None:
    enable_user(user=user, origin=origin)


admin.site.unregister(Group)


@admin.register(Group)
class PermissionsAdmin(GroupAdmin):
    """Groups of permissions, which only superusers change, like the permissions of accounts."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **kwargs: Any) -> Any:
        if db_field.name == "permissions":
            kwargs["queryset"] = _permissions_here(self.admin_site)
        return super().formfield_for_manytomany(db_field, request=request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)


@admin.register(ApiToken)
class ApiTokenAdmin(AuditedAdmin):
    """Tokens are created through the API or `evalhub create_token`, which show their text once; here they are
    revoked."""

    audited = (Action.TOKEN_CREATED, Action.TOKEN_CHANGED, Action.TOKEN_REVOKED)
    list_display = (
        "key",
        "name",
        "user",
        "scope_names",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "created_at",
    )
    list_select_related = ("user",)
    list_filter = (
        ("revoked_at", admin.EmptyFieldListFilter),
        "last_used_at",
        "expires_at",
        "user__is_active",
    )
    search_fields = ("key", "name", "user__username")
    date_hierarchy = "created_at"
    fields = (
        "user",
        "name",
        "key",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    readonly_fields = ("user", "key", "scopes", "created_at", "last_used_at", "revoked_at")
    actions = ("revoke",)

    @admin.display(description="scopes")
    def scope_names(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @admin.action(description="Revoke", permissions=["alter"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiToken]) -> HttpResponse | None:
        question = "Revoke these tokens? Programs that use them are refused at once. This cannot be undone."
        return self.carry_out(
            request, chosen.filter(revoked_at=None), _revoke, done="Revoked", question=question
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


def _revoke(token: ApiToken, origin: Origin) -> None:
    revoke_token(user=token.user, key=token.key, origin=origin)
