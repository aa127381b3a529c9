"""A leaderboard as a table for a paper: the ranked runs, a column of means for each measure, marks for one of them."""

from __future__ import annotations

from metrics.engine.significance import TESTS
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.boards.entries import entries_sentence
from metrics.exports.boards.words import across_sentence, best_sentence
from metrics.exports.comparisons.table import MeanCell, MeanLine, MeanTable
from metrics.exports.comparisons.words import (
    CORRECTION_NAMES,
    corrected_over,
    test_name,
    too_few,
    withheld_pairs,
)
from metrics.services.boards.columns import shown_value
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.standing_parts import Standings
from metrics.services.boards.versions import ALL, CAPTIONS
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.values.judged_views import Mean
from metrics.tables import NOTHING, aggregated, best_means, mean_cell
from runs.models import Collection, Run


def table_of(collection: Collection, board: Leaderboard, standings: Standings | None) -> MeanTable:
    """Build the table without runs of other judgements; runs on fewer topics come last, without a rank."""
    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])
    best = best_means(rows, board.measures)
    return MeanTable(
        [measure.name for measure in board.measures],
        [_line(board, row, names[row.run], best, standings) for row in rows],
        _caption(collection, board, standings, rows, names),
        with_baseline=standings is not None and standings.baseline is not None,
        before=("Rank",),
        after=(
            *(() if board.versions == ALL else ("Versions",)),
            *(column.heading for column in board.columns),
            *(("Tier",) if standings and standings.tiers else ()),
        ),
        marked=board.sort.name,
    )


def _line(
    board: Leaderboard, row: Row, name: str, best: dict[str, Mean], standings: Standings | None
) -> MeanLine:
    standing = standings.of(row.evaluation.pk) if standings else None
    mark = (standing and standing.baseline and standing.baseline.mark) or ""
    cells = []
    for measure in board.measures:
        to_reach = best.get(measure.name) if row.rank is not None else None
        cell = mean_cell(measure, row.values[measure.name], board.qrels.topics, to_reach)
        cells.append(MeanCell(cell.text, cell.best, mark if measure == board.sort else ""))
    baseline = standings is not None and str(row.run.pk) == standings.query.baseline
    before = NOTHING if row.rank is None else str(row.rank)
    of = f"of {row.chosen.of}" if row.chosen else NOTHING
    after: tuple[str, ...] = () if board.versions == ALL else (of,)
    after += tuple(shown_value(row.cells[column.name]) or NOTHING for column in board.columns)
    if standings is not None and standings.tiers is not None:
        after += (str(standing.tier) if standing else NOTHING,)
    marked = standings is not None and standings.is_marked(row.evaluation.pk)
    return MeanLine(name, baseline, cells, before=(before,), after=after, marked=marked)


def _caption(
    collection: Collection,
    board: Leaderboard,
    standings: Standings | None,
    rows: list[Row],
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
        *([entries_sentence(board.entries)] if board.entries else []),
        *([CAPTIONS[board.versions]] if board.versions != ALL else []),
        *(f"{name}: {kind}." for name, kind in others.items()),
        *_fewer_topics(board, ranked),
        f"Ranked by {board.sort.name}, {first} first{'' if len(ranked) == board.ranked else ', among all runs'}.",
        *([f"Rows in the order of {board.arrange.column.title}."] if board.arrange else []),
        *(f"{names[row.run]} has no rank: {row.reason}." for row in rows if row.rank is None),
        *(f"{caution.message}." for caution in board.cautions),
    ]
    if board.waiting:
        done, runs = board.states.get("evaluated", 0), sum(board.states.values())
        sentences.append(f"Provisional: {done} of {runs} runs are evaluated.")
    return [
        *sentences,
        "The best of each column is bold.",
        *(_statistics(board, standings, names) if standings else []),
    ]


def _fewer_topics(board: Leaderboard, ranked: list[Row]) -> list[str]:
    """Return for each measure that has no value for some topics, how many its values in the table are of."""
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
    """Return which runs can be the best, the first statement about a leaderboard; empty without statistics."""
    if standings is None:
        return ""
    names = names_of([row.run for row in board.rows if row.current])
    return best_sentence(
        standings, {row.evaluation.pk: names[row.run] for row in board.rows if row.current}
    )


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
