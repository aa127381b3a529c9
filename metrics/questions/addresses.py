"""A comparison as an address: its question as parameters, and where one of its pairs is looked at closely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from metrics.engine.significance.pairs import DEFAULTS
from metrics.questions.run_ids import run_id_in
from metrics.services.comparisons.comparison import Compared, ComparisonQuery
from metrics.services.comparisons.stored import Answer

USUAL = {"confidence": 0.95, "alpha": 0.05, "resamples": DEFAULTS.resamples, "seed": DEFAULTS.seed}


def pair_address(answer: Answer, compared: Compared) -> str:
    """Where two of the runs are looked at closely, but for their ids at its end: in the family they were found in."""
    if answer.stored:
        return f"{_stored_page(str(answer.stored.pk), compared.measure.name)}&runs="
    query = replace(answer.query, measures=[compared.measure], runs=[], family=answer.query.tested)
    page = reverse("comparison-page", args=[answer.entrants.qrels.collection.slug])
    return f"{page}?{urlencode(asked_of(query))}&runs="


def pair_page(slug: str, measure: str, given: Mapping[str, str]) -> str:
    """The same of what a chart was given: `comparison`, a stored one, or `family` and `baseline`."""
    stored = run_id_in(given, "comparison")
    if stored:
        return _stored_page(stored, measure)
    family = {name: given[name] for name in ("family", "baseline") if given.get(name)}
    return f"{reverse('comparison-page', args=[slug])}?{urlencode({'measures': measure, **family})}"


def _stored_page(comparison: str, measure: str) -> str:
    return f"{reverse('stored-comparison-page', args=[comparison])}?{urlencode({'by': measure})}"


def asked_of(query: ComparisonQuery, runs: list[str] | None = None) -> dict[str, str]:
    """The same question as parameters, without what goes without saying; `runs` where it names none of its own."""
    options, rule = query.options, query.rule
    given: dict[str, Any] = {
        "measures": ",".join(measure.name for measure in query.measures),
        "runs": ",".join(query.runs or runs or []),
        "family": "" if query.family is None else ",".join(query.family) or "all",
        "baseline": query.baseline or "",
        "tests": ",".join(query.tests),
        "correction": rule.correction,
        "alpha": rule.alpha,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "seed": options.seed,
        "scores": query.scores or "",
        "zeros": options.zeros,
        "ties": options.ties,
        "min_difference": options.min_difference,
    }
    unsaid = {**USUAL, "zeros": DEFAULTS.zeros, "ties": DEFAULTS.ties, "min_difference": DEFAULTS.min_difference}
    return {name: str(value) for name, value in given.items() if value not in ("", unsaid.get(name))}
