"""Two runs in groups of topics on the page: the test of the interaction, a chart and a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.charts.comparisons.topic_groups import groups_figure
from metrics.engine.significance.verdicts import REASONS
from metrics.exports.comparisons.group_columns import tests_of_groups
from metrics.exports.comparisons.words import WITHHELD
from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import ShownComparison
from metrics.pages.parts import PageFigure
from metrics.services.comparisons.shown_pairs import ShownPair
from metrics.services.comparisons.topic_groups import TopicGroups, compare_in_groups
from metrics.tables import NOTHING, probability, signed

_VERDICTS = {1: "better", -1: "worse"}


@dataclass(frozen=True)
class GroupsPart:
    """The section of groups: whether they differ, and without a group that alone."""

    sentence: str
    figure: PageFigure | None = None
    table: Table | None = None


def groups_part(comparison: ShownComparison, pair: ShownPair) -> GroupsPart | None:
    """Return the section; None if no groups were requested."""
    groups = compare_in_groups(comparison.answer, comparison.compared)
    if groups is None:
        return None
    if not groups.names:
        return GroupsPart(groups.sentence)

    measure = comparison.compared.measure
    query = comparison.answer.query
    parameters = {
        **query.address(),
        "measures": measure.name,
        "runs": f"{pair.a.pk},{pair.b.pk}",
        "tests": "",
        "family": "",
        "weights": "",
    }
    figure = PageFigure(
        groups_figure(comparison.answer, comparison.compared, groups),
        "collection-chart",
        {"collection": comparison.collection.slug},
        parameters,
        "half",
    )

    sentence = f"{groups.sentence} {tests_of_groups(groups)}"
    return GroupsPart(sentence, figure, _table(groups, comparison))


def _table(groups: TopicGroups, comparison: ShownComparison) -> Table:
    differences = groups.differences
    better = differences.verdicts.better(comparison.compared.measure.definition.lower_is_better)
    reasons = differences.verdicts.withheld.tolist()

    rows = []
    for place, name in enumerate(groups.names):
        low, high = float(differences.low[place]), float(differences.high[place])
        interval = NOTHING if np.isnan(low) else f"{signed(low)} to {signed(high)}"
        verdict = _VERDICTS.get(int(better[place]), "no")
        withheld = WITHHELD.get(REASONS[reasons[place]])
        rows.append(
            Row(
                [
                    name,
                    f"{differences.topics[place]:,}",
                    signed(float(differences.difference[place])),
                    interval,
                    float(differences.adjusted[place]),
                    Cell(withheld or verdict, quiet=bool(withheld) or verdict == "no"),
                ]
            )
        )

    columns = [
        Column("", groups.key, head=True),
        Column("", "Topics"),
        Column("", "Difference"),
        Column("", f"{100 * comparison.answer.query.options.confidence:g}% interval"),
        Column("", "Corrected p", format=probability),
        Column("", "Significant", style=""),
    ]
    note = "Paired t test in each group, p corrected by Holm over the groups."
    if groups.without:
        have = "topic has" if groups.without == 1 else "topics have"
        note += f" {groups.without:,} {have} no {groups.key}."

    return Table("groups", columns, rows, [note], f"By {groups.key}")
