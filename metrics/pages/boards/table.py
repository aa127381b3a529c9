"""The table of the leaderboard's page: a row for each run, its intervals drawn on one scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from metrics.engine.measures.grammar import Measure
from metrics.exports import table
from metrics.exports.boards.tables import best_of
from metrics.exports.boards.words import percent
from metrics.exports.comparisons.words import WITHHELD
from metrics.exports.table import BEST_MARK, Sorting
from metrics.pages.boards.statistics import BoardStatistics
from metrics.pages.parts import Query, query_string
from metrics.services.boards.columns import LABEL, Cell, shown_value
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.mean_intervals import Ends, cut_note, within_range
from metrics.services.boards.replicates import Spread
from metrics.services.boards.standing_parts import Standing, Standings
from metrics.services.boards.states import UNRANKED
from metrics.services.queue.vectors import JUDGED
from metrics.tables import (
    SortableColumn,
    aggregated,
    best_means,
    columns_of,
    figure,
    mean_cell,
    probability,
    signed,
    with_minus,
)
from runs.services.submissions.runs import contradicted_ranks

# The width of the scale of the intervals, in pixels.
SCALE_WIDTH = 90.0
_NARROW_SCALE = 0.05
# Below this share most of the top ten documents are unjudged, and the mean says little.
LOW_JUDGED = 0.5
# A longer text in a column of parameters is cut, and a shorter one is kept on one line.
_CUT, _BRIEF = 60, 24


@dataclass(frozen=True)
class Bar:
    """A mean and its interval as x positions and in words; `ends` is the interval alone."""

    low: str
    middle: str
    high: str
    text: str
    ends: str


@dataclass(frozen=True, kw_only=True)
class BoardCell(table.Cell):
    """A cell of the page with its CSS classes (`kind`).

    `warning` is the reason why its value may be too low, and `bar` its interval.
    """

    kind: str = "number"
    warning: str = ""
    bar: Bar | None = None

    @property
    def plain(self) -> bool:
        return not (self.best or self.note or self.mark or self.warning or self.bar)


@dataclass(frozen=True, kw_only=True)
class BoardRow(table.Row):
    """One run on the page; a row that begins a part is the first of a tier.

    `mine` is a run of the reader's teams. `contradicted` is how the run's rank column contradicts
    its scores, empty if it does not. `short` names the run in the address of a selection, and
    `unpinned` is the address without this baseline. `spread` has the number of its replicates, and
    how far these are apart.
    """

    board_row: Row
    mine: bool
    contradicted: str
    short: str
    unpinned: str
    spread: BoardCell | None = None

    @property
    def id(self) -> str:
        return str(self.board_row.run.pk)

    @property
    def since(self) -> str:
        """Return why a row is stale: older judgements, or an older engine with the same ones."""
        qrels = self.board_row.evaluation.qrels
        return "older engine" if qrels.active else qrels.name


@dataclass(frozen=True, kw_only=True)
class BoardTable(table.Table):
    """One page of a leaderboard as a table; `columns` are those after ranks, runs and teams.

    `best` is a sentence on the runs that can be the best, and `ranked_by` one on the order. `pinned`
    is the first baseline, which stays in sight below the header, `first` its id, and `baselines`
    are the tags and means of all. The intervals are drawn between the two ends of `scale`, `zero`
    is the x position of the first baseline's mean there, and `cut` is a note on the intervals that
    are cut. `own_team` is the reader's team if all rows are its runs, and otherwise empty: then
    each row names its team. The reader's runs are marked (`marks_own`) if the table has others,
    too. `pins` is the address for pinning a run, up to its id.
    """

    columns: Sequence[SortableColumn]
    rows: Sequence[BoardRow]
    board: Leaderboard
    best: str
    best_mark: str
    ranked_by: str
    provisional: str
    pinned: BoardRow | None
    first: str
    baselines: list[tuple[str, float]]
    confidence: str
    scale: tuple[float, float] | None
    zero: str
    cut: str
    own_team: str
    marks_own: bool
    pins: str
    with_best: bool
    with_unranked: bool
    with_labels: bool
    with_tiers: bool


def board_table(
    board: Leaderboard,
    statistics: BoardStatistics | None,
    *,
    own_teams: set[int],
    query: Query,
    shorts: Mapping[UUID, str],
    tags: Mapping[str, str] | None = None,
) -> BoardTable:
    """Build the table.

    `own_teams` are the reader's, `query` is that of the page's address, `shorts` are the short
    names of runs in a selection, and `tags` those of baselines by their ids.
    """
    standings = statistics.standings if statistics else None
    intervals = within_range(standings.intervals, board.sort) if standings else {}
    ends = [end for interval in intervals.values() for end in interval]
    scale = (min(ends), max(ends)) if ends else None
    confidence = f"{100 * standings.query.confidence:g}%" if standings else ""
    entries = [*board.rows, *([board.pinned] if board.pinned else [])]
    ids = standings.query.baselines if standings else _named(query)
    baselines = _baselines(board, standings, tags or {})
    # At first tiers would be read as differences.
    with_tiers = bool(query.get("statistics") and standings and standings.tiers)

    best = best_means(board.rows, board.measures)
    contradicted = contradicted_ranks([row.run.pk for row in entries])

    rows: list[BoardRow] = []
    above: Standing | None = None
    for row in entries:
        pk, run = row.evaluation.pk, row.run
        baseline = str(run.pk)
        pinned = baseline in ids
        standing = standings.of(pk) if standings and row.rank is not None else None
        cells = [
            *(
                cell
                for place in range(len(baselines))
                for cell in _against(standing, place, pinned=baseline == ids[place])
            ),
            *_means(board, row, best, scale, intervals.get(pk), confidence),
            *_group_means(board, row),
            *(_parameter(row.cells.get(column.name)) for column in board.columns),
            *([_tier(standing)] if with_tiers else []),
            *([_rank_interval(standing)] if standings and standings.ranks else []),
            *_judged(board, row),
        ]

        rows.append(
            BoardRow(
                values=cells,
                baseline=pinned,
                marked=standings is not None and standings.is_marked(pk),
                # A tier begins only in the order of ranks.
                begins_part=bool(
                    with_tiers
                    and not board.arrange
                    and standing
                    and above
                    and standing.tier != above.tier
                    and row is not board.pinned
                ),
                board_row=row,
                mine=run.team.pk in own_teams,
                contradicted=contradicted.get(run.pk, ""),
                spread=_spread(row.spread, board.sort) if row.spread else None,
                short=shorts.get(run.pk, ""),
                unpinned=_unpinned(query, ids, baseline) if pinned else "",
            )
        )

        above = standing

    pinned_row = rows.pop() if board.pinned else None
    ranked = [row for row in rows if row.board_row.rank is not None]
    mine = {row.board_row.run.team.slug for row in rows if row.mine}
    unpinned = query_string(query, baseline=None)
    first, zero = next(iter(ids), ""), ""
    if baselines and scale and scale[0] <= baselines[0][1] <= scale[1]:
        zero = _position(baselines[0][1], scale)

    return BoardTable(
        name="leaderboard",
        columns=_columns(board, statistics, baselines, scale, confidence, with_tiers=with_tiers),
        rows=rows,
        board=board,
        best=best_of(board, standings),
        best_mark=BEST_MARK if standings and standings.tiers and standings.tiers.marks_best else "",
        ranked_by=_ranked_by(board),
        provisional=f"provisional: {board.progress}" if board.ranked and board.waiting else "",
        pinned=pinned_row or next((row for row in ranked if row.id == first), None),
        first=first,
        baselines=baselines,
        confidence=confidence,
        scale=scale,
        zero=zero,
        cut=cut_note(standings.intervals, board.sort) if standings else "",
        marks_own=any(row.mine for row in rows) and not all(row.mine for row in rows),
        own_team=mine.pop() if len(mine) == 1 and all(row.mine for row in rows) else "",
        pins=f"{unpinned}{'&' if len(unpinned) > 1 else ''}baseline=",
        with_best=bool(ranked),
        with_unranked=any(row.state == UNRANKED for row in board.rows),
        with_labels=all(column.space != LABEL for column in board.columns),
        with_tiers=with_tiers,
    )


def _columns(
    board: Leaderboard,
    statistics: BoardStatistics | None,
    baselines: list[tuple[str, float]],
    scale: tuple[float, float] | None,
    confidence: str,
    *,
    with_tiers: bool,
) -> list[SortableColumn]:
    """Return the columns; that of the ranking measure has the ends of the scale."""
    columns = []

    if statistics:
        for tag, _ in baselines:
            columns += [
                SortableColumn("", f"Δ vs {tag}"),
                SortableColumn("", statistics.baseline_corrected, style="number p-value"),
            ]

    sort = None if board.arrange else board.sort
    for measure_column in columns_of(board.measures, sort, board.descending):
        if scale and measure_column.name == board.sort.name:
            places = 4 if scale[1] - scale[0] < _NARROW_SCALE else 2
            low, high = (with_minus(f"{end:.{places}f}") for end in scale)
            measure_column = replace(measure_column, ends=(low, high))
        columns.append(measure_column)

    for group in board.groups:
        topics = "1 topic" if group.topics == 1 else f"{group.topics:,} topics"
        note = f"mean {board.sort.name} on {topics} with this {board.by}"
        # A number alone says nothing.
        heading = f"{board.by} {group.name}" if group.name.isdecimal() else group.name
        columns.append(SortableColumn("", heading, note=note))

    by = board.arrange
    for place, other_column in enumerate(board.columns, 1):
        sorting: Sorting = ""
        if by and by.column == other_column:
            sorting = "descending" if by.descending else "ascending"

        columns.append(
            SortableColumn(
                other_column.name,
                other_column.heading,
                style="",
                sorting=sorting,
                next_order=f"-{other_column.name}" if sorting == "ascending" else other_column.name,
                link=f"arrange-{place}",
                arranges=True,
            )
        )

    if with_tiers:
        note = "runs in a tier do not differ significantly from its best run"
        columns.append(SortableColumn("", "Tier", note=note))

    if statistics and statistics.standings.ranks:
        note = "of each run alone, over bootstrap samples of the topics"
        columns.append(SortableColumn("", f"{confidence} rank interval", note=note))

    columns.append(SortableColumn("", "Answered", note="topics answered, of all judged topics"))
    if JUDGED not in board.measures:
        note = "share of the top ten documents that are judged"
        columns.append(SortableColumn("", "Judged@10", note=note))

    return columns


def _ranked_by(board: Leaderboard) -> str:
    """Return the order of the rows in words, or why there is none."""
    version = board.qrels.name

    if not board.ranked:
        remark = ""
        if any(row.stale for row in board.rows):
            remark = " The values below come from earlier judgements or an older engine version."
        return f"No run has been evaluated against {version} yet, so none is ranked.{remark}"

    first = "highest" if board.descending else "lowest"
    some = f"{board.topics:,} of " if board.topics != board.judged_topics else ""
    selected = f" selected by {board.selection.text}" if board.selection else ""
    figures = f"{aggregated(board.sort)} over {some}{board.judged_topics:,} topics{selected}"

    return f"Ranked by {board.sort.name}, {first} first, {figures}, {version}."


def _named(query: Query) -> list[str]:
    """Return the baselines as the address names them."""
    return [part.strip() for part in query.get("baseline", "").split(",") if part.strip()]


def _unpinned(query: Query, baselines: list[str], run: str) -> str:
    """Return the address without one of the baselines."""
    rest = ",".join(other for other in baselines if other != run)
    return query_string(query, baseline=rest or None)


def _baselines(
    board: Leaderboard, standings: Standings | None, tags: Mapping[str, str]
) -> list[tuple[str, float]]:
    """Return tag and mean of each baseline; one that is on another page may have no tag."""
    if standings is None or standings.baseline is None:
        return []

    rows = [*board.rows, *([board.pinned] if board.pinned else [])]
    all_tags = {**tags, **{str(row.run.pk): row.run.tag for row in rows}}
    ids, places = standings.query.baselines, standings.baseline.pairs.baselines
    return [
        (all_tags.get(run, f"baseline {number}"), board.order[place][1] or 0.0)
        for number, (run, place) in enumerate(zip(ids, places, strict=True), 1)
    ]


def _position(value: float, scale: tuple[float, float]) -> str:
    """Return the x position of a value on the scale."""
    low, high = scale
    return f"{(value - low) / ((high - low) or 1.0) * SCALE_WIDTH:.1f}"


def interval_bar(
    measure: Measure, mean: float, interval: Ends, scale: tuple[float, float], confidence: str
) -> Bar:
    """Return the drawing of a mean and its interval on a scale."""
    low, high = (with_minus(figure(measure, end)) for end in interval)
    return Bar(
        low=_position(interval[0], scale),
        middle=_position(mean, scale),
        high=_position(interval[1], scale),
        text=f"{confidence} interval {low} to {high}",
        ends=f"{low} to {high}",
    )


def _against(standing: Standing | None, place: int, *, pinned: bool) -> list[BoardCell]:
    """Return the difference from a baseline, with its mark and a note on it, and the p value."""
    against = standing.against[place] if standing else None
    if against is None:
        text, kind = ("baseline", "number against faint") if pinned else ("", "number against")
        return [BoardCell(text=text, kind=kind), BoardCell(text="", kind="number p-value")]

    interval = "no interval"
    if not math.isnan(against.low):
        interval = f"interval {signed(against.low)} to {signed(against.high)}"

    p_value = "no p"
    if not math.isnan(against.p_value):
        p_value = f"p {probability(against.p_value)} uncorrected"

    topics = f"better on {against.wins}, equal on {against.ties}, worse on {against.losses} topics"
    note = f"{interval}, {p_value}; {topics}"
    if against.withheld:
        note += f"; no verdict: {WITHHELD[against.withheld]}"

    if against.on_judged:
        corrected = probability(against.on_judged.p_adjusted)
        difference = signed(against.on_judged.difference)
        note += f"; on judged documents alone {difference}, corrected p {corrected}"

    mark = against.mark or ""
    return [
        BoardCell(
            text=signed(against.difference), note=note, mark=mark, kind=f"number against {mark}"
        ),
        BoardCell(text=probability(against.p_adjusted), kind="number p-value"),
    ]


def _means(
    board: Leaderboard,
    row: Row,
    best: Mapping[str, tuple[str, int]],
    scale: tuple[float, float] | None,
    interval: Ends | None,
    confidence: str,
) -> list[BoardCell]:
    """Return the means of a run; only a ranked run can be the best."""
    # A run that is not evaluated has no values.
    if not row.has_values:
        return [BoardCell(text="")] * len(board.measures)

    cells = []
    for measure in board.measures:
        to_reach = best.get(measure.name) if row.rank is not None else None
        mean = row.values[measure.name]
        judged = board.selection.topics if board.selection else row.evaluation.qrels.topics
        cell = mean_cell(measure, mean, judged, to_reach)
        kind, bar = "number", None

        if measure == board.sort:
            kind = "number ranking"

            if scale and interval and mean[0] is not None:
                bar = interval_bar(measure, mean[0], interval, scale, confidence)
            elif scale:
                # Aligned with the means that have a bar.
                kind = "number ranking indented"

        cells.append(
            BoardCell(
                text=cell.text,
                best=cell.best,
                note=cell.note,
                aside="*" if cell.note else "",
                value=cell.value,
                kind=kind,
                warning=unjudged_note(row.judged) if measure == JUDGED else "",
                bar=bar,
            )
        )

    return cells


def _group_means(board: Leaderboard, row: Row) -> list[BoardCell]:
    """Return the means of a run in each group of topics."""
    if not row.groups:
        return [BoardCell(text="")] * len(board.groups)

    cells = []
    for group, mean in zip(board.groups, row.groups, strict=True):
        cell = mean_cell(board.sort, mean, group.topics, None)
        cells.append(BoardCell(text=cell.text, note=cell.note, aside="*" if cell.note else ""))

    return cells


def _parameter(value: Cell) -> BoardCell:
    """Return a parameter or cost: a number, or a text that is cut if it is long."""
    text = shown_value(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    kind = "number" if number else "brief" if len(text) <= _BRIEF else ""
    if len(text) <= _CUT:
        return BoardCell(text=text, kind=kind)
    return BoardCell(text=f"{text[:_CUT]}…", note=text, kind=kind)


def _spread(spread: Spread, measure: Measure) -> BoardCell:
    """Return the number of replicates with the standard deviation of their means."""
    text = f"{spread.replicates} replicate{'s' * (spread.replicates != 1)}"
    if spread.deviation is None:
        return BoardCell(text=text)
    low, high = (with_minus(figure(measure, end)) for end in (spread.lowest, spread.highest))
    note = f"{measure.name} of the replicates: {low} to {high}"
    return BoardCell(text=f"{text}, sd {spread.deviation:.4f}", note=note)


def _tier(standing: Standing | None) -> BoardCell:
    groups = standing.groups if standing else None
    note = ""
    if groups:
        note = f"no significant difference from runs that share a letter of {' '.join(groups)}"
    tier = standing.tier if standing else None
    return BoardCell(text="" if tier is None else str(tier), note=note, kind="number tier")


def _rank_interval(standing: Standing | None) -> BoardCell:
    """Return the rank interval, or one rank if its ends are equal.

    The note says how often the run is first when the topics are resampled.
    """
    if standing is None or standing.rank_low is None:
        return BoardCell(text="", kind="number spread")

    low, high = standing.rank_low, standing.rank_high

    note = ""

    if standing.share_first is not None:
        share = f"{100 * standing.share_first:.0f}%"
        note = f"ranked first, tied or alone, in {share} of the resamples; "
        if standing.chance_best is None:
            note += "not its chance to be the best"
        else:
            chance = percent(standing.chance_best)
            note += f"its estimated chance to be the best on other topics is {chance}"

    text = f"{low}\N{EN DASH}{high}" if low != high else str(low)
    return BoardCell(text=text, note=note, kind="number spread")


def _judged(board: Leaderboard, row: Row) -> list[BoardCell]:
    """Return the answered topics and, unless it is a measure of the table, Judged@10."""
    answered, warning = "", ""

    if row.has_values and not (row.run.has_ranking or row.run.has_replicates):
        answered = "no ranking"
    elif row.has_values:
        topics, judged = row.evaluation.topics_answered or 0, row.evaluation.qrels.topics
        answered = f"{topics}/{judged}"
        if topics < judged:
            warning = f"{topics} of {judged} topics answered; the rest count 0"

    cells = [_cell_with_warning(answered, warning)]

    if JUDGED not in board.measures:
        share = "" if row.judged is None else judged_share(row.judged)
        cells.append(_cell_with_warning(share, unjudged_note(row.judged)))

    return cells


def _cell_with_warning(text: str, warning: str) -> BoardCell:
    kind = "number incomplete" if warning else "number"
    return BoardCell(text=text, kind=kind, warning=warning)


def unjudged_note(judged: float | None) -> str:
    """Return a note on a low share of judged documents; empty if the share is not low."""
    if judged is None or judged >= LOW_JUDGED:
        return ""

    share = f"{100 * (1 - judged):.0f}%"
    return (
        f"{share} of the top ten documents are unjudged and count as not relevant; "
        "the run may be better than its value"
    )


def judged_share(judged: float) -> str:
    return f"{100 * judged:.0f}%"
