"""A comparison for readers of a share link: what its maker sees on the page, without topics,
curves and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase

from metrics.charts.comparisons.charts import ANSWER_CHARTS
from metrics.charts.figure import Figure
from metrics.exports.comparisons import EXPORTS
from metrics.exports.comparisons.tables import two_kinds
from metrics.exports.formats import FORMATS
from metrics.models import Comparison
from metrics.pages.comparisons.answers import show
from metrics.pages.comparisons.views import answer_parts
from metrics.questions.shares import parameters_of_link
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import Answer, look_up_comparison, read_stored_comparison
from metrics.services.comparisons.workload import begin_results_file
from runs.errors import NotFound
from runs.models import ShareLink


def page(link: ShareLink, parameters: Mapping[str, str]) -> tuple[str, dict[str, Any], int]:
    """Return the template of the comparison's page, its context and its status."""
    answer = _answer(link)
    comparison = show(link.collection, answer, dict(parameters), link)
    view, status = answer_parts(comparison)
    context = {
        "comparison": comparison,
        "view": view,
        "result": {"answer": answer},
        "stored": answer.stored,
    }

    template = "stored_comparison.html" if link.target else "comparison.html"

    return f"metrics/{template}", context, status


def file(link: ShareLink, kind: str) -> HttpResponseBase:
    answer = _answer(link)
    if kind != "csv" and not two_kinds(answer.query):
        # A table is for one test: that with the verdicts of the page.
        answer = _of_first_test(answer)

    begin_results_file(answer.entrants.pairs.number, answer.query)
    table, export = EXPORTS[kind](link.collection, answer, PairSelection()), FORMATS[kind]
    headers = export.headers(f"{link.collection.slug}-comparison")

    return StreamingHttpResponse(export.render(table), headers=headers)


def chart(link: ShareLink, name: str) -> Figure:
    if name not in ANSWER_CHARTS:
        raise Http404("there is no such chart of this page")
    return ANSWER_CHARTS[name](_answer(link), {})


def _answer(link: ShareLink) -> Answer:
    """Return the comparison, as its maker reads it.

    Raise NotFound if it is not computed yet, or was deleted.
    """
    answer: Any

    if link.target:
        visible = Comparison.objects.visible_to(link.created_by).select_related("qrels__collection")
        stored = visible.filter(pk=UUID(link.target), qrels__collection=link.collection).first()
        if stored is None:
            raise NotFound("the shared item no longer exists")
        answer = stored
        if stored.state == Comparison.State.COMPARED:
            answer = read_stored_comparison(stored)
    else:
        query = ComparisonQuery.read(parameters_of_link(link), link.collection)
        answer = look_up_comparison(collection=link.collection, query=query)

    if not isinstance(answer, Answer):
        raise NotFound("this comparison is not computed yet; open the link again later")

    return answer


def _of_first_test(answer: Answer) -> Answer:
    query = replace(answer.query, tests=answer.query.tests[:1])
    results = [replace(compared, families=compared.families[:1]) for compared in answer.results]
    return replace(answer, query=query, results=results)
