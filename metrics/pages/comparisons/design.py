"""The page of what a collection can detect: discriminative power, topic set sizes, swap rates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.comparisons.power import power_figure
from metrics.exports.table import Column, Row, Table
from metrics.pages.parts import PageFigure, Query, fill, query_of
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.questions.declared import DESIGN, names_of
from metrics.services.boards.selection import effectiveness_measures
from metrics.services.comparisons.design import (
    Design,
    DesignQuery,
    Detection,
    read_design,
)
from metrics.tables import NOTHING
from runs.models import Collection, can_see_scores
from runs.services.collections.topic_attributes import attribute_keys
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

_MEASURE = Column("", "Measure", head=True)


@page
@reads(*names_of(DESIGN))
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def design_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the differences that the topics can detect, and the topics that others would need."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "measures": query.get("measures") or ", ".join(effectiveness_measures(collection)),
        "differences": query.get("differences") or "0.05, 0.1",
    }
    if can_see_scores(request.user, collection):
        context["topic_keys"] = attribute_keys(collection)

    status = fill(context, "answer", _answer, request, collection, query)

    return render(request, "metrics/design.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    design = read_design(collection=collection, query=DesignQuery.read(query, collection))
    parameters = {name: query.get(name, "") for name in names_of(DESIGN)}
    cautions = dict.fromkeys(
        caution.message for part in design.measures for caution in part.cautions
    )

    return {
        "design": design,
        "cautions": list(cautions),
        "figure": PageFigure(
            power_figure(design), "collection-chart", {"collection": collection.slug}, parameters
        ),
        "powers": _powers_table(design),
        "detections": _detections_table(design),
        "margins": _margins_table(design),
        "swaps": _swaps_table(design),
    }


def _powers_table(design: Design) -> Table:
    """Build the table of the differences that the topics detect."""
    columns = [
        _MEASURE,
        Column("", "Topics"),
        Column("", "Pairs separated"),
        Column("", "Half of the pairs need"),
        Column("", "Every pair needs"),
        Column("", f"Found with power {design.query.power}"),
        Column("", "Interval of a difference"),
    ]

    rows = []
    for measure in design.measures:
        power, sets = measure.power, measure.topic_sets
        values = [
            measure.measure.name,
            f"{measure.topics:,}",
            f"{power.share:.1%}",
            f"{power.typical:.4f}",
            f"{power.needed:.4f}",
            f"{sets.detectable:.4f}" if sets else NOTHING,
            f"± {sets.half_width:.4f}" if sets else NOTHING,
        ]
        rows.append(Row(values))

    return Table("powers", columns, rows, title="Discriminative power by measure")


def _detections(design: Design) -> Iterator[tuple[str, Detection]]:
    """Yield the name of a measure with each difference to detect and its numbers of topics."""
    for measure in design.measures:
        if measure.topic_sets:
            for detection in measure.topic_sets.detections:
                yield measure.measure.name, detection


def _detections_table(design: Design) -> Table:
    """Build the table of the numbers of topics that detect a difference."""
    columns = [
        _MEASURE,
        Column("", "Difference", format="{:g}".format),
        Column("", "Power now", format="{:.1%}".format),
        Column("", "Topics, paired t test", format=_count),
        Column("", "Topics, ANOVA of all runs", format=_count),
        Column("", "Topics, interval", format=_count),
    ]

    rows = [
        Row(
            [
                measure,
                detection.difference,
                detection.power_t,
                detection.topics_t,
                detection.topics_anova,
                detection.topics_interval,
            ]
        )
        for measure, detection in _detections(design)
    ]

    return Table("detections", columns, rows, title="Topic set sizes")


def _margins_table(design: Design) -> Table:
    """Build the table of the numbers of topics that show a difference smaller than a margin."""
    columns = [
        _MEASURE,
        Column("", "Margin", format="{:g}".format),
        Column("", "Pairs equivalent now", format="{:.1%}".format),
        Column("", "Power now, not worse", format="{:.1%}".format),
        Column("", "Topics, not worse", format=_count),
        Column("", "Power now, equivalent", format="{:.1%}".format),
        Column("", "Topics, equivalent", format=_count),
    ]

    rows = [
        Row(
            [
                measure,
                detection.difference,
                smallness.share,
                smallness.power_not_worse,
                smallness.topics_not_worse,
                smallness.power_equivalent,
                smallness.topics_equivalent,
            ]
        )
        for measure, detection in _detections(design)
        if (smallness := detection.smallness)
    ]

    title = "Topics to show that a difference is small"
    return Table("margins", columns, rows, title=title)


def _swaps_table(design: Design) -> Table:
    """Build the table of swap rates by the size of the topic sets, with the least difference that
    is rarely swapped."""
    columns = [
        _MEASURE,
        Column("", "Topics in a set"),
        Column("", "Swap rate"),
        Column("", "At most 5% from"),
    ]

    rows = []
    for measure in design.measures:
        swaps = measure.swaps
        needed = swaps.needed().tolist()
        for place, size in enumerate(swaps.sizes.tolist()):
            compared, swapped = swaps.compared[place].sum(), swaps.swapped[place].sum()
            rate = f"{swapped / compared:.1%}" if compared else NOTHING
            least = f"{needed[place]:.2f}" if math.isfinite(needed[place]) else NOTHING
            rows.append(Row([measure.measure.name, size, rate, least]))

    return Table("swaps", columns, rows, title="Swap rates")


def _count(topics: int | None) -> str:
    return "over a million" if topics is None else f"{topics:,}"
