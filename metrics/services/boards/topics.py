"""Compare topics over all runs of a leaderboard: difficulty, and what every run reaches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np

from metrics.engine.agreement.discordance import discordance
from metrics.engine.agreement.standings import standings
from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.cautions import Caution
from metrics.engine.errors import StatisticsError
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels, ranked_evaluations
from metrics.services.boards.fair_order import fair_order
from metrics.services.boards.selection import tested_measures
from metrics.services.boards.topic_selection import (
    TopicFilter,
    Topics,
    TopicSelection,
    flags_of,
    select_topics,
)
from metrics.services.question import (
    MAX_LIMIT,
    SCORES,
    Choice,
    Descending,
    Integer,
    OneMeasure,
    Question,
    TopicId,
    parameter,
)
from metrics.services.queue.damage import check_files
from metrics.services.values.common_values import pooled_words, qrels_cautions
from metrics.services.values.effort import begin_disagreement, check_values
from metrics.services.values.judged_views import matrix_of
from runs.models import Collection, Qrels

# What topics are sorted by, each with the order that shows the worst first.
TOPIC_SORTS = {
    "difficulty": True,
    "spread": True,
    "disagreement": True,
    "best": False,
    "topic": False,
}


@dataclass(frozen=True, kw_only=True)
class _ValuesQuery(Question):
    """A measure, and a page of a table of its values."""

    measure: Measure = parameter(
        OneMeasure("one measure; default: the collection's first", names=tested_measures)
    )
    limit: int = parameter(
        Integer(f"rows of a page, at most {MAX_LIMIT}", default=100, low=1, high=MAX_LIMIT)
    )
    offset: int = parameter(Integer("rows to pass over", default=0))
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True, kw_only=True)
class TopicsQuery(_ValuesQuery):
    """The parameters of a table of topics."""

    sort: str = parameter(
        Choice("the column to sort by", default="difficulty", choices=tuple(TOPIC_SORTS))
    )
    descending: bool = parameter(
        Descending(
            "desc: the most difficult, ... first; asc; default: the worst first, topic as judged",
            usually_descending=lambda context: TOPIC_SORTS[context.values["sort"]],
        )
    )
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True, kw_only=True)
class TopicQuery(_ValuesQuery):
    """The parameters of a table of the runs on one topic."""

    topic: str = parameter(TopicId("the id of the topic"))


class ValuedRun(NamedTuple):
    """A run with its rank and mean on the leaderboard.

    It has no rank if its mean is over other topics.
    """

    id: UUID
    tag: str
    team: str
    created_at: datetime
    rank: int | None
    mean: float | None


@dataclass(frozen=True)
class TopicTable:
    """What the runs reach on each topic, each of shape (topics,) and NaN where that is undefined.

    `spread` is the standard deviation over the runs, `best` and `worst` are the best and the worst
    value, and `runs` counts those with a value.
    """

    mean: Floats
    spread: Floats
    best: Floats
    worst: Floats
    runs: Ints


@dataclass(frozen=True)
class TopicValues:
    """The values of all evaluated runs, shape (runs, topics), NaN where a run has none.

    Rows are in the order of the leaderboard by this measure; those without a rank come last. The
    `selection` has no effect but on which topics are listed.
    """

    qrels: Qrels
    scores: str
    measure: Measure
    runs: list[ValuedRun]
    values: Matrix
    selection: TopicSelection | None = None

    @property
    def topic_ids(self) -> list[str]:
        topic_ids: list[str] = self.qrels.topic_ids
        return topic_ids

    @property
    def selected_topics(self) -> int:
        """Return the number of topics that are listed."""
        return self.selection.topics if self.selection else len(self.topic_ids)

    @property
    def cautions(self) -> list[Caution]:
        return qrels_cautions([self.measure], self.qrels)

    @property
    def lower_is_better(self) -> bool:
        return self.measure.definition.lower_is_better

    @property
    def sign(self) -> float:
        """Return what makes a higher value the better one."""
        return -1.0 if self.lower_is_better else 1.0

    @cached_property
    def table(self) -> TopicTable:
        defined: Flags = np.logical_not(np.isnan(self.values))
        runs: Ints = defined.sum(axis=0)
        filled = np.where(defined, self.values, 0.0)
        mean = _over(filled.sum(axis=0), runs)
        squares = np.where(defined, (filled - np.nan_to_num(mean)) ** 2, 0.0).sum(axis=0)
        best, worst = (
            sign * np.fmax.reduce(sign * self.values, axis=0, initial=np.nan)
            for sign in (self.sign, -self.sign)
        )

        return TopicTable(mean, np.sqrt(_over(squares, runs - 1)), best, worst, runs)

    def disagreement(self, topics: list[int]) -> Floats:
        """Return the share of pairs of runs in the other order than on the leaderboard, by topic.

        For a thousand runs, each topic takes a third of a millisecond.
        """
        begin_disagreement(len(self.runs), len(topics))
        ranks = np.array(
            [np.nan if run.rank is None else run.rank for run in self.runs], np.float64
        )

        return discordance(self.sign * self.values[:, topics], ranks)

    def order(self, sort: str, descending: bool | None = None) -> list[int]:
        """Return the selected topics sorted by one of TOPIC_SORTS, undefined ones last.

        Equal ones are in the order of the judgements.

        Difficult is what has a low mean, or a high one if lower values are better; good values are
        ordered likewise.
        """
        descending = TOPIC_SORTS[sort] if descending is None else descending
        if sort == "topic":
            places = range(len(self.topic_ids))
            return self._selected(reversed(places) if descending else places)

        if sort == "disagreement":
            key = self.disagreement(list(range(len(self.topic_ids))))
        else:
            table = self.table
            keys = {
                "difficulty": -self.sign * table.mean,
                "best": self.sign * table.best,
                "spread": table.spread,
            }
            key = keys[sort]

        order: list[int] = np.argsort(
            np.round(-key if descending else key, 12), kind="stable"
        ).tolist()
        return self._selected(order)

    def _selected(self, places: Iterable[int]) -> list[int]:
        selected = flags_of(self.selection)
        return [place for place in places if selected is None or selected[place]]

    def ranks_on(self, topic: int) -> list[int | None]:
        """Return the rank of each run on one topic; None for one without a value."""
        values = self.values[:, [topic]].T
        ranks = standings(values, np.array([self.lower_is_better]))[0].tolist()
        return [
            None if np.isnan(value) else rank for rank, value in zip(ranks, values[0], strict=True)
        ]


def _over(sums: Floats, numbers: Ints) -> Floats:
    """Return averages, NaN over nothing."""
    averages: Floats = np.divide(sums, numbers, out=np.full(len(sums), np.nan), where=numbers > 0)
    return averages


def read_topic_values(
    *,
    collection: Collection,
    measure: Measure,
    scores: str | None = None,
    topics: TopicFilter | None = None,
) -> TopicValues:
    """Return the values of every run that the leaderboard ranks, in one query for each table.

    Raise StatisticsError for a measure that has no values of topics, or for too many values, and
    what `select_topics` does.
    """
    if measure.pools:
        raise StatisticsError(pooled_words(measure), code="pooled_measure", pointer="measure")

    qrels = active_qrels(collection)
    scores = scores or collection.scores
    selection = select_topics(qrels, topics, scores)
    columns = ("pk", "same_files", "run_id", "run__tag", "run__team__slug", "run__created_at")
    current = ranked_evaluations(collection, qrels, scores).with_files()
    rows = {
        row[0]: row[1:]
        for row in current.order_by("run__created_at", "run_id").values_list(*columns)
    }

    check_values(len(rows), qrels.topics, 1)
    check_files(Evaluation, ((pk, row[0]) for pk, row in rows.items()))
    ids = list(rows)
    values, means = matrix_of(ids, measure, qrels)
    place = {pk: index for index, pk in enumerate(ids)}

    def covered(evaluations: list[int]) -> dict[int, bytes]:
        return {
            pk: np.packbits(np.logical_not(np.isnan(values[place[pk]]))).tobytes()
            for pk in evaluations
        }

    order = fair_order(means, qrels.topics, covered, lower_first=measure.definition.lower_is_better)
    ranks = order.rank_of
    keys = [*ranks, *(pk for pk, _ in order.below)]
    runs = [
        ValuedRun(run, tag, team, created_at, ranks.get(pk), means[pk][0])
        for pk, (_, run, tag, team, created_at) in ((pk, rows[pk]) for pk in keys)
    ]

    return TopicValues(qrels, scores, measure, runs, values[[place[pk] for pk in keys]], selection)
