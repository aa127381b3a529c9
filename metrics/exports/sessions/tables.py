"""Systems as a table for a paper, in Markdown and in LaTeX: a leaderboard, or a comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from metrics.engine.sessions.cautions import UNITS
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import REASONS, TOO_FEW_TOPICS
from metrics.exports.comparisons import latex, markdown
from metrics.exports.comparisons.table import BETTER, WORSE, MeanCell, MeanLine, MeanTable
from metrics.exports.comparisons.words import TEST_NAMES, corrected_over, withheld_pairs
from metrics.services.sessions.board import SessionBoard, SystemRow, system_name
from metrics.services.sessions.comparison import SessionComparison
from metrics.services.sessions.standings import SessionStandings
from metrics.tables import NOTHING, figure
from runs.models import Collection

DESIGN_NAMES = {
    "crossed": "crossed by searchers and topics",
    "paired": "paired by topic and searcher",
    "latin_square": "a Latin square",
    "two_way": "paired by topic",
    "unpaired": "unpaired samples",
}


def board_in_markdown(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> Iterator[str]:
    return iter([markdown.written(board_table(collection, board, standings))])


def board_in_latex(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> Iterator[str]:
    return iter(
        [latex.written(board_table(collection, board, standings), f"{collection.slug}-sessions")]
    )


def comparison_in_markdown(collection: Collection, compared: SessionComparison) -> Iterator[str]:
    return iter([markdown.written(comparison_table(collection, compared))])


def comparison_in_latex(collection: Collection, compared: SessionComparison) -> Iterator[str]:
    return iter(
        [latex.written(comparison_table(collection, compared), f"{collection.slug}-sessions")]
    )


def board_table(
    collection: Collection, board: SessionBoard, standings: SessionStandings | None
) -> MeanTable:
    """Build the table without sets of other judgements; systems with fewer sessions come last, without a rank."""
    rows = [row for row in board.rows if not row.stale]
    query, tiers = board.query, standings.tiers if standings else None
    best = _best(board, rows)
    lines = [_board_line(board, row, best, standings) for row in rows]
    names = {system_name(row.evaluation, row.system): row for row in rows}
    caption = [
        f"Means of {len(board.ranked)} systems of {collection.name}, judged by {board.judged_by}.",
        f"Ranked by {query.sort.name}, {'highest' if query.descending else 'lowest'} first.",
        *(f"{name} has no rank: {row.reason}." for name, row in names.items() if row.rank is None),
        *(f"{caution.message}." for caution in board.cautions),
        "The best of each column is bold.",
    ]
    if standings and standings.baseline:
        caption.append(_marked(standings.baseline, query.sort.name))
    if tiers and tiers.tiers:
        caption.append(
            "Systems in a tier do not differ significantly from its best one; those in different tiers may not either."
        )
    if compared := (tiers or (standings and standings.baseline)):
        caption += _tested(compared)
    return MeanTable(
        [measure.name for measure in query.measures],
        lines,
        caption,
        with_baseline=standings is not None and standings.baseline is not None,
        before=("Rank",),
        after=("Sessions", *(["Tier"] if tiers and tiers.tiers else [])),
        marked=query.sort.name,
        subject="System",
    )


def _best(board: SessionBoard, rows: list[SystemRow]) -> dict[str, str]:
    """Return the best mean of each measure among the ranked systems, as it is written."""
    best = {}
    for measure in board.query.measures:
        means = [row.values[measure.name][0] for row in rows if row.rank is not None]
        known = [mean for mean in means if mean is not None]
        if known:
            best[measure.name] = figure(
                measure, min(known) if measure.lower_is_better else max(known)
            )
    return best


def _board_line(
    board: SessionBoard, row: SystemRow, best: dict[str, str], standings: SessionStandings | None
) -> MeanLine:
    name = system_name(row.evaluation, row.system)
    standing = standings.of(name) if standings and row.rank is not None else None
    against, mark = standings.baseline if standings else None, ""
    if against and standing and standing.pair is not None:
        mark = {1: BETTER, -1: WORSE}.get(against.better(standing.pair), "")
    cells = []
    for measure in board.query.measures:
        text = figure(measure, row.values[measure.name][0])
        is_best = row.rank is not None and text == best.get(measure.name)
        cells.append(MeanCell(text, is_best, mark if measure == board.query.sort else ""))
    baseline = bool(against and standing and standing.pair is None)
    after = [f"{row.sessions}"]
    if standings and standings.tiers and standings.tiers.tiers:
        after.append(str(standing.tier) if standing else NOTHING)
    return MeanLine(
        name, baseline, cells, (NOTHING if row.rank is None else str(row.rank),), tuple(after)
    )


def comparison_table(collection: Collection, compared: SessionComparison) -> MeanTable:
    """Build the table of compared systems, best first: their means with marks, and how many sessions have a value."""
    measure, baseline = compared.query.measure, compared.pairs.baseline
    letters = letters_of(compared.tiers) if compared.tiers else None
    marks = dict(enumerate(letters or []))
    if baseline is not None:
        others = compared.pairs.indices()[0].tolist()
        said = {1: BETTER, -1: WORSE}
        marks = {
            place: said[way] for at, place in enumerate(others) if (way := compared.better(at))
        }
    texts = [figure(measure, system.mean) for system in compared.systems]
    caption = [
        f"Means of {len(texts)} systems of {collection.name}, judged by {compared.judged_by}.",
        "The best is bold.",
    ]
    if baseline is not None:
        caption.append(_marked(compared, measure.name))
    elif letters:
        caption.append("Systems that share a letter do not differ significantly.")
    return MeanTable(
        [measure.name],
        [
            MeanLine(
                system.name, place == baseline, [MeanCell(texts[place], place == 0, marks.get(place, ""))],
                after=(f"{system.with_value}",),
            )
            for place, system in enumerate(compared.systems)
        ],
        [*caption, *_tested(compared)],
        with_baseline=baseline is not None,
        after=("Sessions",),
        subject="System",
    )  # fmt: skip


def _marked(compared: SessionComparison, measure: str) -> str:
    baseline = compared.systems[compared.pairs.baseline or 0].name
    return f"Marked by {measure} are systems that are significantly better (up) or worse (down) than {baseline}."


def _tested(compared: SessionComparison) -> list[str]:
    """Return the design, the test and the number of pairs without a verdict, in sentences."""
    query = compared.query
    drawn = (
        f", B = {query.options.resamples:,}, seed {query.options.seed}" if compared.draws else ""
    )
    corrected = corrected_over(compared.correction, compared.family)
    unit = "sessions" if compared.design == "unpaired" else UNITS[compared.design]
    sentences = [
        f"Design: {DESIGN_NAMES[compared.design]}, {compared.cells:,} {unit}.",
        f"Test: {TEST_NAMES[compared.test]}, {corrected}, alpha = {query.rule.alpha:g}{drawn}.",
    ]
    if compared.verdicts.have(TOO_FEW_TOPICS).any():
        unit = (
            min((one.fewest, one.fewest_are) for one in compared.crossings)[1]
            if compared.crossed
            else unit
        )
        return [*sentences, f"No verdicts: {unit} are too few to tell a difference from chance."]
    return [
        *sentences,
        *withheld_pairs(
            REASONS[reason] for reason in np.asarray(compared.verdicts.withheld).tolist()
        ),
    ]
