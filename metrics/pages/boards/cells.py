"""The cells of the leaderboard's table: means with their intervals, differences from the baseline, parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metrics.exports.comparisons.words import WITHHELD
from metrics.services.boards.columns import Cell, ShownColumn, shown_value
from metrics.services.boards.standing_parts import AgainstBaseline
from metrics.tables import probability, signed, with_minus

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
    """A mean and its interval as x positions and in words; `ends` is the interval alone."""

    low: str
    middle: str
    high: str
    text: str
    ends: str


@dataclass(frozen=True)
class BoardCell:
    """A mean on the leaderboard: `bar` if it ranks the runs, `unjudged` if few documents are judged.

    `indented` cells are in a column where others have a bar, aligned with their means; `ranking` cells are those of the
    measure that ranks the runs.

    `plain` cells, which most are, consist of their text only; a table of 20 measures has a thousand.
    """

    text: str
    best: bool = False
    note: str = ""
    bar: Bar | None = None
    unjudged: str = ""
    indented: bool = False
    ranking: bool = False

    @property
    def plain(self) -> bool:
        return not (self.best or self.note or self.unjudged or self.ranking)


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


def parameter_cell(value: Cell) -> ParameterCell:
    text = shown_value(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = "number" if number else "brief" if len(text) <= _BRIEF else ""
    return ParameterCell(
        text[:_CUT] + "…" * (len(text) > _CUT), kind, text if len(text) > _CUT else ""
    )


def unjudged_note(judged: float | None) -> str:
    if judged is None or judged >= LOW_JUDGED:
        return ""
    share = f"{100 * (1 - judged):.0f}%"
    return f"{share} of the top ten documents are unjudged and count as not relevant; the run may be better than its value"


def judged_share(judged: float) -> str:
    return f"{100 * judged:.0f}%"


def against_baseline(against: AgainstBaseline) -> Against:
    low, high = signed(against.low), signed(against.high)
    topics = f"better on {against.wins}, equal on {against.ties}, worse on {against.losses} topics"
    p_value = (
        "no p" if math.isnan(against.p_value) else f"p {probability(against.p_value)} uncorrected"
    )
    interval = "no interval" if math.isnan(against.low) else f"interval {low} to {high}"
    note = f"{interval}, {p_value}; {topics}"
    if against.withheld:
        note += f"; no verdict: {WITHHELD[against.withheld]}"
    if against.on_judged:
        p_value = probability(against.on_judged.p_adjusted)
        note += f"; on judged documents alone {signed(against.on_judged.difference)}, corrected p {p_value}"
    return Against(
        signed(against.difference), probability(against.p_adjusted), against.mark or "", note
    )
