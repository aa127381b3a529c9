"""How far the runs of a collection are evaluated under a version of its judgements."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.models import Evaluation
from metrics.services.boards.board_question import (
    active_qrels,
    computing_measures,
    count_lacking,
    qrels_version,
)
from metrics.services.boards.leaderboard import MOVING
from metrics.services.boards.states import count_states
from metrics.services.question import SCORES, VERSION, Question, parameter
from metrics.services.snapshots import one_snapshot
from runs.models import Collection, Qrels


@dataclass(frozen=True)
class ProgressQuery(Question):
    """The parameters of the progress: a score precision, and a version of the judgements."""

    scores: str | None = parameter(SCORES)
    version: int | None = parameter(VERSION)


@dataclass(frozen=True)
class Progress:
    """The progress of evaluating a collection under a version of its judgements.

    `states` counts the live runs, and `computing` the evaluated ones that lack a measure
    because the collection's measures were changed.
    """

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


def read_progress(*, collection: Collection, query: ProgressQuery) -> Progress:
    """Return how far the runs are evaluated under the active judgements, or under another version.

    Raise NotFound if no version is active, or the named one does not exist.
    """
    with one_snapshot():
        version = query.version
        qrels = qrels_version(collection, version) if version else active_qrels(collection)
        scores = query.scores or collection.scores
        return Progress(
            qrels=qrels,
            scores=scores,
            states=count_states(collection, qrels, scores),
            computing=count_lacking(
                Evaluation.objects.current(qrels, scores).evaluated(),
                computing_measures(collection, qrels),
            ),
        )
