"""The pages of comparisons: of runs chosen on the page, and of comparisons by a worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from rest_framework.request import Request

from metrics.engine.significance.families import USUAL_TEST
from metrics.models import Comparison
from metrics.pages.comparisons.answers import CURVE_PARAMETERS, ShownComparison, show
from metrics.pages.comparisons.controls import Controls, Text, address, make_controls
from metrics.pages.comparisons.many_runs import many_runs_parts
from metrics.pages.comparisons.parameters import differing_parameters
from metrics.pages.comparisons.two_runs import PAIRWISE, two_runs_parts
from metrics.pages.parts import fill
from metrics.pages.shares import share_address
from metrics.questions.answer_cache import Subject, all_who_signed_in, cached_page
from metrics.questions.comparisons import stored_comparison
from metrics.questions.declared import COMPARISON, names_of
from metrics.questions.run_ids import shown_without_labels, shown_without_tags, without_labels
from metrics.services.comparisons.comparison import (
    ComparisonQuery,
    choose_entrants,
    refuse_groups_of_many,
    refuse_weights,
)
from metrics.services.comparisons.stored import (
    Answer,
    Outlook,
    look_up_comparison,
    question_of,
    queue_comparison,
    read_stored_comparison,
)
from metrics.services.comparisons.workload import fits_a_request
from metrics.services.question import run_ids_in
from metrics.services.queue.rounds import last_rounds
from runs.models import Collection, Scope
from runs.web.access import check_scores, scored_collection, sees_scores, visible_collection
from runs.web.forms import FormPage, redirect_to
from runs.web.parameters import text_of
from runs.web.views import page, reads

# The parameters that select what is shown: a measure, curves of another one, a topic of two runs,
# a page of the pairs.
_OF_VIEW = (
    "tab",
    *CURVE_PARAMETERS,
    "topic",
    "run",
    "sort",
    "offset",
)
_OF_QUESTION = tuple(names_of(COMPARISON))
_UNDER_WAY = (Comparison.State.QUEUED, Comparison.State.COMPARING)


def _compared_collection(request: HttpRequest, slug: str) -> Subject | None:
    """Return the collection, or None while the judgements are blind or a comparison is in progress:
    its page shows the progress."""
    collection = visible_collection(request, slug)
    if not sees_scores(request, collection):
        return None
    in_progress = Comparison.objects.unfinished().filter(qrels__collection=collection)
    return None if in_progress.exists() else Subject(collection)


@page
@reads(*_OF_QUESTION, *_OF_VIEW)
@cached_page(_compared_collection, shared_by=all_who_signed_in)
def comparison_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a comparison of chosen runs of a collection: two of them in detail, or many."""
    collection = visible_collection(request, slug)
    text = shown_without_labels(text_of(request.GET), collection, request.user)
    text = shown_without_tags(text, "baseline", collection, request.user)
    context: dict[str, Any] = {"collection": collection, "text": text}
    status = fill(context, "controls", _controls, request, collection, text)

    if "controls" in context:
        result = fill(context, "result", _result, collection, text, context["controls"])
        status = max(status, result, _add_parts(request, context, collection, text))
        if answer := context.get("result", {}).get("answer"):
            context["share"] = _share_address(collection, answer)

    return render(request, "metrics/comparison.html", context, status=status)


def _share_address(collection: Collection, answer: Answer) -> str:
    """Return the address that shares the comparison; a complete stored one is shared by its id."""
    if answer.stored and not answer.narrowed:
        return share_address("comparison", comparison=str(answer.stored.pk))
    return share_address(
        "comparison", collection=collection.slug, query=urlencode(answer.query.address())
    )


def _controls(request: HttpRequest, collection: Collection, text: Text) -> Controls:
    check_scores(request, collection)
    return make_controls(collection, text)


def _result(collection: Collection, text: Text, controls: Controls) -> dict[str, Any]:
    """Return the answer, a comparison that a worker computes, or the outlook of queueing one."""
    query = _query(collection, text, controls)
    refuse_groups_of_many(query)
    answer = look_up_comparison(collection=collection, query=query)
    if isinstance(answer, Answer):
        return {"answer": answer}

    parameters = query.address()
    if isinstance(answer, Outlook):
        page_address = address(collection, text)
        return {"outlook": answer, "parameters": parameters, "page_address": page_address}

    return {"waiting": answer, "parameters": parameters, **_status(answer)}


def _query(collection: Collection, text: Text, controls: Controls) -> ComparisonQuery:
    """Return the query; that of two runs has every test of a pair after the requested ones.

    Two runs of a larger family have every test only if the whole family is tested at once, as a
    verdict depends on all of it.
    """
    query = ComparisonQuery.read(text, collection)
    chosen = {*query.runs, *(query.baselines if query.runs else [])}
    if len(chosen or controls.runs) != 2:
        return query

    # The usual test of a pair that is tested alone is among these.
    usual = [] if query.family is None else [USUAL_TEST]
    wider = replace(query, tests=list(dict.fromkeys([*(query.tests or usual), *PAIRWISE])))
    if query.family is None:
        return wider

    entrants = choose_entrants(collection=collection, query=wider)
    return wider if fits_a_request(entrants, wider) else query


def _add_parts(
    request: HttpRequest, context: dict[str, Any], collection: Collection, text: Text
) -> int:
    """Add the parts of an answer, if there is one. Return the page's status."""
    answer = context.get("result", {}).get("answer")
    if answer is None:
        return 200

    status = fill(context, "comparison", show, collection, answer, text)
    if "comparison" not in context:
        return status

    comparison: ShownComparison = context["comparison"]
    context["view"], status = answer_parts(comparison)
    fill(context, "differing", differing_parameters, comparison, request.user)

    return status


def answer_parts(comparison: ShownComparison) -> tuple[dict[str, Any], int]:
    """Return the parts of an answer of two or of many runs, and the page's status."""
    return two_runs_parts(comparison) if comparison.pair else many_runs_parts(comparison)


class QueueComparison(FormPage):
    """Leave a long comparison to a worker; the same request then returns its progress or answer."""

    scopes = {"POST": Scope.READ}
    signed_in = False
    reads = (*_OF_QUESTION, *_OF_VIEW)
    fields = _OF_QUESTION

    def get(self, request: Request, slug: str) -> HttpResponse:
        """Redirect to the comparison itself."""
        collection = visible_collection(request, slug)
        return redirect_to(request, address(collection, text_of(request.query_params)))

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = scored_collection(request, slug)
        parameters = without_labels(
            text_of(cast(QueryDict, request.data)), collection, request.user
        )
        query = ComparisonQuery.read(parameters, collection)
        refuse_groups_of_many(query)
        refuse_weights(query)
        stored = queue_comparison(collection=collection, query=query)
        return redirect_to(request, reverse("stored-comparison-page", args=[stored.pk]))


def _finished_comparison(request: HttpRequest, comparison: UUID) -> Subject | None:
    """Return the collection of a comparison, or None while a worker computes it."""
    stored = stored_comparison(request, comparison)
    return None if stored.state in _UNDER_WAY else Subject(stored.qrels.collection)


@page
@reads("runs", *_OF_VIEW)
@cached_page(_finished_comparison)
def stored_comparison_page(request: HttpRequest, comparison: UUID) -> HttpResponse:
    """Show a comparison that a worker computes: its progress, and then its result."""
    stored = stored_comparison(request, comparison)
    collection = stored.qrels.collection
    text = shown_without_labels(text_of(request.GET), collection, request.user)
    context: dict[str, Any] = {
        "collection": collection,
        "text": text,
        "stored": stored,
        "result": {},
    }

    status = 200

    if stored.state == Comparison.State.COMPARED:
        status = fill(
            context,
            "result",
            lambda: {"answer": read_stored_comparison(stored).of(run_ids_in(text))},
        )
    else:
        parameters = question_of(stored).address()
        context["result"] = {"waiting": stored, "parameters": parameters, **_status(stored)}

    status = max(status, _add_parts(request, context, collection, text))
    context["share"] = share_address("comparison", comparison=str(stored.pk))

    return render(request, "metrics/stored_comparison.html", context, status=status)


@page
def stored_comparison_status(request: HttpRequest, comparison: UUID) -> HttpResponse:
    """Show the progress of a comparison: a fragment that reloads itself until there is a result."""
    stored = stored_comparison(request, comparison)
    context = {
        "result": {"waiting": stored, **_status(stored)},
        "collection": stored.qrels.collection,
    }
    response = render(request, "metrics/_comparison_status.html", context)
    if stored.state not in _UNDER_WAY:
        response["HX-Refresh"] = "true"

    response["Cache-Control"] = "no-store"
    return response


def _status(stored: Comparison) -> dict[str, Any]:
    in_progress = stored.state in _UNDER_WAY
    return {
        "in_progress": in_progress,
        "percent": int(100 * stored.progress),
        "alive": not in_progress or any(last.alive for last in last_rounds()),
        "page": reverse("stored-comparison-page", args=[stored.pk]),
        "status_address": reverse("stored-comparison-status", args=[stored.pk]),
    }
