"""EXPORTS: how a leaderboard of systems and a comparison of them are written as files, a line for each format."""

from __future__ import annotations

from metrics.exports.sessions import comma_separated, tables
from metrics.exports.sessions.export import Export

EXPORTS: dict[str, Export] = {
    "csv": Export(
        comma_separated.render_board, comma_separated.render_comparison, "text/csv; charset=utf-8"
    ),
    "md": Export(
        tables.board_in_markdown, tables.comparison_in_markdown, "text/markdown; charset=utf-8"
    ),
    "tex": Export(
        tables.board_in_latex, tables.comparison_in_latex, "application/x-tex; charset=utf-8"
    ),
}
