"""How far the runs of a collection are evaluated under its active judgements."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels, computing_measures, count_lacking
from metrics.services.boards.leaderboard import MOVING
from metrics.services.boards.states import count_states
from metrics.services.snapshots import one_snapshot
from runs.models import Collection, Qrels


@dataclass(frozen=True)
class Progress:
    """The progress of evaluating a collection under its active judgements; `states` counts the live
    runs, and `computing` the evaluated ones that lack a measure because the collection's measures
    were changed."""

    qrels: Qrels
    scores: str
    states: dict[str, int]
    computing: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def evaluated(self) -> int:
        return self.states.get(Evaluation.State.EVALUATED, 0)

    @property
    def done(self) -> bool:
        """Return whether nothing is queued or under way; failed runs stay failed."""
        return not self.computing and not any(self.states.get(state) for state in MOVING)


def read_progress(*, collection: Collection, scores: str | None = None) -> Progress:
    with one_snapshot():
        qrels = active_qrels(collection)
        scores = scores or collection.scores
        return Progress(
            qrels=qrels,
            scores=scores,
            states=count_states(collection, qrels, scores),
            computing=count_lacking(
                Evaluation.objects.current(qrels, scores).evaluated(),
                computing_measures(collection, qrels),
            ),
        )
