"""The page of a system: its versions in a collection, their changes, and the best so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.tracking.progress import progress_figure
from metrics.pages.parts import PageFigure, Query, fill, query_of
from metrics.questions.systems import default_measure
from metrics.services.boards.columns import shown_value
from metrics.services.question import measure_in
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.progress import Progress, Step, read_progress_of
from metrics.tables import figure
from runs.models import Collection, Run, System, can_see_scores
from runs.services.tracking.edits import Changed
from runs.services.tracking.labels import labels_of
from runs.services.tracking.systems import Version, collections_of, versions_of
from runs.web.access import check_scores, visible_system
from runs.web.views import page, reads

_CHANGES, _CUT = 6, 40


@dataclass(frozen=True)
class Change:
    """A value that differs from that of the previous version; texts are empty if it is not set."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class VersionLine:
    """A version on the page, with values if the reader may see them.

    `more` is the number of changes that are not shown.
    """

    run: Run
    labels: list[str]
    mean: str
    best: str
    leads: bool
    changes: list[Change]
    more: int


@page
@reads("collection", "measure")
def system_page(request: HttpRequest, team: str, system: str) -> HttpResponse:
    """Show the versions of a system in one of its collections."""
    context: dict[str, Any] = {}
    status = read_in_snapshot(lambda: _fill(request, team, system, context))
    return render(request, "metrics/system.html", context, status=status)


def _fill(request: HttpRequest, team: str, slug: str, context: dict[str, Any]) -> int:
    system, query = visible_system(request, team, slug), query_of(request)
    collections = collections_of(system, request.user)
    slug_of_collection = query.get("collection", "")
    collection = next(
        (
            part.collection
            for part in collections
            if part.collection.slug == slug_of_collection or not slug_of_collection
        ),
        None,
    )

    if slug_of_collection and collection is None:
        raise Http404(
            f"there is no version of {system} in a collection {slug_of_collection[:64]!r}"
        )

    context |= {
        "system": system,
        "collections": collections,
        "collection": collection,
        "query": query,
        "scored": collection is not None and can_see_scores(request.user, collection),
        "may_change": System.objects.owned_by(request.user).filter(pk=system.pk).exists(),
    }

    if collection is None:
        return 200

    status = fill(context, "progress", _progress, request, system, collection, query)
    versions = versions_of(system, collection, request.user)
    context["lines"] = _lines(versions, context.get("progress", {}).get("progress"))

    return status


def _progress(
    request: HttpRequest, system: System, collection: Collection, query: Query
) -> dict[str, Any]:
    check_scores(request, collection)
    measure = measure_in(query, "measure", default_measure(collection), collection)
    progress = read_progress_of(
        system=system, collection=collection, measure=measure, reader=request.user
    )
    chart = None

    if progress:
        parameters = {"system": f"{system.team.slug}/{system.slug}", "measure": measure.name}
        chart = PageFigure(
            progress_figure(progress),
            "collection-chart",
            {"collection": collection.slug},
            parameters,
        )

    return {
        "progress": progress,
        "measure": measure.name,
        "chart": chart if progress and len(progress.steps) > 1 else None,
    }


def _lines(versions: list[Version], progress: Progress | None) -> list[VersionLine]:
    steps: dict[Any, Step] = {step.run.pk: step for step in progress.steps} if progress else {}
    labels = labels_of([version.run.pk for version in versions])

    lines: list[VersionLine] = []
    best_before = None
    for version in versions:
        mean = best = ""
        leads = False

        step = steps.get(version.run.pk)
        if step and progress:
            mean, best = figure(progress.measure, step.mean), figure(progress.measure, step.best)
            leads = best_before is None or step.best != best_before
            best_before = step.best

        lines.append(
            VersionLine(
                run=version.run,
                labels=labels.get(version.run.pk, []),
                mean=mean,
                best=best,
                leads=leads,
                changes=[_change(edit) for edit in version.changed[:_CHANGES]],
                more=max(0, len(version.changed) - _CHANGES),
            )
        )

    # The newest version is first on the page.
    return lines[::-1]


def _change(edit: Changed) -> Change:
    return Change(edit.name, _text(edit.before), _text(edit.after))


def _text(value: Any) -> str:
    text = shown_value(value) if not isinstance(value, list | dict) else str(value)
    return text[:_CUT] + "…" * (len(text) > _CUT)
