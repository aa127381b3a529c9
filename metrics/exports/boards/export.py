"""Export: a way to write a leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.standing_parts import Standings
from runs.models import Collection

Render = Callable[[Collection, Leaderboard, Standings | None], Iterator[str]]
"""render(collection, all rows of a board, its statistics where they were asked for) -> pieces of text"""


@dataclass(frozen=True)
class Export:
    """A renderer, its content type, and its file extension."""

    render: Render
    content_type: str
    ending: str
