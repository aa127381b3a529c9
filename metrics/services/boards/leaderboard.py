"""Rank the evaluated runs of a collection by the means of one measure.

Runs without a rank follow below them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Case, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from metrics.engine.arrays import Ints
from metrics.engine.cautions import Caution
from metrics.engine.judgement.sampling import Design
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import BoardQuery, BoardQuestion, active_qrels
from metrics.services.boards.columns import (
    Arrangement,
    Cell,
    ShownColumn,
    arranged,
    places_of,
    read_cells,
)
from metrics.services.boards.entries import BARRED, OFFICIAL, EntryStatus
from metrics.services.boards.ranked_evaluations import NOBODY, Roster
from metrics.services.boards.replicates import Spread, read_spreads
from metrics.services.boards.states import RANKED, STALE, UNRANKED, count_states
from metrics.services.boards.topic_selection import TopicSelection, group_topics
from metrics.services.boards.versions import ALL, BEST, Chosen, Place, Places, expected_means
from metrics.services.queue.damage import check_files, files_of
from metrics.services.queue.vectors import JUDGED
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.common_values import qrels_cautions, refuse_pooled
from metrics.services.values.judged_views import Mean, matrix_of, means_of
from runs.errors import InvalidInput
from runs.models import Collection, Phase, Qrels, Run
from runs.services.tracking.labels import labels_of

# Limits of a whole leaderboard: rows, and rows times measures.
MAX_ROWS, MAX_FIGURES = 1_000, 20_000
# Groups of topics, which are columns.
MAX_GROUPS = 12
# The fields of an evaluation, its run and its team that a row shows.
_SHOWN = (
    "qrels_id",
    "engine_version",
    "topics_answered",
    "run__tag",
    "run__created_at",
    "run__tied_documents",
    "run__sha256",
    "run__team__slug",
    "run__team__name",
    "run__version",
    "run__system__slug",
)
# The mean and the number of topics of a run without values.
_NOTHING: Mean = (None, 0)
# A run without values of these judgements: its key, its state, and the evaluation to show.
_OTHERS = ("pk", "board_state", "evaluation_shown")
# The code and reason of a run without a rank because its mean is not computed yet.
_COMPUTING = ("computing", "its mean is being computed")
MOVING = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING)
# Long columns, which no row shows.
_LONG = ("warnings", "known_warnings", "metadata", "ir_metadata")
_UNSHOWN = ("traceback", "qrels__topic_ids", "qrels__warnings", *(f"run__{name}" for name in _LONG))


@dataclass(frozen=True)
class Row:
    """One run on the leaderboard.

    Where it has no `rank`, `code` and `reason` say why if its state does not.

    An unranked row has values on fewer or on other topics than the ranked runs. A stale row has
    values of other judgements or of an older engine. A queued, evaluating or failed row has no
    values; it has an unsaved evaluation if none was requested yet. `judged` is the mean of
    Judged@10, `cells` has the values of the columns by their names, `labels` are the names of its
    labels, `chosen` says on a board of systems which version it is, `entry` on a collection with
    phases what its entry is; files have `extra` columns. `groups` has its mean in each group of topics
    of the leaderboard, and `spread` that of its replicates under the measure that ranks the runs.
    """

    rank: int | None
    state: str
    run: Run
    evaluation: Evaluation
    values: dict[str, Mean]
    judged: float | None
    code: str = ""
    reason: str = ""
    cells: dict[str, Cell] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    chosen: Chosen | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    groups: tuple[Mean, ...] = ()
    entry: EntryStatus | None = None
    spread: Spread | None = None

    @property
    def stale(self) -> bool:
        return self.state == STALE

    @property
    def current(self) -> bool:
        """Return whether the values of the row are those of the leaderboard's judgements."""
        return self.state in (RANKED, UNRANKED)

    @property
    def has_values(self) -> bool:
        return self.state in (RANKED, UNRANKED, STALE)


@dataclass(frozen=True)
class EntryCounts:
    """Which entries a leaderboard shows, and the phases with official leaderboards.

    `official` and `others` count the live runs that are official entries and that are not.
    """

    shown: str
    official: int
    others: int
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class BoardGroup:
    """The topics with one value of a key: a column of the measure that ranks the runs."""

    name: str
    places: Ints

    @property
    def topics(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class Leaderboard:
    """One page of a leaderboard. `states` counts the live runs by the state of their evaluation.

    `ranked` counts all runs that have a rank, and `total` the rows of all pages that the filter
    shows. The means of the ranked runs all cover the same `topics`.

    `order` has every ranked evaluation with its mean, including those of other pages and those that
    the filter hides, on a leaderboard of best versions those of all versions, which statistics
    compare; `roster` has the run of each. `pinned` is the row of the run that the query keeps in
    sight, if that is on another page. `entries` counts the entries of a collection with phases that
    make them official. `computing` has the measures that workers are to compute for evaluated runs,
    because the collection's measures were changed, each with the number of these runs. Topics
    outside the `selection` do not count; the `groups` are those of the key `by`.
    """

    qrels: Qrels
    scores: str
    measures: list[Measure]
    sort: Measure
    descending: bool
    total: int
    ranked: int
    states: dict[str, int]
    rows: list[Row] = field(default_factory=list)
    order: list[tuple[int, float]] = field(default_factory=list)
    topics: int = 0
    columns: tuple[ShownColumn, ...] = ()
    arrange: Arrangement | None = None
    roster: Roster = NOBODY
    pinned: Row | None = None
    versions: str = ALL
    entries: EntryCounts | None = None
    computing: dict[str, int] = field(default_factory=dict)
    selection: TopicSelection | None = None
    by: str = ""
    groups: tuple[BoardGroup, ...] = ()

    @property
    def judged_topics(self) -> int:
        """Return the number of topics that count: all judged ones, or those selected."""
        return self.selection.topics if self.selection else self.qrels.topics

    @property
    def runs(self) -> dict[int, UUID]:
        """Return the run of each evaluation of the `roster`."""
        return self.roster.runs

    @property
    def waiting(self) -> bool:
        """Return whether all ranks are provisional.

        Runs are still to be evaluated, or the measure of the ranks is to be computed.
        """
        return self.sort.name in self.computing or any(self.states.get(state) for state in MOVING)

    @property
    def progress(self) -> str:
        """Return how many runs are ranked already, in words."""
        runs, done = sum(self.states.values()), self.states.get(Evaluation.State.EVALUATED, 0)
        if missing := self.computing.get(self.sort.name, 0):
            return f"{done - missing:,} of {runs:,} runs have {self.sort.name}"
        return f"{done:,} of {runs:,} runs evaluated"

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measures under these judgements."""
        selected = self.selection.cautions if self.selection else []
        return [
            *selected,
            *qrels_cautions(dict.fromkeys([*self.measures, self.sort]), self.qrels),
        ]


def read_leaderboard(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """Return the page of the leaderboard that `query` describes, as of one moment.

    Ties share a rank; earlier submissions come first among them.

    A filter selects the rows that are shown and never changes who is compared: ranks are those of
    the whole leaderboard.
    """
    return read_in_snapshot(lambda: _read_board(collection, query))


def _read_board(collection: Collection, query: BoardQuery) -> Leaderboard:
    board = BoardQuestion(collection, active_qrels(collection), query)
    order, places, among = board.order, _places(board), board.among
    ranked = places.ranked

    # The run that the query keeps in sight, whatever page is shown.
    pinned = []
    if query.pinned:
        pinned = [place for place in places if place.rank and board.runs[place.pk] == query.pinned]

    states = _states(board)
    others, below = None, sum(states.values()) - len(places)
    if below > 0:
        # Runs without values follow, stale runs first.
        last = Case(When(board_state=STALE, then=Value(0)), default=Value(1))
        others = board.shown_without_values.order_by(last, "created_at", "pk")
        # Counting them by their states would read all evaluations of each run.
        below = below if query.all_shown else others.count()

    if query.filter or (among and among.shown is not None):
        shown = set(board.shown_names)
        names = zip(board.roster.keys.tolist(), board.roster.names, strict=True)
        keys = [pk for pk, name in names if name in shown]
        places = places.only(np.array(keys, np.int64))

    if query.arrange:
        rows = _arranged(board, places, others, query.arrange)
        pinned = [] if any(row.run.pk == query.pinned for row in rows) else pinned
        rows = [*(_rows(board, pinned, []) if pinned else []), *rows]
    else:
        page = places[query.offset : query.offset + query.limit]
        start = max(0, query.offset - len(places))
        rows_without_values: list[Any] = []
        if others is not None:
            rows_without_values = list(
                others[start : start + query.limit - len(page)].values_list(*_OTHERS)
            )
        pinned = [place for place in pinned if place not in page]
        rows = _rows(board, [*pinned, *page], rows_without_values)

    if query.columns:
        cells = read_cells(query.columns, [row.run.pk for row in rows])
        rows = [replace(row, cells=cells[row.run.pk]) for row in rows]

    means = [row.evaluation.pk for row in rows if row.current and row.run.has_replicates]
    if means:
        spreads = read_spreads(board, means)
        rows = [replace(row, spread=spreads.get(row.evaluation.pk)) for row in rows]

    groups = _groups(board)
    if groups:
        rows = _with_groups(board, rows, groups)

    return Leaderboard(
        qrels=board.qrels,
        scores=board.scores,
        measures=query.measures,
        sort=query.sort,
        descending=query.descending,
        total=len(places) + max(0, below),
        ranked=ranked,
        states=states,
        rows=rows[len(pinned) :],
        order=among.compared(order.ranked, board.runs) if among else order.ranked,
        topics=order.topics,
        columns=query.columns,
        arrange=query.arrange,
        roster=board.roster,
        pinned=rows[0] if pinned else None,
        versions=query.versions,
        entries=_count_entries(board),
        computing=board.count_lacking(),
        selection=board.selection,
        by=query.by or "",
        groups=groups,
    )


def _groups(board: BoardQuestion) -> tuple[BoardGroup, ...]:
    """Return the groups of topics of the requested key, in the order of their names.

    Raise InvalidInput for more than MAX_GROUPS.
    """
    key = board.query.by
    if key is None:
        return ()

    refuse_pooled([board.query.sort])
    places = group_topics(board.qrels, key, board.scores, board.selection)
    if len(places) > MAX_GROUPS:
        message = (
            f"{key} makes {len(places):,} groups; a leaderboard has columns for at most "
            f"{MAX_GROUPS}: select some with topics={key}:..."
        )
        raise InvalidInput(message, code="too_many_values", pointer="by")

    return tuple(BoardGroup(name, group) for name, group in places.items())


def _with_groups(
    board: BoardQuestion, rows: list[Row], groups: tuple[BoardGroup, ...]
) -> list[Row]:
    """Return the rows with their means in each group; stale rows have none."""
    measure = board.query.sort
    ids = [row.evaluation.pk for row in rows if row.current]
    values, _ = matrix_of(ids, measure, board.qrels, board.computing)
    means = {
        pk: tuple(measure.aggregate(row[group.places]) for group in groups)
        for pk, row in zip(ids, values, strict=True)
    }
    return [replace(row, groups=means.get(row.evaluation.pk, ())) for row in rows]


def _count_entries(board: BoardQuestion) -> EntryCounts | None:
    if board.entries is None:
        return None

    official = len(board.entries.with_status(OFFICIAL))
    live = Run.objects.filter(collection=board.collection, deleted_at=None).in_rows().count()
    return EntryCounts(board.query.entries, official, live - official, board.entries.phases)


def _states(board: BoardQuestion) -> dict[str, int]:
    """Return the number of runs by state."""
    among = board.among
    if among is None or among.runs is None:
        return board.roster.states
    if len(board.runs) == len(among.runs):
        # Naming a thousand runs to the database takes longer than all else.
        return {str(Evaluation.State.EVALUATED): len(board.runs)}
    return count_states(board.collection, board.qrels, board.scores, among.runs)


def _places(board: BoardQuestion) -> Places:
    """Return the places of all evaluations under the leaderboard's judgements."""
    order, query = board.order, board.query
    below = {pk: order.why_below(topics) for pk, topics in order.below}
    if query.sort.name in board.computing:
        below |= {pk: _COMPUTING for pk, topics in order.below if not topics}

    keys = np.concatenate([order.keys, np.array(list(below), np.int64)])
    places = Places(
        keys, np.concatenate([order.ranks_of_keys, np.zeros(len(below), np.int64)]), below
    )

    if query.versions == BEST:
        places = Places.of(board.lineup.ranked_anew(places, board.runs))

    return Places.of(board.among.ranked_anew(places, board.runs)) if board.among else places


def _arranged(
    board: BoardQuestion, places: Places, others: QuerySet[Any] | None, by: Arrangement
) -> list[Row]:
    """Return the rows of the page in the order of a column instead of that of the ranks."""
    below: list[Any] = []
    if others is not None:
        below = list(others.annotate(name=Cast("pk", TextField())).values_list("name", *_OTHERS))
    run_of = dict(zip(board.roster.keys.tolist(), board.roster.names, strict=True))
    names = [run_of[pk] for pk in places.keys.tolist()] + [name for name, *_ in below]
    order = arranged(names, places_of(by.column, board.collection), by.descending)
    page = order[board.query.offset : board.query.offset + board.query.limit]
    shown = places[[index for index in page if index < len(places)]]
    page_below = [below[index - len(places)][1:] for index in page if index >= len(places)]
    rows = {row.run.pk: row for row in _rows(board, shown, page_below)}

    return [rows[UUID(names[index])] for index in page]


def _rows(
    board: BoardQuestion, page: list[Place], others: list[tuple[UUID, str, int | None]]
) -> list[Row]:
    """Return the rows of a page: evaluations under the leaderboard's judgements, then `others`.

    These are runs with their state and the key of the evaluation to show, None if none was
    requested yet.
    """
    related = Evaluation.objects.select_related("run__team", "run__system")
    evaluations = related.only(*_SHOWN).with_files().in_bulk([place.pk for place in page])
    for evaluation in evaluations.values():
        evaluation.qrels = board.qrels

    keys = [key for _, _, key in others if key]
    evaluations |= related.with_files().select_related("qrels").defer(*_UNSHOWN).in_bulk(keys)
    run_rows = Run.objects.select_related("team", "system").defer(*_LONG)
    runs_without_evaluation = run_rows.in_bulk([run for run, _, key in others if not key])
    stale = [key for _, state, key in others if key and state == STALE]
    valued = [*(place.pk for place in page), *stale]
    # The roster is remembered by revision, which a database that was altered does not change.
    check_files(Evaluation, files_of(valued, evaluations))

    # Judged@10, too: evaluations of an earlier release have not stored it.
    measures = list(dict.fromkeys([*board.query.measures, JUDGED]))
    qrels = None if stale else board.qrels.pk
    means: dict[tuple[int, str], Mean] = {}
    if board.selection:
        suited = Measure.suited(measures, board.qrels.design)
        means = board.selection.means_of(
            [place.pk for place in page], suited, board.qrels, board.computing
        )
    else:
        # Values of a stale run are those of another version, whose sampling a measure may not suit.
        by_design: dict[Design | None, list[int]] = {}
        for pk in valued:
            by_design.setdefault(evaluations[pk].qrels.design, []).append(pk)
        for design, pks in by_design.items():
            suited = Measure.suited(measures, design)
            means |= means_of(pks, suited, qrels, board.computing)

    labels = labels_of(
        [*(evaluations[place.pk].run_id for place in page), *(run for run, _, _ in others)]
    )
    expected = {}
    if board.query.versions == BEST:
        runs = [evaluations[place.pk].run_id for place in page]
        order = [pk for pk, _ in board.order.ranked]
        expected = expected_means(
            board.lineup,
            runs,
            order,
            board.query.sort,
            board.qrels.topics,
            board.selection.selected if board.selection else None,
        )

    def row(
        evaluation: Evaluation,
        state: str,
        rank: int | None = None,
        code: str = "",
        reason: str = "",
    ) -> Row:
        values = {
            m.name: means.get((evaluation.pk, m.name), _NOTHING) for m in board.query.measures
        }
        judged, _ = means.get((evaluation.pk, JUDGED.name), _NOTHING)

        pk = evaluation.run_id
        chosen = board.lineup.chosen(pk)
        if chosen and pk in expected:
            chosen = replace(chosen, expected=expected[pk])

        entry = board.entries.of(pk) if board.entries else None
        if entry and entry.status in BARRED and state == UNRANKED:
            code, reason = entry.status, f"its entry was {entry.status}"

        return Row(
            rank,
            state,
            evaluation.run,
            evaluation,
            values,
            judged,
            code,
            reason,
            labels=tuple(labels.get(pk, ())),
            chosen=chosen,
            entry=entry,
        )

    rows = []
    for place in page:
        state = RANKED if place.rank else UNRANKED
        rows.append(row(evaluations[place.pk], state, place.rank, place.code, place.reason))

    for run, state, key in others:
        if key:
            evaluation = evaluations[key]
        else:
            evaluation = Evaluation(
                run=runs_without_evaluation[run], qrels=board.qrels, scores=board.scores
            )
        if state == STALE:
            rows.append(row(evaluation, state))
        else:
            error = (evaluation.error_code, evaluation.error_message)
            rows.append(row(evaluation, state, None, *error))

    return rows


def read_whole_board(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """Return all rows that the filter shows on one page.

    Raise InvalidInput for more rows or values than the limits allow.
    """

    def read() -> Leaderboard:
        rows = len(runs_shown(collection=collection, query=query))
        if rows > MAX_ROWS:
            message = f"{rows:,} rows; a file has at most {MAX_ROWS:,}: name fewer with filter="
            raise InvalidInput(message, code="too_many_rows", pointer="filter")
        if rows * len(query.measures) > MAX_FIGURES:
            message = (
                f"{rows:,} rows of {len(query.measures)} measures; a file has at most "
                f"{MAX_FIGURES:,} means"
            )
            raise InvalidInput(message, code="too_many_values", pointer="measures")
        return read_leaderboard(
            collection=collection, query=replace(query, offset=0, limit=MAX_ROWS)
        )

    return read_in_snapshot(read)


def runs_shown(*, collection: Collection, query: BoardQuery) -> list[UUID]:
    """Return the runs on all pages of the leaderboard, in the order of their keys."""
    board = BoardQuestion(collection, active_qrels(collection), query)
    return [UUID(name) for name in board.shown_names]
