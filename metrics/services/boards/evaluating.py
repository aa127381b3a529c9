"""How far the runs of a collection are evaluated under its active judgements."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.models import Evaluation
from metrics.services.boards.asked import active_qrels
from metrics.services.boards.leaderboard import MOVING
from metrics.services.boards.states import count_states
from metrics.services.snapshots import one_snapshot
from runs.models import Collection, Qrels


@dataclass(frozen=True)
class Progress:
    """The progress of evaluating a collection under its active judgements; `states` counts the live runs."""

    qrels: Qrels
    scores: str
    states: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def evaluated(self) -> int:
        return self.states.get(Evaluation.State.EVALUATED, 0)

    @property
    def done(self) -> bool:
        """Return whether no run is queued or being evaluated; failed runs stay failed."""
        return not any(self.states.get(state) for state in MOVING)


def read_progress(*, collection: Collection, scores: str | None = None) -> Progress:
    with one_snapshot():
        qrels = active_qrels(collection)
        scores = scores or collection.scores
        return Progress(qrels, scores, count_states(collection, qrels, scores))
