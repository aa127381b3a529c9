"""The API of agreement between orders of runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import cautions_of, number, run_name
from metrics.api.comparisons.design_serializers import OrdersSerializer
from metrics.api.parameters import CONFIDENCE, MEASURE_NAMES, RUNS, SCORES, SEED, parameter
from metrics.questions.comparisons import orders_query
from metrics.questions.parameters import query_of
from metrics.questions.unchanged import of_collection, unchanged
from metrics.services.comparisons.orders import Order, OrderPair, Orders, compare_orders
from runs.api.access import scored_collection


class OrdersView(APIView):
    """How far the orders of the runs agree: by several measures, under several versions of the judgements, or both.

    Compared are orders that differ in one of the two. Intervals are of the coefficient over bootstrap samples of the
    topics, drawn together for all orders.
    """

    @extend_schema(
        responses=OrdersSerializer,
        parameters=[
            MEASURE_NAMES,
            parameter("qrels", "versions separated by commas; the active one where left out"),
            RUNS,
            CONFIDENCE,
            parameter("resamples", "B of the intervals, 1,000 where left out", OpenApiTypes.INT),
            SEED,
            SCORES,
        ],
    )
    @unchanged(of_collection, snapshot=True)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = orders_query(query_of(request), found)
        return Response({"collection": found.slug, **_as_json(compare_orders(collection=found, query=query))})


def _as_json(answer: Orders) -> dict[str, Any]:
    query = answer.query
    return {
        "scores": answer.scores,
        "topics": answer.topics,
        "confidence": query.confidence,
        "resamples": query.resamples,
        "seed": query.seed,
        "cautions": cautions_of(answer.cautions),
        "runs": [run_name(run) for run in answer.runs],
        "orders": [_order_as_json(order) for order in answer.orders],
        "pairs": [_pair_as_json(pair) for pair in answer.pairs],
    }


def _order_as_json(order: Order) -> dict[str, Any]:
    return {
        "measure": order.measure.name,
        "qrels": order.qrels,
        "ties": order.ties,
        "ranks": order.ranks,
        "means": order.means,
    }


def _pair_as_json(pair: OrderPair) -> dict[str, Any]:
    agreements = asdict(pair.agreements).items()
    return {
        "a": pair.a,
        "b": pair.b,
        **{name: {end: number(value) for end, value in found.items()} for name, found in agreements},
        "moved": sum(change != 0 for change in pair.changes),
        "changes": pair.changes,
    }
