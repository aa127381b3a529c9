"""The API of agreement between orders of runs."""

from __future__ import annotations

from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, RunName, Selected, cautions_of, number, run_name, selected
from metrics.engine.agreement import intervals
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import ORDERS
from metrics.questions.parameters import query_of
from metrics.services.comparisons import orders
from metrics.services.comparisons.orders import OrdersQuery
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape


class Order(TypedDict):
    measure: str
    qrels: int
    ties: Annotated[bool, "whether two runs share a rank"]
    ranks: Annotated[list[int], "of the runs, in their order"]
    means: Annotated[list[float | None], "of the runs, on the topics used"]


class Agreement(TypedDict):
    value: float | None
    low: float | None
    high: float | None


class OrderPair(TypedDict):
    a: Annotated[int, "place among the orders, from 0 on"]
    b: int
    tau: Annotated[Agreement, "Kendall's tau-b; tau-a without ties"]
    tau_ap: Annotated[Agreement, "the AP correlation with a as the truth"]
    tau_ap_reversed: Annotated[Agreement, "with b as the truth"]
    symmetric_tau_ap: Agreement
    rbo: Annotated[Agreement, "rank-biased overlap, p = 0.9, extrapolated"]
    moved: Annotated[int, "runs whose rank differs"]
    changes: Annotated[list[int], "of the runs: rank in b minus rank in a"]


class Orders(Selected):
    """Orders of the same runs, and every two of them that differ in the measure or in the qrels,
    but not in both."""

    collection: str
    scores: str
    topics: Annotated[int, "judged in every version, with a value of every run in every order"]
    confidence: float
    resamples: int
    seed: int
    cautions: list[Caution]
    runs: list[RunName]
    orders: list[Order]
    pairs: list[OrderPair]


class OrdersView(APIView):
    """The agreement between orders of the runs: by several measures, under several versions of the
    judgements, or both.

    Orders are compared that differ in one of the two. Intervals are those of the coefficient over
    bootstrap samples of the topics, drawn together for all orders.
    """

    @extend_schema(responses=shape(Orders), parameters=[*ORDERS])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = OrdersQuery.read(query_of(request, test_collection), test_collection)
        return Response(
            _orders(test_collection, orders.compare_orders(collection=test_collection, query=query))
        )


def _orders(collection: Collection, answer: orders.Orders) -> Orders:
    return Orders(
        **selected(answer.selection),
        collection=collection.slug,
        scores=answer.scores,
        topics=answer.topics,
        confidence=answer.query.confidence,
        resamples=answer.query.resamples,
        seed=answer.query.seed,
        cautions=cautions_of(answer.cautions),
        runs=[run_name(run) for run in answer.runs],
        orders=[
            Order(
                measure=order.measure.name,
                qrels=order.qrels.version,
                ties=order.ties,
                ranks=order.ranks,
                means=[*order.means],
            )
            for order in answer.orders
        ],
        pairs=[
            OrderPair(
                a=pair.a,
                b=pair.b,
                tau=_agreement(pair.agreements.tau),
                tau_ap=_agreement(pair.agreements.tau_ap),
                tau_ap_reversed=_agreement(pair.agreements.tau_ap_reversed),
                symmetric_tau_ap=_agreement(pair.agreements.symmetric_tau_ap),
                rbo=_agreement(pair.agreements.rbo),
                moved=sum(change != 0 for change in pair.changes),
                changes=pair.changes,
            )
            for pair in answer.pairs
        ],
    )


def _agreement(agreement: intervals.Agreement) -> Agreement:
    return Agreement(
        value=number(agreement.value), low=number(agreement.low), high=number(agreement.high)
    )
