"""Make, freeze, show and delete pools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from evalhub.campaigns.services.phase_times import last_closing_time
from evalhub.pools.models import Pool, PoolRun, draw_seed
from evalhub.pools.services.pool_file import WrittenPool, read_topics, written_pool
from evalhub.pools.services.pooling import PoolContent, choose_documents
from evalhub.pools.services.rankings import read_rankings
from evalhub.pools.services.recipes import ExtraDocument, Recipe, recipe_of
from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Collection, Entry, Phase, Qrels, Run, Team, User
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.collections.qrels import levels_by_topic
from runs.services.storage.files import keep_file, storing

_Action = AuditEvent.Action
MAX_RUNS = 2000
_OUTDATED = "delete this draft, and make a new one"


@dataclass(frozen=True)
class Contributor:
    """A run of a pool, with the entry by which it takes part in a phase."""

    run: Run
    team: Team
    priority: int | None = None
    entry: Entry | None = None


@dataclass(frozen=True)
class PoolPlan:
    """A pool before it is stored."""

    collection: Collection
    phase: Phase | None
    recipe: Recipe
    seed: int
    contributors: list[Contributor]
    content: PoolContent
    excluded: dict[str, Any]
    note: str = ""


def entries_to_pool(phase: Phase, recipe: Recipe) -> list[Contributor]:
    """Return the entries that a pool of a phase considers, in the order in which they are added.

    They are entered and on time; those of teams compete, and baselines are among them where the
    recipe says so. The order is by priority, in a priority by the pseudonym of the team, which is
    random, and baselines are last. Raise Conflict if there is none.
    """
    roles = [Entry.Role.COMPETING] + [Entry.Role.BASELINE] * recipe.baselines
    entries = (
        Entry.objects.filter(
            phase=phase, state=Entry.State.ENTERED, late=False, role__in=roles, run__deleted_at=None
        )
        .select_related("run__collection", "run__team", "participation__team")
        .order_by("number")
    )

    def order(entry: Entry) -> tuple[float, float, int]:
        priority = entry.priority if entry.priority is not None else float("inf")
        drawn = entry.participation.pseudonym if entry.participation else None
        return priority, drawn if drawn is not None else float("inf"), entry.number

    chosen = [
        entry
        for entry in sorted(entries, key=order)
        if recipe.priorities is None or entry.priority in recipe.priorities
    ]
    if not chosen:
        of_priorities = " with these priorities" if recipe.priorities is not None else ""
        message = f"phase {phase} has no entry on time{of_priorities} that a pool could have"
        raise Conflict(message, code="nothing_to_pool", pointer="/priorities")

    return [
        Contributor(run=entry.run, team=entry.run.team, priority=entry.priority, entry=entry)
        for entry in chosen
    ]


def plan_pool(
    *,
    collection: Collection,
    recipe: Recipe,
    contributors: Sequence[Contributor],
    phase: Phase | None = None,
    seed: int | None = None,
    residual_of: Sequence[Qrels] = (),
    note: str = "",
) -> PoolPlan:
    """Return the pool of some runs of a collection, which is not stored.

    Documents are left out that the versions `residual_of` judge, and, for `only_new`, those of the
    active qrels and of earlier frozen pools of the collection. Earlier pools of the same phase are
    always left out. Raise InvalidInput for a pool that is too large, for topics that the collection
    or phase does not have, Conflict for a pool without documents.
    """
    if len(contributors) > MAX_RUNS:
        message = f"a pool has at most {MAX_RUNS:,} runs, not {len(contributors):,}; name them"
        raise InvalidInput(message, code="pool_too_large", pointer="/runs")

    seed = draw_seed() if seed is None else seed
    topics = _topics_to_pool(collection, phase, recipe)
    runs = [contributor.run for contributor in contributors]
    rankings = read_rankings(runs=runs, topics=topics, depth=recipe.k)
    _check_extra(recipe.extra, {topic.decode() for topic in rankings.topics})
    excluded = _exclusions(collection, phase, recipe, residual_of)

    rounds: dict[int | None, list[int]] = defaultdict(list)
    for place, contributor in enumerate(contributors):
        rounds[contributor.priority].append(place)

    content = choose_documents(
        rankings=rankings,
        recipe=recipe,
        seed=seed,
        rounds=list(rounds.values()),
        judged=_judged_before(excluded),
    )
    return PoolPlan(
        collection=collection,
        phase=phase,
        recipe=recipe,
        seed=seed,
        contributors=list(contributors),
        content=content,
        excluded=excluded,
        note=note,
    )


def _topics_to_pool(
    collection: Collection, phase: Phase | None, recipe: Recipe
) -> list[str] | None:
    """Return the topics of a pool, or None for those of its runs."""
    listed = list(collection.topics.order_by("position").values_list("topic_id", flat=True))
    excluded = set(phase.excluded_topics or ()) if phase else set()
    if recipe.topics is None:
        return [topic for topic in listed if topic not in excluded] or None

    for place, topic in enumerate(recipe.topics):
        if topic in excluded or (listed and topic not in listed):
            lacking = f"phase {phase} excludes" if topic in excluded else f"{collection} has no"
            message = f"{lacking} topic {topic[:40]!r}"
            raise InvalidInput(message, code="unknown_topic", pointer=f"/topics/{place}")
    return list(dict.fromkeys(recipe.topics))


def _check_extra(extra: Sequence[ExtraDocument], topics: set[str]) -> None:
    for place, document in enumerate(extra):
        if document.topic_id not in topics:
            message = f"topic {document.topic_id[:40]!r} is not one of the topics of this pool"
            pointer = f"/extra/{place}/topic_id"
            raise InvalidInput(message, code="unknown_topic", pointer=pointer)


def _exclusions(
    collection: Collection, phase: Phase | None, recipe: Recipe, residual_of: Sequence[Qrels]
) -> dict[str, Any]:
    """Return what a pool leaves out: versions of qrels by key, and frozen pools by id."""
    versions = [qrels.pk for qrels in residual_of]
    earlier = Pool.objects.filter(collection=collection, state=Pool.State.FROZEN)
    if recipe.only_new:
        versions += collection.qrels.filter(active=True).values_list("pk", flat=True)
    else:
        earlier = earlier.filter(phase=phase) if phase else earlier.none()

    pools = earlier.order_by("number").values_list("pk", flat=True)
    return {
        "qrels": sorted(set(versions)),
        "residual_of": sorted(qrels.pk for qrels in residual_of),
        "pools": [str(pk) for pk in pools],
    }


def _judged_before(excluded: dict[str, Any]) -> dict[str, set[str]]:
    """Return the documents of each topic that are left out.

    A level below 0 says that a document was in a pool and was not judged.
    """
    judged: dict[str, set[str]] = defaultdict(set)
    for qrels in Qrels.objects.filter(pk__in=excluded["qrels"]):
        for topic_id, levels in levels_by_topic(qrels).items():
            judged[topic_id].update(doc_id for doc_id, level in levels.items() if level >= 0)

    for pool in Pool.objects.filter(pk__in=excluded["pools"]):
        for topic_id, documents in read_topics(pool):
            judged[topic_id].update(document.doc_id for document in documents)

    return judged


def store_draft(*, plan: PoolPlan, user: User, origin: Origin = SYSTEM) -> Pool:
    """Store a planned pool as a draft, with its file.

    Raise Conflict for a pool without documents, and before its phase is over: until then teams
    change the priorities of their entries.
    """
    if not plan.content.documents:
        raise Conflict(
            "the pool has no documents: every document of these runs was judged or pooled before",
            code="pool_empty",
        )
    if plan.phase:
        check_phase_over(plan.phase)

    with (
        storing(),
        written_pool(_header(plan), plan.content) as written,
    ):
        keep_file(written.path, written.sha256)
        with transaction.atomic():
            Collection.objects.select_for_update().get(pk=plan.collection.pk)
            return _create(plan, written, user, origin)


def check_phase_over(phase: Phase) -> None:
    """Raise Conflict for a phase that has not closed for every team."""
    if clock.database_now() < last_closing_time(phase):
        message = f"phase {phase} is not over; teams still enter runs and change their priorities"
        raise Conflict(message, code="phase_not_over")


def _header(plan: PoolPlan) -> dict[str, Any]:
    return {
        "collection": plan.collection.slug,
        "phase": str(plan.phase) if plan.phase else None,
        "recipe": plan.recipe.as_json(),
        "seed": plan.seed,
        "runs": [
            {
                "id": str(contributor.run.pk),
                "tag": contributor.run.tag,
                "team": contributor.team.slug,
                "sha256": contributor.run.sha256,
                "depth": depth,
            }
            for contributor, depth in zip(plan.contributors, plan.content.depths, strict=True)
        ],
    }


def _create(plan: PoolPlan, written: WrittenPool, user: User, origin: Origin) -> Pool:
    latest = Pool.objects.filter(collection=plan.collection).aggregate(number=Max("number"))
    pool = Pool.objects.create(
        collection=plan.collection,
        phase=plan.phase,
        number=(latest["number"] or 0) + 1,
        recipe=plan.recipe.as_json(),
        seed=plan.seed,
        topics=[[topic_id, len(documents)] for topic_id, documents in plan.content.topics],
        documents=plan.content.documents,
        sha256=written.sha256,
        size=written.size,
        depths=asdict(plan.content.table),
        excluded=plan.excluded,
        note=plan.note,
        created_by=user,
    )
    PoolRun.objects.bulk_create(
        PoolRun(
            pool=pool,
            run=contributor.run,
            entry=contributor.entry,
            team=contributor.team,
            place=place,
            priority=contributor.priority,
            depth=depth,
        )
        for place, (contributor, depth) in enumerate(
            zip(plan.contributors, plan.content.depths, strict=True)
        )
    )
    record(origin, _Action.POOL_MADE, pool, collection=plan.collection, after=_identity(pool))
    return pool


def _identity(pool: Pool) -> dict[str, Any]:
    return {"number": pool.number, "sha256": pool.sha256, "documents": pool.documents}


def freeze_pool(*, pool: Pool, user: User, origin: Origin = SYSTEM) -> Pool:
    """Freeze a draft: it never changes again, and can be judged.

    A frozen pool stays as it is. Raise Conflict if what it is made of has changed since.
    """
    with transaction.atomic():
        Collection.objects.select_for_update().get(pk=pool.collection_id)
        pool = _locked(pool)
        if pool.is_frozen:
            return pool

        _check_current(pool)
        pool.state, pool.frozen_by, pool.frozen_at = Pool.State.FROZEN, user, timezone.now()
        pool.save(update_fields=["state", "frozen_by", "frozen_at"])
        record(origin, _Action.POOL_FROZEN, pool, collection=pool.collection, after=_identity(pool))
    return pool


def _locked(pool: Pool) -> Pool:
    rows = Pool.objects.select_for_update(of=("self",))
    return rows.select_related("collection", "phase__campaign").get(pk=pool.pk)


def _check_current(pool: Pool) -> None:
    """Raise Conflict if a run of a draft is gone, or other documents are left out by now."""
    recipe = recipe_of(pool.recipe)
    for row in pool.contributors.select_related("run", "entry"):
        if row.run.deleted_at is not None:
            message = f"run {row.run.tag} was withdrawn since; {_OUTDATED}"
            raise Conflict(message, code="pool_outdated")
        if row.entry and row.entry.state != Entry.State.ENTERED:
            message = f"entry {row.entry.number} was {row.entry.state} since; {_OUTDATED}"
            raise Conflict(message, code="pool_outdated")

    residual_of = Qrels.objects.filter(pk__in=pool.excluded["residual_of"])
    current = _exclusions(pool.collection, pool.phase, recipe, list(residual_of))
    if current != pool.excluded:
        message = f"other judgements are active, or another pool was frozen since; {_OUTDATED}"
        raise Conflict(message, code="pool_outdated")


def show_pool(*, pool: Pool, shown: bool, origin: Origin = SYSTEM) -> Pool:
    """Show a frozen pool to all who see the results of its collection, or to organisers alone.

    Raise Conflict for a draft.
    """
    with transaction.atomic():
        pool = _locked(pool)
        if not pool.is_frozen:
            raise Conflict("only a frozen pool is shown; freeze it first", code="pool_not_frozen")

        if shown != (pool.shown_at is not None):
            pool.shown_at = timezone.now() if shown else None
            pool.save(update_fields=["shown_at"])
            change = {"before": {"shown": not shown}, "after": {"shown": shown}}
            record(origin, _Action.POOL_CHANGED, pool, collection=pool.collection, **change)
    return pool


def delete_draft(*, pool: Pool, origin: Origin = SYSTEM) -> None:
    """Delete a draft; its file goes with the next sweep. Raise Conflict for a frozen pool."""
    with transaction.atomic():
        pool = _locked(pool)
        if pool.is_frozen:
            raise Conflict("a frozen pool stays: its documents are judged", code="pool_frozen")

        record(
            origin, _Action.POOL_DELETED, pool, collection=pool.collection, before=_identity(pool)
        )
        pool.delete()
