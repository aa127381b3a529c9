"""Conflicts between assessors, adjudication, and the one level that several judgements become."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery

from evalhub.pools.models import Adjudication, JudgedVersion, Judgement, Pool
from evalhub.pools.services.agreement import agreement_figures
from evalhub.pools.services.assigning import check_frozen
from evalhub.pools.services.judging import NOT_JUDGED, labels_of
from evalhub.pools.services.merging import MergedJudgements
from evalhub.pools.services.pool_file import documents_of
from metrics.services.queue.queueing import queue_judged
from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Qrels, User
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.authorship import Authorship
from runs.services.collections.qrels import SamplingFields, import_qrels
from runs.services.storage.files import upload_folder

# Documents with at least this level are relevant.
RELEVANT = 1
# Rows that are read from the database at once.
_CHUNK = 2000


class Rule(StrEnum):
    """How the levels of several assessors become one; an adjudicated level always counts."""

    ADJUDICATED = "adjudicated"
    MAJORITY = "majority"
    MAX = "max"
    MIN = "min"
    MEAN = "mean_rounded_down"
    LATEST = "latest"
    PRIMARY = "primary"


@dataclass(frozen=True)
class NewAdjudication:
    topic_id: str
    doc_id: str
    level: int
    aspect: str = ""
    note: str = ""


@dataclass(frozen=True)
class Resolved:
    """The level of a document; None if it waits for adjudication."""

    topic_id: str
    doc_id: str
    level: int | None


@dataclass(frozen=True)
class _Vote:
    level: int
    number: int
    primary: bool


def conflicts_of(
    pool: Pool, *, conflict_at: int | None = None, aspect: str = "", undecided: bool = True
) -> QuerySet[Judgement, dict[str, Any]]:
    """Return the documents on which assessors differ, with lowest and highest level.

    They differ if levels are `conflict_at` or more apart, by default if one calls the document
    relevant and another does not. `decided` is the adjudicated level; with `undecided` documents
    that have one are left out.
    """
    decided = Adjudication.objects.filter(
        pool=pool,
        aspect=aspect,
        active=True,
        topic_id=OuterRef("topic_id"),
        doc_id=OuterRef("doc_id"),
    )
    apart = (
        Q(lowest__lt=RELEVANT, highest__gte=RELEVANT)
        if conflict_at is None
        else Q(highest__gte=F("lowest") + conflict_at)
    )
    rows = (
        Judgement.objects.filter(pool=pool, aspect=aspect, active=True, level__gte=0)
        .values("topic_id", "doc_id")
        .annotate(
            lowest=Min("level"),
            highest=Max("level"),
            judgements=Count("pk"),
            decided=Subquery(decided.values("level")[:1]),
        )
        .filter(apart)
        .order_by("topic_id", "doc_id")
    )
    return rows.filter(decided=None) if undecided else rows


def judgements_of(
    pool: Pool, documents: Sequence[dict[str, Any]], aspect: str = ""
) -> dict[tuple[str, str], list[Judgement]]:
    """Return the judgements of documents that `conflicts_of` has, by topic and document."""
    rows = Judgement.objects.filter(
        pool=pool,
        aspect=aspect,
        active=True,
        level__gte=0,
        topic_id__in={document["topic_id"] for document in documents},
        doc_id__in=[document["doc_id"] for document in documents],
    )
    by_document: dict[tuple[str, str], list[Judgement]] = {}
    for row in rows.select_related("assessor").order_by("assessor__name"):
        by_document.setdefault((row.topic_id, row.doc_id), []).append(row)
    return by_document


def adjudicate(
    *, pool: Pool, decisions: Sequence[NewAdjudication], user: User, origin: Origin = SYSTEM
) -> list[Adjudication]:
    """Store the levels that an adjudicator decides; a later decision supersedes the former one.

    Raise InvalidInput for a level that the collection does not have, or a document that is neither
    in the pool nor judged.
    """
    check_frozen(pool)
    labels = labels_of(pool.collection) if pool.collection.level_labels else None
    documents: dict[str, set[str]] = {}
    for place, decision in enumerate(decisions):
        if decision.level < 0 or (labels is not None and decision.level not in labels):
            allowed = ", ".join(map(str, labels or ["0, 1, 2, ..."]))
            message = f"level {decision.level} is not one of {allowed}"
            raise InvalidInput(message, code="bad_level", pointer=f"/{place}/level")

        topic_id, doc_id = decision.topic_id, decision.doc_id
        if topic_id not in documents:
            documents[topic_id] = set(documents_of(pool, topic_id))
        judged = pool.judgements.filter(topic_id=topic_id, doc_id=doc_id)
        if doc_id not in documents[topic_id] and not judged.exists():
            message = f"document {doc_id[:100]!r} of topic {topic_id[:40]!r} is not in the pool"
            raise InvalidInput(message, code="not_in_pool", pointer=f"/{place}/doc_id")

    with transaction.atomic():
        Pool.objects.select_for_update().get(pk=pool.pk)
        rows = [_decide(pool, decision, user) for decision in decisions]
        after = {"documents": len(rows)}
        record(
            origin,
            AuditEvent.Action.POOL_ADJUDICATED,
            pool,
            collection=pool.collection,
            after=after,
        )
    return rows


def _decide(pool: Pool, decision: NewAdjudication, user: User) -> Adjudication:
    former = pool.adjudications.filter(
        topic_id=decision.topic_id, doc_id=decision.doc_id, aspect=decision.aspect, active=True
    ).first()
    if former and (former.level, former.note) == (decision.level, decision.note):
        return former
    if former:
        Adjudication.objects.filter(pk=former.pk).update(active=False)

    return Adjudication.objects.create(
        pool=pool,
        topic_id=decision.topic_id,
        doc_id=decision.doc_id,
        aspect=decision.aspect,
        level=decision.level,
        note=decision.note,
        decided_by=user,
        supersedes=former,
    )


def resolve(pool: Pool, rule: Rule, aspect: str = "") -> Iterator[Resolved]:
    """Yield the level of each judged document of a pool, by topic and document.

    - `adjudicated`: the most frequent level, of equally frequent ones the lowest; documents that
      are relevant to one assessor and not to another one wait for adjudication
    - `majority`: the most frequent level; ties wait for adjudication
    - `max`, `min`; `mean_rounded_down`: of the levels
    - `latest`: the level that was given last
    - `primary`: that of the topic's first assessor; without one, the level that was given first

    An adjudicated level counts under every rule. A document without a level of 0 or more is left
    out, or has -2 if an assessor could not judge it.
    """
    decided = {
        (topic_id, doc_id): level
        for topic_id, doc_id, level in pool.adjudications.filter(
            aspect=aspect, active=True
        ).values_list("topic_id", "doc_id", "level")
    }
    primary = dict(pool.assignments.filter(primary=True).values_list("topic_id", "assessor_id"))
    rows = (
        pool.judgements.filter(aspect=aspect, active=True)
        .order_by("topic_id", "doc_id", "pk")
        .values_list("topic_id", "doc_id", "level", "pk", "assessor_id")
        .iterator(_CHUNK)
    )
    choose = _RULES[rule]
    for (topic_id, doc_id), group in groupby(rows, key=lambda row: (row[0], row[1])):
        votes = [
            _Vote(level=level, number=number, primary=primary.get(topic_id) == assessor)
            for _, _, level, number, assessor in group
        ]
        counting = [vote for vote in votes if vote.level >= 0]
        level = decided.pop((topic_id, doc_id), None)
        if level is None and counting:
            level = choose(counting)
        elif level is None:
            if not any(vote.level == NOT_JUDGED for vote in votes):
                continue
            level = NOT_JUDGED
        yield Resolved(topic_id, doc_id, level)

    # What was decided without a judgement.
    for (topic_id, doc_id), level in sorted(decided.items()):
        yield Resolved(topic_id, doc_id, level)


def _most_frequent(votes: Sequence[_Vote]) -> list[int]:
    counts = Counter(vote.level for vote in votes)
    most = max(counts.values())
    return sorted(level for level, count in counts.items() if count == most)


def _adjudicated(votes: Sequence[_Vote]) -> int | None:
    levels = [vote.level for vote in votes]
    in_conflict = min(levels) < RELEVANT <= max(levels)
    return None if in_conflict else _most_frequent(votes)[0]


def _majority(votes: Sequence[_Vote]) -> int | None:
    first, *ties = _most_frequent(votes)
    return None if ties else first


def _primary(votes: Sequence[_Vote]) -> int:
    return min(votes, key=lambda vote: (not vote.primary, vote.number)).level


_RULES: dict[Rule, Callable[[Sequence[_Vote]], int | None]] = {
    Rule.ADJUDICATED: _adjudicated,
    Rule.MAJORITY: _majority,
    Rule.MAX: lambda votes: max(vote.level for vote in votes),
    Rule.MIN: lambda votes: min(vote.level for vote in votes),
    Rule.MEAN: lambda votes: sum(vote.level for vote in votes) // len(votes),
    Rule.LATEST: lambda votes: max(votes, key=lambda vote: vote.number).level,
    Rule.PRIMARY: _primary,
}


def make_qrels(
    *,
    pool: Pool,
    rule: Rule,
    user: User,
    aspect: str = "",
    activate: bool = True,
    note: str = "",
    ignore_sampling: bool = False,
    authorship: Authorship,
    origin: Origin = SYSTEM,
    accept: Callable[[JudgedVersion, bool], object] | None = None,
) -> tuple[JudgedVersion, bool]:
    """Write the judgements of a pool as a new version of the collection's judgements.

    What the pool left out as judged before is in the version, too: the judgements of earlier pools,
    by the same rule, and those of the active version. If documents were drawn, the version is
    sampled. Return it and whether it is new. Raise Conflict if documents wait for adjudication,
    nothing is judged, or documents were judged that an earlier sample stands for.
    """
    check_frozen(pool)
    pools = list(Pool.objects.filter(pk__in=pool.excluded["pools"]).order_by("number"))
    pools = [earlier for earlier in pools if earlier.judgements.exists()] + [pool]
    active = pool.collection.active_qrels
    base = active if pool.recipe.get("only_new") else None

    merged = MergedJudgements()
    if base:
        merged.add_version(base)
    open_documents: list[Resolved] = []
    judged = 0
    for source in pools:
        own_levels: dict[str, dict[str, int]] = {}
        for row in resolve(source, rule, aspect):
            if row.level is None:
                open_documents.append(row)
            else:
                judged += source is pool
                own_levels.setdefault(row.topic_id, {})[row.doc_id] = row.level
        merged.add_pool(source, own_levels)
    _check_decided(open_documents)
    if not judged:
        message = f"pool {pool.number} has no judgement yet"
        raise Conflict(message, code="nothing_judged")
    sampling = _sampling(merged, ignore_sampling)

    provenance = {
        "pools": [{"number": row.number, "sha256": row.sha256} for row in pools],
        "with_version": base.version if base else None,
        "assessors": _counts(pools, aspect),
        "open_conflicts": 0,
        "agreement": agreement_figures(pools, aspect),
    }
    fields = {
        "resolve": str(rule),
        "aspect": aspect,
        "provenance": provenance,
        "created_by": user,
    }

    versions: list[tuple[JudgedVersion, bool]] = []

    def store(qrels: Qrels, new: bool) -> None:
        version, _ = JudgedVersion.objects.get_or_create(qrels=qrels, defaults=fields)
        version.pools.add(*pools)
        versions.append((version, new))
        if accept:
            accept(version, new)

    with _written(merged.lines(sampling.declared)) as path:
        import_qrels(
            collection=pool.collection,
            user=user,
            upload=path,
            note=note or f"judgements of pool {pool.number}, resolved by {rule}",
            iteration=None if sampling.declared else Qrels.Iteration.IGNORE,
            sampling=sampling,
            authorship=authorship,
            activate=activate,
            enqueue=queue_judged,
            origin=origin,
            accept=store,
        )
    return versions[0]


def _sampling(merged: MergedJudgements, ignore_sampling: bool) -> SamplingFields:
    design = merged.design
    if design and not ignore_sampling:
        merged.check_samples()
    if design:
        return SamplingFields(design, ignore_sampling)

    if ignore_sampling:
        message = "every document that could be drawn is judged: leave out ignore_sampling"
        raise InvalidInput(message, pointer="/ignore_sampling")
    return SamplingFields()


def _check_decided(rows: Sequence[Resolved]) -> None:
    if rows:
        first = rows[0]
        others = f", and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        message = (
            f"assessors differ on document {first.doc_id[:100]!r} of topic {first.topic_id}"
            f"{others}; adjudicate them, or take another rule"
        )
        raise Conflict(message, code="open_conflicts", pointer="/resolve")


def _counts(pools: Sequence[Pool], aspect: str) -> list[dict[str, Any]]:
    rows = (
        Judgement.objects.filter(pool__in=pools, aspect=aspect, active=True, level__gte=0)
        .values("assessor__name")
        .annotate(judgements=Count("pk"))
        .order_by("assessor__name")
    )
    return [{"assessor": row["assessor__name"], "judgements": row["judgements"]} for row in rows]


@contextlib.contextmanager
def _written(lines: Iterable[str]) -> Iterator[Path]:
    """Write a qrels file, which is removed when the context ends unless it was stored."""
    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
        for line in lines:
            file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())
        yield Path(file.name)
