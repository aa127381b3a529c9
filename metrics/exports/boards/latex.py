"""The ranked runs as a LaTeX table in the style of booktabs, which the document must load."""

from __future__ import annotations

from collections.abc import Iterator

from metrics.exports.boards.table import table_of
from metrics.exports.comparisons.latex import written
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.standing_parts import Standings
from runs.models import Collection


def render(
    collection: Collection, board: Leaderboard, standings: Standings | None
) -> Iterator[str]:
    """Render a table environment."""
    return iter([written(table_of(collection, board, standings), collection.slug)])
