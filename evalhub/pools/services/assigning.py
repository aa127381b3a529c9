"""Give topics of a pool to assessors, and say which documents each of them judges."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from django.db import transaction

from evalhub.pools.models import Assessor, Assignment, Pool
from evalhub.pools.services.drawing import draw_order, file_order
from evalhub.pools.services.pool_file import read_topics
from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Collection, User
from runs.services.audit.trail import SYSTEM, Origin, record

_Action = AuditEvent.Action
# Pools with documents that a process remembers: their files never change.
_POOLS_KEPT = 4


def check_frozen(pool: Pool) -> None:
    """Raise Conflict for a draft, which may still change."""
    if not pool.is_frozen:
        message = "only the documents of a frozen pool are judged; freeze it first"
        raise Conflict(message, code="pool_not_frozen")


def assessor_of(collection: Collection, user: User) -> Assessor:
    """Return the assessor that a user is in a collection, who is created unless it exists.

    A name that came with a file before becomes that of the user.
    """
    assessor = Assessor.objects.filter(collection=collection, user=user).first()
    if assessor is None:
        assessor, _ = Assessor.objects.get_or_create(collection=collection, name=user.username)
        if assessor.user_id is None:
            assessor.user = user
            assessor.save(update_fields=["user"])
    return assessor


def assign_topics(
    *,
    pool: Pool,
    user: User,
    topics: Sequence[str] | None = None,
    copies: int | None = None,
    overlap: float | None = None,
    due_at: datetime | None = None,
    by: User,
    origin: Origin = SYSTEM,
) -> list[Assignment]:
    """Give topics of a frozen pool, by default all, to a user. Return the assignments.

    `copies` and `overlap` belong to a topic: without them those of its other assessors stay, and
    with them they change for these, too. The first assessor of a topic is its primary one. A topic
    that the user has stays, with the new values.
    """
    check_frozen(pool)
    names = [topic_id for topic_id, _ in pool.topics]
    for place, topic_id in enumerate(topics or ()):
        if topic_id not in names:
            message = f"pool {pool.number} has no topic {topic_id[:40]!r}"
            raise InvalidInput(message, code="unknown_topic", pointer=f"/topics/{place}")

    chosen = list(dict.fromkeys(names if topics is None else topics))
    of_topic = {"copies": copies, "overlap": overlap}
    changed = {name: value for name, value in of_topic.items() if value is not None}
    with transaction.atomic():
        Pool.objects.select_for_update().get(pk=pool.pk)
        assessor = assessor_of(pool.collection, user)
        rows = pool.assignments.filter(topic_id__in=chosen)
        if changed:
            rows.update(**changed)

        # The first of a topic, in the order of the assignments.
        others: dict[str, Assignment] = {}
        for row in rows:
            others.setdefault(row.topic_id, row)

        assignments = []
        for topic_id in chosen:
            other = others.get(topic_id)
            inherited = {name: getattr(other, name) for name in of_topic} if other else changed
            assignment, _ = Assignment.objects.update_or_create(
                pool=pool,
                assessor=assessor,
                topic_id=topic_id,
                defaults={"due_at": due_at},
                create_defaults={
                    **inherited, "primary": other is None, "due_at": due_at, "created_by": by,
                },
            )  # fmt: skip
            assignments.append(assignment)

        after = {"assessor": assessor.name, "topics": len(chosen), **changed}
        record(origin, _Action.POOL_ASSIGNED, pool, collection=pool.collection, after=after)
    return assignments


def remove_assignment(*, assignment: Assignment, origin: Origin = SYSTEM) -> None:
    """Take a topic from an assessor; the judgements stay, and the next one becomes primary."""
    pool = assignment.pool
    with transaction.atomic():
        Pool.objects.select_for_update().get(pk=pool.pk)
        before = {"assessor": assignment.assessor.name, "topic": assignment.topic_id}
        assignment.delete()
        if assignment.primary:
            first = pool.assignments.filter(topic_id=assignment.topic_id).first()
            if first:
                first.primary = True
                first.save(update_fields=["primary"])

        record(origin, _Action.POOL_UNASSIGNED, pool, collection=pool.collection, before=before)


def documents_to_judge(assignment: Assignment) -> list[str]:
    """Return the documents of a topic that an assessor judges, in the assessor's own order.

    Each document has `copies` of the topic's assessors if it is in the share `overlap` of the
    documents, and otherwise one. Share and assessors are drawn by the seed of the pool, so that
    another assessor changes as little as possible of what the others have.
    """
    return documents_of_assignments([assignment])[assignment.pk]


def documents_of_assignments(assignments: Sequence[Assignment]) -> dict[int, list[str]]:
    """Return `documents_to_judge` of assignments of one pool, by key."""
    if not assignments:
        return {}

    pool = assignments[0].pool
    names = defaultdict(list)
    rows = pool.assignments.filter(topic_id__in={row.topic_id for row in assignments})
    for topic_id, name in rows.values_list("topic_id", "assessor__name"):
        names[topic_id].append(name)
    return {row.pk: _deal(pool, row, names[row.topic_id]) for row in assignments}


def _deal(pool: Pool, assignment: Assignment, names: Sequence[str]) -> list[str]:
    topic_id, name = assignment.topic_id, assignment.assessor.name
    doc_ids: Sequence[str] = pooled_documents(pool).get(topic_id, ())
    if assignment.copies < len(names) or assignment.overlap < 1:
        order = draw_order(pool.seed, "overlap", topic_id, doc_ids=doc_ids)
        several = set(order[: math.ceil(assignment.overlap * len(doc_ids))])
        mine = []
        for doc_id in doc_ids:
            assessors = draw_order(pool.seed, "copies", topic_id, doc_id, doc_ids=names)
            if name in assessors[: assignment.copies if doc_id in several else 1]:
                mine.append(doc_id)
        doc_ids = mine
    return file_order(pool, topic_id, doc_ids, name)


@lru_cache(_POOLS_KEPT)
def pooled_documents(pool: Pool) -> dict[str, tuple[str, ...]]:
    """Return the documents of each topic of a frozen pool."""
    return {
        topic_id: tuple(document.doc_id for document in documents)
        for topic_id, documents in read_topics(pool)
    }
