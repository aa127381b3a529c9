"""The tables of comparisons: runs, pairs, tests, and every run against every other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np
from django.urls import reverse
from django.utils.html import format_html

from metrics.charts.comparisons.ranks import first_on_note
from metrics.engine.agreement.intervals import RankIntervals
from metrics.engine.agreement.standings import standings
from metrics.engine.arrays import Flags
from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Family
from metrics.engine.significance.tiers import letters_of
from metrics.engine.significance.verdicts import REASONS
from metrics.exports.comparisons.words import (
    PAIR_CAUTION_NAMES,
    PRACTICAL_NAMES,
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
    runs_by_row,
)
from metrics.services.comparisons.stored import Answer
from metrics.tables import NOTHING, figure, probability, signed, statistic
from runs.models import Collection

MATRIX_RUNS = 25
# The most runs that a page lists; the API returns all of them.
RUNS_SHOWN = 200
# The letters of more runs are too many to read; tables for papers and the API have them.
_LETTERED_RUNS = 10


def runs_table(
    answer: Answer, compared: Compared, family: Family, spread: RankIntervals | None
) -> Table:
    """Build the table of the first RUNS_SHOWN runs, best first by the selected measure.

    Runs with equal means share a rank.
    """
    runs = runs_by_row(answer, compared)
    lower = compared.measure.definition.lower_is_better
    ranks = standings(compared.values.mean(axis=1)[None, :], np.array([lower]))[0]
    names = names_of(list(runs.values()))
    tiers = family.tiers
    letters = letters_of(tiers) if tiers and len(runs) <= _LETTERED_RUNS else None
    if not any(letters or []):
        letters = None

    confidence = f"{100 * answer.query.options.confidence:g}%"

    columns = [
        Column("", "Rank", style="number rank", format=str),
        Column("", "Run", head=True),
        Column("", "Team", style="desk"),
        *(
            Column(
                "",
                part.measure.name,
                style="number" if part is compared else "number desk",
                sorting=("ascending" if lower else "descending") if part is compared else "",
            )
            for part in answer.results
        ),
        *([Column("", "Tier")] if tiers else []),
        *([Column("", "Groups", style="groups desk")] if letters else []),
        *(
            [
                Column("", f"{confidence} ranks", style="number desk"),
                Column("", "Ranked first", style="number desk"),
            ]
            if spread
            else []
        ),
    ]

    # The mean of each entrant as text, by measure.
    means = [
        {
            place: figure(part.measure, value)
            for place, value in zip(part.order, part.values.mean(axis=1).tolist(), strict=True)
        }
        for part in answer.results
    ]

    lines = []
    for row, run in islice(runs.items(), RUNS_SHOWN):
        values: list[Any] = [
            int(ranks[row]),
            Cell(names[run], address=reverse("run-page", args=[run.pk])),
            run.team.slug,
            *(column[compared.order[row]] for column in means),
        ]

        if tiers:
            values.append(int(tiers.tier[row]))

        if letters:
            values.append(letters[row] or NOTHING)

        if spread:
            values.append(f"{spread.low[row]} to {spread.high[row]}")
            values.append(f"{100 * spread.share_first[row]:.0f}%")

        lines.append(Row(values, baseline=row in compared.pairs.baselines))

    notes = []

    if tiers:
        notes.append(
            "Runs in a tier do not differ significantly from its best run; runs in different tiers "
            "may not differ either."
        )

    if letters:
        notes.append(
            "Runs that share a letter do not differ significantly, which does not mean that they "
            "are equal."
        )

    if spread:
        notes.append(
            "Ranks: bootstrap interval over samples of the topics. Ranked first: the share of "
            "samples in which the run is first, tied or alone, not its probability of being the "
            f"best.{first_on_note(spread)}"
        )

    return Table("runs", columns, lines, notes, "Runs")


def chances_cell(chances: PairChances, text: str = "") -> Cell:
    """Return the chances that the first run is better, practically equal or worse, as a bar with a
    text."""
    if math.isnan(chances.better):
        return Cell(text or NOTHING)

    sides = (chances.better, chances.equal, chances.worse)
    bar = format_html(
        '<svg class="chances" viewBox="0 0 100 8" width="120" height="10"'
        ' preserveAspectRatio="none" aria-hidden="true"><rect class="worse" width="100"'
        ' height="8"/><rect class="equal" width="{}" height="8"/><rect class="better"'
        ' width="{}" height="8"/></svg>',
        f"{100 * (chances.better + chances.equal):.1f}",
        f"{100 * chances.better:.1f}",
    )

    return Cell(text or ", ".join(f"{100 * side:.1f}%" for side in sides), html=bar)


def interval_cell(difference: float, ends: tuple[float, float], low: float, scale: float) -> Cell:
    """Return the interval of a difference as a drawing around zero, on a scale of 200 from `low`.

    Without an interval the cell is empty.
    """
    if math.isnan(ends[0]):
        return Cell("")

    places = (0.0, *ends, difference)
    drawing = format_html(
        '<svg viewBox="-4 -10 208 20" width="156" height="15" aria-hidden="true"><path class="zero"'
        ' d="M{}-10V10"/><path class="span" d="M{} 0H{}"/><circle cx="{}" cy="0" r="3.5"/></svg>',
        *(f"{(place - low) * scale:.1f}" for place in places),
    )

    return Cell("", html=drawing)


def pairs_table(
    answer: Answer, compared: Compared, pairs: Iterable[ShownPair], address: str
) -> Table:
    """Build the table of some pairs by the first test.

    All intervals are drawn on one scale, which contains zero and all pairs. `address` is that of
    the page of a pair, up to its runs.
    """
    result = compared.families[0].result
    low = float(np.fmin.reduce(result.low, initial=0.0))
    high = float(np.fmax.reduce(result.high, initial=0.0))
    scale = 200 / ((high - low) or 1.0)
    names = names_of(list(runs_by_row(answer, compared).values()))
    equivalence = compared.equivalence
    posteriors = [PRACTICAL_NAMES[name] for name in answer.query.practical.posteriors]

    columns = [
        Column("", "Run", head=True),
        Column("", "minus", style=""),
        Column("", "Difference", format=signed),
        Column("", f"{100 * answer.query.options.confidence:g}% CI"),
        Column("", "Interval around zero", style="drawn"),
        Column("", "p", format=probability),
        Column("", "Corrected p", format=probability),
        Column("", "Significant", style=""),
        *([Column("", f"Within ±{equivalence.margin:g}", style="")] if equivalence else []),
        *(
            Column("", f"{name[0].upper()}{name[1:]}: better, equal, worse", style="")
            for name in posteriors
        ),
        Column("", "Hedges's g"),
    ]

    lines = []
    for pair in pairs:
        verdict, a, b = pair.verdicts[0], names[pair.a], names[pair.b]
        pair_page = f"{address}{pair.a.pk},{pair.b.pk}"
        values: list[Any] = [
            Cell(a, address=pair_page, spoken=f"{a} and {b} in detail"),
            b,
            pair.difference,
            ends(verdict),
            interval_cell(pair.difference, (verdict.low, verdict.high), low, scale),
            verdict.p_value,
            verdict.p_adjusted,
            _verdict_cell(verdict, ", ".join(PAIR_CAUTION_NAMES[code] for code in pair.cautions)),
            *([equivalence_text(pair)] if equivalence else []),
            *(chances_cell(chances) for chances in pair.chances.values()),
            bounded(pair.hedges_g)[0],
        ]

        lines.append(Row(values, style="significant" if verdict.significant else ""))

    return Table("pairs", columns, lines, title="Pairs")


def _verdict_cell(verdict: Verdict, hint: str = "") -> Cell:
    text = verdict_text(verdict.significant, verdict.withheld)
    return Cell(text, quiet=not verdict.significant, hint=hint)


def equivalence_text(pair: ShownPair) -> str:
    """Return whether a pair is equivalent, with its corrected p; empty if that was not tested."""
    equivalence = pair.equivalence
    if equivalence is None:
        return ""
    if equivalence.withheld:
        return WITHHELD[equivalence.withheld]

    answer = "yes" if equivalence.both.holds else "not shown"
    p_value = probability(equivalence.both.p_adjusted)

    return f"{answer}, p {'' if p_value.startswith('<') else '= '}{p_value}"


def ends(verdict: Verdict) -> str:
    """Return the interval of a pair as text."""
    if math.isnan(verdict.low):
        return NOTHING
    return f"{signed(verdict.low)} to {signed(verdict.high)}"


def percent(share: float) -> str:
    return NOTHING if math.isnan(share) else f"{100 * share:+.1f}%".replace("-", "\N{MINUS SIGN}")


def two_decimals(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def bounded(size: Bounded) -> tuple[str, str]:
    """Return an effect size and its interval; texts are empty or NOTHING for missing ones."""
    value, low, high = size.value, size.low, size.high
    interval = "" if math.isnan(low) else f"{two_decimals(low)} to {two_decimals(high)}"
    return NOTHING if math.isnan(value) else two_decimals(value), interval


def tests_table(pair: ShownPair, compared: Compared, among: str) -> Table:
    """Build the table of every test of two runs: its question and its result.

    A pair chosen `among` others has a corrected p as well.
    """
    names = names_of([pair.a, pair.b])
    lower = " Lower is better." if compared.measure.definition.lower_is_better else ""
    alone = "A single pair needs no correction."

    if among:
        alone = (
            "The first p is for this pair alone; "
            f"the corrected p accounts for {among}, and decides."
        )

    note = (
        f"{names[pair.a]} minus {names[pair.b]}, two-sided.{lower} {alone} Choose the test before "
        "looking at the results, and report that one."
    )
    columns = [
        Column("", "Test", head=True),
        Column("", "Question", style="asks", narrow=""),
        Column("", "Statistic"),
        Column("", "p alone" if among else "p"),
        *([Column("", "Corrected p", format=probability)] if among else []),
        Column("", "Significant", style=""),
    ]

    lines = []
    for place, verdict in enumerate(pair.verdicts):
        name = TEST_NAMES[verdict.test]
        about = "ranks or signs" if TESTS[verdict.test].ranks else "means"
        values: list[Any] = [
            Cell(name[0].upper() + name[1:], label="" if place else "selected"),
            Cell(ASKS[verdict.test], hint=f"About {about}."),
            NOTHING if math.isnan(verdict.statistic) else statistic(verdict.statistic),
            probability(verdict.p_value) + (" (exact)" if verdict.exact else ""),
            *([verdict.p_adjusted] if among else []),
            _verdict_cell(verdict),
        ]
        lines.append(Row(values))

    return Table("tests", columns, lines, [note], "Tests")


def families_table(compared: Compared, visible: Flags) -> Table:
    """Build the table of every test of many runs: its question, its correction, and how many of
    the visible pairs are significant."""
    pairs = int(np.count_nonzero(visible))
    columns = [
        Column("", "Test", head=True),
        Column("", "Question", style="asks", narrow=""),
        Column("", "Correction", style=""),
        Column("", "Significant pairs"),
    ]

    lines = []
    for family in compared.families:
        name, correction = TEST_NAMES[family.test], corrected(family)
        significant = int(np.count_nonzero(family.significant & visible))
        values = [
            name[0].upper() + name[1:],
            ASKS[family.test],
            correction[0].upper() + correction[1:],
            f"{significant:,} of {pairs:,}",
        ]
        lines.append(Row(values))

    return Table("tests", columns, lines, title="Tests")


def matrix_table(
    collection: Collection, answer: Answer, compared: Compared, family: Family
) -> Table | None:
    """Build the table of every run against every other, best first: the row's mean minus the
    column's.

    Return None with a baseline, and for more runs than fit a page.
    """
    runs = runs_by_row(answer, compared)
    if compared.pairs.baselines or len(runs) > MATRIX_RUNS:
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

    names = names_of(list(runs.values()))
    columns = [Column("run", "Run", head=True), *(Column(names[run]) for run in runs.values())]
    lines = [
        Row(
            [
                Cell(names[run], address=reverse("run-page", args=[run.pk])),
                *(cells[row, column] for column in runs),
            ]
        )
        for row, run in runs.items()
    ]

    title = "Matrix of differences"
    return Table(f"{collection.slug}-matrix", columns, lines, title=title)
