"""The leaderboard: means of evaluated runs, ranked by one measure, with what keeps a row from being ranked."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Count, OuterRef, QuerySet, Subquery

from metrics.engine.errors import NotFound
from metrics.engine.grammar import Measure
from metrics.models import Evaluation, MetricVector
from metrics.services.judged_views import Mean, means_of
from runs.models import Collection, Qrels, Run

# What a row of a board shows of its evaluation, run and team.
_SHOWN = (
    "qrels_id", "engine_version", "topics_answered", "run__tag", "run__created_at", "run__tied_documents",
    "run__team__slug", "run__team__name",
)  # fmt: skip
# And what none does: long columns.
_UNSHOWN = (
    "traceback", "qrels__topic_ids", "qrels__warnings", "run__warnings", "run__known_warnings", "run__metadata",
    "run__ir_metadata",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One run on the board; `rank` is None for a stale run, which is listed below the ranked ones."""

    rank: int | None
    run: Run
    evaluation: Evaluation
    values: dict[str, Mean]

    @property
    def stale(self) -> bool:
        return self.rank is None and self.evaluation.topics_answered is not None


@dataclass(frozen=True)
class Leaderboard:
    """One page of a board. `states` counts the live runs by state; `total` counts rows of all pages.

    `order` has every ranked evaluation with its mean, also those of other pages.
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
    """What a leaderboard is asked for."""

    measures: list[Measure]
    sort: Measure
    descending: bool = True
    scores: str | None = None
    offset: int = 0
    limit: int = 50


def active_qrels(collection: Collection) -> Qrels:
    """The judgements that count; NotFound where none are active."""
    qrels = collection.active_qrels
    if qrels is None:
        raise NotFound(f"collection {collection.slug} has no active judgements yet", code="no_active_qrels")
    return qrels


def read_leaderboard(*, collection: Collection, query: BoardQuery) -> Leaderboard:
    """The page of the board that `query` asks for. Ties share a rank; earlier submissions come first among them."""
    qrels = active_qrels(collection)
    scores = query.scores or collection.scores
    states = _states(collection, qrels, scores)
    ranked = states.get(Evaluation.State.EVALUATED, 0)
    stale = _stale(collection, qrels, scores) if sum(states.values()) > ranked else Evaluation.objects.none()
    total = ranked + stale.count()
    board = Leaderboard(qrels, scores, query.measures, query.sort, query.descending, total, ranked, states)
    board.rows.extend(_ranked_rows(collection, board, query))
    room = query.limit - len(board.rows)
    if room > 0:
        start = max(0, query.offset - ranked)
        board.rows.extend(_stale_rows(collection, stale[start : start + room], query.measures))
    return board


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


def _stale(collection: Collection, qrels: Qrels, scores: str) -> QuerySet[Evaluation]:
    """For every live run that is not evaluated under these judgements, its newest evaluation under older ones."""
    done = Evaluation.objects.current(qrels, scores).evaluated().values("run")
    older = Evaluation.objects.evaluated().filter(run=OuterRef("run"), scores=scores)
    newest = older.order_by("-qrels__version", "-engine_version").values("pk")[:1]
    rows = Evaluation.objects.evaluated().filter(
        run__collection=collection, run__deleted_at=None, scores=scores, pk=Subquery(newest)
    )
    shown = rows.exclude(run__in=done).select_related("run__team", "qrels").defer(*_UNSHOWN)
    return shown.order_by("run__created_at", "run")


def _ranked_rows(collection: Collection, board: Leaderboard, query: BoardQuery) -> list[Row]:
    order = _order(collection, board, query)
    board.order.extend(order)
    ranks = _ranks([mean for _, mean in order])
    page = slice(query.offset, query.offset + query.limit)
    ids = [pk for pk, _ in order[page]]
    means = means_of(ids, query.measures, set(collection.measures))
    found = Evaluation.objects.select_related("run__team").only(*_SHOWN).in_bulk(ids)
    rows = []
    for pk, rank in zip(ids, ranks[page], strict=True):
        evaluation = found[pk]
        evaluation.qrels = board.qrels
        rows.append(Row(rank, evaluation.run, evaluation, _values(means, evaluation, query.measures)))
    return rows


def _order(collection: Collection, board: Leaderboard, query: BoardQuery) -> list[tuple[int, float | None]]:
    """Every ranked evaluation with its mean, best first, those without a mean last; then by submission."""
    current = Evaluation.objects.current(board.qrels, board.scores).evaluated()
    stored = MetricVector.objects.filter(evaluation__in=current, measure=query.sort.name)
    means: dict[int, float | None] = dict(stored.values_list("evaluation_id", "mean"))
    ids = list(current.order_by("run__created_at", "run").values_list("pk", flat=True))
    missing = [pk for pk in ids if pk not in means]
    computed = means_of(missing, [query.sort], set(collection.measures)) if missing else {}
    means.update({pk: mean for (pk, _), (mean, _) in computed.items()})
    sign = -1.0 if query.descending else 1.0
    ordered = [(pk, means[pk]) for pk in ids]
    ordered.sort(key=lambda entry: (entry[1] is None, sign * (entry[1] or 0.0)))
    return ordered


def _ranks(means: list[float | None]) -> list[int]:
    """Competition ranks of sorted means: 1, 2, 2, 4."""
    ranks: list[int] = []
    for index, mean in enumerate(means):
        ranks.append(ranks[-1] if index and mean == means[index - 1] else index + 1)
    return ranks


def _stale_rows(collection: Collection, page: QuerySet[Evaluation], measures: list[Measure]) -> list[Row]:
    evaluations = list(page)
    means = means_of([e.pk for e in evaluations], measures, set(collection.measures))
    return [Row(None, e.run, e, _values(means, e, measures)) for e in evaluations]


def _values(means: dict[tuple[int, str], Mean], evaluation: Evaluation, measures: list[Measure]) -> dict[str, Mean]:
    return {measure.name: means[evaluation.pk, measure.name] for measure in measures}
