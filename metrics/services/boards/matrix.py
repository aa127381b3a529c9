"""The values of several runs by topic, as one table for other programs."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.engine.cautions import Caution
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.selection import select_evaluations
from metrics.services.boards.topic_selection import (
    TopicFilter,
    Topics,
    TopicSelection,
    select_topics,
)
from metrics.services.question import SCORES, Choice, Measures, Question, RunIds, parameter
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.judged_views import matrices_of, matrix_of
from runs.errors import InvalidInput
from runs.models import Collection, Qrels

# A row for each run and topic with a column for each measure, or a row for each topic with a column
# for each run.
LAYOUTS = ("long", "wide")
MAX_RUNS, MAX_VALUES = 1_000, 1_000_000


@dataclass(frozen=True)
class MatrixQuery(Question):
    """The requested values: of these measures, for these runs, or for all of the leaderboard.

    Runs are named by their ids.
    """

    measures: list[Measure] = parameter(
        Measures("measure names separated by commas; default: the collection's own")
    )
    runs: list[str] = parameter(RunIds())
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True)
class MatrixFileQuery(MatrixQuery):
    """The same for a file, with its layout."""

    layout: str = parameter(
        Choice(
            "long: a row for each run and topic; wide: a row for each topic, of one measure",
            default=LAYOUTS[0],
            choices=LAYOUTS,
        )
    )

    def __post_init__(self) -> None:
        if self.layout == "wide" and len(self.measures) > 1:
            message = (
                f"layout=wide is a table of one measure; {len(self.measures)} requested: name "
                "one with measures="
            )
            raise InvalidInput(message, pointer="layout")


@dataclass(frozen=True)
class ValueMatrix:
    """Values by measure, each of shape (runs, topics) and NaN where a run has no value.

    Rows are `evaluations`, in the order of the query or of submission; columns are the topics of
    `qrels`, or those of the `selection`.
    """

    qrels: Qrels
    scores: str
    measures: list[Measure]
    evaluations: list[Evaluation]
    values: dict[str, Matrix]
    selection: TopicSelection | None = None

    @property
    def topic_ids(self) -> list[str]:
        topic_ids: list[str] = self.qrels.topic_ids
        return self.selection.among(topic_ids) if self.selection else topic_ids

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measures on these topics."""
        selected = self.selection.cautions if self.selection else []
        return [*selected, *qrels_cautions(self.measures, self.qrels)]


def read_matrix(*, collection: Collection, query: MatrixQuery) -> ValueMatrix:
    """Return every requested value under the active judgements.

    Values that are not stored are computed.

    Raise StatisticsError for a run that is not evaluated or too many runs, InvalidInput for more
    than MAX_VALUES values.
    """
    qrels = active_qrels(collection)
    scores = query.scores or collection.scores
    selection = select_topics(qrels, query.topics, scores)
    evaluations = select_evaluations(
        collection=collection, qrels=qrels, scores=scores, runs=query.runs, most=MAX_RUNS
    )

    topics = selection.topics if selection else qrels.topics
    requested = len(evaluations) * len(query.measures) * topics
    if requested > MAX_VALUES:
        message = (
            f"{requested:,} values requested (runs: {len(evaluations):,}, measures: "
            f"{len(query.measures)}, topics: {topics:,}); the limit is {MAX_VALUES:,}: use fewer "
            "measures, or name runs with runs="
        )
        raise InvalidInput(message, code="too_many_values", pointer="measures")

    keys = [evaluation.pk for evaluation in evaluations]
    if selection:
        # Under one measure at a time: few of many topics may be selected.
        matrices = [
            matrix_of(keys, measure, qrels)[0][:, selection.selected] for measure in query.measures
        ]
    else:
        matrices = [matrix for matrix, _ in matrices_of(keys, query.measures, qrels)]

    values = {
        measure.name: matrix for measure, matrix in zip(query.measures, matrices, strict=True)
    }
    return ValueMatrix(qrels, scores, query.measures, evaluations, values, selection)
