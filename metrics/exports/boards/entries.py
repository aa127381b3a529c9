"""The sentence of a leaderboard on a collection with phases."""

from __future__ import annotations

from metrics.services.boards.entries import OFFICIAL
from metrics.services.boards.leaderboard import EntryCounts


def entries_sentence(counts: EntryCounts) -> str:
    """Return which runs of a collection with phases are ranked."""
    others = f"{counts.others:,} other run{'s' * (counts.others != 1)}"
    if counts.shown == OFFICIAL:
        return f"Official entries alone; {others} of the collection {'is' if counts.others == 1 else 'are'} left out."
    return f"{counts.official:,} official entries and {others}; those that were withdrawn or disqualified have no rank."
