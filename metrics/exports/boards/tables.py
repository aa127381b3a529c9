"""A leaderboard as tables: every row at full precision, and the current runs for a paper."""

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
from metrics.exports.table import Cell, Column, Row, Table, listed_baselines, marks_of_several
from metrics.services.boards import leaderboard
from metrics.services.boards.board_question import DECIMALS
from metrics.services.boards.columns import shown_value
from metrics.services.boards.entries import OFFICIAL
from metrics.services.boards.leaderboard import EntryCounts, Leaderboard
from metrics.services.boards.standing_parts import Contrast, Standings
from metrics.services.boards.versions import ALL, BEST, CAPTIONS
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, aggregated, best_means, direction_of, mean_cell
from runs.models import Collection, Run

_AGAINST = (
    "difference", "low", "high", "relative", "statistic", "p_value", "p_adjusted", "mark",
    "withheld", "wins", "ties", "losses",
)  # fmt: skip
_ON_JUDGED = ("difference", "low", "high", "p_value", "p_adjusted")


def data_table(collection: Collection, board: Leaderboard, standings: Standings | None) -> Table:
    """Build the table of all rows of the leaderboard, with the inputs of their figures."""
    inputs = {
        "collection": collection.slug,
        "scores": board.scores,
        **({"topics_filter": board.selection.text} if board.selection else {}),
        **(_inputs(standings) if standings else {}),
    }
    for measure in board.measures:
        if measure.aggregate_name != "mean":
            inputs[f"{measure.name} aggregate"] = measure.aggregate_name

    records = (
        {
            **_run(board, row),
            **row.extra,
            **_entry(row),
            **_version(board, row),
            **_values(row, standings),
            **_groups(board, row),
            **_replicates(board, row),
            **{column.name: row.cells.get(column.name) for column in board.columns},
            **_standing(row, standings),
            **inputs,
        }
        for row in board.rows
    )
    return Table.of_records(collection.slug, records)


def _run(board: Leaderboard, row: leaderboard.Row) -> dict[str, Any]:
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
        **(
            {"judged_by": evaluation.qrels.authors}
            if board.qrels.authors or any(other.evaluation.qrels.authors for other in board.rows)
            else {}
        ),
    }


def _entry(row: leaderboard.Row) -> dict[str, Any]:
    """Return the entry of the run and its phase, on a collection with phases."""
    entry = row.entry
    if entry is None:
        return {}

    return {
        "entry_status": entry.status,
        "entry_phase": entry.place,
        "entry_number": entry.number,
    }


def _version(board: Leaderboard, row: leaderboard.Row) -> dict[str, Any]:
    """Return the version of the row on a leaderboard of systems, and the number of versions.

    The best version has its expected mean on other topics, too.
    """
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
    if board.versions == BEST:
        version["expected_best"] = chosen and chosen.expected

    return version


def _groups(board: Leaderboard, row: leaderboard.Row) -> dict[str, Any]:
    """Return the mean in each group of topics, and its number of topics."""
    values: dict[str, Any] = {}
    means = row.groups or ((None, 0),) * len(board.groups)
    for group, (mean, topics) in zip(board.groups, means, strict=True):
        name = f"{board.sort.name} {board.by}:{group.name}"
        values |= {name: mean, f"{name} topics": topics}

    return values


def _replicates(board: Leaderboard, row: leaderboard.Row) -> dict[str, Any]:
    """Return the number of replicates and their spread, where a run of the table has some."""
    if not any(other.spread for other in board.rows):
        return {}

    spread = row.spread
    return {
        "replicates": spread and spread.replicates,
        f"{board.sort.name} replicates sd": spread and spread.deviation,
        f"{board.sort.name} replicates lowest": spread and spread.lowest,
        f"{board.sort.name} replicates highest": spread and spread.highest,
    }


def _values(row: leaderboard.Row, standings: Standings | None) -> dict[str, Any]:
    """Return the mean of each measure, its number of topics, and its interval if requested."""
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

    baselines = len(standings.baseline.rows) if standings.baseline else 0
    for place in range(baselines):
        prefix = f"baseline_{place + 1}" if baselines > 1 else "baseline"
        row_against = standing.against[place] if standing else None
        against = asdict(row_against) if row_against else {}
        columns |= {f"{prefix}_{name}": against.get(name) for name in _AGAINST}
        on_judged = against.get("on_judged") or {}
        columns |= {f"{prefix}_on_judged_{name}": on_judged.get(name) for name in _ON_JUDGED}

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
        "baseline": ",".join(query.baselines) or None,
    }


def paper_table(
    collection: Collection,
    board: Leaderboard,
    standings: Standings | None,
    decimals: int = DECIMALS,
) -> Table:
    """Build the table of the runs under the current judgements, with a column for each measure.

    The measure that sorts has marks. Runs on fewer topics come last, without a rank. `decimals` are
    those of means; counts have none.
    """
    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])

    against = standings is not None and standings.baseline and len(standings.baseline.rows) == 1
    columns = [Column("rank", "Rank"), Column("run", "Run", head=True)]
    for measure in board.measures:
        with_marks = bool(against) and measure == board.sort
        columns.append(Column(measure.name, direction=direction_of(measure), with_marks=with_marks))

    columns += [
        Column(f"{board.by}:{group.name}", direction=direction_of(board.sort))
        for group in board.groups
    ]
    if board.versions != ALL:
        columns.append(Column("of", "Versions"))

    with_spread = any(row.spread for row in rows)
    if with_spread:
        columns.append(Column("replicates", "Replicates"))

    columns += [Column(column.name, column.title, column.unit) for column in board.columns]
    if standings and standings.tiers:
        columns.append(Column("tier", "Tier"))

    best = best_means(rows, board.measures)
    values = [_paper_row(board, row, names[row.run], best, standings, decimals) for row in rows]
    notes = _notes(collection, board, standings, rows, names)

    return Table(collection.slug, columns, values, notes)


def _paper_row(
    board: Leaderboard,
    row: leaderboard.Row,
    name: str,
    best: dict[str, tuple[str, int]],
    standings: Standings | None,
    decimals: int,
) -> Row:
    standing = standings.of(row.evaluation.pk) if standings else None
    marks = [(against and against.mark) or "" for against in standing.against] if standing else []
    mark = marks_of_several(marks) if len(marks) > 1 else "".join(marks)

    cells = []
    for measure in board.measures:
        best_mean = best.get(measure.name) if row.rank is not None else None
        cell = mean_cell(measure, row.values[measure.name], board.judged_topics, best_mean)
        cell = _with_decimals(cell, measure, decimals)
        cells.append(replace(cell, mark=mark if measure == board.sort else ""))

    means = row.groups or ((None, 0),) * len(board.groups)
    for group, mean in zip(board.groups, means, strict=True):
        cell = mean_cell(board.sort, mean, group.topics, None)
        cells.append(_with_decimals(cell, board.sort, decimals))

    values: list[Any] = [NOTHING if row.rank is None else row.rank, name, *cells]
    if board.versions != ALL:
        values.append(f"of {row.chosen.of}" if row.chosen else NOTHING)

    if any(other.spread for other in board.rows if other.current):
        values.append(row.spread.text if row.spread else NOTHING)

    values += [shown_value(row.cells[column.name]) or NOTHING for column in board.columns]
    if standings and standings.tiers:
        values.append(standing.tier if standing else NOTHING)

    return Row(
        values,
        baseline=standings is not None and str(row.run.pk) in standings.query.baselines,
        marked=standings is not None and standings.is_marked(row.evaluation.pk),
    )


def _with_decimals(cell: Cell, measure: Measure, decimals: int) -> Cell:
    if cell.value is None:
        return cell
    if measure.definition.aggregate is Aggregate.SUM:
        # Counts are whole numbers, as trec_eval prints them.
        return replace(cell, value=round(cell.value))
    return cell if decimals == DECIMALS else replace(cell, text=f"{cell.value:.{decimals}f}")


def _notes(
    collection: Collection,
    board: Leaderboard,
    standings: Standings | None,
    rows: list[leaderboard.Row],
    names: dict[Run, str],
) -> list[str]:
    """Return what a reader needs to know about the numbers, one sentence each."""
    source = f"{collection.name} ({board.qrels.full_name})"
    ranked = [row for row in rows if row.rank is not None]
    whole = len(ranked) == board.ranked
    count = f"{len(ranked)}" if whole else f"{len(ranked)} of {board.ranked}"
    first = "highest" if board.descending else "lowest"
    among = "" if whole else ", among all runs"

    others = {
        measure.name: aggregated(measure)
        for measure in board.measures
        if aggregated(measure) != "means"
    }
    kind = "Values" if others else "Means"
    selected = f", selected by {board.selection.text}" if board.selection else ""
    sentences = [
        f"{kind} of {count} runs of {source} on {board.judged_topics} topics{selected}.",
        *([_entries_sentence(board.entries)] if board.entries else []),
        *([CAPTIONS[board.versions]] if board.versions != ALL else []),
        *(f"{name}: {aggregate}." for name, aggregate in others.items()),
        *_fewer_topics(board, ranked),
        f"Ranked by {board.sort.name}, {first} first{among}.",
        *([_groups_sentence(board)] if board.groups else []),
        *_replicates_sentence(board, rows),
        *([f"Rows in the order of {board.arrange.column.title}."] if board.arrange else []),
        *(f"{names[row.run]} has no rank: {row.reason}." for row in rows if row.rank is None),
        *(f"{caution.message}." for caution in board.cautions),
    ]
    if board.waiting:
        sentences.append(f"Provisional: {board.progress}.")

    sentences.append("The best of each column is bold.")
    if standings:
        sentences += _statistics(board, standings, names)

    return sentences


def _groups_sentence(board: Leaderboard) -> str:
    sizes = ", ".join(f"{group.name} ({group.topics:,})" for group in board.groups)
    return (
        f"Columns of {board.by} have {board.sort.name} on the topics of each group that have a "
        f"value; topics of each group: {sizes}."
    )


def _entries_sentence(counts: EntryCounts) -> str:
    """Return a sentence on the runs that are ranked, on a collection with phases."""
    others = f"{counts.others:,} other run{'s' * (counts.others != 1)}"
    if counts.shown == OFFICIAL:
        are = "is" if counts.others == 1 else "are"
        return f"Official entries alone; {others} of the collection {are} left out."

    return (
        f"{counts.official:,} official entries and {others}; those that were withdrawn or "
        "disqualified have no rank."
    )


def _replicates_sentence(board: Leaderboard, rows: list[leaderboard.Row]) -> list[str]:
    if not any(row.spread for row in rows):
        return []
    return [
        "Values of a run with replicates are means over these for each topic; beside their number "
        f"is the standard deviation of their {board.sort.name}."
    ]


def _fewer_topics(board: Leaderboard, ranked: list[leaderboard.Row]) -> list[str]:
    """Return a sentence for each measure that has values on some topics only."""
    sentences = []
    for measure in board.measures:
        counts = {row.values[measure.name][1] for row in ranked}
        if counts - {board.judged_topics}:
            span = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
            bold = ", bold is the best on the most" if len(counts) > 1 else ""
            sentences.append(f"{measure.name} has values on {span} topics{bold}.")

    return sentences


def best_of(board: Leaderboard, standings: Standings | None) -> str:
    """Return a sentence on the runs that can be the best; empty without statistics."""
    if standings is None:
        return ""

    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])
    return best_sentence(standings, {row.evaluation.pk: names[row.run] for row in rows})


def _statistics(board: Leaderboard, standings: Standings, names: dict[Run, str]) -> list[str]:
    """Return the sentences on marks, tiers and their test."""
    if standings.topics is not None and standings.topics < MIN_TOPICS:
        return [too_few(standings.topics)]

    sentences = []
    against = standings.baseline
    withheld = [row.withheld for rows in against.rows for row in rows if row] if against else []
    if against and not all(withheld):
        by_id = {str(run.pk): name for run, name in names.items()}
        baselines = [by_id.get(run, "the baseline") for run in standings.query.baselines]
        sentences.append(
            f"Marked by {board.sort.name} are runs that are significantly better (up) or worse "
            f"(down) than {listed_baselines(baselines)}."
        )

    if standings.tiers:
        sentences += [
            best_of(board, standings),
            "Runs in a tier do not differ significantly from its best run.",
            across_sentence(standings.tiers),
        ]

    if against or standings.tiers:
        sentences.append(_test(standings))

    sentences += withheld_pairs(withheld)

    return [sentence for sentence in sentences if sentence]


def _test(standings: Standings) -> str:
    query = standings.query
    parts = {"the tiers": standings.tiers, "the marks": standings.baseline}
    sizes = {name: part.family for name, part in parts.items() if part}
    families = " and ".join(f"{size:,} pairs for {name}" for name, size in sizes.items())

    if query.corrected_by is not None:
        correction = f"{CORRECTION_NAMES[query.correction]} over {families}"
    elif len(set(sizes.values())) == 1:
        correction = corrected_over(None, max(sizes.values()))
    else:
        correction = f"accounting for all {families}"

    resamples = f", B = {query.resamples:,}, seed {query.seed}" if TESTS[query.test].draws else ""
    topics = f" on {standings.topics} topics" if standings.topics is not None else ""
    names = dict.fromkeys(
        test_name(query.test, baseline=isinstance(part, Contrast) and part.pairs.are_some)
        for part in parts.values()
        if part
    )

    return f"Test: {'; '.join(names)}{topics}, {correction}, alpha = {query.alpha:g}{resamples}."
