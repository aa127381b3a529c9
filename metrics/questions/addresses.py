"""The addresses of comparisons: their parameters, and the page of one of their pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from metrics.engine.significance.pairs import DEFAULTS
from metrics.engine.significance.practical import USUAL_ROPE
from metrics.questions.run_ids import run_id_in
from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.stored import Answer

USUAL = {"confidence": 0.95, "alpha": 0.05, "resamples": DEFAULTS.resamples, "seed": DEFAULTS.seed}


def pair_address(answer: Answer, compared: Compared) -> str:
    """Return the address of the page of two runs, up to their ids at its end, within the family of the comparison."""
    if answer.stored:
        return f"{_stored_page(str(answer.stored.pk), compared.measure.name)}&runs="
    query = replace(answer.query, measures=[compared.measure], runs=[], family=answer.query.tested)
    page = reverse("comparison-page", args=[answer.entrants.qrels.collection.slug])
    return f"{page}?{urlencode(asked_of(query))}&runs="


def pair_page(slug: str, measure: str, given: Mapping[str, str]) -> str:
    """Return the same address from a chart's parameters: `comparison`, a stored one, or `family` and `baseline`."""
    stored = run_id_in(given, "comparison")
    if stored:
        return _stored_page(stored, measure)
    family = {name: given[name] for name in ("family", "baseline") if given.get(name)}
    return f"{reverse('comparison-page', args=[slug])}?{urlencode({'measures': measure, **family})}"


def _stored_page(comparison: str, measure: str) -> str:
    return f"{reverse('stored-comparison-page', args=[comparison])}?{urlencode({'by': measure})}"


def asked_of(query: ComparisonQuery, runs: list[str] | None = None) -> dict[str, str]:
    """Return the query as parameters, without defaults; `runs` is used if the query names no runs."""
    options, rule = query.options, query.rule
    given: dict[str, Any] = {
        "measures": ",".join(measure.name for measure in query.measures),
        "runs": ",".join(query.runs or runs or []),
        "family": "" if query.family is None else ",".join(query.family) or "all",
        "baseline": query.baseline or "",
        "tests": ",".join([*query.tests, *query.practical.tests]),
        "correction": rule.correction,
        "alpha": rule.alpha,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "seed": options.seed,
        "scores": query.scores or "",
        "zeros": options.zeros,
        "ties": options.ties,
        "min_difference": options.min_difference,
        "rope": query.practical.rope if query.practical.posteriors else "",
        "margin": query.practical.margin
        if query.practical.tests and query.practical.margin is not None
        else "",
    }
    unsaid = {
        **USUAL,
        "rope": USUAL_ROPE,
        "zeros": DEFAULTS.zeros,
        "ties": DEFAULTS.ties,
        "min_difference": DEFAULTS.min_difference,
    }
    return {
        name: str(value) for name, value in given.items() if value not in ("", unsaid.get(name))
    }
