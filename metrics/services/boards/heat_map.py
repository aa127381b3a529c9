"""Runs against topics: the part of the values of all runs that one picture or one file shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.selection import tested_measures
from metrics.services.boards.topic_selection import TopicFilter, Topics
from metrics.services.boards.topics import TopicValues, ValuedRun, read_topic_values
from metrics.services.question import (
    SCORES,
    Context,
    Integer,
    OneMeasure,
    Question,
    RunId,
    parameter,
)
from runs.errors import InvalidInput
from runs.models import Collection

# The most rows and columns of a picture.
MAX_RUNS, MAX_TOPICS = 200, 250
# The most values of a file.
MAX_CELLS = 1_000_000
# The baseline that is the average of all runs.
MEAN = "mean"


@dataclass(frozen=True)
class _Baseline(RunId):
    """The id of a run, or MEAN."""

    def read(self, text: str, name: str, context: Context) -> str:
        return text if text == MEAN else super().read(text, name, context)


@dataclass(frozen=True)
class HeatQuery(Question):
    """The measure, what is subtracted, and which runs and topics to show.

    The id of a run, MEAN, or nothing is subtracted.
    """

    measure: Measure = parameter(
        OneMeasure("one measure; default: the collection's first", names=tested_measures)
    )
    baseline: str | None = parameter(
        _Baseline(f"what is subtracted: the id of a run, or {MEAN}; default: nothing")
    )
    limit: int = parameter(Integer(f"runs, at most {MAX_RUNS}", default=50, low=1, high=MAX_RUNS))
    offset: int = parameter(Integer("runs to pass over, best first", default=0))
    topic_limit: int = parameter(
        Integer(f"topics, at most {MAX_TOPICS}", default=100, low=1, high=MAX_TOPICS)
    )
    topic_offset: int = parameter(Integer("topics to pass over, the hardest first", default=0))
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True)
class HeatMap:
    """Cells of shape (runs, topics), NaN without a value.

    Runs are as on the leaderboard, and the hardest topics come first.

    With a baseline they are differences from it, which `baseline` describes.
    """

    values: TopicValues
    runs: list[ValuedRun]
    topics: list[int]
    cells: Matrix
    baseline: str

    @property
    def topic_ids(self) -> list[str]:
        return [self.values.topic_ids[topic] for topic in self.topics]


def read_heat_map(*, collection: Collection, query: HeatQuery, whole: bool = False) -> HeatMap:
    """Return the requested part, or with `whole` all runs and topics.

    Raise StatisticsError for a baseline that is not evaluated, or if there is nothing to show.
    """
    values = read_topic_values(
        collection=collection, measure=query.measure, scores=query.scores, topics=query.topics
    )
    rows, topics = list(range(len(values.runs))), values.order("difficulty")
    if whole and len(rows) * len(topics) > MAX_CELLS:
        message = (
            f"{len(rows) * len(topics):,} values; a file has at most {MAX_CELLS:,}: take the values "
            "of some runs instead"
        )
        raise InvalidInput(message, code="too_many_values", pointer="measure")

    if not whole:
        rows = rows[query.offset : query.offset + query.limit]
        topics = topics[query.topic_offset : query.topic_offset + query.topic_limit]

    if not rows or not topics:
        missing = ("evaluated run", "offset") if not rows else ("judged topic", "topic_offset")
        raise StatisticsError(
            f"there is no {missing[0]} to show here", code="nothing_to_draw", pointer=missing[1]
        )

    cells, name = values.values[np.ix_(rows, topics)], ""
    if query.baseline == MEAN:
        cells, name = cells - values.table.mean[topics], "the mean of the runs"
    elif query.baseline:
        place = next(
            (row for row, run in enumerate(values.runs) if str(run.id) == query.baseline), None
        )
        if place is None:
            message = (
                f"run {query.baseline} is not evaluated against the active judgements of "
                f"{collection.slug}"
            )
            raise StatisticsError(message, code="unknown_run", pointer="baseline")
        cells, name = cells - values.values[place, topics], f"that of {values.runs[place].tag}"

    return HeatMap(values, [values.runs[row] for row in rows], topics, cells, name)
