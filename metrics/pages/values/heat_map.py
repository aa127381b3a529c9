"""The page of runs against topics: which runs are good on which topics, as coloured cells."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.boards.heat_map import heat_map_figure
from metrics.pages.parts import Query, RunField, ShownFigure, changed, fill, query_of
from metrics.questions.answer_cache import all_once_public, kept_page, of_visible_collection
from metrics.questions.declared import names_of
from metrics.questions.run_ids import shown_without_tags
from metrics.questions.topics import HEAT_MAP
from metrics.services.boards.heat_map import MAX_RUNS, MAX_TOPICS, MEAN, HeatQuery, read_heat_map
from metrics.services.boards.selection import tested_measures
from metrics.tables import Paging
from runs.models import Collection
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# The most runs that are offered as baselines.
_OFFERED = 300


@page
@reads(*names_of(HEAT_MAP))
@kept_page(of_visible_collection, shared_by=all_once_public)
def heat_map_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the values of runs and topics, or their differences from a baseline."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    if query.get("baseline") != MEAN:
        query = shown_without_tags(query, "baseline", collection, request.user)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "known": tested_measures(collection),
        "most": {"runs": MAX_RUNS, "topics": MAX_TOPICS},
    }
    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/heat_map.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    asked = HeatQuery.read(query, collection)
    found = read_heat_map(collection=collection, query=asked)
    drawn = {name: query.get(name, "") for name in names_of(HEAT_MAP)}
    file = {
        "measure": asked.measure.name,
        "baseline": asked.baseline or "",
        "scores": query.get("scores", ""),
    }
    runs = [(str(run.id), run.tag, run.team) for run in found.values.runs]
    if asked.baseline and asked.baseline != MEAN:
        # The chosen one is offered wherever it stands.
        runs.sort(key=lambda run: run[0] != asked.baseline)
    return {
        "measure": asked.measure.name,
        "asked": asked,
        "baseline": RunField(
            "baseline",
            runs[:_OFFERED],
            asked.baseline or "",
            more=len(runs) > _OFFERED,
            none="nothing",
            first=(MEAN, "the mean of the runs"),
        ),
        "cautions": [caution.message for caution in found.values.cautions],
        "shown": ShownFigure(
            heat_map_figure(found),
            "collection-chart",
            {"collection": collection.slug},
            drawn,
            "wide",
        ),
        "pagings": [
            _paging(
                "Runs", "offset", Paging(asked.offset, asked.limit, len(found.values.runs)), query
            ),
            _paging(
                "Topics",
                "topic_offset",
                Paging(asked.topic_offset, asked.topic_limit, len(found.values.topic_ids)),
                query,
            ),
        ],
        "csv": reverse("heat-map-export", args=[collection.slug]) + changed(file),
    }


def _paging(title: str, name: str, paging: Paging, query: Query) -> tuple[str, Paging, str, str]:
    """Return one of the two ways to page, with the addresses of the page before and of the next one."""
    before, after = (
        "" if offset is None else changed(query, **{name: str(offset)})
        for offset in (paging.previous, paging.next)
    )
    return title, paging, before, after
