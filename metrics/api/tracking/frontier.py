"""The API of effectiveness against cost."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, RunName, cautions_of, run_name
from metrics.engine.analysis.frontier import STATUSES
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import frontier_table
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import FRONTIER
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking import frontier
from metrics.services.tracking.frontier import FrontierQuery
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import OneOf, shape


class CostOfRun(TypedDict):
    value: float
    low: Annotated[float | None, "of the interval, as the run gives it"]
    high: float | None
    n: Annotated[int | None, "number of measurements"]


class PricedRun(TypedDict):
    run: RunName
    mean: float
    cost: CostOfRun
    hardware: str
    status: Annotated[
        str, OneOf(STATUSES), "dominated: another run is surely better at no higher cost"
    ]
    by: Annotated[UUID | None, "the run that is better at no higher cost, by the means at least"]
    p_adjusted: Annotated[
        float | None, "of the one-sided test that it is better, by Holm over all pairs"
    ]


class Frontier(TypedDict):
    """Runs with a cost, the cheapest first."""

    collection: str
    qrels: int
    scores: str
    y: Annotated[str, "the measure"]
    x: Annotated[str, "the cost; empty where no run has any"]
    unit: str
    across: bool
    hardware: Annotated[
        list[str], "kinds that are compared apart; empty where all runs are compared"
    ]
    topics: Annotated[int, "on which every run has a value"]
    pairs: Annotated[int, "of which one run is not dearer: the family of the p values"]
    runs: Annotated[int, "evaluated runs, with those without the cost"]
    results: list[PricedRun]
    cautions: list[Caution]


class FrontierView(APIView):
    """Effectiveness against cost: which runs another one surely beats at no higher cost, which are
    on the frontier, and which may be beaten. Runs on different hardware are compared with `across`
    alone."""

    @extend_schema(operation_id="frontier_read", responses=shape(Frontier), parameters=[*FRONTIER])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = FrontierQuery.read(
            query_of(request, test_collection), test_collection, request.user
        )

        return Response(
            _answer(
                test_collection, frontier.read_frontier(collection=test_collection, query=query)
            )
        )


class FrontierExport(APIView):
    """Effectiveness against cost as a file: csv at full precision, md and tex as a table."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*FRONTIER])
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> tuple[str, bytes]:
            test_collection = scored_collection(request, collection)
            query = FrontierQuery.read(
                query_of(request, test_collection), test_collection, request.user
            )
            answer = frontier.read_frontier(collection=test_collection, query=query)
            table = frontier_table(test_collection, answer)

            return table.name, FORMATS[kind].content(table)

        name, content = read_in_snapshot(read)
        return HttpResponse(content, headers=FORMATS[kind].headers(name))


def _answer(collection: Collection, answer: frontier.Frontier) -> Frontier:
    return Frontier(
        collection=collection.slug,
        qrels=answer.qrels.version,
        scores=answer.scores,
        y=answer.query.measure.name,
        x=answer.key.name,
        unit=answer.key.unit,
        across=answer.query.across,
        hardware=answer.hardware,
        topics=answer.topics,
        pairs=answer.pairs,
        runs=answer.total,
        results=[
            PricedRun(
                run=run_name(priced.run),
                mean=priced.mean,
                cost=CostOfRun(
                    value=priced.cost, low=priced.low, high=priced.high, n=priced.measured
                ),
                hardware=priced.hardware,
                status=priced.status,
                by=priced.by.pk if priced.by else None,
                p_adjusted=priced.p_adjusted,
            )
            for priced in answer.runs
        ],
        cautions=cautions_of(answer.cautions),
    )
