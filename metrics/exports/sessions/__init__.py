"""BOARD_EXPORTS, COMPARISON_EXPORTS: the table of systems of sessions for each format of a file."""

from __future__ import annotations

from collections.abc import Callable

from metrics.exports.sessions.tables import (
    board_data_table,
    board_table,
    comparison_table,
    pairs_table,
)
from metrics.exports.table import Table
from metrics.services.sessions.board import SessionBoard
from metrics.services.sessions.comparison import SessionComparison
from metrics.services.sessions.standings import SessionStandings
from runs.models import Collection

BOARD_EXPORTS: dict[str, Callable[[Collection, SessionBoard, SessionStandings | None], Table]] = {
    "csv": board_data_table,
    "md": board_table,
    "tex": board_table,
}
COMPARISON_EXPORTS: dict[str, Callable[[Collection, SessionComparison], Table]] = {
    "csv": pairs_table,
    "md": comparison_table,
    "tex": comparison_table,
}
