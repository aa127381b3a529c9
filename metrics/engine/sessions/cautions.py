"""The cautions of tests in the words of sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from metrics.engine.sessions.designs import Design, PairedValues
from metrics.engine.significance.pairs import Caution

# Tests speak of runs and topics; what they compare here are systems on one of these, whose number they count.
UNITS: dict[Design, str] = {
    "paired": "pairs of topic and searcher",
    "latin_square": "sessions",
    "two_way": "topics",
    "unpaired": "sessions of a system",
}
_CODES: dict[Design, str] = {"paired": "few_cells", "unpaired": "few_sessions"}


def of_sessions(cautions: Iterable[Caution], design: Design) -> tuple[Caution, ...]:
    """Return the cautions of a test with sessions or cells of a design instead of topics, and systems instead of
    runs."""
    many, *rest = UNITS[design].split(" ", 1)
    unit = " ".join([many.removesuffix("s"), *rest])
    words = {"topics": UNITS[design], "topic": unit, "runs": "systems", "run": "system"}
    pattern = re.compile(rf"\b({'|'.join(words)})\b(?! and searcher)")
    return tuple(
        replace(
            caution,
            code=_CODES.get(design, caution.code) if caution.code == "few_topics" else caution.code,
            message=pattern.sub(lambda found: words[found[0]], caution.message),
        )
        for caution in cautions
    )


def dependent_cells(values: PairedValues) -> tuple[Caution, ...]:
    """Return the caution of a topic or a searcher that is in several pairs, which a paired test takes for independent
    all the same."""
    pairs, topics, searchers = len(values.topic), len(np.unique(values.topic)), len(np.unique(values.searcher))
    if (values.searcher < 0).all() or pairs == topics == searchers:
        return ()
    message = (
        f"the {pairs:,} pairs of topic and searcher are of {counted(topics, 'topic')} and "
        f"{counted(searchers, 'searcher')}, but the test takes them for independent: where systems suit some topics or "
        "searchers better than others, p is too small; the comparison by topic (design=two_way) allows for topics, not "
        "for searchers"
    )
    return (Caution("dependent_cells", message),)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 session, 1,200 sessions."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
