"""Tell the state of a run on a leaderboard.

It is ranked, or unranked with values under older judgements, or without values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from metrics.models import Evaluation
from runs.models import Collection, Qrels, Run

# An unranked run has values of these judgements, but not on the topics of the ranked runs.
RANKED, UNRANKED, STALE = "ranked", "unranked", "stale"
_WAITING = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING, Evaluation.State.FAILED)
NOT_CURRENT = (STALE, *(state.value for state in _WAITING))
BOARD_STATES = (RANKED, UNRANKED, *NOT_CURRENT)


def runs_with_states(
    collection: Collection, qrels: Qrels, scores: str, below: Iterable[int] = ()
) -> QuerySet[Any]:
    """Return the live runs with their `board_state`.

    `evaluation_shown` has the key of the evaluation of their row.

    Evaluations under these judgements are ranked except those `below`, which depend on the measure.
    A run is stale if it has no values under these judgements but some under others. A run without a
    requested evaluation is queued and has no evaluation to show.
    """
    evaluations = Evaluation.objects.filter(run=OuterRef("pk"))
    current = evaluations.counting(Q(qrels=qrels), scores)
    newest = (
        evaluations.evaluated().filter(scores=scores).order_by("-qrels__version", "-engine_version")
    )

    # Nearly all of ten thousand runs have values: one query for all, not one for each run.
    valued = Evaluation.objects.counting(Q(qrels=qrels), scores).evaluated()
    return (
        Run.objects.filter(collection=collection, deleted_at=None)
        .in_rows()
        .alias(
            current=Subquery(current.values("pk")),
            current_state=Subquery(current.values("state")),
            newest=Subquery(newest.values("pk")[:1]),
        )
        .annotate(
            board_state=Case(
                When(pk__in=valued.filter(pk__in=below).values("run"), then=Value(UNRANKED)),
                When(pk__in=valued.values("run"), then=Value(RANKED)),
                When(newest__isnull=False, then=Value(STALE)),
                default=Coalesce(F("current_state"), Value(Evaluation.State.QUEUED.value)),
            ),
            evaluation_shown=Coalesce(F("newest"), F("current")),
        )
    )


def count_states(
    collection: Collection, qrels: Qrels, scores: str, within: frozenset[UUID] | None = None
) -> dict[str, int]:
    """Return the number of live runs by state, of all or of those `within`.

    A run without a requested evaluation counts as queued.
    """
    current = Evaluation.objects.current(qrels, scores).filter(run__replicate_of=None)
    live = Run.objects.filter(collection=collection, deleted_at=None).in_rows()

    if within is not None:
        current, live = current.filter(run__in=within), live.filter(pk__in=within)

    states: dict[str, int] = dict(current.order_by().values_list("state").annotate(Count("pk")))
    without_evaluation = live.count() - sum(states.values())
    if without_evaluation > 0:
        states[Evaluation.State.QUEUED] = (
            states.get(Evaluation.State.QUEUED, 0) + without_evaluation
        )

    return states
