"""Accounts and their tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from runs.admin.parts import AnyInline, ReadOnly, ReadOnlyAdmin, number_of
from runs.models import ApiToken, Membership, Team, User
from runs.services.accounts.accounts import check_may_manage, disable_user, enable_user
from runs.services.accounts.tokens import revoke_token
from runs.services.audit.trail import Origin

# Groups give permissions, which nothing here reads.
admin.site.unregister(Group)


class Memberships(ReadOnly, AnyInline):
    """The teams of a user."""

    model = Membership
    fields = ("team", "role")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("team", "user")


@admin.register(User)
class PersonAdmin(ReadOnlyAdmin):
    """Accounts, which are disabled and enabled here.

    Commands create, change and delete them, and so do their users on the account page.
    """

    list_display = (
        "username", "email", "own_team", "teams", "working_tokens", "is_staff", "is_active",
        "last_login", "date_joined",
    )  # fmt: skip
    list_select_related = ("personal_team",)
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("username", "email", "first_name", "last_name")
    ordering = ("username",)
    date_hierarchy = "date_joined"
    exclude = ("password", "groups", "user_permissions")
    inlines = (Memberships,)
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

    @admin.action(description="Disable: no login, no token")
    def disable(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        question = (
            "Disable these accounts? They can no longer log in, and their tokens stop working. "
            "Their submissions stay."
        )
        return self.carry_out(request, users, _disable, done="Disabled", question=question)

    @admin.action(description="Enable")
    def enable(self, request: HttpRequest, users: QuerySet[User]) -> HttpResponse | None:
        return self.carry_out(request, users, _enable, done="Enabled")


def _disable(user: User, origin: Origin) -> None:
    disable_user(user=user, origin=origin)


def _enable(user: User, origin: Origin) -> None:
    enable_user(user=user, origin=origin)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    """Tokens, which are revoked here.

    The API and `evalhub create_token` create them, and show their text once.
    """

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
    actions = ("revoke",)

    @admin.display(description="scopes")
    def scope_names(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @admin.action(description="Revoke")
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> HttpResponse | None:
        question = (
            "Revoke these tokens? Programs that use them are refused at once. "
            "This cannot be undone."
        )
        active = tokens.filter(revoked_at=None)

        return self.carry_out(request, active, _revoke, done="Revoked", question=question)


def _revoke(token: ApiToken, origin: Origin) -> None:
    check_may_manage(token.user, origin)
    revoke_token(user=token.user, key=token.key, origin=origin)
