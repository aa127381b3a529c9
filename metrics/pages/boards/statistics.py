"""The statistics that are part of the leaderboard's page, and those that follow it.

The intervals of the means on the page take almost no time. The set of the best compares every run
of the leaderboard: if that takes longer than the page itself, the page comes without it and
requests the leaderboard again, with it. Tiers and rank intervals are computed on request.
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
    """The statistics of a page; with `later`, the page has yet to request those of all pairs."""

    standings: Standings
    later: bool = False

    @property
    def tiers_test(self) -> str:
        return self._test_words(self.standings.tiers)

    @property
    def level(self) -> str:
        """Return the confidence of the set of the best, in percent, which is that of the family."""
        return f"{100 * (1 - self.standings.query.alpha):g}"

    @property
    def across(self) -> str:
        return across_sentence(self.standings.tiers) if self.standings.tiers else ""

    @property
    def expected(self) -> str:
        """Return how the first run may do on other topics."""
        outlook = self.standings.expected
        return outlook_sentence(outlook, self.standings.measure) if outlook else ""

    @property
    def received(self) -> str:
        """Return how many runs the leaderboard has been tested on, and what that means."""
        received = self.standings.received
        return received_sentence(received) if received and received.runs else ""

    @property
    def baseline_test(self) -> str:
        return self._test_words(self.standings.baseline)

    @property
    def tiers_missed(self) -> str:
        """Return which difference the pairs without a significant one could have shown."""
        tiers = self.standings.tiers
        return self._missed_words(tiers, tiers.family - tiers.significant) if tiers else ""

    @property
    def baseline_missed(self) -> str:
        """Return the same for the pairs with the baselines."""
        contrast = self.standings.baseline
        if contrast is None:
            return ""
        return self._missed_words(
            contrast, sum(bool(row and not row.mark) for rows in contrast.rows for row in rows)
        )

    def _missed_words(self, part: Tiering | Contrast, pairs: int) -> str:
        topics = self.standings.topics or 0
        return missed_sentence(pairs, part.detectable, topics, self.standings.measure)

    def _test_words(self, part: Tiering | Contrast | None) -> str:
        query = self.standings.query
        if part is None:
            return ""
        name = test_name(query.test, baseline=isinstance(part, Contrast) and part.pairs.are_some)
        return f"{name}, {corrected_over(query.corrected_by, part.family)}, alpha = {query.alpha:g}"

    @property
    def too_few(self) -> bool:
        """Return whether there are too few topics for a verdict."""
        topics = self.standings.topics
        return topics is not None and topics < MIN_TOPICS

    @property
    def baseline_corrected(self) -> str:
        """Return the heading of the p values against a baseline."""
        corrected_by = self.standings.query.corrected_by
        if corrected_by is None:
            return "corrected p"
        return "p" if corrected_by == "none" else f"p ({corrected_by.replace('_', ' ').title()})"

    @property
    def cautions(self) -> list[str]:
        """Return each caution once, even if several parts have it."""
        parts = (self.standings.tiers, self.standings.expected, self.standings.baseline)
        cautions = [
            *self.standings.cautions,
            *(caution for part in parts if part for caution in part.cautions),
        ]
        return list(dict.fromkeys(caution.message for caution in cautions))


def statistics_question(query: Query) -> StandingsQuery | None:
    """Return the parts that the address names: all by default, and none for `none`.

    A baseline adds its own part.
    """
    named = query.get("statistics") or ",".join(_QUIET)
    return StandingsQuery.requested({**query, "statistics": "" if named == NONE else named})


def read_statistics(
    board: Leaderboard, question: StandingsQuery | None, query: Query, at_once: bool
) -> BoardStatistics | None:
    """Return the statistics of the page; if not `at_once`, only those that take little time.

    Raise StatisticsError if the address requests an impossible part. A default part that is
    impossible is left out instead, with a caution. Without a ranked run there are no statistics.
    """
    if question is None or not (board.ranked or query.get("statistics") or question.baselines):
        return None

    if not query.get("statistics"):
        question = _without(question, ("ranks",))

    # The baseline that stays in sight has an interval, too.
    rows = [*board.rows, board.pinned] if board.pinned else board.rows
    board = replace(board, measures=[board.sort], rows=rows)
    if query.get("statistics"):
        return BoardStatistics(read_standings(board=board, query=question))
    if not at_once and len(board.order) <= MAX_RUNS and _seconds(board, question) > _MOST_SECONDS:
        return BoardStatistics(
            read_standings(board=board, query=_without(question, _COMPARED)), later=True
        )

    try:
        return BoardStatistics(read_standings(board=board, query=question))
    except StatisticsError as error:
        if error.pointer == "baseline":
            raise
        standings = _read(board, _without(question, _COMPARED))
        cautions = [*standings.cautions, Caution(error.code, error.message)]
        return BoardStatistics(replace(standings, cautions=cautions))


def _seconds(board: Leaderboard, question: StandingsQuery) -> float:
    runs, topics = len(board.order), board.judged_topics
    pairs = runs * (runs - 1) // 2
    return seconds_of_test(question.test, runs, topics, pairs, question.resamples)


def _without(question: StandingsQuery, parts: tuple[str, ...]) -> StandingsQuery:
    return replace(
        question,
        parts=tuple(part for part in PARTS if part in question.parts and part not in parts),
    )


def _read(board: Leaderboard, question: StandingsQuery) -> Standings:
    """Return the statistics, or only the intervals for more runs than can be compared."""
    if len(board.order) <= MAX_RUNS or question.baselines or board.versions == BEST:
        return read_standings(board=board, query=question)
    return Standings(question, board.sort, {}, intervals=mean_intervals(board, question.confidence))
