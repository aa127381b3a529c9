"""CSV at full precision: a row for each run of a board, those without a rank too, and how the figures were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from metrics.engine.significance import TESTS
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.standing_parts import Standings
from metrics.services.boards.versions import ALL, BEST
from runs.formats.comma_separated import written
from runs.models import Collection

_AGAINST = (
    "difference", "low", "high", "relative", "statistic", "p_value", "p_adjusted", "mark", "withheld", "wins",
    "ties", "losses",
)  # fmt: skip
_ON_JUDGED = ("difference", "low", "high", "p_value", "p_adjusted")


def render(
    collection: Collection, board: Leaderboard, standings: Standings | None
) -> Iterator[str]:
    """Yield a line of names, then the rows as they stand on the board."""
    inputs = {
        "collection": collection.slug,
        "scores": board.scores,
        **(_inputs(standings) if standings else {}),
    }
    odd = [measure for measure in board.measures if measure.aggregate_name != "mean"]
    inputs |= {f"{measure.name} aggregate": measure.aggregate_name for measure in odd}
    rows = (
        {
            **_row(row),
            **row.beside,
            **_entry(row),
            **_version(board, row),
            **_values(row, standings),
            **_cells(board, row),
            **_standing(row, standings),
            **inputs,
        }
        for row in board.rows
    )
    return written(rows)


def _row(row: Row) -> dict[str, Any]:
    evaluation, run = row.evaluation, row.run
    return {
        "rank": row.rank,
        "state": row.state,
        "reason": row.reason,
        "team": run.team.slug,
        "tag": run.tag,
        "run": str(run.pk),
        "submitted": run.created_at.isoformat(),
        "topics_answered": evaluation.topics_answered,
        "topics_judged": evaluation.qrels.topics,
        "judged_at_10": row.judged,
        "tied_documents": run.tied_documents,
        "qrels": evaluation.qrels.version,
        "engine_version": evaluation.engine_version,
    }


def _entry(row: Row) -> dict[str, Any]:
    """Return on a collection with phases what the entry of the run is, and where it was entered."""
    entry = row.entry
    if entry is None:
        return {}
    return {
        "entry_status": entry.status,
        "entry_phase": entry.place,
        "entry_number": entry.number,
    }


def _version(board: Leaderboard, row: Row) -> dict[str, Any]:
    """Return on a leaderboard of systems which version the row is, of how many, and what the best one is expected to
    have on other topics."""
    if board.versions == ALL:
        return {}
    system, chosen = row.run.system, row.chosen
    found: dict[str, Any] = {
        "versions": board.versions,
        "system": system and system.slug,
        "version": row.run.version,
    }
    found |= {"of": chosen and chosen.of, "newer": chosen and chosen.newer}
    return found | ({"expected_best": chosen and chosen.expected} if board.versions == BEST else {})


def _values(row: Row, standings: Standings | None) -> dict[str, Any]:
    """Return the mean of each measure, its number of topics, and both ends of its interval if requested."""
    found: dict[str, Any] = {}
    for name, (mean, topics) in row.values.items():
        found |= {name: mean, f"{name} topics": topics}
        if standings and "intervals" in standings.query.parts:
            low, high = standings.intervals.get((row.evaluation.pk, name), (None, None))
            found |= {f"{name} low": low, f"{name} high": high}
    return found


def _cells(board: Leaderboard, row: Row) -> dict[str, Any]:
    """Return the columns that were asked for, at full precision."""
    found = {column.name: row.cells.get(column.name) for column in board.columns}
    return {
        name: value.isoformat() if isinstance(value, datetime) else _plain(value)
        for name, value in found.items()
    }


def _plain(value: Any) -> Any:
    """Return false and true as JSON has them."""
    return str(value).lower() if isinstance(value, bool) else value


def _standing(row: Row, standings: Standings | None) -> dict[str, Any]:
    """Return the columns of the requested statistics, empty for a row that takes no part."""
    if standings is None:
        return {}
    found: dict[str, Any] = {}
    standing = standings.of(row.evaluation.pk) if row.rank is not None else None
    if standings.tiers:
        found |= {
            "tier": standing and standing.tier,
            "groups": " ".join((standing and standing.groups) or []),
        }
        low, high = (standing and standing.rank_set) or (None, None)
        found |= {"rank_set_low": low, "rank_set_high": high}
        found["in_best_set"] = _plain(standing and standing.in_best_set)
    if standings.ranks:
        for name in ("rank_low", "rank_high", "share_first"):
            found[name] = standing and getattr(standing, name)
    if standings.expected:
        found |= {
            "expected": standing and standing.expected,
            "chance_best": standing and standing.chance_best,
        }
    if standings.baseline:
        against = asdict(standing.baseline) if standing and standing.baseline else {}
        found |= {f"baseline_{name}": against.get(name) for name in _AGAINST}
        on_judged = against.get("on_judged") or {}
        found |= {f"baseline_on_judged_{name}": on_judged.get(name) for name in _ON_JUDGED}
    return found


def _inputs(standings: Standings) -> dict[str, Any]:
    query = standings.query
    return {
        "statistics_of": standings.measure.name,
        "statistics_topics": standings.topics,
        "test": query.test,
        "correction": query.corrected_by or "by the test",
        "alpha": query.alpha,
        "confidence": query.confidence,
        "resamples": query.resamples if TESTS[query.test].draws else None,
        "rank_resamples": query.rank_resamples if standings.ranks else None,
        "seed": query.seed,
        "baseline": query.baseline,
    }
