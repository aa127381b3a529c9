"""Leaderboards and comparisons of systems as tables, at full precision and for a paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine import ENGINE_VERSION
from metrics.engine.sessions.cautions import UNITS
from metrics.engine.significance.effect_sizes import Estimate
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import REASONS, TOO_FEW_TOPICS
from metrics.exports.comparisons.words import TEST_NAMES, corrected_over, withheld_pairs
from metrics.exports.table import BETTER, WORSE, Cell, Column, Row, Table
from metrics.services.sessions.board import SessionBoard, SystemRow, system_name
from metrics.services.sessions.comparison import SessionComparison
from metrics.services.sessions.standings import SessionStandings
from metrics.tables import NOTHING, direction_of, figure
from runs.models import Collection

DESIGN_NAMES = {
    "crossed": "crossed by searchers and topics",
    "paired": "paired by topic and searcher",
    "latin_square": "a Latin square",
    "two_way": "paired by topic",
    "unpaired": "unpaired samples",
}


def board_data_table(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> Table:
    """Build the table with every row of the leaderboard."""
    inputs: dict[str, Any] = {"collection": collection.slug, "judged_by": board.judged_by}
    if standings:
        compared = standings.compared
        inputs |= {
            "statistics_of": standings.measure.name,
            "confidence": standings.query.options.confidence,
        }
        if compared:
            inputs |= _inputs(compared)

    records = ({**_row(row, standings), **inputs} for row in board.rows)
    return Table.of_records(f"{collection.slug}-sessions", records)


def _row(row: SystemRow, standings: SessionStandings | None) -> dict[str, Any]:
    evaluation, session_set = row.evaluation, row.evaluation.session_set
    name = system_name(evaluation, row.system)
    cells: dict[str, Any] = {
        "rank": row.rank,
        "stale": row.stale,
        "reason": row.reason,
        "team": session_set.team.slug,
        "tag": session_set.tag,
        "system": row.system,
        "session_set": str(session_set.pk),
        "submitted": session_set.created_at,
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
        # These columns are empty for the baseline itself, and for a system without a rank.
        pair = standing.pair if standing else None
        figures = _figures(standings.baseline, pair or 0)
        if pair is None:
            figures = dict.fromkeys(figures)

        cells |= {f"baseline_{column}": value for column, value in figures.items()}

    return cells


def pairs_table(collection: Collection, compared: SessionComparison) -> Table:
    """Build the table with a row for each pair."""
    inputs = {
        "confidence": compared.query.options.confidence,
        **_inputs(compared),
        "collection": collection.slug,
        "judged_by": compared.judged_by,
        "qrels": compared.qrels.version if compared.qrels else None,
        "engine_version": ENGINE_VERSION,
    }
    first, second = (side.tolist() for side in compared.pairs.indices())
    records = (
        {
            "measure": compared.query.measure.name,
            **{f"{column}_a": value for column, value in _system(compared, a).items()},
            **{f"{column}_b": value for column, value in _system(compared, b).items()},
            **_figures(compared, pair),
            **inputs,
        }
        for pair, (a, b) in enumerate(zip(first, second, strict=True))
    )

    return Table.of_records(f"{collection.slug}-sessions", records)


def _system(compared: SessionComparison, place: int) -> dict[str, Any]:
    system = compared.systems[place]
    return {"system": system.name, "sessions": system.with_value, "mean": system.mean}


def _figures(compared: SessionComparison, pair: int) -> dict[str, Any]:
    """Return the results of one pair, by its place."""
    result, effects = compared.result, compared.effects
    figures = {
        "difference": float(result.difference[pair]),
        "low": float(result.low[pair]),
        "high": float(result.high[pair]),
        "statistic": float(result.statistic[pair]),
        "p_value": float(result.p_value[pair]),
        "p_adjusted": float(compared.adjusted[pair]),
        "significant": bool(compared.verdicts.significant[pair]),
        "verdict": {1: BETTER, -1: WORSE}.get(compared.better(pair), ""),
        "withheld": compared.withheld(pair),
        "relative_difference": float(effects.relative[pair]),
    }

    if sizes := effects.paired:
        figures |= _bounded("cohen_d", sizes.cohen_d, pair) | _bounded(
            "hedges_g", sizes.hedges_g, pair
        )
        figures |= {name: int(getattr(sizes, name)[pair]) for name in ("wins", "ties", "losses")}

    if compared.crossed:
        _, by_searchers, by_topics = compared.crossed[pair].sources
        figures |= {"freedom": compared.crossed[pair].freedom[1]}
        for name, source in (("by_searchers", by_searchers), ("by_topics", by_topics)):
            figures |= {
                f"{name}_f": source.statistic,
                f"{name}_freedom": source.freedom,
                f"{name}_p": source.p_value,
            }

    if effects.delta:
        figures |= _bounded("cliff_delta", effects.delta, pair)

    return figures


def _bounded(name: str, size: Estimate, pair: int) -> dict[str, Any]:
    ends = {name: size.value, f"{name}_low": size.low, f"{name}_high": size.high}
    return {column: float(values[pair]) for column, values in ends.items()}


def _inputs(compared: SessionComparison) -> dict[str, Any]:
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


def board_table(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> Table:
    """Build the table of the systems under the current judgements.

    Systems with fewer sessions come last, without a rank.
    """
    current = [row for row in board.rows if not row.stale]
    query = board.query
    tiers = standings.tiers if standings else None
    baseline = standings.baseline if standings else None

    columns = [Column("rank", "Rank"), Column("system", "System", head=True)]
    for measure in query.measures:
        with_marks = baseline is not None and measure == query.sort
        columns.append(Column(measure.name, direction=direction_of(measure), with_marks=with_marks))

    columns.append(Column("sessions", "Sessions"))
    if tiers and tiers.tiers:
        columns.append(Column("tier", "Tier"))

    best = _best(board, current)
    rows = [_board_row(board, row, best, standings) for row in current]

    names = {system_name(row.evaluation, row.system): row for row in current}
    notes = [
        f"Means of {len(board.ranked)} systems of {collection.name}, judged by {board.judged_by}.",
        f"Ranked by {query.sort.name}, {'highest' if query.descending else 'lowest'} first.",
        *(f"{name} has no rank: {row.reason}." for name, row in names.items() if row.rank is None),
        *(f"{caution.message}." for caution in board.cautions),
        "The best of each column is bold.",
    ]
    if baseline:
        notes.append(_marked(baseline, query.sort.name))

    if tiers and tiers.tiers:
        notes.append(
            "Systems in a tier do not differ significantly from its best one; those in different "
            "tiers may not either."
        )

    if compared := (tiers or baseline):
        notes += _how_tested(compared)

    return Table(f"{collection.slug}-sessions", columns, rows, notes)


def _best(board: SessionBoard, rows: list[SystemRow]) -> dict[str, str]:
    """Return the best mean of each measure among the ranked systems, as it is written."""
    best = {}
    for measure in board.query.measures:
        means = [row.values[measure.name][0] for row in rows if row.rank is not None]
        defined = [mean for mean in means if mean is not None]
        if defined:
            choose = min if measure.lower_is_better else max
            best[measure.name] = figure(measure, choose(defined))

    return best


def _board_row(
    board: SessionBoard, row: SystemRow, best: dict[str, str], standings: SessionStandings | None
) -> Row:
    name = system_name(row.evaluation, row.system)
    standing = standings.of(name) if standings and row.rank is not None else None
    against, mark = standings.baseline if standings else None, ""
    if against and standing and standing.pair is not None:
        mark = {1: BETTER, -1: WORSE}.get(against.better(standing.pair), "")

    cells = []
    for measure in board.query.measures:
        text = figure(measure, row.values[measure.name][0])
        is_best = row.rank is not None and text == best.get(measure.name)
        cells.append(Cell(text, is_best, mark=mark if measure == board.query.sort else ""))

    baseline = bool(against and standing and standing.pair is None)
    values: list[Any] = [NOTHING if row.rank is None else row.rank, name, *cells, row.sessions]
    if standings and standings.tiers and standings.tiers.tiers:
        values.append(standing.tier if standing else NOTHING)

    return Row(values, baseline=baseline)


def comparison_table(collection: Collection, compared: SessionComparison) -> Table:
    """Build the table of compared systems, best first, with marks and numbers of sessions."""
    measure, baselines = compared.query.measure, compared.pairs.baselines
    letters = letters_of(compared.tiers) if compared.tiers else None
    marks = dict(enumerate(letters or []))
    if baselines:
        words = {1: BETTER, -1: WORSE}
        marks = {}
        for pair, place in enumerate(compared.pairs.indices()[0].tolist()):
            if direction := compared.better(pair):
                marks[place] = words[direction]

    rows = []
    for place, system in enumerate(compared.systems):
        mean = figure(measure, system.mean)
        cell = Cell(mean, best=place == 0, mark=marks.get(place, ""))
        rows.append(Row([system.name, cell, system.with_value], baseline=place in baselines))

    notes = [
        f"Means of {len(rows)} systems of {collection.name}, judged by {compared.judged_by}.",
        "The best is bold.",
    ]
    if baselines:
        notes.append(_marked(compared, measure.name))
    elif letters:
        notes.append("Systems that share a letter do not differ significantly.")

    notes += _how_tested(compared)

    columns = [
        Column("system", "System", head=True),
        Column(measure.name, direction=direction_of(measure), with_marks=bool(baselines)),
        Column("sessions", "Sessions"),
    ]
    return Table(f"{collection.slug}-sessions", columns, rows, notes)


def _marked(compared: SessionComparison, measure: str) -> str:
    (place,) = compared.pairs.baselines
    baseline = compared.systems[place].name
    return (
        f"Marked by {measure} are systems that are significantly better (up) or worse (down) than "
        f"{baseline}."
    )


def _how_tested(compared: SessionComparison) -> list[str]:
    """Return sentences on the design, the test and the pairs without a verdict."""
    options, alpha = compared.query.options, compared.query.rule.alpha
    unit = "sessions" if compared.design == "unpaired" else UNITS[compared.design]
    correction = corrected_over(compared.correction, compared.family)
    resamples = f", B = {options.resamples:,}, seed {options.seed}" if compared.draws else ""
    sentences = [
        f"Design: {DESIGN_NAMES[compared.design]}, {compared.cells:,} {unit}.",
        f"Test: {TEST_NAMES[compared.test]}, {correction}, alpha = {alpha:g}{resamples}.",
    ]

    if compared.verdicts.have(TOO_FEW_TOPICS).any():
        if compared.crossed:
            fewest = [(crossing.fewest, crossing.fewest_are) for crossing in compared.crossings]
            unit = min(fewest)[1]
        return [*sentences, f"No verdicts: {unit} are too few to tell a difference from chance."]

    withheld = np.asarray(compared.verdicts.withheld).tolist()
    return [*sentences, *withheld_pairs(REASONS[reason] for reason in withheld)]
