"""The addresses of the page of one pair of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from django.urls import reverse

from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.stored import Answer
from metrics.services.question import run_id_in
from runs.models import Run


def run_page(run: Run) -> str:
    """Return the address of the page of a run."""
    return reverse("run-page", args=[run.pk])


def pair_address(answer: Answer, compared: Compared) -> str:
    """Return the address of the page of two runs in a comparison, up to their ids at its end."""
    if answer.stored:
        return f"{_stored_page(str(answer.stored.pk), compared.measure.name)}&runs="

    # The page corrects for the family of the comparison.
    query = replace(answer.query, measures=[compared.measure], runs=[], family=answer.query.tested)
    page = reverse("comparison-page", args=[answer.entrants.qrels.collection.slug])
    return f"{page}?{urlencode(query.address())}&runs="


def topic_of_pair_address(
    slug: str, question: ComparisonQuery, parameters: Mapping[str, str]
) -> str:
    """Return the address of the page of the two runs of a question, up to a topic at its end.

    The parameter `comparison` is the id of a stored comparison.
    """
    stored = run_id_in(parameters, "comparison")
    if stored:
        page = f"{_stored_page(stored, question.measures[0].name)}&runs={','.join(question.runs)}"
    else:
        page = f"{reverse('comparison-page', args=[slug])}?{urlencode(question.address())}"

    return f"{page}&topic="


def _stored_page(comparison: str, measure: str) -> str:
    return f"{reverse('stored-comparison-page', args=[comparison])}?{urlencode({'tab': measure})}"
