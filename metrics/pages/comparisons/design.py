"""The page of the differences that a collection can detect: discriminative power, topic set sizes and swap rates."""

from __future__ import annotations

import math
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.comparisons.power import power_figure
from metrics.pages.parts import Query, ShownFigure, fill, query_of
from metrics.questions.answer_cache import all_once_public, kept_page, of_visible_collection
from metrics.questions.declared import DESIGN, names_of
from metrics.services.comparisons.design import (
    DesignQuery,
    Detection,
    MeasureDesign,
    Smallness,
    read_design,
)
from metrics.services.values.selection import effectiveness_measures
from metrics.tables import NOTHING
from runs.api.access import check_scores, visible_collection
from runs.models import Collection
from runs.views import page, reads


@page
@reads(*names_of(DESIGN))
@kept_page(of_visible_collection, shared_by=all_once_public)
def design_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show which differences the topics can detect, and how many topics would be needed."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "measures": query.get("measures") or ", ".join(effectiveness_measures(collection)),
        "differences": query.get("differences") or "0.05, 0.1",
    }
    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/design.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    design = read_design(collection=collection, query=DesignQuery.read(query, collection))
    asked = {name: query.get(name, "") for name in names_of(DESIGN)}
    cautions = dict.fromkeys(caution.message for one in design.measures for caution in one.cautions)
    return {
        "design": design,
        "cautions": list(cautions),
        "figure": ShownFigure(
            power_figure(design), "collection-chart", {"collection": collection.slug}, asked
        ),
        "powers": [_power_line(one) for one in design.measures],
        "detections": [
            (one.measure.name, _detection_line(found))
            for one in design.measures
            for found in (one.topic_sets.detections if one.topic_sets else [])
        ],
        "margins": [
            (one.measure.name, _margin_line(found.difference, found.smallness))
            for one in design.measures
            for found in (one.topic_sets.detections if one.topic_sets else [])
            if found.smallness
        ],
        "swaps": [(one.measure.name, _swap_lines(one)) for one in design.measures],
    }


def _power_line(one: MeasureDesign) -> list[str]:
    power, sets = one.power, one.topic_sets
    return [
        one.measure.name,
        f"{one.topics:,}",
        f"{power.share:.1%}",
        f"{power.typical:.4f}",
        f"{power.needed:.4f}",
        f"{sets.detectable:.4f}" if sets else NOTHING,
        f"± {sets.half_width:.4f}" if sets else NOTHING,
    ]


def _detection_line(found: Detection) -> list[str]:
    counts = (found.topics_t, found.topics_anova, found.topics_interval)
    return [f"{found.difference:g}", f"{found.power_t:.1%}", *map(_count, counts)]


def _margin_line(margin: float, found: Smallness) -> list[str]:
    return [
        f"{margin:g}",
        f"{found.share:.1%}",
        f"{found.power_not_worse:.1%}",
        _count(found.topics_not_worse),
        f"{found.power_equivalent:.1%}",
        _count(found.topics_equivalent),
    ]


def _count(topics: int | None) -> str:
    return "over a million" if topics is None else f"{topics:,}"


def _swap_lines(one: MeasureDesign) -> list[list[str]]:
    """Return for each size of the topic sets the share of swapped pairs, and the difference from which on few are
    swapped."""
    swaps = one.swaps
    lines = []
    for size, compared, swapped, needed in zip(
        swaps.sizes.tolist(), swaps.compared, swaps.swapped, swaps.needed().tolist(), strict=True
    ):
        rate = f"{swapped.sum() / compared.sum():.1%}" if compared.sum() else NOTHING
        lines.append([f"{size}", rate, f"{needed:.2f}" if math.isfinite(needed) else NOTHING])
    return lines
