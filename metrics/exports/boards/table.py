"""A leaderboard as a table for a paper: the ranked runs, a column of means for each measure, marks for one of them."""

from __future__ import annotations

from metrics.engine.grammar import Measure
from metrics.engine.significance import TESTS
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.comparisons.table import MeanCell, MeanLine, MeanTable
from metrics.exports.comparisons.words import CORRECTION_NAMES, TEST_NAMES, corrected_over, too_few, withheld_pairs
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.standings import Standings
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import NOTHING, figure
from runs.models import Collection, Run


def table_of(collection: Collection, board: Leaderboard, standings: Standings | None) -> MeanTable:
    """Runs without a rank are left out: their figures are of other judgements, or there are none."""
    rows = [row for row in board.rows if row.rank is not None]
    names = names_of([row.run for row in rows])
    best = {measure.name: _best(rows, measure) for measure in board.measures}
    return MeanTable(
        [measure.name for measure in board.measures],
        [_line(board, row, names[row.run], best, standings) for row in rows],
        _caption(collection, board, standings, names),
        with_baseline=standings is not None and standings.baseline is not None,
        before=("Rank",),
        after=("Tier",) if standings and standings.tiers else (),
        marked=board.sort.name,
    )


def _line(board: Leaderboard, row: Row, name: str, best: dict[str, str], standings: Standings | None) -> MeanLine:
    texts = {measure.name: figure(measure, row.values[measure.name][0]) for measure in board.measures}
    mark = _mark(row, standings)
    cells = [
        MeanCell(text, text == best[known], mark if known == board.sort.name else "") for known, text in texts.items()
    ]
    baseline = standings is not None and str(row.run.pk) == standings.query.baseline
    return MeanLine(name, baseline, cells, before=(str(row.rank),), after=_tier(row, standings))


def _best(rows: list[Row], measure: Measure) -> str:
    """The text of the best mean of a column: whoever has the same text is as good."""
    means = [mean for row in rows if (mean := row.values[measure.name][0]) is not None]
    choose = min if measure.definition.lower_is_better else max
    return figure(measure, choose(means)) if means else ""


def _mark(row: Row, standings: Standings | None) -> str:
    standing = standings.of(row.evaluation.pk) if standings else None
    return (standing and standing.baseline and standing.baseline.mark) or ""


def _tier(row: Row, standings: Standings | None) -> tuple[str, ...]:
    if standings is None or standings.tiers is None:
        return ()
    standing = standings.of(row.evaluation.pk)
    return (str(standing.tier) if standing else NOTHING,)


def _caption(
    collection: Collection, board: Leaderboard, standings: Standings | None, names: dict[Run, str]
) -> list[str]:
    """What a reader needs to know of the figures, one sentence each."""
    source = f"{collection.name} (qrels version {board.qrels.version})"
    shown = f"{len(names)}" if len(names) == board.ranked else f"{len(names)} of {board.ranked}"
    first = "highest" if board.descending else "lowest"
    sentences = [
        f"Means of {shown} runs of {source} on {board.qrels.topics} topics.",
        f"Ranked by {board.sort.name}, {first} first{'' if len(names) == board.ranked else ', among all runs'}.",
        "The best of each column is bold.",
    ]
    return [*sentences, *(_statistics(board, standings, names) if standings else [])]


def _statistics(board: Leaderboard, standings: Standings, names: dict[Run, str]) -> list[str]:
    sentences = []
    if standings.topics is not None and standings.topics < MIN_TOPICS:
        return [too_few(standings.topics)]
    if standings.baseline and not all(row.withheld for row in standings.baseline.rows if row is not None):
        baseline = next(
            (name for run, name in names.items() if str(run.pk) == standings.query.baseline), "the baseline"
        )
        sentences.append(
            f"Marked by {board.sort.name} are runs that are significantly better (up) or worse (down) than {baseline}."
        )
    if standings.tiers:
        sentences.append(
            "In a tier the test separates no run from the best one of it; runs of different tiers need not differ."
        )
    if standings.baseline or standings.tiers:
        sentences.append(_test(standings))
    if standings.baseline:
        sentences += withheld_pairs(row.withheld for row in standings.baseline.rows if row is not None)
    return sentences


def _test(standings: Standings) -> str:
    query = standings.query
    parts = {"the tiers": standings.tiers, "the marks": standings.baseline}
    sizes = {name: part.family for name, part in parts.items() if part}
    if query.corrected_by is None:
        corrected = corrected_over(None, max(sizes.values()))
    else:
        families = " and ".join(f"{size:,} pairs for {name}" for name, size in sizes.items())
        corrected = f"{CORRECTION_NAMES[query.correction]} over {families}"
    drawn = f", B = {query.resamples:,}, seed {query.seed}" if TESTS[query.test].draws else ""
    used = f" on {standings.topics} topics" if standings.topics is not None else ""
    return f"Test: {TEST_NAMES[query.test]}{used}, {corrected}, alpha = {query.alpha:g}{drawn}."
