"""Export: a way to write a leaderboard of systems, and a comparison of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metrics.services.sessions.board import SessionBoard
from metrics.services.sessions.comparison import SessionComparison
from metrics.services.sessions.standings import SessionStandings
from runs.models import Collection

RenderBoard = Callable[[Collection, SessionBoard, SessionStandings | None], Iterator[str]]
"""render(collection, all rows of a leaderboard, its statistics if they were requested) -> pieces of text"""

RenderComparison = Callable[[Collection, SessionComparison], Iterator[str]]
"""render(collection, comparison) -> pieces of text"""


@dataclass(frozen=True)
class Export:
    """The renderers of a format and the content type of what they write."""

    board: RenderBoard
    comparison: RenderComparison
    content_type: str
