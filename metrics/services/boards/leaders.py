"""The first runs of a leaderboard, for readers who choose among leaderboards."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from uuid import UUID

from metrics.engine.errors import EvalHubError
from metrics.services.answer_store import keep, recall
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import read_leaderboard
from metrics.services.boards.mean_intervals import Ends, mean_intervals, within_range
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.snapshots import read_in_snapshot, revision_in_snapshot
from runs.models import Collection

LEADERS = 3


@dataclass(frozen=True)
class Leader:
    """A run among the first of a leaderboard, and the interval of its mean if it has one."""

    rank: int
    run: UUID
    tag: str
    mean: float | None
    interval: Ends | None


@dataclass(frozen=True)
class Leaders:
    """The first runs of a leaderboard by one measure.

    `ranked` and `topics` count those of the whole leaderboard.
    """

    measure: str
    ranked: int
    topics: int
    runs: tuple[Leader, ...]
    confidence: float


def read_leaders(collection: Collection) -> Leaders | None:
    """Return the first runs of a leaderboard as its page ranks them, or None if it ranks none.

    Call this only for a collection that is open to all of its readers, to whom all of its values
    are the same. The result is kept until the collection changes.
    """

    def read() -> Leaders | None:
        key = f"leaders {collection.pk} {revision_in_snapshot(collection.pk).changes}"
        if leaders := recall(key):
            return leaders  # type: ignore[no-any-return]

        since = time.monotonic()
        leaders = _read_leaders(collection)
        keep(key, leaders, took=time.monotonic() - since)

        return leaders

    try:
        return read_in_snapshot(read)
    except EvalHubError:
        # The page of the leaderboard says what is wrong.
        return None


def _read_leaders(collection: Collection) -> Leaders | None:
    question = BoardQuery.read({"limit": str(LEADERS)}, collection)
    question = replace(question, measures=[question.sort])
    board = read_leaderboard(collection=collection, query=question)
    confidence = StandingsQuery.read({}).confidence
    intervals = within_range(mean_intervals(board, confidence), board.sort)

    runs = tuple(
        Leader(
            rank=row.rank,
            run=row.run.pk,
            tag=row.run.tag,
            mean=row.values[board.sort.name][0],
            interval=intervals.get(row.evaluation.pk),
        )
        for row in board.rows
        if row.rank is not None
    )
    return Leaders(board.sort.name, board.ranked, board.topics, runs, confidence) if runs else None
