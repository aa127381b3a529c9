"""The table of the leaderboard's page: its rows, and the intervals drawn on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from metrics.engine.grammar import Measure
from metrics.exports.boards.tables import best_of
from metrics.exports.boards.words import percent
from metrics.exports.table import BEST_MARK
from metrics.pages.boards.cells import (
    Against,
    Bar,
    BoardCell,
    ParameterCell,
    ParameterColumn,
    Scale,
    against_baseline,
    judged_share,
    parameter_cell,
    unjudged_note,
)
from metrics.pages.boards.statistics import BoardStatistics
from metrics.pages.parts import Query, changed
from metrics.services.boards.columns import LABEL
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.mean_intervals import Ends, cut_note, within_range
from metrics.services.boards.standing_parts import Standing, Standings
from metrics.services.boards.states import UNRANKED
from metrics.services.queue.vectors import JUDGED
from metrics.services.values.judged_views import Mean
from metrics.tables import (
    MeasureColumn,
    aggregated,
    best_means,
    columns_of,
    figure,
    mean_cell,
    with_minus,
)
from runs.services.runs import contradicted_ranks


@dataclass(frozen=True)
class BoardLine:
    """One run on the leaderboard; parts that were not requested or have no result are None.

    `mine` is a run of the reader's, `pinned` the baseline, `marked` one that can be the best, and `opens_tier` the first
    of a tier below another one.
    `contradicted` says how the run's rank column contradicts its scores; empty if it does not. `short` names the run in
    the address of a selection.
    """

    row: Row
    cells: list[BoardCell]
    parameters: list[ParameterCell]
    judged_topics: int | None
    standing: Standing | None
    against: Against | None
    mine: bool
    pinned: bool
    marked: bool
    opens_tier: bool
    contradicted: str
    short: str

    @property
    def incomplete(self) -> bool:
        return (self.row.evaluation.topics_answered or 0) < (self.judged_topics or 0)

    @property
    def unjudged(self) -> str:
        """Return a note on a low share of judged documents; empty if the share is not low."""
        return unjudged_note(self.row.judged)

    @property
    def judged(self) -> str:
        """Return the share of judged documents."""
        return "" if self.row.judged is None else judged_share(self.row.judged)

    @property
    def since(self) -> str:
        """Return why a stale row is stale: older judgements or, with the same ones, an older engine."""
        evaluation = self.row.evaluation
        return (
            f"qrels v{evaluation.qrels.version}" if not evaluation.qrels.active else "older engine"
        )

    @property
    def ranks(self) -> str:
        """Return the ends of the rank interval, or the one rank if both are equal; empty without an interval."""
        if self.standing is None or self.standing.rank_low is None:
            return ""
        low, high = self.standing.rank_low, self.standing.rank_high
        return f"{low}\N{EN DASH}{high}" if low != high else str(low)

    @property
    def ranks_note(self) -> str:
        """Return how often the run is first when the topics are resampled."""
        share = self.standing.share_first if self.standing else None
        if share is None:
            return ""
        resamples = f"ranked first, tied or alone, in {100 * share:.0f}% of the resamples"
        chance = self.standing.chance_best if self.standing else None
        if chance is None:
            return f"{resamples}; not its chance to be the best"
        return (
            f"{resamples}; its estimated chance to be the best on other topics is {percent(chance)}"
        )

    @property
    def tier_note(self) -> str:
        groups = self.standing.groups if self.standing else None
        return (
            f"no significant difference from runs that share a letter of {' '.join(groups)}"
            if groups
            else ""
        )

    @property
    def classes(self) -> str:
        named = {
            "mine": self.mine,
            "pinned": self.pinned,
            "opens": self.opens_tier,
            "unranked": self.row.rank is None,
        }
        return " ".join([self.row.state, *(name for name, holds in named.items() if holds)])


class BoardTable:
    """One page of a leaderboard as a table; `own_teams` are the reader's, `query` is that of the page's address, and
    `shorts` are the names of runs in a selection."""

    def __init__(
        self,
        board: Leaderboard,
        sure: BoardStatistics | None,
        *,
        own_teams: set[int],
        query: Query,
        shorts: Mapping[UUID, str],
    ) -> None:
        self.board = board
        self._shorts = shorts
        self.standings = sure.standings if sure else None
        self._own_teams = own_teams
        self._query = query

    @property
    def ranked_by(self) -> str:
        """Return the order of the rows in words, or why there is none."""
        board = self.board
        version = f"qrels v{board.qrels.version}"
        if not board.ranked:
            kept = (
                " The values below come from earlier judgements or an older engine version."
                if self._has_stale
                else ""
            )
            return f"No run has been evaluated against {version} yet, so none is ranked.{kept}"
        first = "highest" if board.descending else "lowest"
        some = f"{board.topics:,} of " if board.topics != board.qrels.topics else ""
        figures = f"{aggregated(board.sort)} over {some}{board.qrels.topics:,} topics"
        return f"Ranked by {board.sort.name}, {first} first, {figures}, {version}."

    @property
    def _has_stale(self) -> bool:
        return any(row.stale for row in self.board.rows)

    @property
    def provisional(self) -> str:
        """Return a note on how many runs are ranked while others wait; empty once all are evaluated."""
        board = self.board
        if not (board.ranked and board.waiting):
            return ""
        return f"provisional: {board.progress}"

    @property
    def with_best(self) -> bool:
        return any(row.rank is not None for row in self.board.rows)

    @property
    def with_unranked(self) -> bool:
        return any(row.state == UNRANKED for row in self.board.rows)

    @property
    def columns(self) -> list[MeasureColumn]:
        """Return the columns; that of the ranking measure has the ends of the scale."""
        board = self.board
        columns = columns_of(
            board.measures, None if board.arrange else board.sort, board.descending
        )
        ends = self.scale.ends if self.scale else None
        return [
            replace(column, ends=ends) if column.name == board.sort.name else column
            for column in columns
        ]

    @property
    def parameters(self) -> list[ParameterColumn]:
        """Return the columns of parameters and costs."""
        by, found = self.board.arrange, []
        for column in self.board.columns:
            sorting = (
                ("descending" if by.descending else "ascending")
                if by and by.column == column
                else ""
            )
            found.append(
                ParameterColumn(column, sorting, f"{'-' * (sorting == 'ascending')}{column.name}")
            )
        return found

    @cached_property
    def own_team(self) -> str:
        """Return the team of the reader's to which all shown runs belong; empty if there are others: then each row
        names its team."""
        teams = {line.row.run.team.slug for line in self.lines if line.mine}
        return teams.pop() if len(teams) == 1 and all(line.mine for line in self.lines) else ""

    @property
    def with_judged(self) -> bool:
        """Return whether the share of judged documents needs a column: it may be one of the measures."""
        return JUDGED not in self.board.measures

    @property
    def with_labels(self) -> bool:
        """Return whether labels stand beside the names of runs: they may have a column."""
        return all(column.space != LABEL for column in self.board.columns)

    @cached_property
    def best(self) -> str:
        """Return which runs can be the best, the first statement of the page."""
        return best_of(self.board, self.standings)

    @property
    def best_mark(self) -> str:
        """Return the mark of the runs that can be the best; empty if none is marked."""
        tiers = self.standings.tiers if self.standings else None
        return BEST_MARK if tiers and tiers.marks_best else ""

    @property
    def with_tiers(self) -> bool:
        """Return whether tiers have a column: at first they would be read as differences."""
        return bool(self._query.get("statistics") and self.standings and self.standings.tiers)

    @property
    def with_ranks(self) -> bool:
        return bool(self.standings and self.standings.ranks)

    @property
    def confidence(self) -> str:
        return _percent(self.standings) if self.standings else ""

    @cached_property
    def scale(self) -> Scale | None:
        """Return the scale, or None if the page has no interval of the sorting measure."""
        ends = [end for pair in self._ends.values() for end in pair]
        return Scale(min(ends), max(ends)) if ends else None

    @property
    def cut(self) -> str:
        """Return a note on bars that are cut at the range of the measure; empty if none is."""
        return cut_note(self.standings.intervals, self.board.sort) if self.standings else ""

    @cached_property
    def baseline(self) -> tuple[str, float] | None:
        """Return tag and mean of the baseline, which may be on another page."""
        contrast = self.standings.baseline if self.standings else None
        if contrast is None:
            return None
        pk, mean = self.board.order[contrast.rows.index(None)]
        held = [self.board.held] if self.board.held else []
        return next(
            row.run.tag for row in (*self.board.rows, *held) if row.evaluation.pk == pk
        ), mean

    @cached_property
    def zero(self) -> str | None:
        """Return the x position of the baseline's mean on the scale."""
        if (
            self.baseline is None
            or self.scale is None
            or not self.scale.low <= self.baseline[1] <= self.scale.high
        ):
            return None
        return self.scale.place(self.baseline[1])

    @cached_property
    def pins(self) -> str:
        """Return the address for pinning a run, up to its id."""
        kept = self.unpinned
        return f"{kept}{'&' if len(kept) > 1 else ''}baseline="

    @cached_property
    def unpinned(self) -> str:
        return changed(self._query, baseline=None)

    @cached_property
    def _contradicted(self) -> dict[UUID, str]:
        held = [self.board.held] if self.board.held else []
        return contradicted_ranks([row.run.pk for row in (*self.board.rows, *held)])

    @cached_property
    def lines(self) -> list[BoardLine]:
        best = best_means(self.board.rows, self.board.measures)
        found: list[BoardLine] = []
        for row in self.board.rows:
            found.append(self._line(row, best, found[-1] if found else None))
        return found

    @cached_property
    def held(self) -> BoardLine | None:
        """Return the baseline, which stays in sight below the header of the table."""
        if self.board.held:
            return self._line(
                self.board.held, best_means(self.board.rows, self.board.measures), None
            )
        return next(
            (line for line in self.lines if line.pinned and line.row.rank is not None), None
        )

    def _line(self, row: Row, best: Mapping[str, Mean], above: BoardLine | None) -> BoardLine:
        standing = (
            self.standings.of(row.evaluation.pk)
            if self.standings and row.rank is not None
            else None
        )
        return BoardLine(
            row,
            [self._cell(row, measure, best) for measure in self.board.measures],
            [parameter_cell(row.cells.get(column.name)) for column in self.board.columns],
            row.evaluation.qrels.topics if row.has_values else None,
            standing,
            against_baseline(standing.baseline) if standing and standing.baseline else None,
            row.run.team.pk in self._own_teams,
            str(row.run.pk) == self._query.get("baseline"),
            bool(self.standings and self.standings.is_marked(row.evaluation.pk)),
            # Elsewhere than in the order of ranks a tier begins anywhere.
            self.with_tiers
            and not self.board.arrange
            and bool(
                standing and above and above.standing and standing.tier != above.standing.tier
            ),
            self._contradicted.get(row.run.pk, ""),
            self._shorts.get(row.run.pk, ""),
        )

    def _cell(self, row: Row, measure: Measure, best: Mapping[str, Mean]) -> BoardCell:
        """Return a cell. Only a ranked run can be the best, and one that is not evaluated has no values."""
        if not row.has_values:
            return BoardCell("")
        to_reach = best.get(measure.name) if row.rank is not None else None
        cell = mean_cell(measure, row.values[measure.name], row.evaluation.qrels.topics, to_reach)
        bar = self._bar(row) if measure == self.board.sort else None
        unjudged = unjudged_note(row.judged) if measure == JUDGED else ""
        indented = measure == self.board.sort and self.scale is not None and bar is None
        return BoardCell(
            cell.text,
            cell.best,
            cell.note,
            bar,
            unjudged,
            indented,
            ranking=measure == self.board.sort,
        )

    def _bar(self, row: Row) -> Bar | None:
        ends = self._ends.get(row.evaluation.pk)
        mean, _ = row.values[self.board.sort.name]
        if ends is None or mean is None or self.standings is None or self.scale is None:
            return None
        low, high = (with_minus(figure(self.board.sort, end)) for end in ends)
        text = f"{_percent(self.standings)} interval {low} to {high}"
        place = self.scale.place
        return Bar(place(ends[0]), place(mean), place(ends[1]), text, f"{low} to {high}")

    @cached_property
    def _ends(self) -> dict[int, Ends]:
        return within_range(self.standings.intervals, self.board.sort) if self.standings else {}


def _percent(standings: Standings) -> str:
    return f"{100 * standings.query.confidence:g}%"
