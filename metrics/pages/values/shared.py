"""A run for readers of a share link: its means, its values by topic and its charts, without its
files and the other parts of its page on how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.http import Http404, HttpResponse

from metrics.charts.figure import Figure
from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.engine.errors import EvalHubError
from metrics.exports.formats import FORMATS
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.models import Evaluation
from metrics.pages.parts import shared_figure, shared_files
from metrics.pages.values.runs import measure_with_curve, run_means, run_values
from metrics.questions.shares import parameters_of_link
from metrics.services.question import measures_in
from metrics.services.values.values import find_evaluation, read_values
from runs.errors import NotFound
from runs.models import Run, ShareLink

_CHARTS = ("curve", "precision-recall", "distribution", "topics")


def page(link: ShareLink, parameters: Mapping[str, str]) -> tuple[str, dict[str, Any], int]:
    """Return the template of the run's page, its context and its status.

    Raise NotFound if the run was withdrawn.
    """
    run, evaluation = _run(link)
    query = {**parameters_of_link(link), **parameters}
    context = {
        "run": run,
        "evaluation": evaluation,
        "stale": evaluation.is_stale,
        "means": run_means(run, evaluation, query),
        "values": run_values(run, evaluation, query),
        "exports": shared_files(link, RUN_VALUE_EXPORTS),
    }

    charts = []
    for name in _CHARTS:
        # A chart without anything to draw is left out.
        with suppress(EvalHubError):
            charts.append(shared_figure(chart(link, name), link, "half"))

    return "metrics/shared/run.html", {**context, "charts": charts}, 200


def file(link: ShareLink, kind: str) -> HttpResponse:
    run, evaluation = _run(link)
    collection = run.collection
    measures = measures_in(parameters_of_link(link), "measures", collection.measures, collection)
    values = read_values(evaluation=evaluation, measures=measures)
    headers = FORMATS[kind].headers(f"{run.pk}-values")

    return HttpResponse("".join(RUN_VALUE_EXPORTS[kind](run, values)), headers=headers)


def chart(link: ShareLink, name: str) -> Figure:
    if name not in _CHARTS:
        raise Http404("there is no such chart of this page")

    run, evaluation = _run(link)
    collection = run.collection
    measures = measures_in(parameters_of_link(link), "measures", collection.measures, collection)
    drawn = measure_with_curve(measures) if name == "curve" else measures[0]
    parameters = {"measure": drawn.name} if drawn and name != "precision-recall" else {}
    return RUN_CHARTS[name](RunChartRequest(run, evaluation, parameters, titled=False))


def _run(link: ShareLink) -> tuple[Run, Evaluation]:
    """Return the run, as the maker of the link sees it, and its evaluation."""
    visible = Run.objects.visible_to(link.created_by).select_related("team", "collection")
    run = visible.filter(pk=link.target, collection=link.collection).first()
    if run is None:
        raise NotFound("the shared item no longer exists")

    run.check_sound()
    return run, find_evaluation(run=run)
