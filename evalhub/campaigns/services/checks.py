"""What organisers should look at in a phase before its results are released."""

from __future__ import annotations

from django.db.models import Q

from metrics.engine.measures.grammar import parse_measure
from metrics.models import Evaluation
from metrics.services.values.judged_views import matrix_of
from runs.models import Entry, Phase

_RELEVANT = parse_measure("NumRel")


def topics_without_relevant(phase: Phase) -> tuple[list[str], int]:
    """Return the topics that have no relevant document in the active judgements, and how many topics there are; none
    before the first entry of the phase is evaluated, whose judged view has the counts."""
    qrels = phase.collection.active_qrels
    if qrels is None:
        return [], 0

    entered = Entry.objects.filter(phase=phase, state=Entry.State.ENTERED).order_by()
    done = Evaluation.objects.filter(run__in=entered.values("run")).evaluated()
    pk = (
        done.counting(Q(qrels=qrels), phase.collection.scores)
        .order_by("pk")
        .values_list("pk", flat=True)
        .first()
    )
    if pk is None:
        return [], qrels.topics

    relevant = matrix_of([pk], _RELEVANT, qrels)[0][0]

    return [
        topic for topic, count in zip(qrels.topic_ids, relevant.tolist(), strict=True) if count == 0
    ], qrels.topics
