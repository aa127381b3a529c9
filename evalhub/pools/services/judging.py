"""Store judgements: a correction is a new row, and the row that it replaces stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalhub.pools.models import Assessor, Assignment, Judgement, Pool
from evalhub.pools.services.assigning import documents_of_assignments, documents_to_judge
from runs.errors import InvalidInput
from runs.models import Collection, User

# In the pool and not judged; should have been judged and was not.
UNJUDGED, NOT_JUDGED = -1, -2
# What levels mean in a collection that does not say it.
USUAL_LABELS = {0: "not relevant", 1: "relevant"}
# Judgements that one statement stores.
_AT_ONCE = 500
# Model objects would take more than twice as long, in which no other connection can write to SQLite.
_INSERT = """
    INSERT INTO pools_judgement (
        pool_id, topic_id, doc_id, assessor_id, aspect, level, round, seconds, note, outside, at,
        recorded_by_id, active, supersedes_id
    ) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True)
class NewJudgement:
    """The level that an assessor gives to a document."""

    topic_id: str
    doc_id: str
    level: int
    aspect: str = ""
    round: str = ""
    seconds: float | None = None
    note: str = ""
    outside: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return self.topic_id, self.doc_id, self.aspect


@dataclass
class StoredCounts:
    """Judgements of new documents, with another level than before, and that were there already."""

    new: int = 0
    changed: int = 0
    same: int = 0


def labels_of(collection: Collection) -> dict[int, str]:
    """Return the levels of a collection that assessors give, ascending, with their meaning."""
    labels = {
        int(level): label
        for level, label in collection.level_labels.items()
        if level.isascii() and level.isdigit()
    }
    return dict(sorted((labels or USUAL_LABELS).items()))


def store_judgements(
    *, pool: Pool, assessor: Assessor, judgements: Sequence[NewJudgement], user: User
) -> StoredCounts:
    """Store judgements of different documents by one assessor; return what was new.

    A document with another level, or another note, gets a new row that supersedes the former one.
    Judgements of one assessor are stored one request after the other, so that none is lost or
    doubled.
    """
    counts = StoredCounts()
    with transaction.atomic():
        Assessor.objects.select_for_update().get(pk=assessor.pk)
        for start in range(0, len(judgements), _AT_ONCE):
            _store(pool, assessor, judgements[start : start + _AT_ONCE], user, counts)
    return counts


def _store(
    pool: Pool,
    assessor: Assessor,
    judgements: Sequence[NewJudgement],
    user: User,
    counts: StoredCounts,
) -> None:
    active = Judgement.objects.filter(
        pool=pool,
        assessor=assessor,
        active=True,
        topic_id__in={judgement.topic_id for judgement in judgements},
        doc_id__in=[judgement.doc_id for judgement in judgements],
    ).order_by()
    former = {
        (topic_id, doc_id, aspect): (pk, level, note)
        for pk, topic_id, doc_id, aspect, level, note in active.values_list(
            "pk", "topic_id", "doc_id", "aspect", "level", "note"
        )
    }

    pool_id = Pool._meta.pk.get_db_prep_value(pool.pk, connection)
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    rows, replaced = [], []
    for judgement in judgements:
        pk, *values = former.get(judgement.key, (None,))
        if values == [judgement.level, judgement.note]:
            counts.same += 1
            continue

        if pk is None:
            counts.new += 1
        else:
            counts.changed += 1
            replaced.append(pk)
        rows.append(
            (
                pool_id,
                judgement.topic_id,
                judgement.doc_id,
                assessor.pk,
                judgement.aspect,
                judgement.level,
                judgement.round,
                judgement.seconds,
                judgement.note,
                judgement.outside,
                now,
                user.pk,
                True,
                pk,
            )
        )

    # Before the new rows: one judgement of a document is active.
    Judgement.objects.filter(pk__in=replaced).update(active=False)
    with connection.cursor() as cursor:
        cursor.executemany(_INSERT, rows)


def judge_document(
    *,
    assignment: Assignment,
    doc_id: str,
    level: int,
    user: User,
    seconds: float | None = None,
    note: str = "",
) -> None:
    """Store the level of a document that is given to an assessor, or that it cannot be judged.

    Raise InvalidInput for other levels and documents.
    """
    labels = labels_of(assignment.pool.collection)
    if level not in labels and level != NOT_JUDGED:
        allowed = ", ".join(map(str, labels))
        message = f"level {level} is not one of {allowed}"
        raise InvalidInput(message, code="bad_level", pointer="/level")
    if doc_id not in documents_to_judge(assignment):
        message = f"document {doc_id[:100]!r} of topic {assignment.topic_id} is not yours to judge"
        raise InvalidInput(message, code="not_assigned", pointer="/doc_id")

    judgement = NewJudgement(assignment.topic_id, doc_id, level, seconds=seconds, note=note)
    store_judgements(
        pool=assignment.pool, assessor=assignment.assessor, judgements=[judgement], user=user
    )


def undo_judgement(*, assignment: Assignment, user: User) -> str | None:
    """Withdraw the assessor's last judgement of the topic, and return its document.

    The document is unjudged again, by a row that supersedes the judgement.
    """
    with transaction.atomic():
        Assessor.objects.select_for_update().get(pk=assignment.assessor_id)
        last = _active(assignment).order_by("-pk").first()
        if last is None:
            return None

        withdrawn = NewJudgement(last.topic_id, last.doc_id, UNJUDGED)
        store_judgements(
            pool=assignment.pool, assessor=assignment.assessor, judgements=[withdrawn], user=user
        )
    return last.doc_id


def levels_by_document(assignment: Assignment) -> dict[str, int]:
    """Return the levels that the assessor gave to documents of the topic."""
    return dict(_active(assignment).values_list("doc_id", "level"))


def _active(assignment: Assignment) -> QuerySet[Judgement]:
    rows = assignment.pool.judgements.filter(
        assessor=assignment.assessor_id, topic_id=assignment.topic_id, aspect="", active=True
    )
    return rows.exclude(level=UNJUDGED)


def progress_of(assignments: Sequence[Assignment]) -> dict[int, tuple[int, int]]:
    """Return by assignment of one pool how many of its documents are judged, and their number.

    A document that the assessor could not judge is done, too.
    """
    if not assignments:
        return {}

    rows = (
        assignments[0]
        .pool.judgements.filter(
            topic_id__in={row.topic_id for row in assignments},
            assessor__in={row.assessor_id for row in assignments},
            aspect="",
            active=True,
        )
        .exclude(level=UNJUDGED)
    )
    judged = set(rows.order_by().values_list("assessor_id", "topic_id", "doc_id"))
    documents = documents_of_assignments(assignments)
    return {
        row.pk: (
            sum((row.assessor_id, row.topic_id, doc_id) in judged for doc_id in documents[row.pk]),
            len(documents[row.pk]),
        )
        for row in assignments
    }
