"""The shapes of answers about pools."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict

from django.urls import reverse
from rest_framework.request import Request

from evalhub.pools.models import Pool
from evalhub.pools.services.pools import PoolPlan
from evalhub.pools.services.recipes import recipe_of
from evalhub.pools.services.statistics import PoolStatistics
from runs.web.fields import JSONObject
from runs.web.shapes import Id, OneOf, Url

_STATES = [str(state) for state in Pool.State]


class PoolTopic(TypedDict):
    topic_id: str
    documents: int


class PoolRunAnswer(TypedDict):
    run: Id
    tag: str
    team: str
    entry: Annotated[str | None, "the id of the entry, in a campaign"]
    priority: int | None
    depth: Annotated[int, "ranks 1 to depth are in the pool, or considered by a sample or fusion"]


class PoolDepths(TypedDict):
    """Documents of the first runs at each depth, without those that are left out."""

    depths: list[int]
    documents: Annotated[list[list[int]], "a row for each run: of the runs up to it, by depth"]


class PoolSummary(TypedDict):
    """A pool; `recipe` has its method and parameters."""

    id: Id
    url: Url
    page: Url
    collection: str
    campaign: str | None
    phase: str | None
    number: Annotated[int, "in its collection, from 1"]
    state: Annotated[str, OneOf(_STATES)]
    method: Annotated[str, "in words"]
    recipe: JSONObject
    seed: int
    documents: int
    sha256: Annotated[str, "of the file, which names the pool in papers and qrels"]
    note: str
    created_by: str | None
    created_at: datetime
    frozen_by: str | None
    frozen_at: datetime | None
    shown: Annotated[bool, "whether all who see the results of the collection see it"]


class PoolDetail(PoolSummary):
    """A pool with its topics and runs."""

    topics: list[PoolTopic]
    runs: list[PoolRunAnswer]
    depths: PoolDepths


class PoolCheck(TypedDict):
    """What a pool would have; nothing is stored."""

    method: str
    documents: int
    topics: list[PoolTopic]
    runs: list[PoolRunAnswer]
    depths: PoolDepths


class RunStatistics(TypedDict):
    run: Id
    tag: str
    team: str
    contributed: Annotated[int, "documents of the pool that the run has"]
    unique: Annotated[int, "that no other run has"]
    unique_relevant: Annotated[int | None, "of level 1 or more; null without judgements"]


class Growth(TypedDict):
    depth: int
    documents: Annotated[int, "with a best rank up to this depth"]


class StratumCount(TypedDict):
    stratum: Annotated[int, "from 1 in the order of the recipe; 0: added by organisers"]
    documents: int


class PoolStatisticsAnswer(TypedDict):
    """Counts of a pool. `judged` and `relevant` are by the active judgements."""

    documents: int
    topics: list[PoolTopic]
    strata: list[StratumCount]
    qrels_version: int | None
    judged: int | None
    relevant: int | None
    runs: list[RunStatistics]
    overlap: Annotated[list[list[int]], "documents that two runs share, in the order of `runs`"]
    growth: list[Growth]


def pool_summary(request: Request, pool: Pool) -> PoolSummary:
    return PoolSummary(
        id=str(pool.pk),
        url=request.build_absolute_uri(reverse("pool", args=[pool.pk])),
        page=request.build_absolute_uri(reverse("pool-page", args=[pool.pk])),
        collection=pool.collection.slug,
        campaign=pool.phase.campaign.slug if pool.phase else None,
        phase=pool.phase.slug if pool.phase else None,
        number=pool.number,
        state=pool.state,
        method=recipe_of(pool.recipe).in_words(),
        recipe=pool.recipe,
        seed=pool.seed,
        documents=pool.documents,
        sha256=pool.sha256,
        note=pool.note,
        created_by=pool.created_by.username if pool.created_by else None,
        created_at=pool.created_at,
        frozen_by=pool.frozen_by.username if pool.frozen_by else None,
        frozen_at=pool.frozen_at,
        shown=pool.shown_at is not None,
    )


def pool_detail(request: Request, pool: Pool) -> PoolDetail:
    runs = [
        PoolRunAnswer(
            run=str(row.run_id),
            tag=row.run.tag,
            team=row.team.slug,
            entry=str(row.entry_id) if row.entry_id else None,
            priority=row.priority,
            depth=row.depth or 0,
        )
        for row in pool.contributors.select_related("run", "team").order_by("place")
    ]
    return PoolDetail(
        **pool_summary(request, pool),
        topics=_topics(pool.topics),
        runs=runs,
        depths=PoolDepths(depths=pool.depths["depths"], documents=pool.depths["documents"]),
    )


def pool_check(plan: PoolPlan) -> PoolCheck:
    runs = [
        PoolRunAnswer(
            run=str(contributor.run.pk),
            tag=contributor.run.tag,
            team=contributor.team.slug,
            entry=str(contributor.entry.pk) if contributor.entry else None,
            priority=contributor.priority,
            depth=depth,
        )
        for contributor, depth in zip(plan.contributors, plan.content.depths, strict=True)
    ]
    table = plan.content.table
    return PoolCheck(
        method=plan.recipe.in_words(),
        documents=plan.content.documents,
        topics=_topics([[topic, len(rows)] for topic, rows in plan.content.topics]),
        runs=runs,
        depths=PoolDepths(depths=table.depths, documents=table.documents),
    )


def _topics(rows: list[Any]) -> list[PoolTopic]:
    return [PoolTopic(topic_id=topic_id, documents=count) for topic_id, count in rows]


def statistics_answer(pool: Pool, statistics: PoolStatistics) -> PoolStatisticsAnswer:
    relevant = statistics.unique_relevant
    runs = [
        RunStatistics(
            run=str(row.run_id),
            tag=row.run.tag,
            team=row.team.slug,
            contributed=int(statistics.contributed[place]),
            unique=int(statistics.unique[place]),
            unique_relevant=int(relevant[place]) if relevant is not None else None,
        )
        for place, row in enumerate(statistics.runs)
    ]
    strata = statistics.strata.items()
    return PoolStatisticsAnswer(
        documents=pool.documents,
        topics=_topics([list(row) for row in statistics.topics]),
        strata=[StratumCount(stratum=stratum, documents=count) for stratum, count in strata],
        qrels_version=statistics.qrels.version if statistics.qrels else None,
        judged=statistics.judged,
        relevant=statistics.relevant,
        runs=runs,
        overlap=statistics.overlap.tolist(),
        growth=[Growth(depth=depth, documents=count) for depth, count in statistics.growth],
    )
