"""The leaderboard: means of evaluated runs, ranked by one measure, and below them the runs that have no rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, QuerySet, Value, When

from metrics.engine.errors import InvalidInput, NotFound
from metrics.engine.grammar import Measure
from metrics.models import Evaluation, MetricVector
from metrics.services.boards.filter import Term, filtered
from metrics.services.boards.states import RANKED, STALE, UNRANKED, runs_with_states
from metrics.services.values.evaluate import JUDGED
from metrics.services.values.judged_views import Mean, means_of
from runs.models import Collection, Qrels, Run

# Of a whole board: rows, and rows times measures.
MAX_ROWS, MAX_FIGURES = 1_000, 20_000
# What a row of a board shows of its evaluation, run and team.
_SHOWN = (
    "qrels_id", "engine_version", "topics_answered", "run__tag", "run__created_at", "run__tied_documents",
    "run__team__slug", "run__team__name",
)  # fmt: skip
# And what none does: long columns.
_LONG = ("warnings", "known_warnings", "metadata", "ir_metadata")
_UNSHOWN = ("traceback", "qrels__topic_ids", "qrels__warnings", *(f"run__{name}" for name in _LONG))


@dataclass(frozen=True)
class Row:
    """One run on the board; `rank` is None for one that is listed below the ranked ones.

    A stale row has values of other judgements or of an older engine. A row that is queued, evaluating or failed has
    none, and an evaluation that is not stored where nobody has asked for it yet. `judged` is the mean of Judged@10.
    """

    rank: int | None
    state: str
    run: Run
    evaluation: Evaluation
    values: dict[str, Mean]
    judged: float | None

    @property
    def stale(self) -> bool:
        return self.state == STALE

    @property
    def has_values(self) -> bool:
        return self.state in (RANKED, STALE)


@dataclass(frozen=True)
class Leaderboard:
    """One page of a board. `states` counts the live runs by the state of their evaluation.

    `ranked` counts all runs that have a rank, `total` the rows of all pages that the filter shows.

    `order` has every ranked evaluation with its mean, also those of other pages and those that no filter shows.
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
    order: list[tuple[int, float | None]] = field(default_factory=list)


@dataclass(frozen=True)
class BoardQuery:
    """What a leaderboard is asked for; `reader` is who asks, for a filter by own runs."""

    measures: list[Measure]
    sort: Measure
    descending: bool = True
    scores: str | None = None
    offset: int = 0
    limit: int = 50
    filter: Term | None = None
    reader: Any = None


@dataclass(frozen=True)
class _Board:
    """What a board is made from."""

    collection: Collection
    qrels: Qrels
    query: BoardQuery

    @property
    def scores(self) -> str:
        return self.query.scores or self.collection.scores

    @property
    def shown(self) -> QuerySet[Any]:
        """The runs with their states, without those that the filter hides."""
        runs = runs_with_states(self.collection, self.qrels, self.scores)
        return filtered(runs, self.query.filter, self.query.reader) if self.query.filter else runs

    @property
    def unranked(self) -> QuerySet[Any]:
        """Those of them that are listed below the ranked ones, the stale ones first."""
        last = Case(When(board_state=STALE, then=Value(0)), default=Value(1))
        return self.shown.filter(board_state__in=UNRANKED).order_by(last, "created_at", "pk")


def active_qrels(collection: Collection) -> Qrels:
    """The judgements that count; NotFound where none are active."""
    qrels = collection.active_qrels
    if qrels is None:
        raise NotFound(f"collection {collection.slug} has no active judgements yet", code="no_active_qrels")
    return qrels


def read_leaderboard(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """The page of the board that `query` asks for. Ties share a rank; earlier submissions come first among them.

    A filter chooses which rows are shown, never who is compared: ranks are those of the whole board.
    """
    source = _Board(collection, active_qrels(collection), query)
    states = _states(collection, source.qrels, source.scores)
    order = _order(source)
    shown = _shown(source, order)
    unranked = source.unranked if sum(states.values()) > len(order) else source.unranked.none()
    page = slice(query.offset, query.offset + query.limit)
    start = max(0, query.offset - len(shown))
    rows = _ranked_rows(source, shown[page])
    rows += _unranked_rows(source, unranked[start : start + query.limit - len(rows)])
    return Leaderboard(
        qrels=source.qrels,
        scores=source.scores,
        measures=query.measures,
        sort=query.sort,
        descending=query.descending,
        total=len(shown) + unranked.count(),
        ranked=len(order),
        states=states,
        rows=rows,
        order=order,
    )


def read_whole_board(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """All rows that the filter shows on one page; InvalidInput for more rows or figures than are made at once."""
    rows = len(runs_shown(collection=collection, query=query))
    if rows > MAX_ROWS:
        message = f"{rows:,} rows; a file has at most {MAX_ROWS:,}: name fewer with filter="
        raise InvalidInput(message, code="too_many_rows", pointer="filter")
    if rows * len(query.measures) > MAX_FIGURES:
        message = f"{rows:,} rows of {len(query.measures)} measures; a file has at most {MAX_FIGURES:,} means"
        raise InvalidInput(message, code="too_many_values", pointer="measures")
    return read_leaderboard(collection=collection, query=replace(query, offset=0, limit=MAX_ROWS))


def runs_shown(*, collection: Collection, query: BoardQuery) -> list[UUID]:
    """The runs on all pages of the board, in the order of their keys."""
    source = _Board(collection, active_qrels(collection), query)
    return list(source.shown.order_by("pk").values_list("pk", flat=True))


@dataclass(frozen=True)
class Progress:
    """How far the evaluation of a collection has come under its active judgements; `states` counts the live runs."""

    qrels: Qrels
    scores: str
    states: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def evaluated(self) -> int:
        return self.states.get(Evaluation.State.EVALUATED, 0)

    @property
    def done(self) -> bool:
        """Whether nothing waits any more; what failed stays failed."""
        return not any(self.states.get(state) for state in (Evaluation.State.QUEUED, Evaluation.State.EVALUATING))


def read_progress(*, collection: Collection, scores: str | None = None) -> Progress:
    qrels = active_qrels(collection)
    scores = scores or collection.scores
    return Progress(qrels, scores, _states(collection, qrels, scores))


def _states(collection: Collection, qrels: Qrels, scores: str) -> dict[str, int]:
    """Live runs by state; one that nobody has asked to evaluate this way yet counts as queued."""
    current = Evaluation.objects.current(qrels, scores)
    states: dict[str, int] = dict(current.order_by().values_list("state").annotate(Count("pk")))
    unasked = Run.objects.filter(collection=collection, deleted_at=None).count() - sum(states.values())
    if unasked > 0:
        states[Evaluation.State.QUEUED] = states.get(Evaluation.State.QUEUED, 0) + unasked
    return states


def _order(source: _Board) -> list[tuple[int, float | None]]:
    """Every ranked evaluation with its mean, best first, those without a mean last; then by submission."""
    sort = source.query.sort
    current = Evaluation.objects.current(source.qrels, source.scores).evaluated()
    stored = MetricVector.objects.filter(evaluation__in=current, measure=sort.name)
    means: dict[int, float | None] = dict(stored.values_list("evaluation_id", "mean"))
    ids = list(current.order_by("run__created_at", "run").values_list("pk", flat=True))
    missing = [pk for pk in ids if pk not in means]
    computed = means_of(missing, [sort], set(source.collection.measures)) if missing else {}
    means.update({pk: mean for (pk, _), (mean, _) in computed.items()})
    sign = -1.0 if source.query.descending else 1.0
    ordered = [(pk, means[pk]) for pk in ids]
    ordered.sort(key=lambda entry: (entry[1] is None, sign * (entry[1] or 0.0)))
    return ordered


def _shown(source: _Board, order: list[tuple[int, float | None]]) -> list[tuple[int, int]]:
    """The ranked evaluations that the filter shows, each with its rank among all."""
    ranked = list(zip((pk for pk, _ in order), _ranks([mean for _, mean in order]), strict=True))
    if source.query.filter is None:
        return ranked
    current = Evaluation.objects.current(source.qrels, source.scores).evaluated()
    # The runs come with their states, of which only the keys are asked here.
    kept = set(current.filter(run__in=source.shown.values("pk")).values_list("pk", flat=True))
    return [(pk, rank) for pk, rank in ranked if pk in kept]


def _ranks(means: list[float | None]) -> list[int]:
    """Competition ranks of sorted means: 1, 2, 2, 4."""
    ranks: list[int] = []
    for index, mean in enumerate(means):
        ranks.append(ranks[-1] if index and mean == means[index - 1] else index + 1)
    return ranks


def _ranked_rows(source: _Board, page: list[tuple[int, int]]) -> list[Row]:
    ids = [pk for pk, _ in page]
    means = _means(source, ids)
    found = Evaluation.objects.select_related("run__team").only(*_SHOWN).in_bulk(ids)
    for evaluation in found.values():
        evaluation.qrels = source.qrels
    return [_row(source, rank, RANKED, found[pk], means) for pk, rank in page]


def _unranked_rows(source: _Board, page: QuerySet[Any]) -> list[Row]:
    entries = list(page.values_list("pk", "board_state", "evaluation_shown"))
    if not entries:
        return []
    keys = [shown for _, _, shown in entries if shown]
    found = Evaluation.objects.select_related("run__team", "qrels").defer(*_UNSHOWN).in_bulk(keys)
    unasked = Run.objects.select_related("team").defer(*_LONG).in_bulk([run for run, _, key in entries if not key])
    means = _means(source, [key for _, state, key in entries if state == STALE])
    return [
        _row(source, None, state, found[key] if key else _unasked(source, unasked[run]), means)
        for run, state, key in entries
    ]


def _unasked(source: _Board, run: Run) -> Evaluation:
    """The evaluation that nobody has asked for yet."""
    return Evaluation(run=run, qrels=source.qrels, scores=source.scores)


def _means(source: _Board, ids: list[int]) -> dict[tuple[int, str], Mean]:
    """Of the measures asked for and of Judged@10, which an evaluation of an earlier release has not stored."""
    measures = list(dict.fromkeys([*source.query.measures, JUDGED]))
    return means_of(ids, measures, {*source.collection.measures, JUDGED.name}) if ids else {}


def _row(
    source: _Board, rank: int | None, state: str, evaluation: Evaluation, means: dict[tuple[int, str], Mean]
) -> Row:
    nothing: Mean = (None, 0)
    values = {measure.name: means.get((evaluation.pk, measure.name), nothing) for measure in source.query.measures}
    judged, _ = means.get((evaluation.pk, JUDGED.name), nothing)
    return Row(rank, state, evaluation.run, evaluation, values, judged)
