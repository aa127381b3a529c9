"""The ranked runs as a Markdown table with its caption below."""

from __future__ import annotations

from collections.abc import Iterator

from metrics.exports.boards.table import table_of
from metrics.exports.comparisons.markdown import written
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.standing_parts import Standings
from runs.models import Collection


def render(
    collection: Collection, board: Leaderboard, standings: Standings | None
) -> Iterator[str]:
    """Yield the table, an empty line and the caption."""
    return iter([written(table_of(collection, board, standings))])
