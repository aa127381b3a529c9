"""Columns of a comparison's tables for groups of topics: the means of runs there, and of two runs
their differences with the results of their tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metrics.engine.measures.definition import Aggregate
from metrics.engine.significance.verdicts import REASONS
from metrics.exports.table import BETTER, WORSE, Cell, Column
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import runs_by_row
from metrics.services.comparisons.stored import Answer
from metrics.services.comparisons.topic_groups import (
    GroupMeans,
    TopicGroups,
    compare_in_groups,
    means_in_groups,
)
from metrics.tables import NOTHING, direction_of, probability_words, statistic
from runs.models import Run

# The marks of a first run that is significantly better or worse.
WAYS = {1: BETTER, -1: WORSE}
_TESTED = ("low", "high", "p_value", "p_adjusted", "verdict", "withheld")


def digits_of(compared: Compared) -> int:
    """Return the number of decimals of means in a table for a paper."""
    return 1 if compared.measure.definition.aggregate is Aggregate.SUM else 4


@dataclass(frozen=True)
class GroupColumns:
    """The compared runs in groups of topics under one measure; `rows` are those of values by run.

    `tested` is None for more than two runs.
    """

    compared: Compared
    rows: dict[Run, int]
    means: GroupMeans
    tested: TopicGroups | None

    def columns(self, prefix: str = "") -> Iterator[Column]:
        """Yield a column for each group."""
        for name in self.means.names:
            heading = f"{prefix}{self.means.key}:{name}"
            yield Column(heading, direction=direction_of(self.compared.measure))

    def of_run(self, run: Run) -> list[str]:
        """Return the mean of a run in each group."""
        return [self._text(mean) for mean in self.means.means[self.rows[run]].tolist()]

    def of_pair(self, a: Run, b: Run) -> list[Cell]:
        """Return the difference of two runs in each group, with a mark where it is significant."""
        first, _ = self.compared.pairs.indices()
        way = 1 if self.rows[a] == first[0] else -1
        differences = self.means.means[self.rows[a]] - self.means.means[self.rows[b]]
        return [
            Cell(self._text(difference), mark=WAYS.get(way * self._better.get(name, 0), ""))
            for name, difference in zip(self.means.names, differences.tolist(), strict=True)
        ]

    def data(self, a: Run, b: Run) -> dict[str, Any]:
        """Return the columns of a pair of runs in a file of data.

        A group without a topic under this measure has empty columns: all rows of a file have the
        same ones.
        """
        values: dict[str, Any] = {}
        for place, name in enumerate(self.means.names):
            mean_a, mean_b = (float(self.means.means[self.rows[run], place]) for run in (a, b))
            figures = {
                "topics": int(self.means.topics[place]),
                "mean_a": mean_a,
                "mean_b": mean_b,
                "difference": mean_a - mean_b,
                **self._tests(name),
            }
            values |= {f"{self.means.key}:{name} {figure}": figures[figure] for figure in figures}

        if self.tested:
            interaction = self.tested.differences.interaction
            values |= {
                f"{self.tested.key} interaction statistic": interaction.statistic,
                f"{self.tested.key} interaction p_value": interaction.p_value,
            }

        return values

    @cached_property
    def _better(self) -> dict[str, int]:
        """The groups by name: 1 where the first run of the pair is significantly better, -1 worse."""
        if self.tested is None:
            return {}

        lower = self.compared.measure.definition.lower_is_better
        verdicts = self.tested.differences.verdicts
        return dict(zip(self.tested.names, verdicts.better(lower).tolist(), strict=True))

    def _tests(self, name: str) -> dict[str, Any]:
        if self.tested is None:
            return {}
        if name not in self.tested.names:
            return dict.fromkeys(_TESTED)

        differences, place = self.tested.differences, self.tested.names.index(name)
        vectors = (differences.low, differences.high, differences.p_value, differences.adjusted)
        figures = [float(vector[place]) for vector in vectors]
        verdict = WAYS.get(self._better[name], "")
        withheld = REASONS[differences.verdicts.withheld[place]]
        return dict(zip(_TESTED, [*figures, verdict, withheld], strict=True))

    def _text(self, value: float) -> str:
        if np.isnan(value):
            return NOTHING
        digits = digits_of(self.compared)
        # Adding zero makes a plain zero of a negative one.
        return f"{round(value, digits) + 0.0:.{digits}f}"


def group_columns(answer: Answer) -> list[GroupColumns]:
    """Return the groups of topics under each measure, none if they were not requested.

    Raise InvalidInput for an unknown key or too many groups.
    """
    parts = []
    for compared in answer.results:
        means = means_in_groups(answer, compared)
        if means is None:
            return []

        rows = {run: row for row, run in runs_by_row(answer, compared).items()}
        two_runs = len(rows) == compared.pairs.runs == 2
        tested = compare_in_groups(answer, compared) if two_runs else None
        parts.append(GroupColumns(compared, rows, means, tested))

    return parts


def headings_of_groups(parts: Sequence[GroupColumns]) -> Iterator[Column]:
    """Yield the columns of all measures, which name their measure where there are several."""
    for part in parts:
        yield from part.columns(f"{part.compared.measure.name} " if len(parts) > 1 else "")


def group_notes(parts: Sequence[GroupColumns]) -> list[str]:
    """Return sentences on the columns of groups."""
    if not parts:
        return []

    key = parts[0].means.key
    sentences = []
    for part in parts:
        sizes = zip(part.means.names, part.means.topics.tolist(), strict=True)
        listed = ", ".join(f"{name} ({topics:,})" for name, topics in sizes)
        sentences.append(
            f"Columns of {key} have {part.compared.measure.name} on the compared topics of each "
            f"group: {listed}."
        )
        if part.tested:
            measure = f"{part.compared.measure.name}: " if len(parts) > 1 else ""
            tests = tests_of_groups(part.tested)
            sentences.append(f"{measure}{part.tested.sentence} {tests}".strip())

    if parts[0].tested:
        sentences.append(
            "Differences in a group are marked where a paired t test finds them, with p corrected "
            "by Holm over the groups."
        )
    return sentences


def tests_of_groups(groups: TopicGroups) -> str:
    """Return the tests of whether groups of topics differ, as a sentence; empty without them."""
    interaction = groups.differences.interaction
    if np.isnan(interaction.p_value):
        return ""

    between, within = interaction.freedom
    p_value = probability_words(interaction.p_value)
    text = f"F({between}, {within}) = {statistic(interaction.statistic)}, {p_value}"
    if interaction.ranks:
        text += f"; Kruskal and Wallis's test: {probability_words(interaction.ranks.p_value)}"
    return f"{text}."
