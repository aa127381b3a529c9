"""Which statistics stand on the leaderboard's page, and which of them come after it.

Intervals of the shown means cost next to nothing. Tiers and rank intervals compare every run of the board: where that
takes longer than the page itself, the page comes without them and asks for the board again, with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Caution
from metrics.engine.significance.verdicts import MIN_TOPICS
from metrics.exports.comparisons.words import TEST_NAMES, corrected_over
from metrics.pages.parts import Query
from metrics.questions.boards import standings_query
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import mean_intervals
from metrics.services.boards.standings import (
    MAX_RUNS,
    PARTS,
    Contrast,
    Standings,
    StandingsQuery,
    Tiering,
    read_standings,
)
from metrics.services.values.effort import seconds_of_ranks, seconds_of_test

NONE = "none"
_COMPARED = ("tiers", "ranks")
_QUIET = ("intervals", *_COMPARED)
_MOST_SECONDS = 0.02


@dataclass(frozen=True)
class BoardStatistics:
    """The statistics of a page; `later` tells that tiers and rank intervals are still to be asked for."""

    standings: Standings
    later: bool = False

    @property
    def tiers_tested(self) -> str:
        return self._tested(self.standings.tiers)

    @property
    def baseline_tested(self) -> str:
        return self._tested(self.standings.baseline)

    def _tested(self, part: Tiering | Contrast | None) -> str:
        query = self.standings.query
        if part is None:
            return ""
        return f"{TEST_NAMES[query.test]}, {corrected_over(query.corrected_by, part.family)}, alpha = {query.alpha:g}"

    @property
    def too_few(self) -> bool:
        """Whether there are too few topics for a verdict."""
        topics = self.standings.topics
        return topics is not None and topics < MIN_TOPICS

    @property
    def baseline_corrected(self) -> str:
        """What stands above the p values against the baseline."""
        corrected_by = self.standings.query.corrected_by
        if corrected_by is None:
            return "p for all pairs"
        return "p" if corrected_by == "none" else f"p ({corrected_by.replace('_', ' ').title()})"

    @property
    def cautions(self) -> list[str]:
        """Each once, though several parts may have it."""
        parts = (self.standings.tiers, self.standings.baseline)
        found = [*self.standings.cautions, *(caution for part in parts if part for caution in part.cautions)]
        return list(dict.fromkeys(caution.message for caution in found))


def asked_statistics(query: Query) -> StandingsQuery | None:
    """Intervals, tiers and ranks unless the address names other parts, or `none`; a baseline comes on top."""
    named = query.get("statistics") or ",".join(_QUIET)
    return standings_query({**query, "statistics": "" if named == NONE else named})


def read_statistics(board: Leaderboard, query: Query, at_once: bool) -> BoardStatistics | None:
    """What the page of a board says beside its means; where not `at_once`, only as much as holds nobody up.

    StatisticsError where the address asks for what cannot be made. What stands on every page is left out instead, and
    a caution says so; a board without a ranked run has none.
    """
    asked = asked_statistics(query)
    if asked is None or not (board.ranked or query.get("statistics") or asked.baseline):
        return None
    board = replace(board, measures=[board.sort])
    if query.get("statistics"):
        return BoardStatistics(read_standings(board=board, query=asked))
    if not at_once and board.ranked <= MAX_RUNS and _seconds(board, asked) > _MOST_SECONDS:
        return BoardStatistics(read_standings(board=board, query=_without(asked, _COMPARED)), later=True)
    try:
        return BoardStatistics(read_standings(board=board, query=asked))
    except StatisticsError as error:
        if error.pointer == "baseline":
            raise
        standings = _read(board, _without(asked, _COMPARED))
        cautions = [*standings.cautions, Caution(error.code, error.message)]
        return BoardStatistics(replace(standings, cautions=cautions))


def _seconds(board: Leaderboard, asked: StandingsQuery) -> float:
    runs, topics = board.ranked, board.qrels.topics
    pairs = runs * (runs - 1) // 2
    tiers = seconds_of_test(asked.test, runs, topics, pairs, asked.resamples)
    return tiers + seconds_of_ranks(runs, topics, asked.rank_resamples)


def _without(asked: StandingsQuery, parts: tuple[str, ...]) -> StandingsQuery:
    return replace(asked, parts=tuple(part for part in PARTS if part in asked.parts and part not in parts))


def _read(board: Leaderboard, asked: StandingsQuery) -> Standings:
    """Also of a board of so many runs that no two of them are compared."""
    if board.ranked <= MAX_RUNS or asked.baseline:
        return read_standings(board=board, query=asked)
    return Standings(asked, board.sort, {}, intervals=mean_intervals(board, asked.confidence))
