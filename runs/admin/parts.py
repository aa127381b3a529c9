"""The base of the administration's pages: they are read-only, except for a few actions.

Actions have no page of their own. They go through the services: one transaction for a row and its
event in the audit trail, and the same rules as in the API.
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
_MAX_REASONS, _MAX_LISTED = 5, 20


def number_of(rows: QuerySet[Any], column: str) -> Coalesce:
    """Return the number of rows that refer to a listed one by a column, as a subquery.

    Several joins would multiply each other.
    """
    groups = rows.filter(**{column: OuterRef("pk")}).order_by().values(column)
    return Coalesce(Subquery(groups.annotate(number=Count("pk")).values("number")), 0)


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
        """Run an action on each chosen row and report the results.

        An action with a question shows a confirmation page first.
        """
        if chosen.count() > MAX_CHOSEN:
            self.message_user(request, f"Choose {MAX_CHOSEN} rows at most.", messages.ERROR)
            return None

        if question and "confirmed" not in request.POST:
            return self._confirmation_page(request, chosen, question)

        origin = origin_of(request)
        number, reasons = 0, []
        for row in list(chosen):
            try:
                act(row, origin)
                number += 1
            except EvalHubError as error:
                reasons.append(error.message)

        if number:
            self.message_user(request, f"{done}: {number}", messages.SUCCESS)
        for reason in reasons[:_MAX_REASONS]:
            self.message_user(request, f"Refused: {reason}", messages.WARNING)

        if len(reasons) > _MAX_REASONS:
            more = len(reasons) - _MAX_REASONS
            self.message_user(request, f"Refused: {more} more", messages.WARNING)

        return None

    def _confirmation_page(
        self, request: HttpRequest, chosen: QuerySet[Any], question: str
    ) -> HttpResponse:
        number = chosen.count()
        action_fields = ("action", "select_across", "index", ACTION_CHECKBOX_NAME)
        context = {
            **self.admin_site.each_context(request),
            "title": "Are you sure?",
            "opts": self.opts,
            "question": question,
            "rows": [str(row) for row in chosen[:_MAX_LISTED]],
            "more": max(0, number - _MAX_LISTED),
            "hidden": [
                (name, value) for name in action_fields for value in request.POST.getlist(name)
            ],
        }

        return TemplateResponse(request, "runs/admin/confirm.html", context)
