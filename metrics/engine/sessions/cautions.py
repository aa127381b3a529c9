"""The cautions of tests in the words of sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.sessions.designs import Crossing, Design, Factors
from metrics.engine.significance.pairs import Caution

# Tests speak of runs and topics. Here they compare systems, and count these instead of topics.
UNITS: dict[Design, str] = {
    "crossed": "sessions",
    "paired": "pairs of topic and searcher",
    "latin_square": "sessions",
    "two_way": "topics",
    "unpaired": "sessions of a system",
}
# The most names of topics or searchers in a caution.
_NAMED = 3
_CODES: dict[Design, str] = {"paired": "few_cells", "unpaired": "few_sessions"}


def of_sessions(
    cautions: Iterable[Caution], design: Design, units: str = ""
) -> tuple[Caution, ...]:
    """Return the cautions of a test in other words: systems for runs, and for topics these units or
    those of the design."""
    units = units or UNITS[design]
    plural, *qualifiers = units.split(" ", 1)
    unit = " ".join([plural.removesuffix("s"), *qualifiers])
    words = {"topics": units, "topic": unit, "runs": "systems", "run": "system"}
    pattern = re.compile(rf"\b({'|'.join(words)})\b(?! and searcher)")

    return tuple(
        replace(
            caution,
            code=_CODES.get(design, caution.code) if caution.code == "few_topics" else caution.code,
            message=pattern.sub(lambda match: words[match[0]], caution.message),
        )
        for caution in cautions
    )


def dependent_cells(
    cells: int, topic: Ints, searcher: Ints, factors: Factors, design: Design, crossed: bool
) -> tuple[Caution, ...]:
    """Return the caution of recurring topics or searchers, in a test of independent cells.

    `topic` and `searcher` are those of each cell, -1 where there is none; `factors` have their
    names, and `crossed` says whether the sessions can be compared by searchers and topics.
    """
    recurring = [
        _named(np.flatnonzero(np.bincount(unit[unit >= 0]) > 1), names, noun)
        for unit, names, noun in (
            (topic, factors.topics, "topic"),
            (searcher, factors.searchers, "searcher"),
        )
    ]

    if not any(recurring):
        return ()

    if crossed:
        instead = "the crossed analysis (design=crossed) allows for both"
    elif design == "paired":
        instead = "compare by topic (design=two_way), which allows for topics, not for searchers"
    else:
        instead = "these sessions allow no crossed analysis, which would count them"

    where = "where topics or searchers differ"
    if design in ("paired", "latin_square"):
        where = "where systems suit some topics or searchers better than others"
    message = (
        f"the {cells:,} {UNITS[design].removesuffix(' of a system')} are not independent, as "
        f"{' and '.join(filter(None, recurring))} recur, but the test takes them for independent: "
        f"{where}, p is too small; {instead}"
    )

    return (Caution("dependent_cells", message),)


def left_out(crossings: list[Crossing]) -> tuple[Caution, ...]:
    """Return the caution of searchers and topics that a crossed analysis does not take; of several
    analyses, that of the one with the most."""
    largest = max(
        crossings, key=lambda crossing: crossing.searchers_left_out + crossing.topics_left_out
    )
    parts = [
        f"{counted(number, noun)} with {'only some of the' if crosses else 'several'} systems"
        for number, noun, crosses in (
            (largest.searchers_left_out, "searcher", largest.searchers_cross),
            (largest.topics_left_out, "topic", largest.topics_cross),
        )
        if number
    ]

    if not parts:
        return ()

    where = "some pairs are compared " if len(crossings) > 1 else ""
    message = f"{where}without the sessions of {' and '.join(parts)}"
    return (Caution("sessions_left_out", message),)


def _named(places: Ints, names: list[bytes], noun: str) -> str:
    """Return how many topics or searchers these are, with the first names; empty for none."""
    if not len(places):
        return ""
    first_names = [names[place].decode(errors="replace")[:30] for place in places[:_NAMED].tolist()]
    more = f" and {len(places) - _NAMED:,} more" if len(places) > _NAMED else ""
    return f"{counted(len(places), noun)} ({', '.join(first_names)}{more})"


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 session, 1,200 sessions."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
