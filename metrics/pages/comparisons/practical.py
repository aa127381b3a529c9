"""What a comparison says beside its tests, on pages: whether runs differ by less than matters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metrics.exports.comparisons.words import PRACTICAL_NAMES, WITHHELD
from metrics.pages.comparisons.answers import Shown
from metrics.pages.comparisons.tables import ChancesCell, chances_cell
from metrics.pages.comparisons.words import PRACTICAL_ASKS
from metrics.services.comparisons.shown_pairs import ShownPair, names_of
from metrics.tables import NOTHING, probability, signed


@dataclass(frozen=True)
class ClaimLine:
    """A claim about two runs, with its p, alone and corrected, and whether it holds."""

    claim: str
    p_value: str
    p_adjusted: str
    holds: bool
    said: str


@dataclass(frozen=True)
class ChancesLine:
    """The chances of two runs by one posterior: three sentences, and the bar of them."""

    title: str
    asks: str
    said: list[str]
    cell: ChancesCell


def chances_lines(shown: Shown, pair: ShownPair) -> list[ChancesLine]:
    """Return a line for each posterior that is requested."""
    names, rope = names_of([pair.a, pair.b]), shown.answer.query.practical.rope
    by = f"{rope:g} {shown.compared.measure.name}"
    lines = []
    for name, found in pair.chances.items():
        said = [
            f"{100 * chance:.1f}% {meaning}"
            for chance, meaning in (
                (found.better, f"{names[pair.a]} is ahead by more than {by}"),
                (found.equal, f"practically equal: at most {by} apart"),
                (found.worse, f"{names[pair.b]} is ahead by more than {by}"),
            )
        ]
        if math.isnan(found.better):
            said = ["cannot be computed, as the differences do not vary"]
        title = PRACTICAL_NAMES[name][0].upper() + PRACTICAL_NAMES[name][1:]
        lines.append(ChancesLine(title, PRACTICAL_ASKS[name], said, chances_cell(found)))
    return lines


@dataclass(frozen=True)
class EquivalencePart:
    """The claims of two one-sided tests, the interval that decides them, and how many topics equal runs need."""

    margin: str
    percent: str
    interval: str
    claims: list[ClaimLine]
    topics: int | None


def equivalence_part(shown: Shown, pair: ShownPair) -> EquivalencePart | None:
    """Return what two one-sided tests say of the pair, or None where they were not asked for."""
    found, whole = pair.equivalence, shown.compared.equivalence
    if found is None or whole is None:
        return None
    names = names_of([pair.a, pair.b])
    a, b, margin = names[pair.a], names[pair.b], f"{whole.margin:g}"
    claims = (
        (f"{a} is not worse than {b} by {margin} or more", found.a),
        (f"{b} is not worse than {a} by {margin} or more", found.b),
        (f"Both: they differ by less than {margin}", found.both),
    )
    return EquivalencePart(
        f"{margin} {shown.compared.measure.name}",
        f"{100 * (1 - 2 * shown.answer.query.rule.alpha):g}%",
        NOTHING if found.low != found.low else f"{signed(found.low)} to {signed(found.high)}",
        [
            ClaimLine(
                text,
                probability(claim.p_value),
                probability(claim.p_adjusted),
                claim.holds,
                WITHHELD.get(found.withheld) or ("yes" if claim.holds else "not shown"),
            )
            for text, claim in claims
        ],
        found.topics,
    )
