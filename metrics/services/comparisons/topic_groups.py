"""Two runs in each group of topics: `by=type`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import Caution
from metrics.engine.significance.topic_groups import GroupDifferences, compare_groups
from metrics.engine.significance.verdicts import DEPENDS_ON_JUDGING
from metrics.services.boards.topic_selection import group_topics
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import topics_of
from metrics.services.comparisons.stored import Answer
from runs.errors import InvalidInput

# The groups of one pair of runs.
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


def compare_in_groups(answer: Answer, compared: Compared) -> TopicGroups | None:
    """Return the two runs of an answer in each group of topics, None if none were requested.

    Raise StatisticsError for more than two runs, InvalidInput for an unknown key or too many
    groups.
    """
    key, entrants, query = answer.query.by, answer.entrants, answer.query
    if key is None:
        return None
    if compared.pairs.number != 1 or answer.gone:
        message = f"by={key} needs two runs; found {compared.pairs.runs:,}: name them with runs="
        raise StatisticsError(message, code="too_many_runs", pointer="by")

    # Of a stored comparison the ids are read with the topics that were compared.
    used = set(topics_of(answer, compared))
    qrels = entrants.qrels
    places = group_topics(qrels, key, entrants.scores, entrants.selection)
    if len(places) > MOST_GROUPS:
        message = (
            f"{key} makes {len(places):,} groups; at most {MOST_GROUPS}: select some with "
            f"topics={key}:..."
        )
        raise InvalidInput(message, code="too_many_values", pointer="by")

    # The column of the values of each topic of the judgements, -1 for a topic without one.
    is_used = np.array([topic in used for topic in qrels.topic_ids], np.bool_)
    columns = np.where(is_used, np.cumsum(is_used) - 1, -1)
    groups = {name: columns[group][is_used[group]] for name, group in places.items()}
    groups = {name: group for name, group in groups.items() if len(group)}

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
