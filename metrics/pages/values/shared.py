"""A shared run: its means, its values by topic and its charts, without links and without its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse

from metrics.charts.figure import Figure
from metrics.charts.values.charts import RUN_CHARTS, Asked
from metrics.engine.grammar import Measure
from metrics.exports.formats import FORMATS
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.models import Evaluation
from metrics.pages.parts import fill
from metrics.questions.shares import parameters_of_link
from metrics.services.question import measures_in
from metrics.services.values.values import find_evaluation, read_values
from metrics.tables import Paging, mean_cell, topic_lines
from runs.errors import NotFound
from runs.models import Run, ShareLink
from runs.parameters import MAX_OFFSET, integer_in

FILES = {"csv": "CSV", "trec_eval": "trec_eval"}
_CHARTS = ("curve", "precision-recall", "distribution", "topics")
_TOPICS_OF_A_PAGE = 100


def _found(link: ShareLink) -> tuple[Run, Evaluation, list[Measure]]:
    """Return the run, as the maker of the link sees it, and the measures of the link."""
    seen = Run.objects.visible_to(link.created_by).select_related("team", "collection")
    run = seen.filter(pk=link.target, collection=link.collection).first()
    if run is None:
        raise NotFound("what this link opened is not there any more")
    run.check_sound()
    measures = measures_in(
        parameters_of_link(link), "measures", run.collection.measures, run.collection.documents
    )
    return run, find_evaluation(run=run), measures


def page(link: ShareLink, given: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    run, evaluation, measures = _found(link)
    values = read_values(evaluation=evaluation, measures=measures)
    paging = Paging(
        integer_in(given, "offset", 0, 0, MAX_OFFSET), _TOPICS_OF_A_PAGE, evaluation.qrels.topics
    )
    judged = len(values.topic_ids)
    context: dict[str, Any] = {
        "run": run,
        "evaluation": evaluation,
        "stale": evaluation.is_stale,
        "means": [
            (measure.name, mean_cell(measure, values.means[measure.name], judged))
            for measure in measures
        ],
        "measures": [measure.name for measure in measures],
        "lines": topic_lines(
            values, None, True, slice(paging.offset, paging.offset + paging.limit)
        ),
        "paging": paging,
    }
    for name in _CHARTS:
        fill(context, name, lambda name=name: RUN_CHARTS[name](Asked(run, evaluation, {})))
    context["figures"] = [context[name] for name in _CHARTS if name in context]
    return context, 200


def file(link: ShareLink, kind: str) -> HttpResponse:
    run, evaluation, measures = _found(link)
    values = read_values(evaluation=evaluation, measures=measures)
    headers = FORMATS[kind].headers(f"{run.pk}-values")
    return HttpResponse("".join(RUN_VALUE_EXPORTS[kind](run, values)), headers=headers)


def chart(link: ShareLink, name: str) -> Figure:
    if name not in _CHARTS:
        raise Http404("there is no such chart of this page")
    run, evaluation, _ = _found(link)
    return RUN_CHARTS[name](Asked(run, evaluation, {}))
