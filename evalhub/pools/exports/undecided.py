"""What unjudged documents decide between two runs, in a sentence."""

from __future__ import annotations

from evalhub.pools.services.undecided import Undecided
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import signed


def sentence(answer: Undecided) -> str:
    """Return whether the same run is ahead whatever the unjudged documents are."""
    bounds, measure = answer.bounds, answer.query.measure.name
    names = names_of([answer.a.run, answer.b.run])
    a, b = names[answer.a.run], names[answer.b.run]
    count = len(bounds.documents)
    if not count:
        return f"No unjudged document can change the difference of {a} and {b} by {measure}."

    span = (
        f"the mean difference of {measure} is {signed(bounds.difference)}, and between "
        f"{signed(bounds.low)} and {signed(bounds.high)} whatever the {count:,} unjudged documents "
        "that count are"
    )
    if bounds.decided:
        ahead, behind = (a, b) if bounds.difference > 0 else (b, a)
        return f"{ahead} stays ahead of {behind}: {span}."
    return f"Unjudged documents decide which of {a} and {b} is ahead: {span}."
