"""The shapes of answers about suites."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import Annotated, TypedDict

from django.urls import reverse
from rest_framework.request import Request

from evalhub.suites.exports.suites import board_sentences, citation_of, comparison_sentences
from evalhub.suites.models import Suite, SuiteMember, SuiteVersion
from evalhub.suites.services.board import Interval, SuiteBoard, SystemRow
from evalhub.suites.services.comparison import CollectionLine, SuiteComparison
from evalhub.suites.services.values import MemberValues
from metrics.api.answers import MeasureCautions, cautions_of, number, numbers
from metrics.engine.analysis.suites import RandomEffects
from runs.web.shapes import Id, Url


class SuiteSummary(TypedDict):
    """A suite, with the newest version that the caller sees."""

    slug: str
    name: str
    description: str
    team: str
    version: int
    collections: int
    created_at: datetime
    url: Url
    page: Url


class SuiteMemberAnswer(TypedDict):
    collection: str
    name: str
    measure: str
    weight: float
    group: str
    qrels: Annotated[int | None, "the version that counts; null: whichever is active, or hidden"]
    results_visible: Annotated[bool, "whether the caller sees those of the collection"]


class SuiteVersionAnswer(TypedDict):
    """A version of a suite, which never changes."""

    suite: str
    version: int
    note: str
    digest: Annotated[str | None, "names it in papers; null where results are hidden"]
    cite: Annotated[str | None, "a sentence for papers"]
    created_by: str | None
    created_at: datetime
    members: list[SuiteMemberAnswer]
    url: Url


class SuiteDetail(SuiteSummary):
    """A suite with a version, and the numbers of all that the caller sees."""

    versions: list[int]
    content: SuiteVersionAnswer


class MeanDifference(TypedDict):
    """A mean difference and its 95% interval; null where there is none."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None


class SuiteSystem(TypedDict):
    """A system; what it lacks keeps it from having a rank, a mean and counts."""

    rank: int | None
    system: str
    runs: Annotated[list[Id | None], "by collection"]
    values: Annotated[list[float | None], "means by collection"]
    lacks: list[str]
    mean: float | None
    group_mean: Annotated[float | None, "mean of the means of groups"]
    other_topics: Annotated[MeanDifference | None, "from the first system; null for itself"]
    other_collections: MeanDifference | None
    borda: float | None
    borda_low: Annotated[float | None, "95% interval for other topics; null without `resamples`"]
    borda_high: float | None
    mean_rank: float | None


class SuiteColumn(TypedDict):
    """A collection of a leaderboard; without `qrels` it has no results for the caller."""

    collection: str
    measure: str
    weight: Annotated[float, "share of the mean"]
    group: str
    qrels: int | None
    results_visible: bool
    topics_selected: Annotated[int | None, "with `topics`; null without results"]


class SuiteBoardAnswer(TypedDict):
    """The systems of a suite, those without a rank last."""

    suite: str
    version: int
    order: str
    topics_filter: Annotated[str | None, "which topics count; null for all"]
    columns: list[SuiteColumn]
    left_out: Annotated[list[str], "collections without a selected topic"]
    systems: list[SuiteSystem]
    critical_difference: Annotated[float | None, "of mean ranks (Nemenyi)"]
    friedman: Annotated[float | None, "chi squared"]
    friedman_p: float | None
    others_decide: Annotated[
        bool, "whether two of the first ten by Borda change places without a third system"
    ]
    sentences: list[str]
    cautions: MeasureCautions


class SuiteDifference(TypedDict):
    collection: str
    measure: str
    qrels: int
    first: float
    second: float
    topics: Annotated[int, "on which both have a value"]
    difference: MeanDifference
    weight: Annotated[float, "share of the mean"]
    effects_weight: Annotated[float | None, "share of the summary by random effects"]


class RandomEffectsAnswer(TypedDict):
    """DerSimonian and Laird's summary with Hartung and Knapp's interval."""

    mean: float
    error: float
    low: Annotated[float | None, "null where all differences are the same"]
    high: float | None
    p: float | None
    tau_squared: float
    i_squared: float
    q: float
    prediction_low: Annotated[float | None, "of one further collection; null for two"]
    prediction_high: float | None


class SuiteComparisonAnswer(TypedDict):
    suite: str
    version: int
    systems: list[str]
    topics_filter: Annotated[str | None, "which topics count; null for all"]
    collections: list[SuiteDifference]
    missing: Annotated[list[str], "collections without results of both systems"]
    left_out: Annotated[list[str], "collections without a selected topic"]
    other_topics: MeanDifference
    other_collections: MeanDifference
    random_effects: RandomEffectsAnswer | None
    sentences: list[str]
    cautions: MeasureCautions


def suite_summary(request: Request, suite: Suite, version: int, collections: int) -> SuiteSummary:
    return SuiteSummary(
        slug=suite.slug,
        name=suite.name,
        description=suite.description,
        team=suite.team.slug,
        version=version,
        collections=collections,
        created_at=suite.created_at,
        url=request.build_absolute_uri(reverse("suite", args=[suite.slug])),
        page=request.build_absolute_uri(reverse("suite-page", args=[suite.slug])),
    )


def suite_detail(
    request: Request, version: SuiteVersion, versions: list[int], visible: Set[int]
) -> SuiteDetail:
    content = version_answer(request, version, visible)
    return SuiteDetail(
        **suite_summary(request, version.suite, version.number, len(content["members"])),
        versions=versions,
        content=content,
    )


def version_answer(
    request: Request, version: SuiteVersion, visible: Set[int]
) -> SuiteVersionAnswer:
    members = version.members.select_related("collection", "qrels").order_by("position")
    answers = [_member(member, member.collection_id in visible) for member in members]
    address = reverse("suite", args=[version.suite.slug]) + f"?version={version.number}"
    cited = all(answer["results_visible"] for answer in answers)
    return SuiteVersionAnswer(
        suite=version.suite.slug,
        version=version.number,
        note=version.note,
        digest=version.digest if cited else None,
        cite=citation_of(request, version) if cited else None,
        created_by=version.created_by.username if version.created_by else None,
        created_at=version.created_at,
        members=answers,
        url=request.build_absolute_uri(address),
    )


def _member(member: SuiteMember, visible: bool) -> SuiteMemberAnswer:
    return SuiteMemberAnswer(
        collection=member.collection.slug,
        name=member.collection.name,
        measure=member.measure,
        weight=member.weight,
        group=member.group,
        qrels=member.qrels.version if member.qrels and visible else None,
        results_visible=visible,
    )


def board_answer(board: SuiteBoard) -> SuiteBoardAnswer:
    values, ranking = board.values, board.ranking
    return SuiteBoardAnswer(
        suite=values.version.suite.slug,
        version=values.version.number,
        order=board.order,
        topics_filter=values.topics_text or None,
        columns=[
            _column(row, float(weight))
            for row, weight in zip(values.members, values.weights, strict=True)
        ],
        left_out=[member.collection.slug for member in values.left_out],
        systems=[_system(row, values.members) for row in board.rows],
        critical_difference=number(ranking.critical_difference) if ranking else None,
        friedman=ranking.friedman if ranking else None,
        friedman_p=number(ranking.p_value) if ranking else None,
        others_decide=bool(ranking and ranking.others_decide),
        sentences=board_sentences(board),
        cautions=cautions_of(values.cautions),
    )


def _column(row: MemberValues, weight: float) -> SuiteColumn:
    return SuiteColumn(
        collection=row.member.collection.slug,
        measure=row.member.measure,
        weight=weight,
        group=row.member.group,
        qrels=row.qrels.version if row.qrels else None,
        results_visible=not row.hidden,
        topics_selected=row.selection.topics if row.selection else None,
    )


def _system(row: SystemRow, members: list[MemberValues]) -> SuiteSystem:
    runs = [member.runs.get(row.name) for member in members]
    return SuiteSystem(
        rank=row.rank,
        system=row.name,
        runs=[str(row.run) if row else None for row in runs],
        values=numbers(row.means),
        lacks=row.lacks,
        mean=number(row.mean),
        group_mean=number(row.group_mean),
        other_topics=_difference(row.other_topics) if row.other_topics else None,
        other_collections=_difference(row.other_collections) if row.other_collections else None,
        borda=number(row.borda),
        borda_low=number(row.borda_low),
        borda_high=number(row.borda_high),
        mean_rank=number(row.mean_rank),
    )


def _difference(interval: Interval) -> MeanDifference:
    return MeanDifference(
        difference=number(interval.difference),
        low=number(interval.low),
        high=number(interval.high),
        p=number(interval.p_value),
    )


def comparison_answer(comparison: SuiteComparison) -> SuiteComparisonAnswer:
    values, effects = comparison.values, comparison.effects
    return SuiteComparisonAnswer(
        suite=values.version.suite.slug,
        version=values.version.number,
        systems=values.systems,
        topics_filter=values.topics_text or None,
        collections=[_line(line) for line in comparison.lines],
        missing=[row.member.collection.slug for row in comparison.missing],
        left_out=[member.collection.slug for member in values.left_out],
        other_topics=_difference(comparison.other_topics),
        other_collections=_difference(comparison.other_collections),
        random_effects=_effects(effects) if effects else None,
        sentences=comparison_sentences(comparison),
        cautions=cautions_of(values.cautions),
    )


def _line(line: CollectionLine) -> SuiteDifference:
    return SuiteDifference(
        collection=line.row.member.collection.slug,
        measure=line.row.member.measure,
        qrels=line.row.qrels.version if line.row.qrels else 0,
        first=line.first,
        second=line.second,
        topics=line.topics,
        difference=_difference(line.interval),
        weight=line.weight,
        effects_weight=number(line.effects_weight),
    )


def _effects(effects: RandomEffects) -> RandomEffectsAnswer:
    return RandomEffectsAnswer(
        mean=effects.mean,
        error=effects.error,
        low=number(effects.low),
        high=number(effects.high),
        p=number(effects.p_value),
        tau_squared=effects.tau_squared,
        i_squared=effects.i_squared,
        q=effects.q,
        prediction_low=number(effects.prediction_low),
        prediction_high=number(effects.prediction_high),
    )
