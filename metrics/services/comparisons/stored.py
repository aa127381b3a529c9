"""Let workers compute comparisons.

They are queued once, found again by their inputs, and deleted when they are no longer read.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from metrics.engine import ENGINE_VERSION
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.resampling import BLOCK
from metrics.models import Comparison, Evaluation
from metrics.services.boards.topic_selection import TopicSelection
from metrics.services.comparisons.comparison import (
    Compared,
    ComparisonQuery,
    Entrants,
    choose_entrants,
    compare_entrants,
    with_usual_test,
)
from metrics.services.comparisons.content import (
    STATISTICS_VERSION,
    baselines_from,
    canonical,
    decode,
    digest_of,
    encode,
    query_from,
    selection_from,
)
from metrics.services.comparisons.workload import (
    check_missing,
    check_workload,
    estimate,
    fits_a_request,
    seconds_of,
)
from metrics.services.queue.damage import check_files, make_comparison_again
from metrics.services.queue.leases import patiently, work_on
from metrics.services.queue.lifecycle import (
    Lease,
    LeaseLost,
    count_moves,
    finish,
    note,
    try_failed_again,
)
from metrics.services.queue.notices import announce_compared
from metrics.services.work import begin
from runs.attention import present_attention
from runs.errors import Conflict, LimitReached, NotFound
from runs.models import Collection, Qrels
from runs.services.audit.reading import after_snapshot

# At most this many comparisons of a collection are queued or in progress.
MAX_UNFINISHED = 20
KEPT = timedelta(days=30)
# Beyond this many bytes the results are deleted that have not been read for the longest time.
KEPT_BYTES = 2**30
_WAIT_SECONDS = 10.0
_READ_AGAIN = timedelta(days=1)
_NOTE_SECONDS = 1.0
_LONG = ("qrels__topic_ids", "content", "traceback")


@dataclass(frozen=True)
class Answer:
    """A finished comparison, computed immediately or `stored`.

    `gone` are the places of entrants that were withdrawn meanwhile.
    """

    query: ComparisonQuery
    entrants: Entrants
    results: list[Compared]
    stored: Comparison | None = None
    gone: frozenset[int] = field(default_factory=frozenset)

    @property
    def engine_version(self) -> str:
        """Return the engine version that computed it."""
        return self.stored.engine_version if self.stored else ENGINE_VERSION

    @property
    def stale(self) -> bool:
        """Return whether other judgements or another engine are active by now."""
        return not self.entrants.qrels.active or self.engine_version != ENGINE_VERSION

    @property
    def narrowed(self) -> bool:
        """Return whether fewer runs are shown than were tested together."""
        return self.results[0].pairs.runs < len(self.entrants.evaluations)

    def of(self, runs: list[str]) -> Answer:
        """Return the pairs of some of its runs, of all if none are named.

        They are tested and corrected among all compared runs.

        Raise StatisticsError for a run that was not compared, or fewer than two.
        """
        if not runs:
            return self

        evaluations = enumerate(self.entrants.evaluations)
        places = {
            str(evaluation.run_id): place
            for place, evaluation in evaluations
            if place not in self.gone
        }

        chosen = dict.fromkeys([*runs, *self.query.baselines])
        missing = [run for run in chosen if run not in places]
        if missing:
            message = f"run {missing[0]} is not among the {len(places):,} compared runs"
            raise StatisticsError(message, code="unknown_run", pointer="runs")
        if len(chosen) < 2:
            raise StatisticsError(
                "a comparison needs at least two runs; found 1", code="too_few_runs", pointer="runs"
            )

        query = replace(self.query, runs=list(chosen), family=self.query.tested)
        chosen_places = {places[run] for run in chosen}
        return replace(
            self, query=query, results=[compared.among(chosen_places) for compared in self.results]
        )


@dataclass(frozen=True)
class Outlook:
    """A comparison that only a worker can compute: its size, and its seconds."""

    runs: int
    pairs: int
    seconds: float


def answer_comparison(*, collection: Collection, query: ComparisonQuery) -> Answer | Comparison:
    """Return the comparison if it is stored or quick, otherwise the job that waits for a worker.

    Raise StatisticsError if it has no result, Conflict if it failed, LimitReached if too many are
    queued.
    """
    answer = look_up_comparison(collection=collection, query=query)
    if isinstance(answer, Outlook):
        answer = queue_comparison(collection=collection, query=query)

    if isinstance(answer, Comparison):
        check_not_failed(answer)

    return answer


def _compute_at_once(entrants: Entrants, query: ComparisonQuery) -> Answer:
    begin(
        estimate(entrants, query), "the comparison", "use fewer runs, measures or resamples", "runs"
    )

    # Threads that draw resamples check the request for which they draw.
    watched_query = replace(
        query, options=replace(query.options, watch=present_attention().keep_going)
    )
    return Answer(query, entrants, list(compare_entrants(entrants, watched_query)))


def check_not_failed(stored: Comparison) -> None:
    """Raise Conflict if no worker could compute the comparison."""
    if stored.state == Comparison.State.FAILED:
        message = (
            f"comparison {stored.pk} failed: {stored.error_message}; POST the same request to retry"
        )
        raise Conflict(message, code="comparison_failed")


def look_up_comparison(
    *, collection: Collection, query: ComparisonQuery
) -> Answer | Comparison | Outlook:
    """Return the comparison, or its outlook where a worker would have to compute it.

    Nothing is queued.

    Raise StatisticsError if it has no result.
    """
    entrants = choose_entrants(collection=collection, query=query)
    query = with_usual_test(query, entrants)
    check_workload(entrants, query)
    if fits_a_request(entrants, query):
        return _compute_at_once(entrants, query).of(query.shown)

    stored = _find(digest_of(canonical(entrants, query)))
    if stored is None:
        return Outlook(len(entrants.evaluations), entrants.pairs.number, estimate(entrants, query))

    if stored.state != Comparison.State.COMPARED:
        return stored

    # Groups and weights of topics are applied whenever a comparison is read.
    answer = read_stored_comparison(stored).of(query.shown)
    return replace(answer, query=replace(answer.query, by=query.by, weights=query.weights))


def queue_comparison(*, collection: Collection, query: ComparisonQuery) -> Comparison:
    """Return the stored comparison of these inputs, queued if there is none yet or it failed."""
    entrants = choose_entrants(collection=collection, query=query)
    query = with_usual_test(query, entrants)
    check_workload(entrants, query)

    stored = _find_or_queue(entrants, query)
    if try_failed_again(Comparison.objects.filter(pk=stored.pk)):
        stored.refresh_from_db()

    return stored


def _find_or_queue(entrants: Entrants, query: ComparisonQuery) -> Comparison:
    content = canonical(entrants, query)
    digest = digest_of(content)
    existing = _find(digest)
    if existing is not None:
        return existing

    check_missing(entrants, query)

    waiting = (
        Comparison.objects.unfinished()
        .filter(qrels__collection=entrants.qrels.collection_id)
        .count()
    )
    if waiting >= MAX_UNFINISHED:
        message = (
            f"{waiting} comparisons of this collection are already waiting; try again when some "
            "are done"
        )
        raise LimitReached(message, wait=_WAIT_SECONDS, code="too_many_comparisons")

    identity = {"qrels": entrants.qrels, "scores": entrants.scores, "query": content}
    comparison: Comparison
    with transaction.atomic():
        comparison = Comparison.objects.get_or_create(digest=digest, defaults=identity)[0]
        count_moves(Comparison, [comparison.pk])

    return comparison


def _find(digest: str) -> Comparison | None:
    return (
        Comparison.objects.select_related("qrels__collection")
        .defer(*_LONG)
        .filter(digest=digest)
        .first()
    )


def read_stored_comparison(stored: Comparison) -> Answer:
    """Return a stored result with the runs that still exist.

    Raise NotFound if it, or one of its evaluations, was deleted.
    """
    if stored.read_at < timezone.now() - _READ_AGAIN:
        after_snapshot(lambda: Comparison.objects.filter(pk=stored.pk).update(read_at=Now()))

    query, entrants = query_from(stored.query, stored.qrels.collection), _entrants(stored)
    baselines = [str(entrants.evaluations[place].run_id) for place in entrants.baselines]
    query = replace(query, baselines=baselines)
    gone = frozenset(
        place for place, entry in enumerate(entrants.evaluations) if entry.run.deleted_at
    )
    rows = Comparison.objects.filter(pk=stored.pk).values_list("content", "content_digest")

    content, digest = rows.first() or (None, None)
    if content is None or stored.query.get("statistics_version") != STATISTICS_VERSION:
        raise NotFound(f"comparison {stored.pk} has expired; request it again", code="not_found")
    if digest not in (None, stored.digest_of_content(stored.digest, content)):
        raise make_comparison_again(stored)
    return Answer(query, entrants, decode(bytes(content), query), stored, gone)


def question_of(stored: Comparison) -> ComparisonQuery:
    """Return the query of a stored comparison, with the ids of its runs, to request it again."""
    query, content = query_from(stored.query, stored.qrels.collection), stored.query
    run_of_evaluation = dict(
        Evaluation.objects.filter(pk__in=content["evaluations"]).values_list("pk", "run_id")
    )
    runs = [str(run_of_evaluation[pk]) for pk in content["evaluations"] if pk in run_of_evaluation]
    baselines = [content["evaluations"][place] for place in baselines_from(content)]

    return replace(
        query,
        baselines=[str(run_of_evaluation[pk]) for pk in baselines if pk in run_of_evaluation],
        runs=runs,
    )


def _entrants(stored: Comparison) -> Entrants:
    pks = stored.query["evaluations"]
    rows = (
        Evaluation.objects.with_files()
        .select_related("run__team")
        .defer("traceback", "run__metadata")
    )

    evaluations = rows.in_bulk(pks)
    check_files(Evaluation, ((pk, evaluation.same_files) for pk, evaluation in evaluations.items()))
    if len(evaluations) < len(pks):
        raise NotFound("runs of this comparison no longer exist", code="not_found")
    return Entrants(
        stored.qrels,
        stored.scores,
        [evaluations[pk] for pk in pks],
        baselines_from(stored.query),
        selection_from(stored.query, stored.qrels.topics),
    )


def stored_selection(comparison: UUID, qrels: Qrels) -> TopicSelection | None:
    """Return the topics that a stored comparison under these judgements selected.

    It is None where all topics count, and where there is no such comparison.
    """
    stored = Comparison.objects.filter(pk=comparison, qrels=qrels).only("query").first()
    return None if stored is None else selection_from(stored.query, qrels.topics)


def compare(*, comparison_id: str) -> bool:
    """Compute one queued comparison and return whether this call finished it.

    A second call does nothing.
    """
    return work_on(UUID(comparison_id), Comparison, _compare)


def _compare(lease: Lease, lost: threading.Event) -> bool:
    stored = Comparison.objects.select_related("qrels__collection").get(pk=lease.pk)
    query, entrants = query_from(stored.query, stored.qrels.collection), _entrants(stored)
    start = time.perf_counter()
    progress = Progress(lease, lost, entrants, query)
    watched_query = replace(query, options=replace(query.options, watch=progress.block))
    content = encode(list(compare_entrants(entrants, watched_query, progress.family)))
    results: dict[str, Any] = {"content": content, "size": len(content), "progress": 1.0}
    results["content_digest"] = stored.digest_of_content(stored.digest, content)
    results["seconds"] = time.perf_counter() - start
    patiently(lambda: _store(lease, stored, results))
    sweep_comparisons()

    return True


def _store(lease: Lease, stored: Comparison, results: dict[str, Any]) -> None:
    """Save the result. A worker that lost its lease writes nothing."""
    with transaction.atomic():
        if not finish(lease, **results):
            raise LeaseLost
        count_moves(Comparison, [lease.pk])
        announce_compared(stored)


class Progress:
    """Record once a second the progress of a comparison, and end it if its lease was lost.

    The progress is in estimated time.
    """

    def __init__(
        self, lease: Lease, lost: threading.Event, entrants: Entrants, query: ComparisonQuery
    ) -> None:
        runs = len(entrants.evaluations)
        topics = entrants.qrels.topics
        pairs = entrants.pairs.number

        self._lease, self._lost = lease, lost
        self._blocks = -(-query.options.resamples // BLOCK)
        self._seconds = {
            test: seconds_of(test, runs, topics, pairs, query.options) for test in query.tests
        }
        self._whole = sum(self._seconds.values()) * len(query.measures)
        self._before = self._now = self._block = 0.0
        self._due = time.monotonic() + _NOTE_SECONDS

    def family(self, measure: Measure, test: str) -> None:
        """Note that the next test begins."""
        self._before, self._now, self._block = self._before + self._now, self._seconds[test], 0.0
        self._note()

    def block(self) -> None:
        """Note that the test draws one more block of resamples."""
        self._block += 1
        self._note()

    def _note(self) -> None:
        if self._lost.is_set():
            raise LeaseLost
        if time.monotonic() < self._due:
            return

        self._due = time.monotonic() + _NOTE_SECONDS
        inside = min(self._block / self._blocks, 1.0) * self._now
        if not patiently(
            lambda: note(self._lease, progress=min((self._before + inside) / self._whole, 0.99))
        ):
            raise LeaseLost


def sweep_comparisons() -> int:
    """Delete comparisons not read for a month, then those least recently read beyond a gigabyte.

    Return how many.
    """
    finished = Comparison.objects.exclude(pk__in=Comparison.objects.unfinished().values("pk"))
    forgotten = _forget(finished.filter(read_at__lt=timezone.now() - KEPT))
    total, surplus = 0, []

    for pk, size in finished.order_by("-read_at", "-created_at").values_list("pk", "size"):
        total += size
        if total > KEPT_BYTES:
            surplus.append(pk)

    return forgotten + _forget(finished.filter(pk__in=surplus))


def _forget(comparisons: QuerySet[Comparison]) -> int:
    """Delete comparisons. Return how many."""
    with transaction.atomic():
        pks = list(comparisons.values_list("pk", flat=True))
        count_moves(Comparison, pks)
        return Comparison.objects.filter(pk__in=pks).delete()[0]
