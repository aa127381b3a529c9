"""The page of runs against topics: which runs are good on which topics, as coloured cells."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.charts.boards.heat_map import heat_map_figure
from metrics.pages.parts import PageFigure, Query, RunField, fill, query_of, query_string
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.questions.declared import names_of
from metrics.questions.run_ids import shown_without_tags
from metrics.questions.topics import HEAT_MAP
from metrics.services.boards.heat_map import MAX_RUNS, MAX_TOPICS, MEAN, HeatQuery, read_heat_map
from metrics.services.boards.selection import tested_measures
from metrics.tables import Paging
from runs.models import Collection, can_see_scores
from runs.services.collections.collections import read_topic_titles
from runs.services.collections.topic_attributes import attribute_keys
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# The most runs that are offered as baselines.
_OFFERED = 300


@page
@reads(*names_of(HEAT_MAP))
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def heat_map_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the values of runs and topics, or their differences from a baseline."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    if query.get("baseline") != MEAN:
        query = shown_without_tags(query, "baseline", collection, request.user)

    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "known_measures": tested_measures(collection),
        "most": {"runs": MAX_RUNS, "topics": MAX_TOPICS},
    }

    if can_see_scores(request.user, collection):
        context["topic_keys"] = attribute_keys(collection)

    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/heat_map.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    question = HeatQuery.read(query, collection)
    heat_map = read_heat_map(collection=collection, query=question)

    parameters = {name: query.get(name, "") for name in names_of(HEAT_MAP)}
    file = {
        "measure": question.measure.name,
        "baseline": question.baseline or "",
        "scores": query.get("scores", ""),
        "topics": query.get("topics", ""),
    }

    runs = [(str(run.id), run.tag, run.team) for run in heat_map.values.runs]
    if question.baseline and question.baseline != MEAN:
        # The chosen baseline is offered even if it is beyond the first.
        runs.sort(key=lambda run: run[0] != question.baseline)

    return {
        "measure": question.measure.name,
        "question": question,
        "baseline": RunField(
            "baseline",
            runs[:_OFFERED],
            question.baseline or "",
            more=len(runs) > _OFFERED,
            none="nothing",
            first=(MEAN, "the mean of the runs"),
        ),
        "cautions": [caution.message for caution in heat_map.values.cautions],
        "chart": PageFigure(
            heat_map_figure(heat_map, read_topic_titles(collection, heat_map.topic_ids)),
            "collection-chart",
            {"collection": collection.slug},
            parameters,
            "wide",
        ),
        "pagings": [
            _paging(
                "Runs",
                "offset",
                Paging(question.offset, question.limit, len(heat_map.values.runs)),
                query,
            ),
            _paging(
                "Topics",
                "topic_offset",
                Paging(
                    question.topic_offset, question.topic_limit, heat_map.values.selected_topics
                ),
                query,
            ),
        ],
        "csv": reverse("heat-map-export", args=[collection.slug]) + query_string(file),
    }


def _paging(title: str, name: str, paging: Paging, query: Query) -> tuple[str, Paging, str, str]:
    """Return title, paging, and the addresses of the previous and the next page of one axis."""
    previous, following = (
        "" if offset is None else query_string(query, **{name: str(offset)})
        for offset in (paging.previous, paging.next)
    )
    return title, paging, previous, following
