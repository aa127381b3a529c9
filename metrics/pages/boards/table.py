"""The table of the leaderboard's page: its rows, and the intervals drawn on one scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

from metrics.engine.grammar import Measure
from metrics.exports.comparisons.words import WITHHELD
from metrics.pages.boards.statistics import BoardStatistics
from metrics.pages.parts import Query, changed
from metrics.services.boards.columns import Cell, ShownColumn, shown_value
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.mean_intervals import Ends, cut_note, within_range
from metrics.services.boards.standing_parts import AgainstBaseline, Standing, Standings
from metrics.services.boards.states import UNRANKED
from metrics.services.values.evaluate import JUDGED
from metrics.services.values.judged_views import Mean
from metrics.tables import (
    Column,
    aggregated,
    best_means,
    columns_of,
    figure,
    mean_cell,
    probability,
    signed,
    with_minus,
)
from runs.models import Run
from runs.services.runs import contradicted_ranks

# The width of the scale of the intervals, in pixels.
SCALE_WIDTH = 90.0
# Below this share most of the first ten documents are unjudged, and the mean says little about the run.
LOW_JUDGED = 0.5
_NARROW_SCALE = 0.05
# Characters of a text in a column of parameters, and of one that is not broken into lines.
_CUT, _BRIEF = 60, 24


@dataclass(frozen=True)
class Scale:
    """The range from the least to the greatest end of the intervals of a page, so that the bars of all rows are
    comparable."""

    low: float
    high: float

    def place(self, value: float) -> str:
        return f"{(value - self.low) / ((self.high - self.low) or 1.0) * SCALE_WIDTH:.1f}"

    @property
    def ends(self) -> tuple[str, str]:
        """Return the ends as text for the header."""
        places = 4 if self.high - self.low < _NARROW_SCALE else 2
        return with_minus(f"{self.low:.{places}f}"), with_minus(f"{self.high:.{places}f}")


@dataclass(frozen=True)
class Bar:
    """A mean and its interval as x positions, and in words."""

    low: str
    middle: str
    high: str
    text: str


@dataclass(frozen=True)
class BoardCell:
    """A mean on the leaderboard: `bar` if it ranks the runs, `unjudged` and the share `judged` if few documents are
    judged.

    `indented` cells are in a column where others have a bar, aligned with their means.

    `plain` cells, which most are, consist of their text only; a table of 20 measures has a thousand.
    """

    text: str
    best: bool = False
    note: str = ""
    bar: Bar | None = None
    unjudged: str = ""
    judged: str = ""
    indented: bool = False

    @property
    def plain(self) -> bool:
        return not (self.best or self.note or self.bar or self.unjudged or self.indented)


@dataclass(frozen=True)
class ParameterColumn:
    """A column of a parameter or cost: how it orders the rows now, and the order that a click on its name asks for."""

    column: ShownColumn
    sorting: str
    next_order: str


@dataclass(frozen=True)
class ParameterCell:
    """A value of such a column; a long text is cut, and `title` has all of it. `kind` is its CSS class: a number, or a
    text that fits in one line."""

    text: str
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class Against:
    """A run minus the baseline: `mark` is better or worse if that is significant, `note` gives the reasons."""

    difference: str
    p_value: str
    mark: str
    note: str


@dataclass(frozen=True)
class BoardLine:
    """One run on the leaderboard; parts that were not requested or have no result are None.

    `mine` is a run of the reader's, `pinned` the baseline, and `opens_tier` the first of a tier below another one.
    `contradicted` says how the run's rank column contradicts its scores; empty if it does not.
    """

    row: Row
    cells: list[BoardCell]
    parameters: list[ParameterCell]
    judged_topics: int | None
    standing: Standing | None
    against: Against | None
    mine: bool
    pinned: bool
    opens_tier: bool
    contradicted: str

    @property
    def incomplete(self) -> bool:
        return (self.row.evaluation.topics_answered or 0) < (self.judged_topics or 0)

    @property
    def unjudged(self) -> str:
        """Return a note on a low share of judged documents; empty if the share is not low."""
        return unjudged_note(self.row.judged)

    @property
    def judged(self) -> str:
        """Return the share of judged documents, in words if it is low: a number alone could be read as the share of
        unjudged ones."""
        if self.row.judged is None:
            return ""
        return judged_share(self.row.judged) if self.unjudged else f"{self.row.judged:.2f}"

    @property
    def since(self) -> str:
        """Return why a stale row is stale: older judgements or, with the same ones, an older engine."""
        evaluation = self.row.evaluation
        return f"qrels v{evaluation.qrels.version}" if not evaluation.qrels.active else "older engine"

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
        return f"ranked first, tied or alone, in {100 * share:.0f}% of the resamples; not its chance to be the best"

    @property
    def tier_note(self) -> str:
        groups = self.standing.groups if self.standing else None
        return f"no significant difference from runs that share a letter of {' '.join(groups)}" if groups else ""

    @property
    def classes(self) -> str:
        named = {"mine": self.mine, "pinned": self.pinned, "opens": self.opens_tier, "unranked": self.row.rank is None}
        return " ".join([self.row.state, *(name for name, holds in named.items() if holds)])


class BoardTable:
    """One page of a leaderboard as a table; `own_teams` are the reader's, and `query` is that of the page's address."""

    def __init__(self, board: Leaderboard, sure: BoardStatistics | None, *, own_teams: set[int], query: Query) -> None:
        self.board = board
        self.standings = sure.standings if sure else None
        self._later = bool(sure and sure.later)
        self._own_teams = own_teams
        self._query = query

    @property
    def ranked_by(self) -> str:
        """Return the order of the rows in words, or why there is none."""
        board = self.board
        version = f"qrels v{board.qrels.version}"
        if not board.ranked:
            kept = (
                " The values below come from earlier judgements or an older engine version." if self._has_stale else ""
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
        return f"provisional: {board.states.get('evaluated', 0):,} of {sum(board.states.values()):,} runs evaluated"

    @property
    def with_best(self) -> bool:
        return any(row.rank is not None for row in self.board.rows)

    @property
    def with_unranked(self) -> bool:
        return any(row.state == UNRANKED for row in self.board.rows)

    @property
    def columns(self) -> list[Column]:
        """Return the columns; that of the ranking measure has the ends of the scale."""
        board = self.board
        columns = columns_of(board.measures, None if board.arrange else board.sort, board.descending)
        ends = self.scale.ends if self.scale else None
        return [replace(column, ends=ends) if column.name == board.sort.name else column for column in columns]

    @property
    def parameters(self) -> list[ParameterColumn]:
        """Return the columns of parameters and costs."""
        by, found = self.board.arrange, []
        for column in self.board.columns:
            sorting = ("descending" if by.descending else "ascending") if by and by.column == column else ""
            found.append(ParameterColumn(column, sorting, f"{'-' * (sorting == 'ascending')}{column.name}"))
        return found

    @property
    def with_judged(self) -> bool:
        """Return whether the share of judged documents needs a column: it may be one of the measures."""
        return JUDGED not in self.board.measures

    @property
    def with_tiers(self) -> bool:
        return self._later or bool(self.standings and self.standings.tiers)

    @property
    def with_ranks(self) -> bool:
        return self._later or bool(self.standings and self.standings.ranks)

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
        tags = [row.run.tag for row in self.board.rows if row.evaluation.pk == pk]
        return (tags or list(Run.objects.filter(evaluations=pk).values_list("tag", flat=True)))[0], mean

    @cached_property
    def zero(self) -> str | None:
        """Return the x position of the baseline's mean on the scale."""
        if self.baseline is None or self.scale is None or not self.scale.low <= self.baseline[1] <= self.scale.high:
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
        return contradicted_ranks([row.run.pk for row in self.board.rows])

    @cached_property
    def lines(self) -> list[BoardLine]:
        best = best_means(self.board.rows, self.board.measures)
        found: list[BoardLine] = []
        for row in self.board.rows:
            found.append(self._line(row, best, found[-1] if found else None))
        return found

    def _line(self, row: Row, best: Mapping[str, Mean], above: BoardLine | None) -> BoardLine:
        standing = self.standings.of(row.evaluation.pk) if self.standings and row.rank is not None else None
        return BoardLine(
            row,
            [self._cell(row, measure, best) for measure in self.board.measures],
            [_parameter(row.cells.get(column.name)) for column in self.board.columns],
            row.evaluation.qrels.topics if row.has_values else None,
            standing,
            _against(standing.baseline) if standing and standing.baseline else None,
            row.run.team.pk in self._own_teams,
            str(row.run.pk) == self._query.get("baseline"),
            # Elsewhere than in the order of ranks a tier begins anywhere.
            not self.board.arrange
            and bool(standing and above and above.standing and standing.tier != above.standing.tier),
            self._contradicted.get(row.run.pk, ""),
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
        judged = judged_share(row.judged) if unjudged and row.judged is not None else ""
        return BoardCell(cell.text, cell.best, cell.note, bar, unjudged, judged, indented)

    def _bar(self, row: Row) -> Bar | None:
        ends = self._ends.get(row.evaluation.pk)
        mean, _ = row.values[self.board.sort.name]
        if ends is None or mean is None or self.standings is None or self.scale is None:
            return None
        low, high = (with_minus(figure(self.board.sort, end)) for end in ends)
        text = f"{_percent(self.standings)} interval {low} to {high}"
        place = self.scale.place
        return Bar(place(ends[0]), place(mean), place(ends[1]), text)

    @cached_property
    def _ends(self) -> dict[int, Ends]:
        return within_range(self.standings.intervals, self.board.sort) if self.standings else {}


def _parameter(value: Cell) -> ParameterCell:
    text = shown_value(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = "number" if number else "brief" if len(text) <= _BRIEF else ""
    return ParameterCell(text[:_CUT] + "…" * (len(text) > _CUT), kind, text if len(text) > _CUT else "")


def unjudged_note(judged: float | None) -> str:
    if judged is None or judged >= LOW_JUDGED:
        return ""
    share = f"{100 * (1 - judged):.0f}%"
    return (
        f"{share} of the top ten documents are unjudged and count as not relevant; the run may be better than its value"
    )


def judged_share(judged: float) -> str:
    return f"{100 * judged:.0f}% judged"


def _percent(standings: Standings) -> str:
    return f"{100 * standings.query.confidence:g}%"


def _against(against: AgainstBaseline) -> Against:
    low, high = signed(against.low), signed(against.high)
    topics = f"better on {against.wins}, equal on {against.ties}, worse on {against.losses} topics"
    p_value = "no p" if math.isnan(against.p_value) else f"p {probability(against.p_value)} uncorrected"
    interval = "no interval" if math.isnan(against.low) else f"interval {low} to {high}"
    note = f"{interval}, {p_value}; {topics}"
    if against.withheld:
        note += f"; no verdict: {WITHHELD[against.withheld]}"
    return Against(signed(against.difference), probability(against.p_adjusted), against.mark or "", note)
