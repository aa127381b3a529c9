"""A comparison of systems in words: its design, its test, and which of two systems is better."""

from __future__ import annotations

import math

from metrics.engine.sessions.cautions import UNITS
from metrics.engine.significance.effect_sizes import power_in_words
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.verdicts import NO_SPREAD, OTHER_DIRECTION, TOO_FEW_TOPICS
from metrics.exports.comparisons.words import TEST_NAMES, corrected_over, without_correction
from metrics.exports.sessions.tables import DESIGN_NAMES
from metrics.services.sessions.comparison import SessionComparison
from metrics.tables import amount, probability_words, signed, statistic

# Why the system that is ahead is not called better.
_WITHHELD = {
    "": ", but not significantly",
    TOO_FEW_TOPICS: "; there are too few to tell this from chance",
    NO_SPREAD: "; this cannot be tested, as nothing else varies",
    OTHER_DIRECTION: ", but the test, which does not test means, points the other way",
}
_BY = ("min F\N{PRIME}", "by searchers F1", "by topics F2")


def design_sentence(compared: SessionComparison) -> str:
    """Return the design by which systems are compared, and the reason."""
    used = DESIGN_NAMES[compared.design]
    if compared.design == compared.recognised:
        return f"Design: {used}, as {compared.why}."
    recognised = DESIGN_NAMES[compared.recognised]
    return f"Design: {used}, as requested; detected: {recognised}, as {compared.why}."


def test_sentence(compared: SessionComparison) -> str:
    """Return the test, correction and level, the number of cells, and how many pairs differ."""
    query, pairs = compared.query, compared.pairs.number
    resampling = (
        f", B = {query.options.resamples:,}, seed {query.options.seed}" if compared.draws else ""
    )
    test_words = (
        f"{TEST_NAMES[compared.test]}, {corrected_over(compared.correction, compared.family)}"
    )
    units = UNITS[compared.design].removesuffix(" of a system")
    sentence = (
        f"Test: {test_words}, alpha = {query.rule.alpha:g}{resampling}, "
        f"on {compared.cells:,} {units}"
    )
    if compared.verdicts.have(TOO_FEW_TOPICS).any():
        return f"{sentence}."

    significant = int(compared.verdicts.significant.sum())
    return (
        f"{sentence}: {significant:,} of {pairs:,} pair{'s differ' if pairs != 1 else ' differs'}."
    )


def omnibus_sentences(compared: SessionComparison) -> list[str]:
    """Return the tests of all systems at once; those of two are the tests of the pair."""
    if len(compared.systems) < 3:
        return []

    sentences = []
    for name, result in compared.omnibus.items():
        if name == "crossed":
            return [f"All systems at once: {report(result)}."]
        plain = without_correction(result)
        sentences.append(
            f"All systems at once, {name}: {probability_words(result.p_value)}{f' ({plain})' if plain else ''}."
        )

    return sentences


def headline(compared: SessionComparison) -> str:
    """Return which of two systems is better, in a sentence; empty for more systems."""
    if len(compared.systems) != 2:
        return ""

    measure, difference = compared.query.measure, float(compared.result.difference[0])
    first, second = (compared.systems[int(side[0])].name for side in compared.pairs.indices())
    if difference == 0:
        return f"{first} and {second} do not differ in {measure.name}."

    better, worse = (
        (first, second) if (difference > 0) != measure.lower_is_better else (second, first)
    )
    by = f"by {amount(measure, difference)} {measure.name}"
    if compared.better(0):
        return f"{better} is better than {worse} {by}."

    return f"{better} is ahead of {worse} {by}{_WITHHELD[compared.withheld(0)]}."


def detail(compared: SessionComparison) -> str:
    """Return the interval and the test of the difference of two systems; empty for more."""
    if len(compared.systems) != 2:
        return ""

    first, second = (compared.systems[int(side[0])].name for side in compared.pairs.indices())
    low, high, p_value = (
        float(part[0])
        for part in (compared.result.low, compared.result.high, compared.result.p_value)
    )
    percent = f"{100 * compared.query.options.confidence:g}%"
    ends = "" if math.isnan(low) else f"{percent} interval {signed(low)} to {signed(high)}; "
    test_words = report(compared.crossed[0]) if compared.crossed else probability_words(p_value)

    return f"{first} minus {second}: {ends}{test_words}.{_not_excluded(compared)}"


def _not_excluded(compared: SessionComparison) -> str:
    """Return the difference that would be found, so that nobody reads "no difference"."""
    detectable = float(compared.effects.detectable[0])
    if compared.better(0) or compared.withheld(0) or not detectable > 0:
        return ""

    size = amount(compared.query.measure, detectable)
    fewest = min(compared.cells, *(system.with_value for system in compared.systems))
    if compared.crossed:
        fewest = math.floor(compared.crossed[0].freedom[1]) + 1

    return (
        f" Not significant does not mean equal: a true difference of {size} would be found in "
        f"{power_in_words(fewest)} such studies."
    )


def report(result: OmnibusResult) -> str:
    """Return min F' with F1 and F2, as papers report them."""
    between = result.freedom[0]

    freedoms = (result.freedom[1], *(source.freedom for source in result.sources[1:]))
    parts = []
    for name, source, within in zip(_BY, result.sources, freedoms, strict=True):
        if source.statistic is None or source.p_value is None:
            parts.append(f"{name} has nothing to divide by")
        else:
            value = f"{statistic(source.statistic)}, {probability_words(source.p_value)}"
            parts.append(f"{name}({between:g}, {within:.3g}) = {value}")

    return "; ".join(parts)
