"""The page of value tables: measures that other programs compute, and the form for their values."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.value_tables import (
    MeasureDeclarationSerializer,
    ValueTableSerializer,
    sender_of,
    tables_seen_by,
)
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from metrics.services.values.value_tables import (
    check_table,
    declare_measure,
    delete_measure,
    find_measure,
    import_table,
)
from runs.api.collections.collections import upload_fields
from runs.api.serializers import RunUploadSerializer
from runs.models import Collection, ExternalMeasure, Scope, User
from runs.services.storage.reports import report_as_json
from runs.services.submissions.runs import VALUES, RunUpload
from runs.services.submissions.submissions import submit
from runs.web.access import managed_collection, visible_collection
from runs.web.forms import FormInput, FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.uploads import StoredUpload

# Tables that the page lists.
_LISTED = 20
_RUN = ("tag", "team")
_TABLE = ("note", "tool", "tool_version")
_MEASURE = (
    "name", "direction", "low", "high", "unit", "description", "aggregate", "missing", "source",
)  # fmt: skip
# The label of each field with a choice, and the texts of its values.
_CHOICES = {
    "direction": (
        "Direction", {"higher": "higher values are better", "lower": "lower values are better"}
    ),
    "source": (
        "Values come from", {"organiser": "the organisers", "reported": "each team, of its own runs"}
    ),
    "missing": ("Topic without a value", {"undefined": "no value", "zero": "0"}),
    "aggregate": ("Value of a run", {"mean": "mean", "geometric": "geometric mean"}),
}  # fmt: skip


class TableFormSerializer(FormInput, ValueTableSerializer):
    """The same fields as a form sends them."""


class MeasureFormSerializer(FormInput, MeasureDeclarationSerializer):
    """The same fields as a form sends them."""


class ValueTablesPage(FormPage):
    """List the measures and tables of a collection; upload a table, declare or delete a measure."""

    scopes = {"POST": Scope.SUBMIT}
    access = {"GET": Access.SIGNED_IN, "POST": Access.SIGNED_IN}
    fields = ("action", "measure", *_RUN, *_TABLE, *_MEASURE)

    def get(self, request: Request, slug: str) -> HttpResponse:
        return self.show(request, visible_collection(request, slug))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        try:
            result = self.act(request, collection)
        except (EvalHubError, APIException) as error:
            return self.show(request, collection, refusal_of(error))

        if isinstance(result, HttpResponse):
            return result
        messages.success(request, result)
        return redirect_to(request, reverse("value-tables-page", args=[slug]))

    def act(self, request: Request, collection: Collection) -> str | HttpResponse:
        """Do what the pressed button says. Return a sentence, or the page after a check."""
        action = request.data.get("action")
        if action == "declare":
            return _declare(request, managed_collection(request, collection.slug))
        if action == "delete":
            managed = managed_collection(request, collection.slug)
            measure = find_measure(managed, str(request.data.get("measure", "")))
            delete_measure(measure=measure, origin=origin_of(request))
            return f"{measure} and its values deleted."

        if action == "add":
            return _add_run(request, collection)

        sender = sender_of(request, collection)
        with upload_fields(request, TableFormSerializer) as fields:
            path = fields.pop("file").path
            del fields["dry_run"]
            if action == "check":
                table = check_table(collection=collection, upload=path, sender=sender)
                warnings = report_as_json(table.report)
                return self.show(request, collection, checked=table, warnings=warnings)

            stored = import_table(
                collection=collection,
                upload=path,
                sender=sender,
                fields=fields,
                origin=origin_of(request),
            )

        warned = sum(stored.warnings.get("counts", {}).values())
        plural = "s" if warned > 1 else ""
        return (
            f"Table {stored.number} uploaded: {stored.values:,} values of {stored.runs:,} runs"
            f"{f', with {warned:,} warning{plural}' if warned else ''}."
        )

    def show(
        self,
        request: Request,
        collection: Collection,
        refusal: Refusal | None = None,
        **results: Any,
    ) -> HttpResponse:
        managed = Collection.objects.managed_by(request.user).filter(pk=collection.pk).exists()
        form: Any = request.data if request.method == "POST" else {}
        tables = tables_seen_by(request.user, collection)[:_LISTED]
        context = {
            "collection": collection,
            "managed": managed,
            "measures": list(collection.external_measures.order_by("name")),
            "tables": list(tables),
            "choices": [
                {"name": name, "label": label, "texts": texts, "selected": form.get(name)}
                for name, (label, texts) in _CHOICES.items()
            ],
            "form_values": {name: form.get(name, "") for name in (*_RUN, *_TABLE, *_MEASURE)},
            "reported": ExternalMeasure.Source.REPORTED,
            **results,
        }
        response = render_form(request, "metrics/value_tables.html", context, refusal)
        response["Cache-Control"] = "no-store"
        return response


def _add_run(request: Request, collection: Collection) -> str:
    """Submit a run without a ranking."""
    with closing(StoredUpload("upload")) as empty:
        data = {"tag": request.data.get("tag", ""), "kind": VALUES, "file": empty}
        if team := request.data.get("team"):
            data["team"] = team
        serializer = RunUploadSerializer(data=data, context={"request": request})
        serializer.is_valid(raise_exception=True)

        fields = serializer.validated_data
        upload = RunUpload(
            collection=collection,
            team=fields["team"],
            user=cast(User, request.user),
            file=empty.path,
            kind=VALUES,
            tag=fields["tag"],
            origin=origin_of(request),
        )
        run, new = submit(upload=upload, enqueue=queue_submitted, again=try_damaged_again)

    return f"Run {run} added." if new else f"Run {run} was there already."


def _declare(request: Request, collection: Collection) -> str:
    fields = {name: request.data[name] for name in _MEASURE if request.data.get(name)}
    serializer = MeasureFormSerializer(data=fields)
    serializer.is_valid(raise_exception=True)
    measure = declare_measure(
        collection=collection, fields=serializer.validated_data, origin=origin_of(request)
    )
    return f"{measure} declared."
