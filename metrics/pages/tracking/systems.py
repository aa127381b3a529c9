"""The page of a system: its versions in a collection, what changed between them, and the best so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.tracking.progress import progress_figure
from metrics.pages.parts import Query, ShownFigure, fill, query_of
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
    """A value that differs from that of the version before: its name, and both values as text, empty where not set."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class VersionLine:
    """A version on the page, newest first; without values while it has none that the reader may see. `more` counts the
    changes that are not shown."""

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
    known = collections_of(system, request.user)
    asked = query.get("collection", "")
    collection = next(
        (one.collection for one in known if one.collection.slug == asked or not asked), None
    )
    if asked and collection is None:
        raise Http404(f"there is no version of {system} in a collection {asked[:64]!r}")
    context |= {
        "system": system,
        "known": known,
        "collection": collection,
        "query": query,
        "scored": collection is not None and can_see_scores(request.user, collection),
        "may_change": System.objects.owned_by(request.user).filter(pk=system.pk).exists(),
    }
    if collection is None:
        return 200
    status = fill(context, "progress", _progress, request, system, collection, query)
    versions = versions_of(system, collection, request.user)
    context["lines"] = _lines(versions, context.get("progress", {}).get("found"))
    return status


def _progress(
    request: HttpRequest, system: System, collection: Collection, query: Query
) -> dict[str, Any]:
    check_scores(request, collection)
    measure = measure_in(query, "measure", default_measure(collection), collection.documents)
    found = read_progress_of(
        system=system, collection=collection, measure=measure, reader=request.user
    )
    shown = None
    if found:
        asked = {"system": f"{system.team.slug}/{system.slug}", "measure": measure.name}
        shown = ShownFigure(
            progress_figure(found), "collection-chart", {"collection": collection.slug}, asked
        )
    return {
        "found": found,
        "measure": measure.name,
        "shown": shown if found and len(found.steps) > 1 else None,
    }


def _lines(versions: list[Version], progress: Progress | None) -> list[VersionLine]:
    steps: dict[Any, Step] = {step.run.pk: step for step in progress.steps} if progress else {}
    labels = labels_of([version.run.pk for version in versions])
    lines, before = [], None
    for version in versions:
        step = steps.get(version.run.pk)
        lines.append(
            VersionLine(
                version.run,
                labels.get(version.run.pk, []),
                figure(progress.measure, step.mean) if step and progress else "",
                figure(progress.measure, step.best) if step and progress else "",
                bool(step and (before is None or step.best != before)),
                [_change(one) for one in version.changed[:_CHANGES]],
                max(0, len(version.changed) - _CHANGES),
            )
        )
        before = step.best if step else before
    return lines[::-1]


def _change(one: Changed) -> Change:
    return Change(one.name, _text(one.before), _text(one.after))


def _text(value: Any) -> str:
    text = shown_value(value) if not isinstance(value, list | dict) else str(value)
    return text[:_CUT] + "…" * (len(text) > _CUT)
