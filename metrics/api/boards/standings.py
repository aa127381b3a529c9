"""The statistics of a leaderboard as the API answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from metrics.api.answers import number
from metrics.api.parameters import STATISTICS, names_of
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Caution
from metrics.questions.boards import standings_query
from metrics.services.boards.leaderboard import Row
from metrics.services.boards.standings import AgainstBaseline, Contrast, Standing, Standings, StandingsQuery, Tiering
from runs.errors import InvalidInput

# Parameters of the statistics, which say nothing where none are asked for.
HOW_MADE = tuple(name for name in names_of(STATISTICS) if name not in ("statistics", "baseline"))


def asked_standings(parameters: Mapping[str, str]) -> StandingsQuery | None:
    """The statistics that are asked for, None for none; InvalidInput where there are none but it is said how to make
    them."""
    asked = standings_query(parameters)
    told = [name for name in HOW_MADE if parameters.get(name)]
    if asked is None and told:
        message = f"{told[0]} says how statistics are made: ask for some, as statistics=tiers, or for a baseline"
        raise InvalidInput(message, code="required", pointer="statistics")
    return asked


def standings_as_json(standings: Standings) -> dict[str, Any]:
    """What the statistics were made from and how; a part that was not asked for is null."""
    query = standings.query
    return {
        "measure": standings.measure.name,
        "parts": list(query.parts),
        "runs": len(standings.places),
        "topics": standings.topics,
        "test": query.test,
        "correction": query.corrected_by,
        "alpha": query.alpha,
        "confidence": query.confidence,
        "resamples": query.resamples if TESTS[query.test].draws else None,
        "seed": query.seed,
        "tiers": _tiers_as_json(standings.tiers),
        "ranks": {"resamples": query.rank_resamples} if standings.ranks else None,
        "baseline": _baseline_as_json(standings.baseline, query.baseline, query.test),
        "cautions": cautions_as_json(standings.cautions),
    }


def cautions_as_json(cautions: list[Caution]) -> list[dict[str, str]]:
    return [{"code": caution.code, "message": caution.message} for caution in cautions]


def row_statistics(row: Row, standings: Standings) -> dict[str, Any]:
    """What is added to a row of the board: null in whole for one that takes no part."""
    standing = standings.of(row.evaluation.pk) if row.rank is not None else None
    values = {
        name: {"mean": mean, "topics": topics, **_ends(row, name, standings)}
        for name, (mean, topics) in row.values.items()
    }
    return {"values": values, "statistics": _standing_as_json(standing) if standing else None}


def _ends(row: Row, name: str, standings: Standings) -> dict[str, float | None]:
    low, high = standings.intervals.get((row.evaluation.pk, name), (None, None))
    return {"low": number(low), "high": number(high)} if "intervals" in standings.query.parts else {}


def _tiers_as_json(tiers: Tiering | None) -> dict[str, Any] | None:
    if tiers is None:
        return None
    return {
        "count": max(tiers.tier),
        "family": tiers.family,
        "significant": tiers.significant,
        "cautions": cautions_as_json(tiers.cautions),
    }


def _baseline_as_json(contrast: Contrast | None, baseline: str | None, test: str) -> dict[str, Any] | None:
    if contrast is None:
        return None
    return {
        "run": baseline,
        "family": contrast.family,
        "intervals": TESTS[test].intervals,
        "significant": contrast.significant,
        "cautions": cautions_as_json(contrast.cautions),
    }


def _standing_as_json(standing: Standing) -> dict[str, Any]:
    ranks = {"low": standing.rank_low, "high": standing.rank_high, "share_first": standing.share_first}
    return {
        "tier": standing.tier,
        "groups": standing.groups,
        "rank": ranks if standing.rank_low is not None else None,
        "baseline": _against_as_json(standing.baseline) if standing.baseline else None,
    }


def _against_as_json(against: AgainstBaseline) -> dict[str, Any]:
    figures = asdict(against)
    return {name: number(value) if isinstance(value, float) else value for name, value in figures.items()}
