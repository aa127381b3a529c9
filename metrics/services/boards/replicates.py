"""How far the replicates of a run are apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from metrics.services.values.judged_views import means_of
from metrics.services.values.replicates import replicates_by_run

if TYPE_CHECKING:
    from metrics.services.boards.board_question import BoardQuestion


@dataclass(frozen=True)
class Spread:
    """The number of replicates of a run, and the spread of their means under one measure.

    `deviation` is the standard deviation, None for a single replicate. All are None where a
    replicate has no mean.
    """

    replicates: int
    deviation: float | None = None
    lowest: float | None = None
    highest: float | None = None

    @property
    def text(self) -> str:
        """Return the number of replicates and the standard deviation of their means."""
        if self.deviation is None:
            return f"{self.replicates}"
        return f"{self.replicates} (sd {self.deviation:.4f})"


def read_spreads(board: BoardQuestion, evaluation_ids: Iterable[int]) -> dict[int, Spread]:
    """Return the spread of those of these evaluations whose runs have replicates.

    It is that under the measure which ranks the runs of the leaderboard, on its topics.
    """
    measure = board.query.sort
    replicates = replicates_by_run(evaluation_ids)
    # One that is being evaluated anew has no mean, and the row keeps its own until then.
    keys = [
        replicate.evaluation
        for theirs in replicates.values()
        for replicate in theirs
        if replicate.evaluation and replicate.is_evaluated
    ]
    if not keys:
        return {pk: Spread(len(theirs)) for pk, theirs in replicates.items()}

    if board.selection:
        means = board.selection.means_of(keys, [measure], board.qrels, board.computing)
    else:
        means = means_of(keys, [measure], board.qrels.pk, board.computing)

    spreads = {}
    for pk, theirs in replicates.items():
        values = [
            means.get((replicate.evaluation or 0, measure.name), (None, 0))[0]
            for replicate in theirs
        ]
        defined = [value for value in values if value is not None]
        spreads[pk] = Spread(len(theirs))
        if len(defined) == len(theirs):
            deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
            spreads[pk] = Spread(len(theirs), deviation, min(defined), max(defined))

    return spreads
