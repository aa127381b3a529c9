"""What the pages of the administration share.

Pages only change a form's own fields. All other changes go through the services: one transaction for a row and its
event in the audit trail, and the same rules as in the API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from metrics.engine.errors import EvalHubError
from runs.api.origin import origin_of
from runs.models import AuditEvent, Collection
from runs.services.audit import Origin, record

# The stubs know these classes as generic; Django itself does not.
if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin

Action = AuditEvent.Action
# An action runs a transaction for each row, in one request.
MAX_CHOSEN = 500
_TOLD, _NAMED = 5, 20


def number_of(rows: QuerySet[Any], of: str) -> Coalesce:
    """Return how many of these rows have the listed one as their `of`; joins would multiply each other."""
    counted = rows.filter(**{of: OuterRef("pk")}).order_by().values(of).annotate(number=Count("pk"))
    return Coalesce(Subquery(counted.values("number")), 0)


class ServiceAdmin(AnyAdmin):
    """A list whose actions call services. An action requires the permission `alter` or `withdraw`, which are Django's
    to change and to delete, even where no form changes or deletes anything."""

    class Media:
        css = {"all": ("evalhub/admin.css",)}

    # The number of checkboxes of a page must stay below what a form may send (DATA_UPLOAD_MAX_NUMBER_FIELDS).
    list_per_page = 50
    list_max_show_all = 50
    # Counting a large table takes longer than the page that is shown of it.
    show_full_result_count = False

    def has_alter_permission(self, request: HttpRequest) -> bool:
        return self._permitted(request, "change")

    def has_withdraw_permission(self, request: HttpRequest) -> bool:
        return self._permitted(request, "delete")

    def get_actions(self, request: HttpRequest) -> Any:
        """Return the actions without Django's own, which deletes many rows without the services."""
        return {
            name: action
            for name, action in super().get_actions(request).items()
            if name != "delete_selected"
        }

    def carry_out(
        self,
        request: HttpRequest,
        chosen: QuerySet[Any],
        act: Callable[[Any, Origin], object],
        *,
        done: str,
        question: str = "",
    ) -> HttpResponse | None:
        """Run an action on each of the rows, after a confirmation page if it needs one, and report the result."""
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

    def _permitted(self, request: HttpRequest, verb: str) -> bool:
        codename = get_permission_codename(verb, self.opts)
        return bool(request.user.has_perm(f"{self.opts.app_label}.{codename}"))


class ReadOnlyAdmin(ServiceAdmin):
    """Facts, which no form changes."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class AuditedAdmin(ServiceAdmin):
    """Changes here are recorded in the audit trail; `audited` names the actions for add, change and delete.

    `settled` are fields that only a new row has in its form.
    """

    audited: tuple[str, str, str]
    settled: tuple[str, ...] = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return (*super().get_readonly_fields(request, obj), *(self.settled if obj else ()))

    def save_model(
        self, request: HttpRequest, obj: Model, form: ModelForm[Any], change: bool
    ) -> None:
        before, after = _form_changes(form)
        if change:
            # Save only what the form changed: a simultaneous change by another request, such as a release, must not be
            # undone.
            own = [
                field.name for field in obj._meta.concrete_fields if field.name in form.changed_data
            ]
            obj.save(update_fields=own)
        else:
            super().save_model(request, obj, form, change)
        if form.changed_data:
            self._record(request, self.audited[change], obj, before if change else {}, after)

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self._record(request, self.audited[2], obj, {"name": str(obj)}, {})
        super().delete_model(request, obj)

    def _record(
        self, request: HttpRequest, action: str, target: Model, before: Any, after: Any
    ) -> None:
        collection = (
            target
            if isinstance(target, Collection) and action != Action.COLLECTION_DELETED
            else None
        )
        record(
            origin_of(request), action, target, collection=collection, before=before, after=after
        )


def _form_changes(form: ModelForm[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the fields that a form changes, before and after, as text; of a password only that it changed."""
    names = [name for name in form.changed_data if "password" not in name]
    before = {name: str(form.initial.get(name, "")) for name in names}
    after = {name: str(form.cleaned_data.get(name, "")) for name in names}
    return before, after | ({"password": "changed"} if len(names) < len(form.changed_data) else {})
