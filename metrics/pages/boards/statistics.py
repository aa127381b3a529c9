"""The statistics that are part of the leaderboard's page, and those that follow it.

Intervals of the shown means take almost no time. The set of the best compares every run of the
leaderboard: if that takes longer than the page itself, the page comes without it and requests the
leaderboard again, with it. Tiers and rank intervals are shown on request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Caution
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.boards.words import (
    across_sentence,
    missed_sentence,
    outlook_sentence,
    received_sentence,
)
from metrics.exports.comparisons.words import corrected_over, test_name
from metrics.pages.parts import Query
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import mean_intervals
from metrics.services.boards.standing_parts import (
    PARTS,
    Contrast,
    Standings,
    StandingsQuery,
    Tiering,
)
from metrics.services.boards.standings import MAX_RUNS, read_standings
from metrics.services.boards.versions import BEST
from metrics.services.values.effort import seconds_of_test

NONE = "none"
_COMPARED = ("tiers", "ranks", "expected")
_QUIET = ("intervals", *_COMPARED)
_MOST_SECONDS = 0.02


@dataclass(frozen=True)
class BoardStatistics:
    """The statistics of a page; `later` says that those of all pairs are still to be requested."""

    standings: Standings
    later: bool = False

    @property
    def tiers_tested(self) -> str:
        return self._tested(self.standings.tiers)

    @property
    def level(self) -> str:
        """Return the confidence of the set of the best, which is that of the family."""
        return f"{100 * (1 - self.standings.query.alpha):g}"

    @property
    def across(self) -> str:
        return across_sentence(self.standings.tiers) if self.standings.tiers else ""

    @property
    def expected(self) -> str:
        """Return how the first run is expected to do on other topics."""
        outlook = self.standings.expected
        return outlook_sentence(outlook, self.standings.measure) if outlook else ""

    @property
    def received(self) -> str:
        """Return how many runs the leaderboard has been tested on, and what that means."""
        found = self.standings.received
        return received_sentence(found) if found and found.runs else ""

    @property
    def baseline_tested(self) -> str:
        return self._tested(self.standings.baseline)

    @property
    def tiers_missed(self) -> str:
        """Return what the pairs that do not differ significantly could have shown."""
        tiers = self.standings.tiers
        return self._missed(tiers, tiers.family - tiers.significant) if tiers else ""

    @property
    def baseline_missed(self) -> str:
        """Return the same of the pairs with the baseline."""
        contrast = self.standings.baseline
        if contrast is None:
            return ""
        return self._missed(contrast, sum(bool(row and not row.mark) for row in contrast.rows))

    def _missed(self, part: Tiering | Contrast, pairs: int) -> str:
        topics = self.standings.topics or 0
        return missed_sentence(pairs, part.detectable, topics, self.standings.measure)

    def _tested(self, part: Tiering | Contrast | None) -> str:
        query = self.standings.query
        if part is None:
            return ""
        name = test_name(query.test, baseline=isinstance(part, Contrast))
        return f"{name}, {corrected_over(query.corrected_by, part.family)}, alpha = {query.alpha:g}"

    @property
    def too_few(self) -> bool:
        """Return whether there are too few topics for a verdict."""
        topics = self.standings.topics
        return topics is not None and topics < MIN_TOPICS

    @property
    def baseline_corrected(self) -> str:
        """Return the heading of the p values against the baseline."""
        corrected_by = self.standings.query.corrected_by
        if corrected_by is None:
            return "corrected p"
        return "p" if corrected_by == "none" else f"p ({corrected_by.replace('_', ' ').title()})"

    @property
    def cautions(self) -> list[str]:
        """Return each caution once, even if several parts have it."""
        parts = (self.standings.tiers, self.standings.expected, self.standings.baseline)
        found = [
            *self.standings.cautions,
            *(caution for part in parts if part for caution in part.cautions),
        ]
        return list(dict.fromkeys(caution.message for caution in found))


def asked_statistics(query: Query) -> StandingsQuery | None:
    """Return all parts unless the address names some, or `none`; a baseline adds its own part."""
    named = query.get("statistics") or ",".join(_QUIET)
    return StandingsQuery.requested({**query, "statistics": "" if named == NONE else named})


def read_statistics(
    board: Leaderboard, asked: StandingsQuery | None, query: Query, at_once: bool
) -> BoardStatistics | None:
    """Return the statistics of the page; if not `at_once`, only those that take little time.

    Raise StatisticsError if the address requests an impossible part. Default parts that are
    impossible are left out instead, with a caution; a leaderboard without a ranked run has none.
    """
    if asked is None or not (board.ranked or query.get("statistics") or asked.baseline):
        return None
    if not query.get("statistics"):
        asked = _without(asked, ("ranks",))
    # The run that is held in sight has an interval, too.
    rows = [*board.rows, board.pinned] if board.pinned else board.rows
    board = replace(board, measures=[board.sort], rows=rows)
    if query.get("statistics"):
        return BoardStatistics(read_standings(board=board, query=asked))
    if not at_once and len(board.order) <= MAX_RUNS and _seconds(board, asked) > _MOST_SECONDS:
        return BoardStatistics(
            read_standings(board=board, query=_without(asked, _COMPARED)), later=True
        )
    try:
        return BoardStatistics(read_standings(board=board, query=asked))
    except StatisticsError as error:
        if error.pointer == "baseline":
            raise
        standings = _read(board, _without(asked, _COMPARED))
        cautions = [*standings.cautions, Caution(error.code, error.message)]
        return BoardStatistics(replace(standings, cautions=cautions))


def _seconds(board: Leaderboard, asked: StandingsQuery) -> float:
    runs, topics = len(board.order), board.qrels.topics
    pairs = runs * (runs - 1) // 2
    return seconds_of_test(asked.test, runs, topics, pairs, asked.resamples)


def _without(asked: StandingsQuery, parts: tuple[str, ...]) -> StandingsQuery:
    return replace(
        asked, parts=tuple(part for part in PARTS if part in asked.parts and part not in parts)
    )


def _read(board: Leaderboard, asked: StandingsQuery) -> Standings:
    """Return the statistics, or only the intervals for a leaderboard of too many runs to compare."""
    if len(board.order) <= MAX_RUNS or asked.baseline or board.versions == BEST:
        return read_standings(board=board, query=asked)
    return Standings(asked, board.sort, {}, intervals=mean_intervals(board, asked.confidence))
