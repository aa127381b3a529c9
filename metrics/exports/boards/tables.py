"""A leaderboard as tables: every row at full precision, and the runs of its judgements for a paper."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance import TESTS
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.boards.words import across_sentence, best_sentence
from metrics.exports.comparisons.words import (
    CORRECTION_NAMES,
    corrected_over,
    test_name,
    too_few,
    withheld_pairs,
)
from metrics.exports.table import Column, Row, Table
from metrics.services.boards import leaderboard
from metrics.services.boards.columns import shown_value
from metrics.services.boards.entries import OFFICIAL
from metrics.services.boards.leaderboard import EntryCounts, Leaderboard
from metrics.services.boards.standing_parts import Standings
from metrics.services.boards.versions import ALL, BEST, CAPTIONS
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, aggregated, best_means, direction_of, mean_cell
from runs.models import Collection, Run

_AGAINST = (
    "difference", "low", "high", "relative", "statistic", "p_value", "p_adjusted", "mark", "withheld", "wins",
    "ties", "losses",
)  # fmt: skip
_ON_JUDGED = ("difference", "low", "high", "p_value", "p_adjusted")


def data_table(collection: Collection, board: Leaderboard, standings: Standings | None) -> Table:
    """Build the table of all rows as they stand on the leaderboard, those without a rank too, and
    of how their figures were made."""
    inputs = {
        "collection": collection.slug,
        "scores": board.scores,
        **(_inputs(standings) if standings else {}),
    }
    odd = [measure for measure in board.measures if measure.aggregate_name != "mean"]
    inputs |= {f"{measure.name} aggregate": measure.aggregate_name for measure in odd}
    records = (
        {
            **_run(row),
            **row.extra,
            **_entry(row),
            **_version(board, row),
            **_values(row, standings),
            **{column.name: row.cells.get(column.name) for column in board.columns},
            **_standing(row, standings),
            **inputs,
        }
        for row in board.rows
    )
    return Table.of_records(collection.slug, records)


def _run(row: leaderboard.Row) -> dict[str, Any]:
    evaluation, run = row.evaluation, row.run
    return {
        "rank": row.rank,
        "state": row.state,
        "reason": row.reason,
        "team": run.team.slug,
        "tag": run.tag,
        "run": str(run.pk),
        "submitted": run.created_at,
        "topics_answered": evaluation.topics_answered,
        "topics_judged": evaluation.qrels.topics,
        "judged_at_10": row.judged,
        "tied_documents": run.tied_documents,
        "qrels": evaluation.qrels.version,
        "engine_version": evaluation.engine_version,
    }


def _entry(row: leaderboard.Row) -> dict[str, Any]:
    """Return on a collection with phases what the entry of the run is, and where it was entered."""
    entry = row.entry
    if entry is None:
        return {}
    return {
        "entry_status": entry.status,
        "entry_phase": entry.place,
        "entry_number": entry.number,
    }


def _version(board: Leaderboard, row: leaderboard.Row) -> dict[str, Any]:
    """Return on a leaderboard of systems which version the row is, of how many, and what the best
    one is expected to have on other topics."""
    if board.versions == ALL:
        return {}
    system, chosen = row.run.system, row.chosen
    version: dict[str, Any] = {
        "versions": board.versions,
        "system": system and system.slug,
        "version": row.run.version,
        "of": chosen and chosen.of,
        "newer": chosen and chosen.newer,
    }
    return version | (
        {"expected_best": chosen and chosen.expected} if board.versions == BEST else {}
    )


def _values(row: leaderboard.Row, standings: Standings | None) -> dict[str, Any]:
    """Return the mean of each measure, its number of topics, and both ends of its interval if
    requested."""
    values: dict[str, Any] = {}
    for name, (mean, topics) in row.values.items():
        values |= {name: mean, f"{name} topics": topics}
        if standings and "intervals" in standings.query.parts:
            low, high = standings.intervals.get((row.evaluation.pk, name), (None, None))
            values |= {f"{name} low": low, f"{name} high": high}
    return values


def _standing(row: leaderboard.Row, standings: Standings | None) -> dict[str, Any]:
    """Return the columns of the requested statistics, empty for a row that takes no part."""
    if standings is None:
        return {}
    columns: dict[str, Any] = {}
    standing = standings.of(row.evaluation.pk) if row.rank is not None else None
    if standings.tiers:
        low, high = (standing and standing.rank_set) or (None, None)
        columns |= {
            "tier": standing and standing.tier,
            "groups": " ".join((standing and standing.groups) or []),
            "rank_set_low": low,
            "rank_set_high": high,
            "in_best_set": standing and standing.in_best_set,
        }
    if standings.ranks:
        for name in ("rank_low", "rank_high", "share_first"):
            columns[name] = standing and getattr(standing, name)
    if standings.expected:
        columns |= {
            "expected": standing and standing.expected,
            "chance_best": standing and standing.chance_best,
        }
    if standings.baseline:
        against = asdict(standing.baseline) if standing and standing.baseline else {}
        columns |= {f"baseline_{name}": against.get(name) for name in _AGAINST}
        on_judged = against.get("on_judged") or {}
        columns |= {f"baseline_on_judged_{name}": on_judged.get(name) for name in _ON_JUDGED}
    return columns


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


def paper_table(collection: Collection, board: Leaderboard, standings: Standings | None) -> Table:
    """Build the table without runs of other judgements, a column of means for each measure with the
    marks of one of them; runs on fewer topics come last, without a rank."""
    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])
    against = standings is not None and standings.baseline is not None
    columns = [
        Column("rank", "Rank"),
        Column("run", "Run", head=True),
        *(
            _column(measure, with_marks=against and measure == board.sort)
            for measure in board.measures
        ),
        *([] if board.versions == ALL else [Column("of", "Versions")]),
        *(Column(column.name, column.title, column.unit) for column in board.columns),
        *([Column("tier", "Tier")] if standings and standings.tiers else []),
    ]
    best = best_means(rows, board.measures)
    values = [_paper_row(board, row, names[row.run], best, standings) for row in rows]
    notes = _notes(collection, board, standings, rows, names)
    return Table(collection.slug, columns, values, notes)


def _column(measure: Measure, *, with_marks: bool) -> Column:
    return Column(measure.name, direction=direction_of(measure), with_marks=with_marks)


def _paper_row(
    board: Leaderboard,
    row: leaderboard.Row,
    name: str,
    best: dict[str, tuple[str, int]],
    standings: Standings | None,
) -> Row:
    standing = standings.of(row.evaluation.pk) if standings else None
    mark = (standing and standing.baseline and standing.baseline.mark) or ""
    cells = []
    for measure in board.measures:
        to_reach = best.get(measure.name) if row.rank is not None else None
        cell = mean_cell(measure, row.values[measure.name], board.qrels.topics, to_reach)
        if measure.definition.aggregate is Aggregate.SUM and cell.value is not None:
            # Counts are whole numbers, as trec_eval prints them.
            cell = replace(cell, value=round(cell.value))
        cells.append(replace(cell, mark=mark if measure == board.sort else ""))
    values: list[Any] = [NOTHING if row.rank is None else row.rank, name, *cells]
    if board.versions != ALL:
        values.append(f"of {row.chosen.of}" if row.chosen else NOTHING)
    values += [shown_value(row.cells[column.name]) or NOTHING for column in board.columns]
    if standings and standings.tiers:
        values.append(standing.tier if standing else NOTHING)
    return Row(
        values,
        baseline=standings is not None and str(row.run.pk) == standings.query.baseline,
        marked=standings is not None and standings.is_marked(row.evaluation.pk),
    )


def _notes(
    collection: Collection,
    board: Leaderboard,
    standings: Standings | None,
    rows: list[leaderboard.Row],
    names: dict[Run, str],
) -> list[str]:
    """Return what a reader needs to know about the numbers, one sentence each."""
    source = f"{collection.name} (qrels version {board.qrels.version})"
    ranked = [row for row in rows if row.rank is not None]
    shown = f"{len(ranked)}" if len(ranked) == board.ranked else f"{len(ranked)} of {board.ranked}"
    first = "highest" if board.descending else "lowest"
    others = {
        measure.name: aggregated(measure)
        for measure in board.measures
        if aggregated(measure) != "means"
    }
    sentences = [
        f"{'Values' if others else 'Means'} of {shown} runs of {source} on {board.qrels.topics} topics.",
        *([_entries_sentence(board.entries)] if board.entries else []),
        *([CAPTIONS[board.versions]] if board.versions != ALL else []),
        *(f"{name}: {kind}." for name, kind in others.items()),
        *_fewer_topics(board, ranked),
        f"Ranked by {board.sort.name}, {first} first{'' if len(ranked) == board.ranked else ', among all runs'}.",
        *([f"Rows in the order of {board.arrange.column.title}."] if board.arrange else []),
        *(f"{names[row.run]} has no rank: {row.reason}." for row in rows if row.rank is None),
        *(f"{caution.message}." for caution in board.cautions),
    ]
    if board.waiting:
        sentences.append(f"Provisional: {board.progress}.")
    return [
        *sentences,
        "The best of each column is bold.",
        *(_statistics(board, standings, names) if standings else []),
    ]


def _entries_sentence(counts: EntryCounts) -> str:
    """Return which runs of a collection with phases are ranked."""
    others = f"{counts.others:,} other run{'s' * (counts.others != 1)}"
    if counts.shown == OFFICIAL:
        return f"Official entries alone; {others} of the collection {'is' if counts.others == 1 else 'are'} left out."
    return f"{counts.official:,} official entries and {others}; those that were withdrawn or disqualified have no rank."


def _fewer_topics(board: Leaderboard, ranked: list[leaderboard.Row]) -> list[str]:
    """Return for each measure that has no value for some topics, how many its values in the table
    are of."""
    sentences = []
    for measure in board.measures:
        counts = {row.values[measure.name][1] for row in ranked}
        if counts - {board.qrels.topics}:
            span = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
            sentences.append(
                f"{measure.name} has values on {span} topics{', bold is the best on the most' * (len(counts) > 1)}."
            )
    return sentences


def best_of(board: Leaderboard, standings: Standings | None) -> str:
    """Return which runs can be the best, the first statement about a leaderboard; empty without
    statistics."""
    if standings is None:
        return ""
    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])
    return best_sentence(standings, {row.evaluation.pk: names[row.run] for row in rows})


def _statistics(board: Leaderboard, standings: Standings, names: dict[Run, str]) -> list[str]:
    sentences = []
    if standings.topics is not None and standings.topics < MIN_TOPICS:
        return [too_few(standings.topics)]
    if standings.baseline and not all(
        row.withheld for row in standings.baseline.rows if row is not None
    ):
        baseline = next(
            (name for run, name in names.items() if str(run.pk) == standings.query.baseline),
            "the baseline",
        )
        sentences.append(
            f"Marked by {board.sort.name} are runs that are significantly better (up) or worse (down) than {baseline}."
        )
    if standings.tiers:
        sentences += [
            best_of(board, standings),
            "Runs in a tier do not differ significantly from its best run.",
            across_sentence(standings.tiers),
        ]
    if standings.baseline or standings.tiers:
        sentences.append(_test(standings))
    if standings.baseline:
        sentences += withheld_pairs(
            row.withheld for row in standings.baseline.rows if row is not None
        )
    return [sentence for sentence in sentences if sentence]


def _test(standings: Standings) -> str:
    query = standings.query
    parts = {"the tiers": standings.tiers, "the marks": standings.baseline}
    sizes = {name: part.family for name, part in parts.items() if part}
    families = " and ".join(f"{size:,} pairs for {name}" for name, size in sizes.items())
    if query.corrected_by is None:
        alike = len(set(sizes.values())) == 1
        corrected = (
            corrected_over(None, max(sizes.values())) if alike else f"accounting for all {families}"
        )
    else:
        corrected = f"{CORRECTION_NAMES[query.correction]} over {families}"
    drawn = f", B = {query.resamples:,}, seed {query.seed}" if TESTS[query.test].draws else ""
    used = f" on {standings.topics} topics" if standings.topics is not None else ""
    names = dict.fromkeys(
        test_name(query.test, baseline=part is standings.baseline)
        for part in parts.values()
        if part
    )
    return f"Test: {'; '.join(names)}{used}, {corrected}, alpha = {query.alpha:g}{drawn}."
