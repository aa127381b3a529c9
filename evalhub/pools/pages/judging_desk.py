"""The page on which organisers give out topics, store files of judgements, decide conflicts and make
a version."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.pools.models import Pool
from evalhub.pools.questions.judging import (
    AssignmentSerializer,
    JudgedQrelsSerializer,
    JudgementsUploadSerializer,
    adjudications_of,
)
from evalhub.pools.questions.lookup import managed_pool
from evalhub.pools.services.agreement import PoolAgreement, read_agreement
from evalhub.pools.services.assigning import assign_topics, remove_assignment
from evalhub.pools.services.importing import JSONL, QRELS, TSV, import_judgements
from evalhub.pools.services.judging import labels_of, progress_of
from evalhub.pools.services.resolving import (
    Rule,
    adjudicate,
    conflicts_of,
    judgements_of,
    make_qrels,
)
from metrics.engine.errors import EvalHubError
from runs.api.collections.collections import upload_fields
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import Collection, Scope, User
from runs.services.collections.authorship import Authorship
from runs.services.storage.reports import report_as_json
from runs.web.forms import FormInput, FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.permissions import Access

_MOST_CONFLICTS, _WARNINGS_SHOWN = 50, 3
_MOST_ASSIGNMENTS = 500
# The forms of a file, in the words of the page.
_FORMS = {
    QRELS: "qrels: topic, 0, document, level",
    TSV: "TSV: topic, document, level",
    JSONL: "JSON lines",
}


class JudgementsFormSerializer(FormInput, JudgementsUploadSerializer):
    """The same fields as a form sends them."""


class JudgingDeskPage(FormPage):
    """Who judges what, where they differ, how far they agree, and the versions made of it."""

    scopes = {"POST": Scope.MANAGE}
    access = {"GET": Access.ORGANISERS}
    fields = (
        "assessor", "topics", "copies", "overlap", "topic_id", "doc_id", "level", "note", "resolve",
        "activate", "ignore_sampling", "format", "allow_outside", "action",
    )  # fmt: skip

    def get(self, request: Request, pool: UUID) -> HttpResponse:
        return self.show(request, managed_pool(request, pool))

    def show(self, request: Request, pool: Pool, refusal: Refusal | None = None) -> HttpResponse:
        rows = pool.assignments.select_related("assessor", "pool").order_by("pk")
        assignments = list(rows[:_MOST_ASSIGNMENTS])
        progress = progress_of(assignments)
        conflicts = list(conflicts_of(pool)[: _MOST_CONFLICTS + 1])
        judgements = judgements_of(pool, conflicts)
        context = {
            "pool": pool,
            "assignments": [(row, *progress[row.pk]) for row in assignments],
            "conflicts": [
                (row, judgements[row["topic_id"], row["doc_id"]])
                for row in conflicts[:_MOST_CONFLICTS]
            ],
            "more_conflicts": len(conflicts) > _MOST_CONFLICTS,
            "judged": sum(judged for judged, _ in progress.values()),
            "assigned": sum(documents for _, documents in progress.values()),
            "labels": labels_of(pool.collection),
            "agreement": _agreement(pool),
            "forms": _FORMS,
            "rules": [str(rule) for rule in Rule],
            "versions": pool.versions.select_related("qrels").order_by("-pk"),
            "form_values": {name: str(request.data.get(name, "")) for name in self.fields}
            if refusal
            else {},
        }
        response = render_form(request, "pools/judging_desk.html", context, refusal)
        response["Cache-Control"] = "no-store"
        return response

    def post(self, request: Request, pool: UUID) -> HttpResponse:
        managed = managed_pool(request, pool)
        try:
            done = self.act(request, managed)
        except (EvalHubError, APIException) as error:
            return self.show(request, managed, refusal_of(error))

        messages.success(request, done)
        return redirect_to(request, reverse("judging-desk-page", args=[pool]))

    def act(self, request: Request, pool: Pool) -> str:
        if request.data.get("action") in ("check", "import"):
            return _import(request, pool)

        user, origin = cast(User, request.user), origin_of(request)
        form = {name: str(request.data.get(name, "")).strip() for name in self.fields}
        if form["action"] == "assign":
            body: dict[str, Any] = {"assessor": form["assessor"]}
            body |= {name: form[name] for name in ("copies", "overlap") if form[name]}
            if form["topics"]:
                body["topics"] = form["topics"].replace(",", " ").split()
            serializer = AssignmentSerializer(data=body)
            serializer.is_valid(raise_exception=True)
            fields = serializer.validated_data
            rows = assign_topics(
                pool=pool,
                user=fields["assessor"],
                topics=fields.get("topics"),
                copies=fields.get("copies"),
                overlap=fields.get("overlap"),
                by=user,
                origin=origin,
            )
            return f"{form['assessor']} judges {len(rows):,} topic{'s' * (len(rows) > 1)}."

        if form["action"] == "unassign":
            row = pool.assignments.select_related("pool", "assessor").filter(
                assessor__name=form["assessor"], topic_id=form["topic_id"]
            )
            if (assignment := row.first()) is None:
                raise InvalidInput("the topic is not assigned any more", pointer="/topic_id")
            remove_assignment(assignment=assignment, origin=origin)
            return f"{form['assessor']} no longer judges topic {form['topic_id']}."

        if form["action"] == "decide":
            decision = {name: form[name] for name in ("topic_id", "doc_id", "level", "note")}
            adjudicate(pool=pool, decisions=adjudications_of([decision]), user=user, origin=origin)
            return f"Document {form['doc_id']} has level {form['level']}."

        if form["action"] == "make":
            return self.make_version(request, pool, form)
        raise InvalidInput("press one of the buttons", pointer="/action")

    def make_version(self, request: Request, pool: Pool, form: dict[str, str]) -> str:
        managed = Collection.objects.managed_by(request.user)
        if not managed.filter(pk=pool.collection_id).exists():
            raise NotAllowed("only organisers of the collection make versions of its judgements")

        body: dict[str, Any] = {"resolve": form["resolve"]}
        body |= {name: form[name] == "true" for name in ("activate", "ignore_sampling")}
        serializer = JudgedQrelsSerializer(data=body)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        version, _ = make_qrels(
            pool=pool,
            rule=Rule(fields["resolve"]),
            user=cast(User, request.user),
            activate=fields["activate"],
            ignore_sampling=fields["ignore_sampling"],
            authorship=Authorship(kind=fields["author_kind"]),
            origin=origin_of(request),
        )
        return f"Version {version.qrels.version} has {version.qrels.judgements:,} judgements."


def _import(request: Request, pool: Pool) -> str:
    """Check or store a file of judgements. Return what it has as a sentence."""
    dry_run = request.data["action"] == "check"
    with upload_fields(request, JudgementsFormSerializer) as fields:
        summary = import_judgements(
            pool=pool,
            upload=fields["file"].path,
            options=fields["options"],
            user=cast(User, request.user),
            manager=True,
            dry_run=dry_run,
            origin=origin_of(request),
        )

    counts = summary.counts
    sentences = [f"The file can be stored: it has {summary.lines:,} judgements."]
    if not dry_run:
        sentences = [
            f"The file is stored: {counts.new:,} new judgements, {counts.changed:,} with another "
            f"level than before, {counts.same:,} as before."
        ]
    warnings = report_as_json(summary.report)["warnings"]
    sentences += [f"Warning: {warning['message']}." for warning in warnings[:_WARNINGS_SHOWN]]
    return " ".join(sentences)


def _agreement(pool: Pool) -> PoolAgreement | None:
    try:
        return read_agreement([pool])
    except Conflict:
        return None
