"""The tables of comparisons: runs, pairs, tests, and every run against every other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from django.urls import reverse

from metrics.engine.agreement.intervals import RankIntervals
from metrics.engine.agreement.standings import standings
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import REASONS
from metrics.exports.comparisons.words import (
    PAIR_CAUTION_NAMES,
    TEST_NAMES,
    WITHHELD,
    corrected,
    verdict_text,
)
from metrics.exports.table import BETTER, WORSE, Cell, Column, Row, Table
from metrics.pages.comparisons.words import ASKS
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    PairChances,
    ShownPair,
    Verdict,
    names_of,
    rows_of,
    run_of,
    visible_pairs,
)
from metrics.services.comparisons.stored import Answer
from metrics.tables import NOTHING, figure, probability, signed, statistic
from runs.models import Collection, Run

MATRIX_RUNS = 25
# The most runs that a page lists; the API has all of them.
RUNS_SHOWN = 200


@dataclass(frozen=True)
class RunLine:
    """One compared run: its means with the names of the measures, its tier and groups, and its rank
    interval."""

    run: Run
    name: str
    rank: int
    named_means: list[tuple[str, str]]
    baseline: bool
    tier: str
    letters: str
    ranks: str
    first: str


def run_lines(
    answer: Answer, compared: Compared, family: Family, spread: RankIntervals | None
) -> list[RunLine]:
    """Return the first RUNS_SHOWN runs, best first by the shown measure. Runs with equal means
    share a rank."""
    rows = rows_of(answer, compared)
    ranks = standings(
        compared.values.mean(axis=1)[None, :],
        np.array([compared.measure.definition.lower_is_better]),
    )[0]
    runs = {row: run_of(answer, compared, row) for row in rows}
    names = names_of(list(runs.values()))
    # For each measure the mean of each entrant as text.
    means = [
        {
            place: figure(one.measure, value)
            for place, value in zip(one.order, one.values.mean(axis=1).tolist(), strict=True)
        }
        for one in answer.results
    ]
    letters = letters_of(family.tiers) if family.tiers else None
    return [
        RunLine(
            runs[row],
            names[runs[row]],
            int(ranks[row]),
            [
                (one.measure.name, column[compared.order[row]])
                for one, column in zip(answer.results, means, strict=True)
            ],
            row == compared.pairs.baseline,
            str(family.tiers.tier[row]) if family.tiers else "",
            letters[row] if letters else "",
            f"{spread.low[row]} to {spread.high[row]}" if spread else "",
            f"{100 * spread.share_first[row]:.0f}%" if spread else "",
        )
        for row in rows[:RUNS_SHOWN]
    ]


@dataclass(frozen=True)
class ChancesCell:
    """Three chances of a pair as text, and the ends of the first two in a bar of 100; both empty
    without any."""

    text: str
    ends: tuple[str, str] | None


def chances_cell(found: PairChances) -> ChancesCell:
    """Return the chances that the first run is better, that both are practically equal, and that it
    is worse."""
    if math.isnan(found.better):
        return ChancesCell(NOTHING, None)
    sides = (found.better, found.equal, found.worse)
    ends = (f"{100 * found.better:.1f}", f"{100 * (found.better + found.equal):.1f}")
    return ChancesCell(", ".join(f"{100 * side:.1f}%" for side in sides), ends)


@dataclass(frozen=True)
class PairLine:
    """The values of a pair by the first test, and its interval as x positions between 0 and 200, or
    None without one."""

    pair: ShownPair
    verdict: Verdict
    names: tuple[str, str]
    difference: str
    interval: str
    p_value: str
    p_adjusted: str
    relative: str
    effect: str
    drawn: dict[str, str]
    said: str
    cautions: str
    within: str
    chances: list[ChancesCell]


def pair_lines(answer: Answer, compared: Compared, pairs: list[ShownPair]) -> list[PairLine]:
    """Return some pairs of a comparison; every interval is drawn on the same scale, which contains
    zero and all pairs."""
    result = compared.families[0].result
    low, high = (
        float(np.fmin.reduce(result.low, initial=0.0)),
        float(np.fmax.reduce(result.high, initial=0.0)),
    )
    scale = 200 / ((high - low) or 1.0)
    names = names_of([run_of(answer, compared, row) for row in rows_of(answer, compared)])
    lines = []
    for pair in pairs:
        verdict = pair.verdicts[0]
        places = {"zero": 0.0, "low": verdict.low, "middle": pair.difference, "high": verdict.high}
        drawn = {name: f"{(value - low) * scale:.1f}" for name, value in places.items()}
        lines.append(
            PairLine(
                pair,
                verdict,
                (names[pair.a], names[pair.b]),
                signed(pair.difference),
                ends(verdict),
                probability(verdict.p_value),
                probability(verdict.p_adjusted),
                percent(pair.relative),
                bounded(pair.hedges_g)[0],
                {} if math.isnan(verdict.low) else drawn,
                verdict_text(verdict.significant, verdict.withheld),
                ", ".join(PAIR_CAUTION_NAMES[code] for code in pair.cautions),
                equivalence_text(pair),
                [chances_cell(found) for found in pair.chances.values()],
            )
        )
    return lines


def equivalence_text(pair: ShownPair) -> str:
    """Return whether a pair is equivalent, with its corrected p; empty where that was not asked
    for."""
    found = pair.equivalence
    if found is None:
        return ""
    if found.withheld:
        return WITHHELD[found.withheld]
    p_value = probability(found.both.p_adjusted)
    return f"{'yes' if found.both.holds else 'not shown'}, p {'' if p_value.startswith('<') else '= '}{p_value}"


def ends(verdict: Verdict) -> str:
    """Return the interval of a pair as text."""
    return (
        NOTHING if math.isnan(verdict.low) else f"{signed(verdict.low)} to {signed(verdict.high)}"
    )


def percent(share: float) -> str:
    return NOTHING if math.isnan(share) else f"{100 * share:+.1f}%".replace("-", "\N{MINUS SIGN}")


def two_decimals(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def bounded(size: Bounded) -> tuple[str, str]:
    """Return an effect size and its interval, as far as they exist."""
    value, low, high = size.value, size.low, size.high
    interval = "" if math.isnan(low) else f"{two_decimals(low)} to {two_decimals(high)}"
    return NOTHING if math.isnan(value) else two_decimals(value), interval


@dataclass(frozen=True)
class QuestionLine:
    """One test of two runs: its question and its answer."""

    name: str
    title: str
    asks: str
    about: str
    statistic: str
    p_value: str
    p_adjusted: str
    significant: bool
    said: str


def question_lines(pair: ShownPair) -> list[QuestionLine]:
    return [
        QuestionLine(
            verdict.test,
            TEST_NAMES[verdict.test][0].upper() + TEST_NAMES[verdict.test][1:],
            ASKS[verdict.test],
            "ranks or signs" if TESTS[verdict.test].ranks else "means",
            NOTHING if math.isnan(verdict.statistic) else statistic(verdict.statistic),
            probability(verdict.p_value) + (" (exact)" if verdict.exact else ""),
            probability(verdict.p_adjusted),
            verdict.significant,
            verdict_text(verdict.significant, verdict.withheld),
        )
        for verdict in pair.verdicts
    ]


@dataclass(frozen=True)
class FamilyLine:
    """One test of many runs: its question, and the number of significant pairs."""

    title: str
    asks: str
    corrected: str
    significant: int
    pairs: int


def family_lines(answer: Answer, compared: Compared) -> list[FamilyLine]:
    there = visible_pairs(answer, compared)
    return [
        FamilyLine(
            TEST_NAMES[family.test],
            ASKS[family.test],
            corrected(family),
            int(np.count_nonzero(family.significant & there)),
            int(np.count_nonzero(there)),
        )
        for family in compared.families
    ]


def matrix_table(
    collection: Collection, answer: Answer, compared: Compared, family: Family
) -> Table | None:
    """Build the table of every run against every other, best first: the row's mean minus the
    column's. None with a baseline or with more runs than fit a page."""
    rows = rows_of(answer, compared)
    if compared.pairs.baseline is not None or len(rows) > MATRIX_RUNS:
        return None
    better = family.verdicts.better(compared.measure.definition.lower_is_better).tolist()
    withheld = [WITHHELD.get(REASONS[reason]) for reason in family.verdicts.withheld.tolist()]
    cells = {(row, row): Cell("") for row in range(compared.pairs.runs)}
    first, second = (side.tolist() for side in compared.pairs.indices())
    figures = zip(
        family.result.difference.tolist(), family.adjusted.tolist(), better, withheld, strict=True
    )
    for i, j, (difference, p_value, way, reason) in zip(first, second, figures, strict=True):
        note = f"corrected p {probability(p_value)}{f': {reason}' if reason else ''}"
        for a, b, sign in ((i, j, 1), (j, i, -1)):
            mark = {1: BETTER, -1: WORSE}.get(sign * way, "")
            cells[a, b] = Cell(signed(sign * difference), note=note, mark=mark)
    runs = {row: run_of(answer, compared, row) for row in rows}
    names = names_of(list(runs.values()))
    columns = [Column("run", "Run", head=True), *(Column(names[runs[row]]) for row in rows)]
    lines = [
        Row(
            [
                Cell(names[runs[row]], address=reverse("run-page", args=[runs[row].pk])),
                *(cells[row, column] for column in rows),
            ]
        )
        for row in rows
    ]
    return Table(f"{collection.slug}-matrix", columns, lines)
