"""What the pages of the administration share: they only show, but for a few actions that have no
page of their own.

These go through the services: one transaction for a row and its event in the audit trail, and the
same rules as in the API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from metrics.engine.errors import EvalHubError
from runs.models.accounts.accounts import is_staff
from runs.services.audit.trail import Origin
from runs.web.origin import origin_of

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyInline = admin.TabularInline[Any, Any]
else:
    AnyAdmin = admin.ModelAdmin
    AnyInline = admin.TabularInline

# An action runs a transaction for each row, in one request.
MAX_CHOSEN = 500
_TOLD, _NAMED = 5, 20


def number_of(rows: QuerySet[Any], of: str) -> Coalesce:
    """Return how many of these rows have the listed one as their `of`; joins would multiply each
    other."""
    counted = rows.filter(**{of: OuterRef("pk")}).order_by().values(of).annotate(number=Count("pk"))
    return Coalesce(Subquery(counted.values("number")), 0)


class ReadOnly:
    """Show everything to staff, and add, change and delete nothing."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_staff(request.user)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_staff(request.user)


class ReadOnlyAdmin(ReadOnly, AnyAdmin):
    """A list and the page of each of its rows. Actions call services."""

    class Media:
        css = {"all": ("evalhub/admin.css",)}

    # The number of checkboxes of a page must stay below what a form may send
    # (DATA_UPLOAD_MAX_NUMBER_FIELDS).
    list_per_page = 50
    list_max_show_all = 50
    # Counting a large table takes longer than the page that is shown of it.
    show_full_result_count = False

    def carry_out(
        self,
        request: HttpRequest,
        chosen: QuerySet[Any],
        act: Callable[[Any, Origin], object],
        *,
        done: str,
        question: str = "",
    ) -> HttpResponse | None:
        """Run an action on each of the rows, after a confirmation page if it needs one, and report
        the result."""
        if chosen.count() > MAX_CHOSEN:
            self.message_user(request, f"Choose {MAX_CHOSEN} rows at most.", messages.ERROR)
            return None
        if question and "confirmed" not in request.POST:
            return self._ask(request, chosen, question)
        origin, refused = origin_of(request), []
        rows = list(chosen)
        for row in rows:
            try:
                act(row, origin)
            except EvalHubError as error:
                refused.append(error.message)
        self._tell(request, len(rows) - len(refused), done, refused)
        return None

    def _tell(self, request: HttpRequest, number: int, done: str, refused: list[str]) -> None:
        if number:
            self.message_user(request, f"{done}: {number}", messages.SUCCESS)
        for reason in refused[:_TOLD]:
            self.message_user(request, f"Refused: {reason}", messages.WARNING)
        if len(refused) > _TOLD:
            self.message_user(request, f"Refused: {len(refused) - _TOLD} more", messages.WARNING)

    def _ask(self, request: HttpRequest, chosen: QuerySet[Any], question: str) -> HttpResponse:
        number = chosen.count()
        action_fields = ("action", "select_across", "index", ACTION_CHECKBOX_NAME)
        context = {
            **self.admin_site.each_context(request),
            "title": "Are you sure?",
            "opts": self.opts,
            "question": question,
            "rows": [str(row) for row in chosen[:_NAMED]],
            "more": max(0, number - _NAMED),
            "hidden": [
                (name, value) for name in action_fields for value in request.POST.getlist(name)
            ],
        }
        return TemplateResponse(request, "runs/admin/confirm.html", context)
