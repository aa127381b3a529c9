"""EXPORTS: the table of a leaderboard for each format of a file."""

from __future__ import annotations

from collections.abc import Callable

from metrics.exports.boards.tables import data_table, paper_table
from metrics.exports.table import Table
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.standing_parts import Standings
from runs.models import Collection

EXPORTS: dict[str, Callable[[Collection, Leaderboard, Standings | None], Table]] = {
    "csv": data_table,
    "md": paper_table,
    "tex": paper_table,
    "trec_eval": paper_table,
}
