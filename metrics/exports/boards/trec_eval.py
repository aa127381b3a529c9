"""The figures of the evaluated runs in trec_eval's own lines: for each run its name, then every measure."""

from __future__ import annotations

from collections.abc import Iterator

from metrics.engine.measures.definition import Aggregate
from metrics.engine.trec_eval.columns import Column, Value
from metrics.exports.sheet import Sheet
from metrics.exports.values.trec_eval import render as render_sheets
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.standing_parts import Standings
from metrics.services.comparisons.shown_pairs import names_of
from runs.models import Collection


def render(
    collection: Collection, board: Leaderboard, standings: Standings | None
) -> Iterator[str]:
    """Yield one piece for each run, without statistics."""
    rows = [row for row in board.rows if row.current]
    names = names_of([row.run for row in rows])
    sheets = (Sheet(names[row.run], [], _columns(board, row, names[row.run])) for row in rows)
    return render_sheets(sheets, by_topic=False, summary=True)


def _columns(board: Leaderboard, row: Row, name: str) -> list[Column]:
    columns = [Column("runid", None, name)]
    for measure in board.measures:
        value: Value = row.values[measure.name][0]
        # Counts are whole numbers, as trec_eval prints them.
        if measure.definition.aggregate is Aggregate.SUM and isinstance(value, float):
            value = round(value)
        columns.append(Column(measure.name, None, value))
    return columns
