"""Announce to webhooks what workers have done.

Each function is called in the transaction of what it announces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from metrics.models import EVALUATIONS, Comparison, Evaluation, Job
from runs import hooks
from runs.models import Collection, Qrels, Team, UnannouncedEvaluations
from runs.services.webhooks.events import comparison_compared, evaluations_done, submission_ended

# The fields of a collection that an event needs. Nothing else is read: another damaged value must
# not keep a job from ending.
_OF_COLLECTION = ("slug", "blind", "shown_to", "visibility", "team")


def announce_ended(kind: type[Job], pks: Iterable[Any]) -> None:
    """Announce the end of those of these evaluations that count.

    Other kinds of jobs have no such event.
    """
    if kind is Evaluation:
        hooks.evaluations_ended.send(Evaluation, evaluations=list(pks))

    evaluations = next((other for other in EVALUATIONS.values() if other is kind), None)
    if not settings.EVALHUB_WEBHOOKS or evaluations is None:
        return

    key = evaluations.OF.KEY
    ended = evaluations.objects.counting().live().filter(pk__in=list(pks))
    columns = ["state", f"{key}__tag", f"{key}__team__slug", "qrels__version"]
    columns += [f"{key}__collection__{name}" for name in _OF_COLLECTION]

    rows = ended.select_related(f"{key}__collection", f"{key}__team", "qrels").only(*columns)
    for evaluation in rows:
        qrels = evaluation.qrels
        submission_ended(evaluation.submission, evaluation.state, qrels.version if qrels else None)
        if qrels and kind is Evaluation:
            _note_unannounced(qrels)


def announce_compared(stored: Comparison) -> None:
    """Announce a comparison that is finished, to the teams whose runs it compares too."""
    if settings.EVALHUB_WEBHOOKS:
        compared = Evaluation.objects.filter(pk__in=stored.query["evaluations"])
        teams = Team.objects.filter(pk__in=compared.values("run__team")).values("pk")

        # As it is now: a comparison may have taken an hour.
        collection = Collection.objects.only(*_OF_COLLECTION).get(pk=stored.qrels.collection_id)
        comparison_compared(stored.pk, collection, teams)


def announce_done() -> int:
    """Announce judgements under which every run is evaluated, once after the last evaluation.

    Return how many there are.

    The row is deleted before what is left is counted: an evaluation that ends meanwhile waits for
    this transaction, and writes another row.
    """
    announced = 0
    unannounced = Qrels.objects.filter(pk__in=UnannouncedEvaluations.objects.values("pk"))
    columns = ("version", *(f"collection__{name}" for name in _OF_COLLECTION))
    for qrels in unannounced.select_related("collection").only(*columns):
        if _are_under_way(qrels):
            continue

        with transaction.atomic():
            if not UnannouncedEvaluations.objects.filter(pk=qrels.pk).delete()[0]:
                continue

            if _are_under_way(qrels):
                transaction.set_rollback(True)
            elif Qrels.objects.filter(pk=qrels.pk, active=True).exists():
                evaluations_done(qrels)
                announced += 1

    return announced


def _are_under_way(qrels: Qrels) -> bool:
    under_way = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING)
    return Evaluation.objects.counting().live().filter(qrels=qrels, state__in=under_way).exists()


def _note_unannounced(qrels: Qrels) -> None:
    """Note that an evaluation by these judgements ended."""
    if not UnannouncedEvaluations.objects.filter(pk=qrels.pk).update(since=Now()):
        UnannouncedEvaluations.objects.bulk_create(
            [UnannouncedEvaluations(qrels=qrels)], ignore_conflicts=True
        )
