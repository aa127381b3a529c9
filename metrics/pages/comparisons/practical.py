"""Practical significance on pages: whether runs differ by less than matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metrics.exports.comparisons.words import PRACTICAL_NAMES, WITHHELD
from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import ShownComparison
from metrics.pages.comparisons.tables import chances_cell
from metrics.pages.comparisons.words import PRACTICAL_ASKS
from metrics.services.comparisons.shown_pairs import ShownPair, names_of
from metrics.tables import NOTHING, probability, signed


def chances_table(comparison: ShownComparison, pair: ShownPair) -> Table | None:
    """Build the table of the chances of two runs, a row for each posterior that is requested."""
    if not pair.chances:
        return None

    names, rope = names_of([pair.a, pair.b]), f"{comparison.answer.query.practical.rope:g}"

    by = f"{rope} {comparison.compared.measure.name}"
    rows = []
    for posterior, chances in pair.chances.items():
        sentences = (
            f"{100 * chances.better:.1f}% {names[pair.a]} is ahead by more than {by}",
            f"{100 * chances.equal:.1f}% practically equal: at most {by} apart",
            f"{100 * chances.worse:.1f}% {names[pair.b]} is ahead by more than {by}",
        )
        text = "; ".join(sentences)
        if math.isnan(chances.better):
            text = "cannot be computed, as the differences do not vary"

        name = PRACTICAL_NAMES[posterior]
        title = name[0].upper() + name[1:]
        rows.append(Row([title, PRACTICAL_ASKS[posterior], chances_cell(chances, text)]))

    columns = [
        Column("", "By", head=True),
        Column("", "Question", style="asks"),
        Column("", "Chances", style=""),
    ]
    note = (
        "Posterior probabilities with an uninformative prior. Practically equal: a difference of "
        f"means of at most {rope}. These are not p values, and no correction is applied."
    )

    return Table("chances", columns, rows, [note], "Chances")


@dataclass(frozen=True)
class EquivalencePart:
    """The claims of two one-sided tests, and a sentence on the interval that decides them."""

    claims: Table
    interval: str


def equivalence_part(
    comparison: ShownComparison, pair: ShownPair, among: str
) -> EquivalencePart | None:
    """Return the equivalence of two runs, or None if it was not requested.

    A pair chosen `among` others has a corrected p as well.
    """
    equivalence, whole = pair.equivalence, comparison.compared.equivalence
    if equivalence is None or whole is None:
        return None

    names = names_of([pair.a, pair.b])
    a, b, margin = names[pair.a], names[pair.b], f"{whole.margin:g}"
    claims = (
        (f"{a} is not worse than {b} by {margin} or more", equivalence.a),
        (f"{b} is not worse than {a} by {margin} or more", equivalence.b),
        (f"Both: they differ by less than {margin}", equivalence.both),
    )
    withheld = WITHHELD.get(equivalence.withheld)
    columns = [
        Column("", "Claim", head=True),
        Column("", "p alone" if among else "p", format=probability),
        *([Column("", "Corrected p", format=probability)] if among else []),
        Column("", "Holds", style=""),
    ]

    rows = []
    for text, claim in claims:
        holds = Cell(withheld or ("yes" if claim.holds else "not shown"), quiet=not claim.holds)
        corrected = [claim.p_adjusted] if among else []
        rows.append(Row([text, claim.p_value, *corrected, holds]))

    note = (
        f"Two one-sided t tests with a margin of {margin} {comparison.compared.measure.name}: "
        f"a claim holds if its {'corrected ' if among else ''}p is below the level. "
        "Absence of evidence is "
        "not evidence of a difference. Choose the margin before looking at the results."
    )

    percent = f"{100 * (1 - 2 * comparison.answer.query.rule.alpha):g}%"
    ends = f"{signed(equivalence.low)} to {signed(equivalence.high)}"
    interval = (
        f"{percent} interval of the difference: {NOTHING if math.isnan(equivalence.low) else ends}."
    )

    if equivalence.topics:
        interval += (
            f" If the two do not differ, {equivalence.topics:,} topics of this spread show it in 8 "
            "of 10 samples, this pair tested alone."
        )

    return EquivalencePart(
        Table("practical", columns, rows, [note], "Practical difference"), interval
    )
