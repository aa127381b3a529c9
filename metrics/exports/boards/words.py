"""Sentences about the statistics of a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.effect_sizes import power_in_words
from metrics.exports.table import BEST_MARK
from metrics.services.boards.standing_parts import Outlook, Received, Standings, Tiering
from metrics.tables import amount, figure


def percent(share: float) -> str:
    """Return an estimated chance in whole per cent, never as 0 or 100."""
    if share < 0.01:
        return "less than 1%"
    return "more than 99%" if share > 0.99 else f"{100 * share:.0f}%"


def best_sentence(standings: Standings, names: Mapping[int, str]) -> str:
    """Return a sentence on the runs that can be the best; empty without a set of the best.

    `names` are by evaluation. That of the only run in the set may be missing: on another page.
    """
    flags = standings.tiers.best if standings.tiers else None
    if flags is None:
        return ""

    best = [names.get(pk) for pk, place in standings.places.items() if flags[place]]
    return best_of_runs(best, len(standings.places), standings.query.alpha)


def best_of_runs(best: Sequence[str | None], runs: int, alpha: float) -> str:
    """Return the same from the names of the runs that can be the best, None for one not shown."""
    if len(best) == runs:
        return f"Any of the {runs:,} runs can be the best: no difference is significant."

    level = f"With {100 * (1 - alpha):g}% confidence"
    if len(best) > 1:
        return (
            f"{level} the best of {runs:,} runs is one of these {len(best):,}, marked {BEST_MARK}."
        )
    if best[0] is None:
        return f"{level} the best of {runs:,} runs is the one marked {BEST_MARK}."

    return f"{level} {best[0]} is the best of {runs:,} runs, marked {BEST_MARK}."


def across_sentence(tiers: Tiering) -> str:
    """Return a sentence on the pairs of runs in different tiers that do not differ."""
    if not tiers.across:
        return ""

    pairs = "1 pair" if tiers.across == 1 else f"{tiers.across:,} pairs"
    return f"Of {pairs} in different tiers {tiers.undecided_across:,} do not differ significantly."


def outlook_sentence(outlook: Outlook, measure: Measure) -> str:
    """Return sentences on the run with the best mean: what is expected of it on other topics."""
    excess = figure(measure, outlook.excess)
    change = f"be {excess} worse there, as the best of many runs looks better than it is"
    if excess == figure(measure, 0.0):
        change = "keep its mean there"

    return (
        f"The run with the best mean is expected to {change}. Its estimated chance to be the best "
        f"there is {percent(max(outlook.chances))}."
    )


def missed_sentence(pairs: int, detectable: float, topics: int, measure: Measure) -> str:
    """Return a sentence on the difference that pairs without significance could have shown."""
    if not detectable > 0:
        return ""

    which = f"half of the {pairs:,} pairs, each tested alone,"
    if pairs == 1:
        which = "the 1 pair, tested alone,"

    return (
        f"Not significant does not mean equal: {which} would show a true difference of "
        f"{amount(measure, detectable)} in {power_in_words(topics)} samples of {topics:,} topics."
    )


def received_sentence(received: Received) -> str:
    """Return sentences on the runs that were ever tested, which p values do not account for."""
    runs = f"{received.runs:,} run{'s' * (received.runs != 1)}"
    teams = f"{received.teams:,} team{'s' * (received.teams != 1)}"
    withdrawn = f", {received.withdrawn:,} of them withdrawn" if received.withdrawn else ""

    return (
        f"{runs} of {teams} since {received.since:%Y-%m-%d}{withdrawn}. Teams have seen these "
        "scores. p values do not correct for repeated submissions."
    )
