"""A comparison as the API answers it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from rest_framework.utils.urls import replace_query_param

from metrics.api.answers import number
from metrics.engine import ENGINE_VERSION
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family, disagreements
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.tiers import Tiers, letters_of
from metrics.models import Comparison
from metrics.services.comparisons.comparison import Compared, one_of_many, split_omnibus
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    PairSelection,
    ShownPair,
    Verdict,
    choose_pairs,
    rows_of,
    run_of,
    shown_pairs,
    visible_pairs,
)
from metrics.services.comparisons.stored import Answer
from metrics.services.values.common_values import not_corrected_again, qrels_cautions
from runs.models import Collection, Qrels

# Of the topics left out, and of the pairs on which tests disagree.
_SHOWN = 50


def status_as_json(stored: Comparison, url: str) -> dict[str, Any]:
    """How far a stored comparison has come; `url` is where it is read."""
    return {
        "id": stored.pk,
        "url": url,
        "state": stored.state,
        "progress": stored.progress,
        "since": stored.since,
        "created_at": stored.created_at,
        "attempts": stored.attempts,
        "seconds": stored.seconds,
        "error_code": stored.error_code,
        "error_message": stored.error_message,
    }


def answer_as_json(
    collection: Collection, answer: Answer, selection: PairSelection, url: str, status: dict[str, Any] | None
) -> dict[str, Any]:
    """The whole of a comparison with one page of the pairs of each measure; `url` is that of the request."""
    results = [_compared_as_json(answer, compared, selection) for compared in answer.results]
    most = max((result["count"] for result in results), default=0)
    limit = selection.limit or most
    after, before = selection.offset + limit, max(0, selection.offset - limit)
    best_first = answer.results[0]
    runs = [run_of(answer, best_first, row) for row in rows_of(answer, best_first)]
    return {
        "comparison": status,
        **_inputs(collection, answer),
        "cautions": [*_deleted(answer), *_chosen(answer)],
        "runs": [{"id": run.pk, "team": run.team.slug, "tag": run.tag} for run in runs],
        "measures": results,
        "sort": selection.sort,
        "next": replace_query_param(url, "offset", after) if after < most else None,
        "previous": replace_query_param(url, "offset", before) if selection.offset else None,
    }


def _inputs(collection: Collection, answer: Answer) -> dict[str, Any]:
    """Everything that makes the figures again."""
    query, qrels, options = answer.query, answer.entrants.qrels, answer.query.options
    return {
        "collection": collection.slug,
        "qrels": qrels.version,
        "scores": answer.entrants.scores,
        "engine_version": _engine_version(answer),
        "stale": _is_stale(qrels, _engine_version(answer)),
        "tests": query.tests,
        "family": {
            "kind": "all_pairs" if answer.entrants.baseline is None else "baseline",
            "baseline": None if answer.entrants.baseline in answer.gone else query.baseline,
            "runs": len(answer.entrants.evaluations),
            "pairs": answer.entrants.pairs.number,
        },
        "correction": query.rule.correction,
        "alpha": query.rule.alpha,
        "confidence": options.confidence,
        "resamples": options.resamples,
        "seed": options.seed,
        "zeros": options.zeros,
        "ties": options.ties,
        "min_difference": options.min_difference,
    }


def _engine_version(answer: Answer) -> str:
    return answer.stored.engine_version if answer.stored else ENGINE_VERSION


def _is_stale(qrels: Qrels, engine_version: str) -> bool:
    return not qrels.active or engine_version != ENGINE_VERSION


def _deleted(answer: Answer) -> list[dict[str, str]]:
    if not answer.gone:
        return []
    many = len(answer.gone)
    message = f"{many} of the compared runs were deleted since: they are not shown, but p values count them"
    return [{"code": "runs_deleted", "message": message}]


def _chosen(answer: Answer) -> list[dict[str, str]]:
    caution = one_of_many(answer.entrants, answer.query)
    return [asdict(caution)] if caution else []


def _compared_as_json(answer: Answer, compared: Compared, selection: PairSelection) -> dict[str, Any]:
    count, chosen = choose_pairs(answer, compared, selection)
    means = compared.values.mean(axis=1).tolist()
    rows = rows_of(answer, compared)
    unsuited = qrels_cautions([compared.measure], answer.entrants.qrels)
    cautions = [*unsuited, *compared.cautions, *split_omnibus(compared, answer.query.rule)]
    return {
        "measure": compared.measure.name,
        "topics": _topics(answer, compared),
        "cautions": [asdict(caution) for caution in cautions],
        "means": [{"run": run_of(answer, compared, row).pk, "mean": means[row]} for row in rows],
        "omnibus": {name: omnibus_as_json(result) for name, result in compared.omnibus.items()},
        "tests": {family.test: _family_as_json(answer, compared, family) for family in compared.families},
        "disagreements": _disagreements(answer, compared),
        "count": count,
        "pairs": [_pair_as_json(pair) for pair in shown_pairs(answer, compared, chosen)],
    }


def _topics(answer: Answer, compared: Compared) -> dict[str, Any]:
    left_out = list(compared.left_out.items())
    return {
        "used": compared.topics,
        "left_out": len(left_out),
        "reasons": [{"topic_id": topic_id, "runs_without_value": runs} for topic_id, runs in left_out[:_SHOWN]],
    }


def omnibus_as_json(result: OmnibusResult) -> dict[str, Any]:
    """A test of all at once, with its sources of variation."""
    return {
        "statistic": result.statistic,
        "freedom": list(result.freedom),
        "p_value": number(result.p_value),
        "effect": result.effect,
        "sources": [asdict(source) for source in result.sources],
        "cautions": [asdict(caution) for caution in result.cautions],
    }


def _family_as_json(answer: Answer, compared: Compared, family: Family) -> dict[str, Any]:
    entry = TESTS[family.test]
    cautions = [*not_corrected_again(family.test, answer.query.rule.correction), *family.result.cautions]
    return {
        "about": "ranks" if entry.ranks else "means",
        "paired": entry.paired,
        "draws": entry.draws,
        "correction": family.correction,
        "family": family.size,
        "intervals": entry.intervals,
        "significant": int(np.count_nonzero(family.significant & visible_pairs(answer, compared))),
        "cautions": [asdict(caution) for caution in cautions],
        "groups": _groups(answer, compared, family.tiers),
    }


def _groups(answer: Answer, compared: Compared, tiers: Tiers | None) -> list[dict[str, Any]] | None:
    if tiers is None:
        return None
    letters = letters_of(tiers)
    return [
        {
            "run": run_of(answer, compared, row).pk,
            "tier": int(tiers.tier[row]),
            "groups": [group + 1 for group in tiers.groups[row]],
            "letters": letters[row] if letters else None,
        }
        for row in rows_of(answer, compared)
    ]


def _disagreements(answer: Answer, compared: Compared) -> dict[str, Any] | None:
    """The pairs on which tests of means and of ranks disagree; None where only one kind was asked for."""
    if len({TESTS[family.test].ranks for family in compared.families}) < 2:
        return None
    split = disagreements(compared.families)
    split = split[visible_pairs(answer, compared)[split]]
    shown = (_pair_as_json(pair) for pair in shown_pairs(answer, compared, split[:_SHOWN]))
    kept = ("a", "b", "difference", "wins", "ties", "losses", "tests")
    return {"count": len(split), "pairs": [{name: pair[name] for name in kept} for pair in shown]}


def _pair_as_json(pair: ShownPair) -> dict[str, Any]:
    return {
        "a": pair.a.pk,
        "b": pair.b.pk,
        "difference": pair.difference,
        "relative_difference": number(pair.relative),
        "reading": pair.reading,
        "cohen_d": _bounded(pair.cohen_d),
        "hedges_g": _bounded(pair.hedges_g),
        "standardised_difference": _bounded(pair.standardised),
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "tests": {verdict.test: _verdict(verdict) for verdict in pair.verdicts},
    }


def _bounded(figure: Bounded) -> dict[str, float | None]:
    return {"value": number(figure.value), "low": number(figure.low), "high": number(figure.high)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "low": number(verdict.low),
        "high": number(verdict.high),
        "statistic": number(verdict.statistic),
        "p_value": number(verdict.p_value),
        "p_adjusted": number(verdict.p_adjusted),
        "exact": verdict.exact,
        "significant": verdict.significant,
        **verdict_as_json(verdict.better, verdict.withheld),
    }


def verdict_as_json(better: int, withheld: str) -> dict[str, str | None]:
    """Which way the first of a pair differs significantly, and why nothing is said of it."""
    return {"verdict": {1: "better", -1: "worse"}.get(better), "withheld": withheld or None}
