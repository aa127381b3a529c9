"""What a comparison says beside its tests, on pages: whether runs differ by less than matters."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.exports.comparisons.words import WITHHELD
from metrics.pages.comparisons.answers import Shown
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
