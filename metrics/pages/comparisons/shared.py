"""A shared comparison: its verdict, runs, tests and pairs, without links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase

from metrics.charts.comparisons.charts import ANSWER_CHARTS
from metrics.charts.figure import Figure
from metrics.exports.comparisons import EXPORTS
from metrics.exports.comparisons.tables import two_kinds
from metrics.exports.formats import FORMATS
from metrics.models import Comparison
from metrics.pages.comparisons.answers import Shown, common_parts, show
from metrics.pages.comparisons.practical import chances_lines, equivalence_part
from metrics.pages.comparisons.tables import (
    RUNS_SHOWN,
    family_lines,
    pair_lines,
    question_lines,
    run_lines,
)
from metrics.pages.comparisons.words import headline, report
from metrics.pages.parts import fill
from metrics.questions.shares import parameters_of_link
from metrics.services.comparisons.comparison import ComparisonQuery, read_rank_intervals
from metrics.services.comparisons.shown_pairs import (
    PairSelection,
    choose_pairs,
    names_of,
    shown_pairs,
)
from metrics.services.comparisons.stored import Answer, look_up_comparison, read_stored_comparison
from metrics.services.comparisons.workload import begin_results_file
from metrics.tables import Paging, figure
from runs.errors import NotFound
from runs.models import ShareLink

FILES = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown"}
_PAIRS_OF_A_PAGE = 100


def _answer(link: ShareLink) -> Answer:
    """Return the comparison, as its maker reads it. Raise NotFound where it is not there yet, or not any more."""
    if link.target:
        seen = Comparison.objects.visible_to(link.created_by).select_related("qrels__collection")
        stored = seen.filter(pk=UUID(link.target), qrels__collection=link.collection).first()
        if stored is None:
            raise NotFound("what this link opened is not there any more")
        found: Any = (
            read_stored_comparison(stored) if stored.state == Comparison.State.COMPARED else stored
        )
    else:
        query = ComparisonQuery.read(parameters_of_link(link), link.collection)
        found = look_up_comparison(collection=link.collection, query=query)
    if not isinstance(found, Answer):
        raise NotFound("this comparison is not computed yet; open the link again later")
    return found


def page(link: ShareLink, given: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    answer = _answer(link)
    shown = show(link.collection, answer, dict(given))
    compared, family = shown.compared, shown.family
    context: dict[str, Any] = {"shown": shown, "view": common_parts(shown)}
    view = context["view"]
    if shown.pair:
        (pair,) = shown_pairs(answer, compared, np.array([0]))
        names = names_of([pair.a, pair.b])
        view |= {
            "headline": headline(pair, compared, answer),
            "names": (names[pair.a], names[pair.b]),
            "means": [figure(compared.measure, value) for value in (pair.mean_a, pair.mean_b)],
            "questions": question_lines(pair),
            "practical": equivalence_part(shown, pair),
            "chances": chances_lines(shown, pair),
            "report": report(answer, compared, family, pair),
        }
        return context, 200
    spread = read_rank_intervals(compared, answer.query.options)
    view |= {
        "runs": run_lines(answer, compared, family, spread),
        "runs_shown": RUNS_SHOWN,
        "ranked": spread is not None,
        "tiered": family.tiers is not None,
        "families": family_lines(answer, compared),
        "report": report(answer, compared, family, None),
    }
    status = fill(context, "pairs", _pairs, shown)
    for name in ANSWER_CHARTS:
        fill(context, name, ANSWER_CHARTS[name], answer, {})
    context["figures"] = [context[name] for name in ANSWER_CHARTS if name in context]
    return context, status


def _pairs(shown: Shown) -> dict[str, Any]:
    asked = {**shown.text, "limit": str(_PAIRS_OF_A_PAGE)}
    selection = PairSelection.of(asked, replace(shown.answer.query, tests=["sign"]))
    number, chosen = choose_pairs(shown.answer, shown.compared, selection)
    lines = pair_lines(
        shown.answer, shown.compared, list(shown_pairs(shown.answer, shown.compared, chosen))
    )
    return {"lines": lines, "paging": Paging(selection.offset, _PAIRS_OF_A_PAGE, number)}


def file(link: ShareLink, kind: str) -> HttpResponseBase:
    answer = _answer(link)
    if kind != "csv" and not two_kinds(answer.query):
        # A table is for one test, the one whose verdicts the page shows.
        answer = _of_first_test(answer)
    begin_results_file(answer.entrants.pairs.number, answer.query)
    table, export = EXPORTS[kind](link.collection, answer, PairSelection(limit=None)), FORMATS[kind]
    headers = export.headers(f"{link.collection.slug}-comparison")
    return StreamingHttpResponse(export.render(table), headers=headers)


def _of_first_test(answer: Answer) -> Answer:
    query = replace(answer.query, tests=answer.query.tests[:1])
    results = [replace(compared, families=compared.families[:1]) for compared in answer.results]
    return replace(answer, query=query, results=results)


def chart(link: ShareLink, name: str) -> Figure:
    if name not in ANSWER_CHARTS:
        raise Http404("there is no such chart of this page")
    return ANSWER_CHARTS[name](_answer(link), {})
