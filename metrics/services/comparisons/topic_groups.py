"""Two runs in each group of topics, or the means of several there: `by=type`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import Caution, Matrix
from metrics.engine.significance.topic_groups import GroupDifferences, compare_groups
from metrics.engine.significance.verdicts import DEPENDS_ON_JUDGING
from metrics.services.boards.leaderboard import MAX_GROUPS
from metrics.services.boards.topic_selection import group_topics
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import topics_of
from metrics.services.comparisons.stored import Answer
from runs.errors import InvalidInput

# The groups of one pair of runs; more runs have as many as a leaderboard.
MOST_GROUPS = 50


@dataclass(frozen=True)
class TopicGroups:
    """The groups of the topics of a comparison by their `names`, the values of `key`.

    `without` counts the compared topics that have no value.
    """

    key: str
    names: list[str]
    without: int
    differences: GroupDifferences
    alpha: float

    @property
    def depends(self) -> bool:
        """Return whether the difference depends on the group more than chance explains."""
        return bool(self.differences.interaction.p_value < self.alpha)

    @property
    def sentence(self) -> str:
        """Return the result of the test of the interaction."""
        interaction = self.differences.interaction
        if not self.names:
            return f"No compared topic has a value of {self.key}, so there are no groups."
        if len(self.names) == 1:
            return "There is one group, so nothing to compare."
        if not interaction.freedom[1]:
            return "Whether the groups differ cannot be tested: each has one topic."
        if np.isnan(interaction.p_value):
            return "Whether the groups differ cannot be tested: no group varies."
        if self.depends:
            return "The difference depends on the group."
        return "The groups do not differ more than chance would."

    @property
    def cautions(self) -> list[Caution]:
        return few_topics(int(self.differences.topics.sum()))


@dataclass(frozen=True)
class GroupMeans:
    """The means of compared runs in the groups of topics by their `names`, the values of `key`.

    Shapes: `topics` (groups,); `means` (runs, groups), in the order of the rows of values. A group
    without a compared topic has NaN.
    """

    key: str
    names: list[str]
    topics: Ints
    means: Matrix


def means_in_groups(answer: Answer, compared: Compared) -> GroupMeans | None:
    """Return the means of the runs of an answer in each group, None if none were requested.

    Raise InvalidInput for an unknown key or too many groups.
    """
    key = answer.query.by
    if key is None:
        return None

    columns = _columns_of_groups(answer, compared, key)
    topics = np.array([len(group) for group in columns.values()], np.int64)
    means = np.full((len(compared.values), len(columns)), np.nan)
    for place, group in enumerate(columns.values()):
        if len(group):
            means[:, place] = compared.values[:, group].mean(axis=1)

    return GroupMeans(key, list(columns), topics, means)


def compare_in_groups(answer: Answer, compared: Compared) -> TopicGroups | None:
    """Return the two runs of an answer in each group of topics, None if none were requested.

    Raise StatisticsError for more than two runs, InvalidInput for an unknown key or too many
    groups.
    """
    key, query = answer.query.by, answer.query
    if key is None:
        return None
    if compared.pairs.number != 1 or answer.gone:
        message = f"by={key} needs two runs; found {compared.pairs.runs:,}: name them with runs="
        raise StatisticsError(message, code="too_many_runs", pointer="by")

    columns = _columns_of_groups(answer, compared, key)
    groups = {name: group for name, group in columns.items() if len(group)}

    first, second = (int(side[0]) for side in compared.pairs.indices())
    differences = compare_groups(
        compared.values[[first, second]], list(groups.values()), query.rule, query.options
    )

    # A group has no verdict where the pair can have none.
    verdicts, every = differences.verdicts, np.ones(len(groups), np.bool_)
    if compared.families[0].verdicts.have(DEPENDS_ON_JUDGING)[0]:
        verdicts = verdicts.withhold(every, DEPENDS_ON_JUDGING)
    for runs, reason in compared.coverage.lacking:
        if runs[first] or runs[second]:
            verdicts = verdicts.withhold(every, reason)

    return TopicGroups(
        key,
        list(groups),
        compared.topics - int(differences.topics.sum()),
        replace(differences, verdicts=verdicts),
        query.rule.alpha,
    )


def _columns_of_groups(answer: Answer, compared: Compared, key: str) -> dict[str, Ints]:
    """Return the columns of the compared values of each group, in the order of the groups.

    Raise InvalidInput for an unknown key or too many groups.
    """
    # Of a stored comparison the ids are read with the topics that were compared.
    used = set(topics_of(answer, compared))
    entrants, qrels = answer.entrants, answer.entrants.qrels
    places = group_topics(qrels, key, entrants.scores, entrants.selection)
    most = MOST_GROUPS if compared.pairs.number == 1 else MAX_GROUPS
    if len(places) > most:
        message = (
            f"{key} makes {len(places):,} groups; at most {most}: select some with topics={key}:..."
        )
        raise InvalidInput(message, code="too_many_values", pointer="by")

    # The column of the values of each topic of the judgements, -1 for a topic without one.
    is_used = np.array([topic in used for topic in qrels.topic_ids], np.bool_)
    columns = np.where(is_used, np.cumsum(is_used) - 1, -1)
    return {name: columns[group][is_used[group]] for name, group in places.items()}
