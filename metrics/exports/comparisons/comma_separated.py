"""CSV at full precision: a row for each measure, pair and test, with all that is needed to make its figures again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metrics.engine import ENGINE_VERSION
from metrics.engine.ranking import Ints
from metrics.engine.significance import TESTS
from metrics.exports.comparisons.table import BETTER, WORSE
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    PairSelection,
    ShownPair,
    Verdict,
    choose_pairs,
    rows_of,
    run_of,
    shown_pairs,
)
from metrics.services.comparisons.stored import Answer
from runs.errors import InvalidInput
from runs.formats.comma_separated import written
from runs.models import Collection

MOST_ROWS = 200_000


def render(collection: Collection, answer: Answer, selection: PairSelection) -> Iterator[str]:
    """Yield a line of names, then pieces of some hundred rows. InvalidInput for more rows than one file has."""
    tables = [
        (compared, choose_pairs(answer, compared, selection)[1]) for compared in answer.results
    ]
    rows = sum(len(chosen) * len(compared.families) for compared, chosen in tables)
    if rows > MOST_ROWS:
        message = f"{rows:,} rows; a file has at most {MOST_ROWS:,}: name one run with run=, or page through the pairs"
        raise InvalidInput(message, code="too_many_rows", pointer="run")
    return written(_rows(collection, answer, tables))


def _rows(
    collection: Collection, answer: Answer, tables: list[tuple[Compared, Ints]]
) -> Iterator[dict[str, Any]]:
    query = answer.query
    inputs = {
        "alpha": query.rule.alpha,
        "confidence": query.options.confidence,
        "resamples": query.options.resamples,
        "seed": query.options.seed,
        "zeros": query.options.zeros,
        "ties": query.options.ties,
        "min_difference": query.options.min_difference,
        **({"margin": query.practical.margin} if "tost" in query.practical.tests else {}),
        **({"rope": query.practical.rope} if query.practical.posteriors else {}),
        "collection": collection.slug,
        "qrels": answer.entrants.qrels.version,
        "scores": answer.entrants.scores,
        "engine_version": answer.stored.engine_version if answer.stored else ENGINE_VERSION,
    }
    for compared, chosen in tables:
        families = {family.test: family for family in compared.families}
        places = {run_of(answer, compared, row): row for row in rows_of(answer, compared)}
        for pair in shown_pairs(answer, compared, chosen):
            covered = _coverage(compared, places[pair.a], places[pair.b])
            for place, verdict in enumerate(pair.verdicts):
                family = families[verdict.test]
                corrected = {
                    "correction": family.correction or "by the test",
                    "family": family.size,
                    "intervals": TESTS[family.test].intervals,
                }
                yield {
                    **_pair(compared, pair, verdict),
                    **covered,
                    **_on_judged(pair, place),
                    **corrected,
                    **inputs,
                }


def _pair(compared: Compared, pair: ShownPair, verdict: Verdict) -> dict[str, Any]:
    return {
        "measure": compared.measure.name,
        "test": verdict.test,
        "team_a": pair.a.team.slug,
        "tag_a": pair.a.tag,
        "run_a": str(pair.a.pk),
        "team_b": pair.b.team.slug,
        "tag_b": pair.b.tag,
        "run_b": str(pair.b.pk),
        "topics": compared.topics,
        "mean_a": pair.mean_a,
        "mean_b": pair.mean_b,
        "difference": pair.difference,
        "low": verdict.low,
        "high": verdict.high,
        "statistic": verdict.statistic,
        "p_value": verdict.p_value,
        "p_adjusted": verdict.p_adjusted,
        "exact": str(verdict.exact).lower(),
        "significant": str(verdict.significant).lower(),
        "verdict": {1: BETTER, -1: WORSE}.get(verdict.better, ""),
        "withheld": verdict.withheld,
        "relative_difference": pair.relative,
        "reading": pair.reading,
        **_bounded("cohen_d", pair.cohen_d),
        **_bounded("hedges_g", pair.hedges_g),
        **_bounded("standardised_difference", pair.standardised),
        **_bounded("cliff_delta", pair.cliff_delta),
        **_bounded("probability_better", pair.probability_better),
        "wins": pair.wins,
        "topics_tied": pair.ties,
        "losses": pair.losses,
        "cautions": " ".join(pair.cautions),
        **_equivalence(pair),
        **{
            f"{name}_{side}": getattr(found, side)
            for name, found in pair.chances.items()
            for side in ("better", "equal", "worse")
        },
    }


def _coverage(compared: Compared, a: int, b: int) -> dict[str, Any]:
    """Return how much was measured of the runs in two rows."""
    coverage = compared.coverage
    return {
        "answered_a": float(coverage.answered[a]),
        "judged_a": float(coverage.judged[a]),
        "answered_b": float(coverage.answered[b]),
        "judged_b": float(coverage.judged[b]),
        "judged_depth": coverage.k,
    }


def _on_judged(pair: ShownPair, place: int) -> dict[str, Any]:
    """Return the columns of judged documents alone, empty where the runs are judged alike; `place` is that of the
    test."""
    found = pair.on_judged
    verdict = found and found.verdicts[place]
    return {
        "on_judged_difference": found and found.difference,
        "on_judged_low": verdict and verdict.low,
        "on_judged_high": verdict and verdict.high,
        "on_judged_p_value": verdict and verdict.p_value,
        "on_judged_p_adjusted": verdict and verdict.p_adjusted,
    }


def _equivalence(pair: ShownPair) -> dict[str, Any]:
    """Return the columns of tost, where it was asked for."""
    found = pair.equivalence
    if found is None:
        return {}
    claims = {"a_not_worse": found.a, "b_not_worse": found.b, "equivalent": found.both}
    columns: dict[str, Any] = {"tost_low": found.low, "tost_high": found.high}
    for name, claim in claims.items():
        columns |= {f"{name}_p": claim.p_value, f"{name}_p_adjusted": claim.p_adjusted}
        columns[name] = str(claim.holds).lower()
    return {**columns, "equivalence_withheld": found.withheld, "equivalence_topics": found.topics}


def _bounded(name: str, figure: Bounded) -> dict[str, float]:
    return {name: figure.value, f"{name}_low": figure.low, f"{name}_high": figure.high}
