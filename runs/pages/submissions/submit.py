"""The page that checks and submits runs: one, or several at once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_submitted, try_damaged_again
from runs.api.collections.collections import upload_fields
from runs.api.serializers import RunUploadSerializer
from runs.errors import ClientLeft, InvalidInput
from runs.formats.links import KINDS, MAX_LINKS, check_links
from runs.models import Campaign, Collection, Experiment, Run, Scope, Team, User
from runs.pages.tracking.lineage import RELATIONS, read_links, read_parents
from runs.pages.tracking.metadata import lines_in
from runs.services.submissions.runs import RunUpload
from runs.services.submissions.submissions import submit
from runs.services.tracking.lineage import MAX_PARENTS
from runs.web.access import visible_collection
from runs.web.forms import FormInput, FormPage, Refusal, redirect_to, refusal_of
from runs.web.origin import origin_of
from runs.web.parameters import check_fields
from runs.web.uploads import MAX_FILES, ManyFilesUploadHandler, StoredUpload

# The endings of the names of run files, which do not belong to a tag.
_ENDINGS = {"gz", "zst", "run", "txt", "trec", "res", "tsv"}
_TEXT_FIELDS = (
    "tag", "tags", "team", "description", "metadata", "costs", "experiment", "system", "label",
    "if_taken", "parents", "links", "passages", "replicate",
)  # fmt: skip
# Fields of a single file, and why several files are refused with them.
_SINGLE_FILE_FIELDS = {
    "tag": "leave the tag empty with several files: "
    "each takes the tag in the file, or the name of the file",
    "label": "a label names a single run; choose one file",
    "parents": "parents belong to a single run; "
    "choose one file, or write them on the page of each run",
    "links": "links belong to a single run; choose one file, or write them on the page of each run",
}
# In the choices of a campaign and of an experiment.
_MAX_CHOICES = 200


class RunFormSerializer(FormInput, RunUploadSerializer):
    """The same fields as a form sends them: metadata, costs, parents and links are lines.

    With `tags=name`, the tag is taken from the file's name.
    """

    parents: Any = serializers.CharField(required=False, default="", trim_whitespace=False)
    links: Any = serializers.CharField(required=False, default="", trim_whitespace=False)

    def to_internal_value(self, data: Any) -> Any:
        fields = dict(data.items())
        if fields.pop("tags", "") == "name" and not fields.get("tag") and fields.get("file"):
            fields["tag"] = tag_of_name(fields["file"].name)
        for name in ("metadata", "costs"):
            if fields.get(name):
                fields[name] = lines_in(fields[name], name)

        return super().to_internal_value(fields)


def tag_of_name(name: str) -> str:
    """Return the tag of a run for the name of its file."""
    stem, dot, ending = name.rpartition(".")
    while dot and ending.lower() in _ENDINGS:
        name = stem
        stem, dot, ending = name.rpartition(".")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64]


@dataclass(frozen=True)
class FileResult:
    """The result for one of several files: a stored run, a checked one, or a refusal."""

    name: str
    run: Run | None = None
    checked: Run | None = None
    refusal: Refusal | None = None
    new: bool = True


@dataclass(frozen=True)
class Outcome:
    """The result of several files together, as numbers of files."""

    checked: int
    new: int
    repeated: int
    refused: int

    @property
    def words(self) -> str:
        """Return the numbers as the line of the page has them."""
        refused = f", {self.refused:,} refused" if self.refused else ""
        if self.checked:
            return f"{self.checked:,} of {self.checked + self.refused:,} can be submitted{refused}"
        if not self.repeated and not self.refused:
            return f"{self.new:,} runs in"

        verb = "was" if self.repeated == 1 else "were"
        repeated = f", {self.repeated:,} {verb} there already" if self.repeated else ""
        return f"{self.new:,} new{repeated}{refused}"


def outcome_of(results: Sequence[FileResult]) -> Outcome:
    return Outcome(
        checked=sum(result.checked is not None for result in results),
        new=sum(result.run is not None and result.new for result in results),
        repeated=sum(result.run is not None and not result.new for result in results),
        refused=sum(result.refusal is not None for result in results),
    )


class SubmitPage(FormPage):
    """Check run files, which stores nothing, or submit them."""

    scopes = {"POST": Scope.SUBMIT}

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Accept several files, unlike the API."""
        request.upload_handlers = [ManyFilesUploadHandler(request)]
        return super().initialize_request(request, *args, **kwargs)

    def get(self, request: Request, slug: str) -> HttpResponse:
        return _page(request, visible_collection(request, slug))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        try:
            if len(request.FILES.getlist("file")) > 1:
                return _page(request, collection, results=_submit_all(request, collection))
            with upload_fields(request, RunFormSerializer) as fields:
                upload = _upload(request, collection, fields)
                if request.data.get("action") == "check":
                    with upload.prepared() as ready:
                        return _page(request, collection, checked=ready.check())
                run, _ = submit(upload=upload, enqueue=queue_submitted, again=try_damaged_again)
        except (EvalHubError, APIException) as error:
            return _page(request, collection, refusal_of(error))

        return redirect_to(request, reverse("run-page", args=[run.pk]))


def _upload(request: Request, collection: Collection, fields: dict[str, Any]) -> RunUpload:
    known = fields["known"]
    return RunUpload(
        collection=collection,
        team=fields["team"],
        user=cast(User, request.user),
        file=fields["file"].path,
        known=known.path if known else None,
        passages=fields["passages"],
        kind=fields["kind"],
        tag=fields["tag"],
        description=fields["description"],
        metadata=fields["metadata"],
        costs=fields["costs"],
        experiment=fields["experiment"],
        label=fields["label"],
        system=fields["system"],
        if_taken=fields["if_taken"],
        replicate=fields["replicate"],
        parents=list(read_parents(request.user, collection, fields["team"], fields["parents"])),
        links=check_links(read_links(fields["links"])),
        origin=origin_of(request),
    )


def _submit_all(request: Request, collection: Collection) -> list[FileResult]:
    """Check or submit each file by itself, so that a refused one does not stop the others.

    Raise what is wrong with the form before any file is read.
    """
    check_fields(request.data, ("csrfmiddlewaretoken", "action", "file", "known", *_TEXT_FIELDS))
    texts = {name: str(request.data[name]) for name in _TEXT_FIELDS if name in request.data}
    with contextlib.ExitStack() as uploads:
        for name in request.FILES:
            for upload in request.FILES.getlist(name):
                uploads.callback(upload.close)

        for name, message in _SINGLE_FILE_FIELDS.items():
            if texts.get(name):
                raise InvalidInput(message, pointer=f"/{name}")

        if "known" in request.FILES:
            raise InvalidInput(
                "known documents come with a single run; choose one file", pointer="/known"
            )

        files: list[Any] = request.FILES.getlist("file")
        fields = []
        for file in files:
            serializer = RunFormSerializer(
                data={**texts, "file": file}, context={"request": request}
            )
            serializer.is_valid(raise_exception=True)
            fields.append(serializer.validated_data)

        return [
            _submit_one(request, collection, file, fields_of_file)
            for file, fields_of_file in zip(files, fields, strict=True)
        ]


def _submit_one(
    request: Request, collection: Collection, file: StoredUpload, fields: dict[str, Any]
) -> FileResult:
    name = file.name or ""
    try:
        upload = _upload(request, collection, fields)
        if request.data.get("action") == "check":
            with upload.prepared() as ready:
                return FileResult(name, checked=ready.check())
        run, new = submit(upload=upload, enqueue=queue_submitted, again=try_damaged_again)
    except ClientLeft:
        raise
    except (EvalHubError, APIException) as error:
        return FileResult(name, refusal=refusal_of(error))

    return FileResult(name, run=run, new=new)


def _page(
    request: Request,
    collection: Collection,
    refusal: Refusal | None = None,
    *,
    checked: Run | None = None,
    results: Sequence[FileResult] = (),
) -> HttpResponse:
    # Where all files were refused the page has the status of the first one.
    refusals = [result.refusal for result in results if result.refusal]
    all_refused = bool(results) and len(refusals) == len(results)
    status = refusal.status if refusal else refusals[0].status if all_refused else 200

    teams = list(Team.objects.of(request.user))
    experiments = Experiment.objects.filter(team__in=teams).select_related("team")
    campaigns = Campaign.objects.filter(
        phases__collection=collection, state=Campaign.State.PUBLISHED
    )

    # In a lab's collection, its members submit for the lab.
    form_values = request.data if request.method == "POST" else {"team": collection.team.slug}
    chosen_teams = [team for team in teams if team.slug == form_values.get("team")] or teams[:1]

    context = {
        "collection": collection,
        "teams": teams,
        "chosen_team": chosen_teams[0].name or chosen_teams[0].slug if chosen_teams else "",
        "campaigns": list(campaigns.distinct()[:_MAX_CHOICES]),
        "experiments": list(experiments[:_MAX_CHOICES]),
        "form_values": form_values,
        "most_bytes": settings.EVALHUB_MAX_UPLOAD_BYTES,
        "most_files": MAX_FILES,
        "relations": RELATIONS,
        "kinds": KINDS,
        "most_parents": MAX_PARENTS,
        "most_links": MAX_LINKS,
        "refused": refusal,
        "field_errors": refusal.fields if refusal else {},
        "checked": checked,
        "results": results,
        "outcome": outcome_of(results),
    }

    return render(request, "runs/submit.html", context, status=status)
