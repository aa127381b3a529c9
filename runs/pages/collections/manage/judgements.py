"""The versions of a collection's judgements: check, upload, activate and compare them."""

from __future__ import annotations

from typing import Any, cast

from django.http import Http404, HttpResponse
from rest_framework.request import Request

from metrics.services.queue.queueing import queue_judged
from runs.api.collections.collections import upload_fields
from runs.api.serializers import QrelsUploadSerializer
from runs.models import Collection, Qrels, User
from runs.pages.collections.manage.sections import ChangingSection
from runs.services.collections.authorship import authorship_of
from runs.services.collections.qrels import (
    activate_qrels,
    check_qrels,
    import_qrels,
    sampling_of,
)
from runs.services.storage.reports import report_as_json
from runs.web.forms import FormInput
from runs.web.origin import origin_of

# The uses of the second column of a file, in the words of the form.
_COLUMNS = {
    "": "detect",
    Qrels.Iteration.SUBTOPIC.value: "subtopics",
    Qrels.Iteration.ROUND.value: "rounds of judging: the highest level counts",
    Qrels.Iteration.IGNORE.value: "nothing",
    Qrels.KeyedBy.QUERY.value: "the number of a session’s query",
}

# How the judged documents were drawn, in the words of the form.
_SAMPLINGS = {
    Qrels.Sampling.NONE.value: "no",
    Qrels.Sampling.STRATA.value: "in strata",
    Qrels.Sampling.PROBABILITIES.value: "with probabilities",
}

# The authors of judgements, and how a version is made from another one, in the words of the form.
_AUTHORS = {
    "": "not given",
    Qrels.AuthorKind.PERSON.value: "persons",
    Qrels.AuthorKind.MODEL.value: "a model",
    Qrels.AuthorKind.CLICKS.value: "clicks",
    Qrels.AuthorKind.MIXED.value: "several of these",
}
_DERIVATIONS = {
    Qrels.Derivation.NONE.value: "no",
    Qrels.Derivation.FILLED.value: "filled: all judgements of the version below, and more",
    Qrels.Derivation.REPLACED.value: "replaced: the same documents, judged again",
    Qrels.Derivation.SAMPLED.value: "sampled: some of its judgements",
}


class QrelsFormSerializer(FormInput, QrelsUploadSerializer):
    """The same fields as a form sends them, with one choice for the use of the second column."""

    def to_internal_value(self, data: Any) -> Any:
        fields = dict(data.items())
        column = fields.pop("column", "")
        if column:
            fields["keyed_by" if column == Qrels.KeyedBy.QUERY else "iteration"] = column

        for name in ("parent", "produced_at"):
            if not fields.get(name):
                fields.pop(name, None)

        # A box that is not checked is not sent.
        for name in ("activate", "ignore_sampling"):
            fields[name] = fields.get(name, "false")
        return super().to_internal_value(fields)


class JudgementsPage(ChangingSection):
    """List the versions; check or upload a file, or activate a version."""

    address, template = "manage-judgements-page", "runs/manage/judgements.html"

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        versions = list(
            collection.qrels.select_related("created_by", "parent")
            .defer("topic_ids", "prompt")
            .order_by("-version")
        )
        return {
            "versions": versions,
            "active": next((version for version in versions if version.active), None),
            "columns": _COLUMNS,
            "samplings": _SAMPLINGS,
            "author_kinds": _AUTHORS,
            "derivations": _DERIVATIONS,
            "form_values": request.data if request.method == "POST" else {"activate": "true"},
            "with_runs": collection.runs.filter(deleted_at=None).exists(),
        }

    def change(self, request: Request, collection: Collection) -> str | HttpResponse:
        if request.data.get("action") == "activate":
            return _activate(request, collection)

        with upload_fields(request, QrelsFormSerializer) as fields:
            path = fields["file"].path
            authorship = authorship_of(collection, fields)
            if request.data.get("action") == "check":
                summary, source = check_qrels(
                    collection=collection,
                    upload=path,
                    keyed_by=fields["keyed_by"],
                    iteration=fields["iteration"],
                    sampling=sampling_of(fields),
                    authorship=authorship,
                )

                checked = {
                    "sha256": source.sha256,
                    "judgements": len(summary.judgements.levels),
                    "topics": len(summary.judgements.topic_ids),
                    "levels": sorted(summary.levels.items()),
                    "column": _COLUMNS[summary.iteration],
                    "warnings": report_as_json(summary.report),
                }

                return self.show(request, collection, checked=checked)

            qrels, new = import_qrels(
                collection=collection,
                user=cast(User, request.user),
                upload=path,
                note=fields["note"],
                keyed_by=fields["keyed_by"],
                iteration=fields["iteration"],
                sampling=sampling_of(fields),
                authorship=authorship,
                activate=fields["activate"],
                enqueue=queue_judged,
                origin=origin_of(request),
            )

        result = "uploaded" if new else "has the same judgements; nothing was stored"
        return f"Version {qrels.version} {result}{_effect(collection, qrels)}"


def _activate(request: Request, collection: Collection) -> str:
    text = str(request.data.get("version", ""))
    version = int(text) if text.isdecimal() and len(text) < 7 else 0
    qrels = collection.qrels.filter(version=version).first()
    if qrels is None:
        raise Http404(f"collection {collection.slug} has no qrels version {text[:20]}")
    activate_qrels(qrels=qrels, enqueue=queue_judged, origin=origin_of(request))

    return f"Version {qrels.version} activated{_effect(collection, qrels)}"


def _effect(collection: Collection, qrels: Qrels) -> str:
    """Return the end of a sentence: what a version does to the runs of its collection."""
    active = collection.active_qrels
    if active and active.reduced_from_id == qrels.pk:
        return (
            f"; version {active.version}, without the topics that phases exclude, "
            "counts in its place."
        )
    if not qrels.active:
        return "; it is not active."

    runs = collection.runs.filter(deleted_at=None).count()
    if not runs:
        return "; it is active."
    return f"; {runs:,} run{'s are' if runs != 1 else ' is'} evaluated against it."
