"""The page of how far the judgements of a collection reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalhub.pools.exports.reusability import reusability_table, sentences
from evalhub.pools.services.reusability import ReusabilityQuery, read_reusability
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import KINDS
from metrics.pages.parts import Query, fill, query_of
from metrics.questions.answer_cache import cached_page, of_visible_collection
from metrics.services.boards.selection import effectiveness_measures
from runs.models import Collection
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

_PARAMETERS = [kind.name for kind in ReusabilityQuery.parameters()]


@page
@reads(*_PARAMETERS)
@cached_page(of_visible_collection)
def reusability_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the runs with and without what their own team brought to the pool."""
    visible = visible_collection(request, slug)
    query = query_of(request, visible)
    measure = query.get("measures") or effectiveness_measures(visible)[0]
    context: dict[str, Any] = {
        "collection": visible,
        "query": query,
        "measure": measure,
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
    }

    status = fill(context, "answer", _answer, request, visible, {**query, "measures": measure})
    return render(request, "pools/reusability.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    question = ReusabilityQuery.read(query, collection, request.user)
    answer = read_reusability(collection=collection, reader=request.user, query=question)
    reach = answer.measures[0]

    return {
        "reusability": answer,
        "sentences": sentences(answer, reach),
        # The page has the sentences at its top.
        "table": replace(reusability_table(collection, answer, reach), notes=()),
        "cautions": [caution.message for caution in answer.cautions],
    }
