"""Damaged stored values: remove them from every answer, and compute them again where possible."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import DatabaseError, transaction

from metrics.engine import ENGINE_VERSION
from metrics.models import (
    Comparison,
    Evaluation,
    Job,
    SessionEvaluation,
    SubmissionEvaluation,
)
from metrics.services.queue.lifecycle import count_moves, move, queue_again
from runs.errors import StoredValueCorrupt
from runs.services.audit.reading import after_snapshot

_NAMED = 5
_log = logging.getLogger(__name__)


def give_up_evaluations(
    kind: type[Evaluation] | type[SessionEvaluation], pks: list[int], part: str
) -> StoredValueCorrupt:
    """Queue evaluations again whose `what` is damaged, and return the error to raise.

    An evaluation by another engine version, or of a withdrawn run, fails instead: in neither state
    are its values shown.
    """
    code, done = StoredValueCorrupt.code, kind._default_manager.filter(pk__in=pks, state=kind.DONE)
    names = [
        str(name)
        for name in done.order_by("pk").values_list(f"{kind.OF.KEY}_id", flat=True)[:_NAMED]
    ]

    text = (
        f"the stored {part} of {kind.OF.noun()} {', '.join(names)} is damaged, and nothing is "
        "shown of it"
    )
    _log.error("%s: evaluations %s", text, pks)

    def queue_or_fail() -> None:
        try:
            current = kind._default_manager.live().filter(pk__in=pks, engine_version=ENGINE_VERSION)
            queue_again(current.filter(state=kind.DONE))
            move(
                done,
                state=Job.FAILED,
                error_code=code,
                error_message=f"its stored {part} is damaged",
            )
        except DatabaseError:
            # The next request that reads it gets the same error.
            _log.exception("evaluations %s cannot be queued again", pks)

    after_snapshot(queue_or_fail, always=True)

    return StoredValueCorrupt(text + "; it is being evaluated again; try again in a moment")


def files_of(pks: Sequence[int], evaluations: Mapping[int, Any]) -> list[tuple[int, bool]]:
    """Return for each of these evaluations whether it is of the same files, for `check_files`.

    Raise StoredValueCorrupt for one that is listed, and gone from the database.
    """
    gone = [pk for pk in pks if pk not in evaluations]
    if gone:
        raise StoredValueCorrupt(f"the database lacks {len(gone)} evaluations; check it with fsck")
    return [(pk, evaluations[pk].same_files) for pk in pks]


def check_files(kind: type[SubmissionEvaluation], evaluations: Iterable[tuple[int, bool]]) -> None:
    """Evaluate again those that are not `same_files`, and raise StoredValueCorrupt for any."""
    changed = [pk for pk, same in evaluations if not same]
    if not changed:
        return

    text = (
        f"{len(changed)} evaluations were made from other files than their {kind.OF.noun()}s "
        "name, and are not shown"
    )
    _log.error("%s: %s", text, changed)

    def evaluate_again() -> None:
        try:
            evaluate_anew(kind, changed)
        except DatabaseError:
            _log.exception("evaluations %s cannot be queued again", changed)

    after_snapshot(evaluate_again, always=True)
    raise StoredValueCorrupt(text + "; they are being made again; try again in a moment")


def evaluate_anew(kind: type[SubmissionEvaluation], pks: list[int]) -> None:
    """Replace evaluations that were made from other files by queued ones with new keys.

    Comparisons and caches know the old keys. Those of another engine version fail instead.
    """
    rows = kind._default_manager.filter(pk__in=pks, state=kind.DONE)
    with transaction.atomic():
        identity = (f"{kind.OF.KEY}_id", "qrels_id", kind.WAY)
        ours = rows.filter(engine_version=ENGINE_VERSION)
        identities = [dict(zip(identity, row, strict=True)) for row in ours.values_list(*identity)]
        count_moves(kind, pks)
        ours.delete()
        kind._default_manager.bulk_create(
            [kind(**row) for row in identities], ignore_conflicts=True
        )
        message = "it was made from other files than those that its row names"
        move(rows, state=Job.FAILED, error_code=StoredValueCorrupt.code, error_message=message)


def make_comparison_again(stored: Comparison) -> StoredValueCorrupt:
    """Queue a comparison again whose result is damaged, and return the error to raise."""
    _log.error("the stored result of %s is damaged", stored)
    after_snapshot(lambda: forget_result(stored.pk), always=True)
    text = f"the stored result of {stored} is damaged, and nothing is shown of it; it is made again"
    return StoredValueCorrupt(text)


def forget_result(pk: Any) -> None:
    """Delete the result of a finished comparison and queue it again."""
    again = {"state": Job.QUEUED, "content": None, "content_digest": None, "size": 0, "attempts": 0}
    move(Comparison.objects.filter(pk=pk, state=Comparison.DONE), **again, dispatched_at=None)
