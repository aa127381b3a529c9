"""The API of the systems of a collection's session sets: their leaderboard, and comparisons of systems."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, cautions_of, number
from metrics.api.comparisons.answers import Omnibus, omnibus_answer
from metrics.api.comparisons.pairs import Way, way_of
from metrics.api.sessions.answers import MeasureCautions, Paged, SessionMean, paged, session_mean
from metrics.engine import ENGINE_VERSION
from metrics.engine.significance.verdicts import REASONS
from metrics.questions.declared import (
    JUDGED_BY,
    SESSION_COMPARISON,
    SESSION_MEASURES,
    parameter,
)
from metrics.questions.parameters import query_of
from metrics.questions.sessions import session_board_query, session_comparison_query
from metrics.services.sessions import board, comparison
from runs.api.access import scored_collection
from runs.api.shapes import OneOf, shape
from runs.models import Collection


class SetName(TypedDict):
    id: UUID
    team: str
    tag: str
    created_at: datetime


class SystemRow(TypedDict):
    rank: int | None
    code: Annotated[str, "why it has no rank where it is not stale: fewer_sessions, no_value"]
    reason: str
    stale: bool
    name: Annotated[str, "team/tag:system, or team/tag where the log names no system"]
    session_set: SetName
    system: str
    sessions: Annotated[int, "sessions with a value: judged, with a relevant document"]
    qrels: int | None
    engine_version: str
    values: dict[str, SessionMean]


class SessionBoard(Paged):
    """A page of the leaderboard of systems."""

    collection: str
    judged_by: str
    measures: list[str]
    sort: str
    order: str
    states: Annotated[dict[str, int], "session sets by state"]
    cautions: MeasureCautions
    judged_otherwise: Annotated[int, "session sets that are not on this leaderboard"]
    results: list[SystemRow]


class UsedDesign(TypedDict):
    recognised: str
    reason: str
    used: str


class ComparedSystem(TypedDict):
    name: str
    session_set: UUID
    system: str
    sessions: int
    with_value: int
    mean: Annotated[float | None, "over its sessions with a value"]


class SystemPair(TypedDict):
    a: str
    b: str
    difference: Annotated[float, "of a minus b, over what is compared"]
    low: float | None
    high: float | None
    statistic: float | None
    p_value: Annotated[float | None, "null where the pair cannot be tested"]
    p_adjusted: float | None
    significant: bool
    verdict: Way
    withheld: Annotated[str | None, OneOf(REASONS[1:]), "why there is no verdict"]


class SessionComparison(TypedDict):
    """Systems compared on one value of each session."""

    collection: str
    judged_by: str
    qrels: Annotated[int | None, "null where the logs judge themselves"]
    engine_version: str
    measure: str
    design: UsedDesign
    cells: Annotated[int, "pairs of topic and searcher, topics, or sessions that are compared"]
    test: str
    correction: str | None
    alpha: float
    confidence: float
    resamples: Annotated[int, "B of a test that draws"]
    seed: Annotated[int, "of a test that draws"]
    family: int
    cautions: list[Caution]
    systems: list[ComparedSystem]
    omnibus: dict[str, Omnibus]
    pairs: list[SystemPair]


class SessionBoardView(APIView):
    """The systems of the collection's session sets, ranked by one measure; stale ones come last, without a rank."""

    @extend_schema(
        responses=shape(SessionBoard),
        parameters=[
            SESSION_MEASURES,
            parameter("sort", "the measure to rank by; default: the first"),
            parameter("order", "desc or asc; default: best first"),
            JUDGED_BY,
            parameter("limit", "rows of a page, default: 50, at most 200", OpenApiTypes.INT),
            parameter("offset", "rows to pass over", OpenApiTypes.INT),
        ],
    )
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = session_board_query(query_of(request), found.documents)
        read = board.read_session_board(collection=found, query=query)
        return Response(_board(found, read, paged(request, query.offset, query.limit, read.total)))


def _board(collection: Collection, found: board.SessionBoard, pages: Paged) -> SessionBoard:
    query = found.query
    measures = [measure.name for measure in query.measures]
    return SessionBoard(
        **pages,
        collection=collection.slug,
        judged_by=found.judged_by,
        measures=measures,
        sort=query.sort.name,
        order="desc" if query.descending else "asc",
        states=found.states,
        cautions=cautions_of(found.cautions),
        judged_otherwise=found.others,
        results=[_row(row, measures) for row in found.rows],
    )


def _row(row: board.SystemRow, measures: list[str]) -> SystemRow:
    evaluation, found = row.evaluation, row.evaluation.session_set
    return SystemRow(
        rank=row.rank,
        code=row.code,
        reason=row.reason,
        stale=row.stale,
        name=board.system_name(evaluation, row.system),
        session_set=SetName(id=found.pk, team=found.team.slug, tag=found.tag, created_at=found.created_at),
        system=row.system,
        sessions=row.sessions,
        qrels=evaluation.qrels.version if evaluation.qrels else None,
        engine_version=evaluation.engine_version,
        values={name: session_mean(row.values[name]) for name in measures},
    )


class SessionComparisonView(APIView):
    """Systems compared on one value of each session, by the design of these sessions, with the reason for the
    design."""

    @extend_schema(responses=shape(SessionComparison), parameters=[*SESSION_COMPARISON])
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = session_comparison_query(query_of(request), found.documents)
        return Response(_comparison(found, comparison.compare_systems(collection=found, query=query)))


def _comparison(collection: Collection, compared: comparison.SessionComparison) -> SessionComparison:
    query = compared.query
    return SessionComparison(
        collection=collection.slug,
        judged_by=compared.judged_by,
        qrels=compared.qrels.version if compared.qrels else None,
        engine_version=ENGINE_VERSION,
        measure=query.measure.name,
        design=UsedDesign(recognised=compared.recognised, reason=compared.why, used=compared.design),
        cells=compared.cells,
        test=compared.test,
        correction=compared.correction,
        alpha=query.rule.alpha,
        confidence=query.options.confidence,
        resamples=query.options.resamples,
        seed=query.options.seed,
        family=compared.family,
        cautions=cautions_of(compared.result.cautions),
        systems=[
            ComparedSystem(
                name=system.name,
                session_set=system.evaluation.session_set_id,
                system=system.system,
                sessions=system.sessions,
                with_value=system.with_value,
                mean=number(system.mean),
            )
            for system in compared.systems
        ],
        omnibus={name: omnibus_answer(result) for name, result in compared.omnibus.items()},
        pairs=_pairs(compared),
    )


def _pairs(compared: comparison.SessionComparison) -> list[SystemPair]:
    result, names = compared.result, [system.name for system in compared.systems]
    first, second = (side.tolist() for side in compared.pairs.indices())
    return [
        SystemPair(
            a=names[a],
            b=names[b],
            difference=float(result.difference[at]),
            low=number(float(result.low[at])),
            high=number(float(result.high[at])),
            statistic=number(float(result.statistic[at])),
            p_value=number(float(result.p_value[at])),
            p_adjusted=number(float(compared.adjusted[at])),
            significant=bool(compared.verdicts.significant[at]),
            verdict=way_of(compared.better(at)),
            withheld=compared.withheld(at) or None,
        )
        for at, (a, b) in enumerate(zip(first, second, strict=True))
    ]
