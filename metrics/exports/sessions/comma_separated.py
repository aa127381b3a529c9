"""CSV at full precision: a row for each system of a leaderboard or each pair of a comparison, with all options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metrics.engine import ENGINE_VERSION
from metrics.engine.significance.effect_sizes import Estimate
from metrics.exports.comparisons.table import BETTER, WORSE
from metrics.services.sessions.board import SessionBoard, SystemRow, system_name
from metrics.services.sessions.comparison import SessionComparison
from metrics.services.sessions.standings import SessionStandings
from runs.formats.comma_separated import written
from runs.models import Collection


def render_board(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> Iterator[str]:
    """Yield a line of names, then the rows of the leaderboard."""
    made: dict[str, Any] = {"collection": collection.slug, "judged_by": board.judged_by}
    if standings:
        compared = standings.compared
        made |= {
            "statistics_of": standings.measure.name,
            "confidence": standings.query.options.confidence,
        }
        made |= _made(compared) if compared else {}
    return written({**_row(row, standings), **made} for row in board.rows)


def _row(row: SystemRow, standings: SessionStandings | None) -> dict[str, Any]:
    evaluation, found = row.evaluation, row.evaluation.session_set
    name = system_name(evaluation, row.system)
    cells: dict[str, Any] = {
        "rank": row.rank,
        "stale": str(row.stale).lower(),
        "reason": row.reason,
        "team": found.team.slug,
        "tag": found.tag,
        "system": row.system,
        "session_set": str(found.pk),
        "submitted": found.created_at.isoformat(),
        "sessions": row.sessions,
        "qrels": evaluation.qrels.version if evaluation.qrels else None,
        "engine_version": evaluation.engine_version,
    }
    for measure, (mean, sessions) in row.values.items():
        cells |= {measure: mean, f"{measure} sessions": sessions}
        if standings and "intervals" in standings.query.parts:
            low, high = standings.intervals.get((evaluation.pk, row.system, measure), (None, None))
            cells |= {f"{measure} low": low, f"{measure} high": high}
    standing = standings.of(name) if standings and row.rank is not None else None
    if standings and standings.tiers:
        cells |= {
            "tier": standing and standing.tier,
            "groups": " ".join((standing and standing.groups) or []),
        }
    if standings and standings.baseline:
        # The baseline itself, and a system without a rank, have these columns empty.
        place = standing.pair if standing else None
        figures = _figures(standings.baseline, place or 0)
        figures = dict.fromkeys(figures) if place is None else figures
        cells |= {f"baseline_{column}": value for column, value in figures.items()}
    return cells


def render_comparison(collection: Collection, compared: SessionComparison) -> Iterator[str]:
    """Yield a line of names, then a row for each pair."""
    made = {
        "confidence": compared.query.options.confidence,
        **_made(compared),
        "collection": collection.slug,
        "judged_by": compared.judged_by,
        "qrels": compared.qrels.version if compared.qrels else None,
        "engine_version": ENGINE_VERSION,
    }
    first, second = (side.tolist() for side in compared.pairs.indices())
    return written(
        {
            "measure": compared.query.measure.name,
            **{f"{column}_a": value for column, value in _system(compared, a).items()},
            **{f"{column}_b": value for column, value in _system(compared, b).items()},
            **_figures(compared, at),
            **made,
        }
        for at, (a, b) in enumerate(zip(first, second, strict=True))
    )


def _system(compared: SessionComparison, place: int) -> dict[str, Any]:
    system = compared.systems[place]
    return {"system": system.name, "sessions": system.with_value, "mean": system.mean}


def _figures(compared: SessionComparison, at: int) -> dict[str, Any]:
    """Return the results of one pair, by its place."""
    result, effects = compared.result, compared.effects
    figures = {
        "difference": float(result.difference[at]),
        "low": float(result.low[at]),
        "high": float(result.high[at]),
        "statistic": float(result.statistic[at]),
        "p_value": float(result.p_value[at]),
        "p_adjusted": float(compared.adjusted[at]),
        "significant": str(bool(compared.verdicts.significant[at])).lower(),
        "verdict": {1: BETTER, -1: WORSE}.get(compared.better(at), ""),
        "withheld": compared.withheld(at),
        "relative_difference": float(effects.relative[at]),
    }
    if sizes := effects.paired:
        figures |= _bounded("cohen_d", sizes.cohen_d, at) | _bounded("hedges_g", sizes.hedges_g, at)
        figures |= {name: int(getattr(sizes, name)[at]) for name in ("wins", "ties", "losses")}
    if compared.crossed:
        _, by_searchers, by_topics = compared.crossed[at].sources
        figures |= {"freedom": compared.crossed[at].freedom[1]}
        for name, source in (("by_searchers", by_searchers), ("by_topics", by_topics)):
            figures |= {
                f"{name}_f": source.statistic,
                f"{name}_freedom": source.freedom,
                f"{name}_p": source.p_value,
            }
    return figures | (_bounded("cliff_delta", effects.delta, at) if effects.delta else {})


def _bounded(name: str, size: Estimate, at: int) -> dict[str, Any]:
    ends = {name: size.value, f"{name}_low": size.low, f"{name}_high": size.high}
    return {column: float(values[at]) for column, values in ends.items()}


def _made(compared: SessionComparison) -> dict[str, Any]:
    query = compared.query
    return {
        "design": compared.design,
        "cells": compared.cells,
        "test": compared.test,
        "correction": compared.correction or "by the test",
        "family": compared.family,
        "alpha": query.rule.alpha,
        "resamples": query.options.resamples if compared.draws else None,
        "seed": query.options.seed,
    }
