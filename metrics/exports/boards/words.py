"""The sentences that a leaderboard says of its statistics."""

from __future__ import annotations

from metrics.engine.grammar import Measure
from metrics.engine.significance.effect_sizes import power_in_words
from metrics.services.boards.standing_parts import Outlook, Received
from metrics.tables import amount, figure


def percent(share: float) -> str:
    """Return a share in whole per cent, never one that is not quite reached as 0 or 100."""
    if 0 < share < 0.01:
        return "less than 1%"
    return "more than 99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def outlook_sentence(found: Outlook, confidence: float, runs: int, measure: Measure) -> str:
    """Return what the means of so many runs are worth on other topics."""
    among = "It is" if found.holding == 1 else f"One of {found.holding:,} runs is"
    return (
        f"{100 * found.kept:.0f}% of the differences between the means are expected to remain. The run that is "
        f"most likely the best there has a chance of {percent(max(found.chances))}. {among} the best with "
        f"{100 * confidence:g}%. "
        f"Among {runs:,} equal runs the best would look {figure(measure, found.luck)} better than it is."
    )


def missed_sentence(detectable: float, topics: int, measure: Measure, significant: int) -> str:
    """Return what the pairs that are not significant could have shown, so that nobody reads "no difference"."""
    if not detectable > 0:
        return ""
    other = "other " if significant else ""
    return (
        f"Not significant does not mean equal: half of the {other}pairs, each tested alone, would show a true "
        f"difference of {amount(measure, detectable)} in {power_in_words(topics)} samples of {topics:,} topics."
    )


def received_sentence(found: Received) -> str:
    """Return how many runs of how many teams were tested, and that no p accounts for them."""
    runs = f"{found.runs:,} run{'s' * (found.runs != 1)} of {found.teams:,} team{'s' * (found.teams != 1)}"
    withdrawn = f", {found.withdrawn:,} of them withdrawn" if found.withdrawn else ""
    return (
        f"{runs} came since {found.since:%Y-%m-%d}{withdrawn}. Teams may have seen these scores: p values do "
        "not correct for repeated submissions."
    )
