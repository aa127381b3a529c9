"""The leaderboard of a suite and the difference of two of its systems, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse

from evalhub.suites.models import SuiteVersion
from evalhub.suites.services.board import (
    BY_BORDA,
    BY_GROUPS,
    BY_MEAN,
    BY_RANK,
    Interval,
    SuiteBoard,
    SystemRow,
)
from evalhub.suites.services.comparison import SuiteComparison
from evalhub.suites.services.values import MemberValues, SuiteValues
from metrics.exports.table import Cell, Column, Row, Table
from metrics.tables import NOTHING, probability_words, signed, with_minus

KINDS = ("csv", "md", "tex")
TOPICS, COLLECTIONS = "Other topics", "Other collections"
_ALPHA = 0.05
# More systems are counted, not named.
_NAMED = 5
# The least difference that four decimals have.
_LEAST = 0.0001


def pair_page(
    slug: str, first: str, second: str, version: int | None = None, topics: str = ""
) -> str:
    """Return the address of the page of two systems."""
    query: dict[str, Any] = {"systems": f"{first},{second}"}
    if version:
        query["version"] = version
    if topics:
        query["topics"] = topics
    return f"{reverse('suite-comparison-page', args=[slug])}?{urlencode(query)}"


def citation_of(request: Any, version: SuiteVersion) -> str:
    """Return a sentence that names a version, its digest and its address."""
    suite = version.suite
    page = request.build_absolute_uri(reverse("suite-page", args=[suite.slug]))
    return (
        f"{suite.name}, version {version.number} ({version.created_at.year}), digest "
        f"{version.digest}. {page}?version={version.number}"
    )


def board_table(board: SuiteBoard) -> Table:
    """Build the table of the systems, those without a rank below the others."""
    values, version = board.values, board.values.version
    with_groups = values.group_weights is not None
    same = _common_measure(values)
    leader = board.ranked[0].name if board.ranked else ""
    names = _short_names(values)
    weighted, resampled = _is_weighted(board), bool(board.query.resamples)
    columns = [
        Column("rank", "Rank", format=_whole),
        Column("", "System", head=True),
        Column("system", format=None),
        Column("mean", "Mean", format=_mean),
        Column("difference", "Difference", format=_signed),
        Column("", TOPICS),
        Column("", COLLECTIONS),
        *([Column("group_mean", "By group", format=_mean)] if with_groups else []),
        Column("borda", "Borda", format=_tenths),
        *([Column("", "Borda interval")] if resampled else []),
        Column("mean_rank", "Mean rank", format=_hundredths),
        *(
            Column(
                row.member.collection.slug,
                row.member.collection.slug,
                unit="" if same else row.member.measure,
                format=_mean,
            )
            for row in values.members
        ),
        *(Column(name, format=None) for name in _INTERVALS),
        Column("lacks", format=None),
        Column("suite", format=None),
        Column("version", format=None),
        Column("order", format=None),
        *([Column("topics_filter", format=None)] if values.topics else []),
    ]

    def row_of(row: SystemRow, begins_part: bool) -> Row:
        topics, collections = row.other_topics, row.other_collections
        name = names[row.name]
        first = Cell(name)
        if leader and row.rank and row.name != leader:
            address = pair_page(
                version.suite.slug, leader, row.name, version.number, values.topics_text
            )
            first = Cell(name, address=address, spoken=f"{name} compared with {names[leader]}")
        cells = [
            row.rank,
            first,
            row.name,
            _data(row.mean),
            _data(topics.difference) if topics else None,
            Cell(interval_text(topics)),
            Cell(estimate_text(collections) if weighted else interval_text(collections)),
            *([_data(row.group_mean)] if with_groups else []),
            _data(row.borda),
            *([Cell(_borda_text(row))] if resampled else []),
            _data(row.mean_rank),
            *map(_data, row.means),
            *_ends(topics),
            _data(collections.difference) if collections else None,
            *_ends(collections),
            _data(row.borda_low),
            _data(row.borda_high),
            "; ".join(row.lacks),
            version.suite.slug,
            version.number,
            board.order,
            *([values.topics_text] if values.topics else []),
        ]
        return Row(cells, begins_part=begins_part, style="" if row.rank else "faint")

    ranked = len(board.ranked)
    rows = [row_of(row, 0 < ranked == place) for place, row in enumerate(board.rows)]
    name = f"{version.suite.slug}-v{version.number}"
    return Table(
        name, columns, rows, board_sentences(board), title=f"Systems of {version.suite.name}"
    )


_INTERVALS = (
    "topics_low", "topics_high", "topics_p",
    "collections_difference", "collections_low", "collections_high", "collections_p",
    "borda_low", "borda_high",
)  # fmt: skip


def board_headline(board: SuiteBoard) -> str:
    """Return which system is first, and how many others are significantly behind it."""
    if not board.ranked:
        return ""
    first, *others = board.ranked
    headline = f"{_short_names(board.values)[first.name]} {_FIRST_BY[board.order]}."
    if not others:
        return headline

    on_topics, on_collections = (
        sum(map(_is_behind, intervals)) or "none"
        for intervals in (
            [row.other_topics for row in others],
            [row.other_collections for row in others],
        )
    )
    return (
        f"{headline} Significantly behind it: {on_topics} of {len(others)} on other topics of these "
        f"collections, {on_collections} on other collections like these."
    )


def _is_behind(interval: Interval | None) -> bool:
    return interval is not None and interval.difference < 0 and interval.p_value < _ALPHA


_FIRST_BY = {
    BY_MEAN: "has the highest mean",
    BY_GROUPS: "has the highest mean of groups",
    BY_BORDA: "is first by Borda's count",
    BY_RANK: "has the best mean rank",
}


def _short_names(values: SuiteValues) -> dict[str, str]:
    return dict(zip(values.systems, values.short_names, strict=True))


def board_sentences(board: SuiteBoard) -> list[str]:
    """Return in words what the means, the intervals and the ranks are."""
    values = board.values
    sentences = [_absence(row) for row in values.without_results]
    if sentences:
        sentences.append("Without all collections no system has a mean or a rank.")
    sentences += topics_sentences(values)
    sentences += replicates_sentences(values)

    ranked, ranking = board.ranked, board.ranking
    if ranking and len(ranked) > 1:
        mean = "mean of groups" if board.order == BY_GROUPS else "mean"
        collections = len(values.members)
        sentences.append(
            f"Differences of the {mean} from {_short_names(values)[ranked[0].name]}, each tested "
            "alone, with 95% intervals: for other topics of these collections, and for other "
            "collections like these"
            + (", which count the same each" if _is_weighted(board) else "")
            + "."
        )
        if not math.isnan(ranking.critical_difference):
            sentences.append(
                f"Mean ranks over {collections} collections that are less than "
                f"{ranking.critical_difference:.2f} apart do not differ significantly (Nemenyi; "
                f"Friedman {probability_words(ranking.p_value)})."
            )
        if resamples := board.query.resamples:
            sentences.append(
                "Intervals of Borda's counts for other topics of these collections: bootstrap of the "
                f"topics in each collection, B = {resamples:,}, seed {board.query.seed}."
            )
        if ranking.others_decide:
            sentences.append(
                "Borda's order depends on who takes part: without a third system two of the first "
                "ten would change places."
            )

    if not values.without_results and (lacking := len(board.rows) - len(ranked)):
        single = lacking == 1
        subject = "1 system lacks" if single else f"{lacking:,} systems lack"
        sentences.append(f"{subject} a collection and {'has' if single else 'have'} no rank.")
    return sentences


def topics_sentences(values: SuiteValues) -> list[str]:
    """Return which topics count, and which collections have none of them."""
    if values.topics is None:
        return []

    selections = [row.selection for row in values.members if row.selection]
    selected, topics = (
        sum(numbers)
        for numbers in (
            [selection.topics for selection in selections],
            [len(selection.selected) for selection in selections],
        )
    )
    sentences = [f"{selected:,} of {topics:,} topics count: {values.topics_text}."]
    if values.left_out:
        names = ", ".join(member.collection.slug for member in values.left_out)
        sentences.append(f"Without {names}, where no topic is selected.")
    return sentences


def replicates_sentences(values: SuiteValues) -> list[str]:
    """Return which systems have means over replicates, whose error no interval has."""
    names = [_short_names(values)[name] for name in values.with_replicates]
    if not names:
        return []

    subject = ", ".join(names) if len(names) <= _NAMED else f"{len(names):,} systems"
    return [f"Values of {subject} are means over replicates; no interval is for other replicates."]


def comparison_table(comparison: SuiteComparison) -> Table:
    """Build the table of the collections, and below them the means over all."""
    values = comparison.values
    first, second = values.short_names
    columns = [
        Column("", "Collection", head=True),
        Column("collection", format=None),
        Column("measure", "Measure", style=""),
        Column("first", first, format=_mean),
        Column("second", second, format=_mean),
        Column("topics", "Topics", format=_whole),
        Column("difference", "Difference", format=_signed),
        Column("", "95% interval"),
        Column("low", format=None),
        Column("high", format=None),
        Column("p", format=None),
        Column("weight", "Weight", format=_share),
        Column("effects_weight", "Random effects", format=_share),
    ]
    rows = [
        Row(
            [
                line.row.member.collection.name,
                line.row.member.collection.slug,
                line.row.member.measure,
                line.first,
                line.second,
                line.topics,
                line.interval.difference,
                Cell(interval_text(line.interval)),
                *_ends(line.interval),
                line.weight,
                _data(line.effects_weight),
            ]
        )
        for line in comparison.lines
    ]
    rows += [
        _summary_row(name, interval, place == 0)
        for place, (name, interval) in enumerate(summaries(comparison))
    ]
    version = values.version
    name = f"{version.suite.slug}-v{version.number}-comparison"
    title = f"{first} and {second} in {version.suite.name}"
    return Table(name, columns, rows, comparison_sentences(comparison), title=title)


def summaries(comparison: SuiteComparison) -> list[tuple[str, Interval]]:
    """Return the means over all collections with their intervals, by what they are for."""
    rows = [
        (TOPICS, comparison.other_topics),
        (COLLECTIONS, comparison.other_collections),
    ]
    if effects := comparison.effects:
        rows.append(
            ("Random effects", Interval(effects.mean, effects.low, effects.high, effects.p_value))
        )
        if not math.isnan(effects.prediction_low):
            prediction = Interval(
                effects.mean, effects.prediction_low, effects.prediction_high, math.nan
            )
            rows.append(("A further collection", prediction))
    return rows


def comparison_sentences(comparison: SuiteComparison) -> list[str]:
    """Return the difference in words, and how far it is the same in all collections."""
    systems = comparison.values.short_names
    topics, collections = comparison.other_topics, comparison.other_collections
    of_topics = f"{_verdict(topics)} for other topics of these collections"
    of_collections = f"{_verdict(collections)} for other collections like these"
    if np.sign(topics.difference) == np.sign(collections.difference):
        sentences = [_lead(systems, topics, "on average", f"{of_topics}, and {of_collections}")]
    else:
        # The two means differ in their weights, and here in who is ahead.
        sentences = [
            _lead(systems, topics, "on average", of_topics),
            _lead(systems, collections, "if each collection counts the same", of_collections),
        ]

    if effects := comparison.effects:
        sentences.append(
            f"Between collections the difference varies by {math.sqrt(effects.tau_squared):.4f} "
            f"(tau), {effects.i_squared:.0%} of the observed variance (I squared)."
        )
    elif len(comparison.lines) > 1:
        sentences.append(
            "There is no summary by random effects: in a collection the difference is the same on "
            "every topic, or there is one topic."
        )
    sentences += topics_sentences(comparison.values)
    sentences += replicates_sentences(comparison.values)
    if comparison.missing:
        names = ", ".join(row.member.collection.slug for row in comparison.missing)
        sentences.append(f"Without {names}: both systems need results that you see there.")
    return sentences


def interval_text(interval: Interval | None) -> str:
    """Return the ends of an interval, NOTHING without one."""
    if interval is None or math.isnan(interval.low):
        return NOTHING
    return f"[{signed(interval.low)}, {signed(interval.high)}]"


def estimate_text(interval: Interval | None) -> str:
    """Return a difference with the ends of its interval if there is one."""
    if interval is None:
        return NOTHING
    ends = "" if math.isnan(interval.low) else f" {interval_text(interval)}"
    return f"{signed(interval.difference)}{ends}"


def _borda_text(row: SystemRow) -> str:
    if math.isnan(row.borda_low):
        return NOTHING
    return f"[{row.borda_low:,.1f}, {row.borda_high:,.1f}]"


def _lead(systems: list[str], interval: Interval, where: str, verdict: str) -> str:
    """Return which of two systems is ahead by a mean difference."""
    first, second = systems
    size = abs(interval.difference)
    if not size:
        return f"{first} and {second} are equal {where}."

    ahead, behind = (first, second) if interval.difference > 0 else (second, first)
    by = f"{size:.4f}" if size >= _LEAST else "less than 0.0001"
    return f"{ahead} is ahead of {behind} by {by} {where}: {verdict}."


def _verdict(interval: Interval) -> str:
    if math.isnan(interval.low):
        return "not tested"
    if interval.p_value < _ALPHA:
        return f"significantly ({probability_words(interval.p_value)})"
    return f"not significantly ({probability_words(interval.p_value)})"


def _summary_row(name: str, interval: Interval, begins_part: bool) -> Row:
    # Short names of collections have no brackets.
    names = [name, f"({name.lower()})", ""]
    difference = [interval.difference, Cell(interval_text(interval)), *_ends(interval)]
    return Row([*names, None, None, None, *difference, None, None], begins_part=begins_part)


def _absence(row: MemberValues) -> str:
    return f"{row.member.collection.slug}: {row.absence}."


def _common_measure(values: SuiteValues) -> str:
    measures = {row.member.measure for row in values.members}
    return measures.pop() if len(measures) == 1 else ""


def _is_weighted(board: SuiteBoard) -> bool:
    """Return whether the two kinds of intervals are of different means."""
    return not np.allclose(board.weights, board.weights[0])


def _ends(interval: Interval | None) -> list[float | None]:
    if interval is None:
        return [None, None, None]
    return [_data(interval.low), _data(interval.high), _data(interval.p_value)]


def _data(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _format(template: str) -> Callable[[Any], str]:
    return lambda value: NOTHING if value is None else with_minus(template.format(value))


_mean, _whole, _share = _format("{:.4f}"), _format("{:,}"), _format("{:.1%}")
_tenths, _hundredths = _format("{:,.1f}"), _format("{:.2f}")


def _signed(value: float | None) -> str:
    return NOTHING if value is None else signed(value)
