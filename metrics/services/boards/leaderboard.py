"""Leaderboards: the means of evaluated runs, ranked by one measure, and below them the runs without a rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, Value, When

from metrics.engine.cautions import Caution
from metrics.engine.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.among import Among, Evaluated
from metrics.services.boards.columns import Arrangement, Cell, ShownColumn, arranged, read_cells, values_of
from metrics.services.boards.fair_order import FairOrder, fair_order
from metrics.services.boards.filter import Term, asks_for, filtered
from metrics.services.boards.states import NOT_CURRENT, RANKED, STALE, UNRANKED, count_states, runs_with_states
from metrics.services.boards.versions import ALL, BEST, LATEST, Chosen, Lineup, Place, expected_means, read_versions
from metrics.services.queue.damage import check_files
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.evaluate import JUDGED
from metrics.services.values.judged_views import Mean, covered_topics, means_of
from metrics.services.values.selection import own_measures
from runs.errors import InvalidInput, NotFound
from runs.models import Collection, Qrels, Run
from runs.services.labels import labels_of

# Limits of a whole leaderboard: rows, and rows times measures.
MAX_ROWS, MAX_FIGURES = 1_000, 20_000
# The fields of an evaluation, its run and its team that a row shows.
_SHOWN = (
    "qrels_id", "engine_version", "topics_answered", "run__tag", "run__created_at", "run__tied_documents",
    "run__team__slug", "run__team__name", "run__version", "run__system__slug",
)  # fmt: skip
# The mean and the number of topics of a run without values.
_NOTHING: Mean = (None, 0)
# Of a run without values of these judgements: its key, its state, and the evaluation to show.
_OTHERS = ("pk", "board_state", "evaluation_shown")
MOVING = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING)
# Long columns, which no row shows.
_LONG = ("warnings", "known_warnings", "metadata", "ir_metadata")
_UNSHOWN = ("traceback", "qrels__topic_ids", "qrels__warnings", *(f"run__{name}" for name in _LONG))


@dataclass(frozen=True)
class Row:
    """One run on the leaderboard. Where it has no `rank`, `code` and `reason` say why if its state does not.

    An unranked row has values on fewer or on other topics than the ranked runs. A stale row has values of other
    judgements or of an older engine. A queued, evaluating or failed row has no values; it has an unsaved evaluation if
    none was requested yet. `judged` is the mean of Judged@10, `cells` has the values of the columns by their names,
    `labels` are the names of its labels, `chosen` says on a board of systems which version it is; files have `beside`.
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
    beside: dict[str, Any] = field(default_factory=dict)

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
class Leaderboard:
    """One page of a leaderboard. `states` counts the live runs by the state of their evaluation.

    `ranked` counts all runs that have a rank, and `total` the rows of all pages that the filter shows. The means of the
    ranked runs all cover the same `topics`.

    `order` has every ranked evaluation with its mean, including those of other pages and those that the filter hides,
    on a leaderboard of best versions those of all versions, which statistics compare; `runs` has the run of each.
    `held` is the row of the run that the query holds in sight, if that is on another page.
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
    runs: dict[int, UUID] = field(default_factory=dict)
    held: Row | None = None
    versions: str = ALL

    @property
    def waiting(self) -> bool:
        """Return whether runs are still to be evaluated, so that all ranks are provisional."""
        return any(self.states.get(state) for state in MOVING)

    @property
    def cautions(self) -> list[Caution]:
        """Return the cautions about the measures under these judgements."""
        return qrels_cautions(dict.fromkeys([*self.measures, self.sort]), self.qrels)


@dataclass(frozen=True)
class BoardQuery:
    """The parameters of a leaderboard; `reader` is the user who requests it, for a filter by own runs, and `hold` a
    ranked run whose row is read whatever page is shown.

    With `among` it is of some of the collection's runs."""

    measures: list[Measure]
    sort: Measure
    descending: bool = True
    scores: str | None = None
    offset: int = 0
    limit: int = 50
    filter: Term | None = None
    reader: Any = None
    columns: tuple[ShownColumn, ...] = ()
    arrange: Arrangement | None = None
    hold: UUID | None = None
    versions: str = ALL
    among: Among | None = None

    @property
    def all_shown(self) -> bool:
        """Return whether every run of the leaderboard has a row."""
        return not self.filter and self.versions == ALL and not (self.among and self.among.shown is not None)


def active_qrels(collection: Collection) -> Qrels:
    """Return the active judgements; NotFound if none are active."""
    qrels = collection.active_qrels
    if qrels is None:
        raise NotFound(f"collection {collection.slug} has no active judgements yet", code="no_active_qrels")
    return qrels


@dataclass(frozen=True)
class _Board:
    """The inputs of a leaderboard."""

    collection: Collection
    qrels: Qrels
    query: BoardQuery

    @property
    def scores(self) -> str:
        return self.query.scores or self.collection.scores

    @cached_property
    def evaluated(self) -> Evaluated:
        known = self.query.among and self.query.among.evaluated
        same = known and (known.qrels, known.scores) == (self.qrels, self.scores)
        return known if known and same else Evaluated(self.collection, self.qrels, self.scores)

    @cached_property
    def runs(self) -> dict[int, UUID]:
        """Return the run of each evaluation under these judgements, in the order of submission."""
        named = self.evaluated.rows
        if self.query.among:
            named = [row for row in named if row[2] in self.query.among.runs]
        check_files(Evaluation, ((pk, same) for pk, same, _ in named))
        return {pk: run for pk, _, run in named}

    @cached_property
    def order(self) -> FairOrder:
        """Return every run that is evaluated under these judgements, in the order of the measure."""
        sort, descending = self.query.sort, self.query.descending
        ids = [pk for pk, run in self.runs.items() if self.query.versions != LATEST or self.lineup.keeps(run)]
        known = self.evaluated.stored_means(sort)
        missing = [pk for pk in ids if pk not in known]
        own = own_measures(self.collection) if missing else set()
        computed = means_of(missing, [sort], own, self.qrels.pk) if missing else {}
        found = {pk: mean for (pk, _), mean in computed.items()}
        means = {pk: known.get(pk) or found.get(pk, _NOTHING) for pk in ids}
        return fair_order(
            means, self.qrels.topics, lambda asked: covered_topics(asked, sort), lower_first=not descending
        )

    @cached_property
    def lineup(self) -> Lineup:
        """Return which version stands for each system; of a leaderboard of all versions, nothing."""
        which = self.query.versions
        if which == ALL:
            return Lineup({}, [], which)
        order = [pk for pk, _ in (*self.order.ranked, *self.order.below)] if which == BEST else self.runs
        return Lineup(read_versions(self.collection), [(pk, self.runs[pk]) for pk in order], which)

    @property
    def shown(self) -> QuerySet[Any]:
        """Return the runs with their states, without those that the filter hides or for which another version
        stands."""
        term = self.query.filter
        below = [pk for pk, _ in self.order.below] if term and asks_for(term, "status") else []
        runs = runs_with_states(self.collection, self.qrels, self.scores, below)
        if among := self.query.among:
            runs = runs.filter(pk__in=among.runs if among.shown is None else among.shown)
        if self.query.versions != ALL:
            runs = runs.filter(Q(system__isnull=True) | Q(pk__in=self.lineup.shown))
        means = Evaluation.objects.current(self.qrels, self.scores).evaluated()
        return filtered(runs, term, self.query.reader, means) if term else runs


def read_leaderboard(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """Return the page of the leaderboard that `query` describes, as of one moment. Ties share a rank; earlier
    submissions come first among them.

    A filter selects the rows that are shown and never changes who is compared: ranks are those of the whole
    leaderboard.
    """
    return read_in_snapshot(lambda: _read_board(collection, query))


def read_order(collection: Collection, qrels: Qrels, query: BoardQuery) -> list[tuple[UUID, float]]:
    """Return the ranked runs of a leaderboard under these judgements with their means, best first."""
    board = _Board(collection, qrels, query)
    return [(board.runs[pk], mean) for pk, mean in board.order.ranked]


def _read_board(collection: Collection, query: BoardQuery) -> Leaderboard:
    board = _Board(collection, active_qrels(collection), query)
    order, places, among = board.order, _places(board), query.among
    ranked = sum(place.rank is not None for place in places)
    held = [place for place in places if place.rank and query.hold and board.runs[place.pk] == query.hold]
    # Naming a thousand runs to the database takes longer than all else.
    whole = among and len(board.runs) == len(among.runs) and {str(Evaluation.State.EVALUATED): len(board.runs)}
    states = whole or count_states(collection, board.qrels, board.scores, among.runs if among else None)
    others, below = None, sum(states.values()) - len(places)
    if below > 0:
        # Runs without values follow, stale runs first.
        last = Case(When(board_state=STALE, then=Value(0)), default=Value(1))
        others = board.shown.filter(board_state__in=NOT_CURRENT).order_by(last, "created_at", "pk")
        # To count them by their states asks each run for all of its evaluations.
        below = below if query.all_shown else others.count()
    if query.filter or (among and among.shown is not None):
        current = Evaluation.objects.current(board.qrels, board.scores).evaluated()
        # The runs carry their states; only their keys are read here.
        kept = set(current.filter(run__in=board.shown.values("pk")).values_list("pk", flat=True))
        places = [place for place in places if place.pk in kept]
    if query.arrange:
        rows = _arranged(board, places, others, query.arrange)
        held = [] if any(row.run.pk == query.hold for row in rows) else held
        rows = [*(_rows(board, held, []) if held else []), *rows]
    else:
        page = places[query.offset : query.offset + query.limit]
        start = max(0, query.offset - len(places))
        rest = [] if others is None else list(others[start : start + query.limit - len(page)].values_list(*_OTHERS))
        held = [place for place in held if place not in page]
        rows = _rows(board, [*held, *page], rest)
    if query.columns:
        cells = read_cells(query.columns, [row.run.pk for row in rows])
        rows = [replace(row, cells=cells[row.run.pk]) for row in rows]
    return Leaderboard(
        qrels=board.qrels,
        scores=board.scores,
        measures=query.measures,
        sort=query.sort,
        descending=query.descending,
        total=len(places) + max(0, below),
        ranked=ranked,
        states=states,
        rows=rows[len(held) :],
        order=among.compared(order.ranked, board.runs) if among else order.ranked,
        topics=order.topics,
        columns=query.columns,
        arrange=query.arrange,
        runs=board.runs,
        held=rows[0] if held else None,
        versions=query.versions,
    )


def _places(board: _Board) -> list[Place]:
    """Return the places of all evaluations under the leaderboard's judgements."""
    order, query = board.order, board.query
    places = [Place(pk, rank) for (pk, _), rank in zip(order.ranked, order.ranks, strict=True)]
    places += [Place(pk, None, *order.why_below(topics)) for pk, topics in order.below]
    if query.versions == BEST:
        places = board.lineup.ranked_anew(places, board.runs)
    return query.among.ranked_anew(places, board.runs) if query.among else places


def _arranged(board: _Board, places: list[Place], others: QuerySet[Any] | None, by: Arrangement) -> list[Row]:
    """Return the rows of the page in the order of a column instead of that of the ranks."""
    current = Evaluation.objects.current(board.qrels, board.scores).evaluated()
    below = [] if others is None else list(others.values_list(*_OTHERS))
    # By the keys of evaluations under these judgements, of other rows by those of runs.
    names: list[Any] = [*(place.pk for place in places), *(run for run, _, _ in below)]
    known = values_of(by.column, current, "run__") | ({} if others is None else values_of(by.column, others, ""))
    page = arranged(names, known, by.descending)[board.query.offset : board.query.offset + board.query.limit]
    shown = [places[index] for index in page if index < len(places)]
    rest = [below[index - len(places)] for index in page if index >= len(places)]
    rows = {row.evaluation.pk if row.current else row.run.pk: row for row in _rows(board, shown, rest)}
    return [rows[names[index]] for index in page]


def _rows(board: _Board, page: list[Place], others: list[tuple[UUID, str, int | None]]) -> list[Row]:
    """Return the rows of a page: evaluations under the leaderboard's judgements, then `others`, which are runs with
    their state and the key of the evaluation to show, or None if none was requested yet."""
    related = Evaluation.objects.select_related("run__team", "run__system")
    found = related.only(*_SHOWN).in_bulk([place.pk for place in page])
    for evaluation in found.values():
        evaluation.qrels = board.qrels
    keys = [key for _, _, key in others if key]
    found |= related.with_files().select_related("qrels").defer(*_UNSHOWN).in_bulk(keys)
    shown = Run.objects.select_related("team", "system").defer(*_LONG)
    unasked = shown.in_bulk([run for run, _, key in others if not key])
    stale = [key for _, state, key in others if key and state == STALE]
    valued = [*(place.pk for place in page), *stale]
    check_files(Evaluation, ((pk, found[pk].same_files) for pk in stale))
    # Judged@10, too: evaluations of an earlier release have not stored it.
    wanted = list(dict.fromkeys([*board.query.measures, JUDGED]))
    own, qrels = {*own_measures(board.collection), JUDGED.name}, None if stale else board.qrels.pk
    means = means_of(valued, wanted, own, qrels) if valued else {}
    labels = labels_of([*(found[place.pk].run_id for place in page), *(run for run, _, _ in others)])
    expected = {}
    if board.query.versions == BEST:
        runs, order = [found[place.pk].run_id for place in page], [pk for pk, _ in board.order.ranked]
        expected = expected_means(board.lineup, runs, order, board.query.sort, board.qrels.topics)

    def row(evaluation: Evaluation, state: str, rank: int | None = None, code: str = "", reason: str = "") -> Row:
        values = {m.name: means.get((evaluation.pk, m.name), _NOTHING) for m in board.query.measures}
        judged, _ = means.get((evaluation.pk, JUDGED.name), _NOTHING)
        names, pk = tuple(labels.get(evaluation.run_id, ())), evaluation.run_id
        chosen = board.lineup.chosen(pk)
        chosen = replace(chosen, expected=expected[pk]) if chosen and pk in expected else chosen
        return Row(rank, state, evaluation.run, evaluation, values, judged, code, reason, labels=names, chosen=chosen)

    rows = [
        row(found[place.pk], RANKED if place.rank else UNRANKED, place.rank, place.code, place.reason) for place in page
    ]
    for run, state, key in others:
        evaluation = found[key] if key else Evaluation(run=unasked[run], qrels=board.qrels, scores=board.scores)
        said = ("", "") if state == STALE else (evaluation.error_code, evaluation.error_message)
        rows.append(row(evaluation, state, None, *said))
    return rows


def read_whole_board(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """Return all rows that the filter shows on one page; InvalidInput for more rows or values than the limits allow."""

    def read() -> Leaderboard:
        rows = len(runs_shown(collection=collection, query=query))
        if rows > MAX_ROWS:
            message = f"{rows:,} rows; a file has at most {MAX_ROWS:,}: name fewer with filter="
            raise InvalidInput(message, code="too_many_rows", pointer="filter")
        if rows * len(query.measures) > MAX_FIGURES:
            message = f"{rows:,} rows of {len(query.measures)} measures; a file has at most {MAX_FIGURES:,} means"
            raise InvalidInput(message, code="too_many_values", pointer="measures")
        return read_leaderboard(collection=collection, query=replace(query, offset=0, limit=MAX_ROWS))

    return read_in_snapshot(read)


def runs_shown(*, collection: Collection, query: BoardQuery) -> list[UUID]:
    """Return the runs on all pages of the leaderboard, in the order of their keys."""
    return list(_Board(collection, active_qrels(collection), query).shown.order_by("pk").values_list("pk", flat=True))
