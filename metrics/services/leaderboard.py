"""The leaderboard: means of evaluated runs, ranked by one measure, with what keeps a row from being ranked."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Count, F, OuterRef, QuerySet, Subquery

from metrics.engine.errors import NotFound
from metrics.engine.grammar import Measure
from metrics.models import Evaluation, MetricVector
from metrics.services.judged_views import Mean, means_of
from runs.models import Collection, Qrels, Run

# Long columns that no row of a board shows.
_UNSHOWN = (
    "traceback", "qrels__topic_ids", "qrels__warnings", "run__warnings", "run__metadata", "run__ir_metadata",
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
    """One page of a board. `states` counts the live runs by state; `total` counts rows of all pages."""

    qrels: Qrels
    scores: str
    measures: list[Measure]
    sort: Measure
    descending: bool
    total: int
    ranked: int
    states: dict[str, int]
    rows: list[Row] = field(default_factory=list)


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
    if query.offset >= board.ranked:
        return []
    stored = MetricVector.objects.filter(
        evaluation__in=Evaluation.objects.current(board.qrels, board.scores).evaluated(), measure=query.sort.name
    )
    if stored.count() == board.ranked:
        page, rank = _stored_page(stored, query)
    else:
        page, rank = _computed_page(collection, board, query)
    means = means_of(page, query.measures, set(collection.measures))
    rows = Evaluation.objects.select_related("run__team", "qrels").defer(*_UNSHOWN).in_bulk(page)
    ordered = [rows[pk] for pk in page]
    return [Row(place, e.run, e, _values(means, e, query.measures)) for place, e in zip(rank, ordered, strict=True)]


def _stored_page(stored: QuerySet[MetricVector], query: BoardQuery) -> tuple[list[int], list[int]]:
    by_mean = F("mean").desc(nulls_last=True) if query.descending else F("mean").asc(nulls_last=True)
    ordered = stored.order_by(by_mean, "evaluation__run__created_at", "evaluation__run")
    page = list(ordered.values_list("evaluation_id", "mean")[query.offset : query.offset + query.limit])
    better = 0
    if query.offset and page and page[0][1] is not None:
        beats = {"mean__gt": page[0][1]} if query.descending else {"mean__lt": page[0][1]}
        better = stored.filter(**beats).count()
    elif query.offset and page:
        better = stored.exclude(mean=None).count()
    return [pk for pk, _ in page], _ranks([mean for _, mean in page], better, query.offset)


def _computed_page(collection: Collection, board: Leaderboard, query: BoardQuery) -> tuple[list[int], list[int]]:
    """The same for a measure that is not stored for every run."""
    current = Evaluation.objects.current(board.qrels, board.scores).evaluated()
    ids = list(current.order_by("run__created_at", "run").values_list("pk", flat=True))
    means = means_of(ids, [query.sort], set(collection.measures))
    sign = -1.0 if query.descending else 1.0
    by_mean = {pk: means[pk, query.sort.name][0] for pk in ids}
    ids.sort(key=lambda pk: (by_mean[pk] is None, sign * (by_mean[pk] or 0.0)))
    ranks = _ranks([by_mean[pk] for pk in ids], 0, 0)
    page = slice(query.offset, query.offset + query.limit)
    return ids[page], ranks[page]


def _ranks(means: list[float | None], better: int, offset: int) -> list[int]:
    """Competition ranks 1, 2, 2, 4 of a page whose first row has `better` rows above its value."""
    ranks: list[int] = []
    for index, mean in enumerate(means):
        if index and mean == means[index - 1]:
            ranks.append(ranks[-1])
        else:
            ranks.append((offset + index if index else better) + 1)
    return ranks


def _stale_rows(collection: Collection, page: QuerySet[Evaluation], measures: list[Measure]) -> list[Row]:
    evaluations = list(page)
    means = means_of([e.pk for e in evaluations], measures, set(collection.measures))
    return [Row(None, e.run, e, _values(means, e, measures)) for e in evaluations]


def _values(means: dict[tuple[int, str], Mean], evaluation: Evaluation, measures: list[Measure]) -> dict[str, Mean]:
    return {measure.name: means[evaluation.pk, measure.name] for measure in measures}
