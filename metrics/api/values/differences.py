"""The API of differences between two runs, topic by topic."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import number, run_name
from metrics.api.parameters import SCORES, parameter
from metrics.api.serializers import DifferenceSerializer
from metrics.questions.comparisons import difference_query
from metrics.questions.parameters import query_of
from metrics.questions.unchanged import of_collection, unchanged
from metrics.services.values.difference import Difference, Side, read_difference
from runs.api.access import scored_collection


class DifferenceView(APIView):
    """Two runs topic by topic under one measure: for Rprec this is the precision histogram."""

    @extend_schema(
        responses=DifferenceSerializer,
        parameters=[
            parameter("runs", "the ids of a and b, separated by a comma"),
            parameter("measure", "the measure to compare by; the collection's first where left out"),
            parameter(
                "order", "topic where left out; difference: largest a - b first", choices=("topic", "difference")
            ),
            SCORES,
        ],
    )
    @unchanged(of_collection)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = difference_query(query_of(request), found)
        return Response({"collection": found.slug, **_as_json(read_difference(collection=found, query=query))})


def _as_json(answer: Difference) -> dict[str, Any]:
    topics = answer.topics
    a, b, difference = (values.tolist() for values in (answer.a.vector.values, answer.b.vector.values, topics.values))
    topic_ids = answer.qrels.topic_ids
    return {
        "measure": answer.query.measure.name,
        "qrels": answer.qrels.version,
        "scores": answer.scores,
        "a": _side_as_json(answer.a),
        "b": _side_as_json(answer.b),
        "wins": topics.wins,
        "ties": topics.ties,
        "losses": topics.losses,
        "undefined": topics.undefined,
        "order": "difference" if answer.query.by_difference else "topic",
        "topics": [
            {"topic_id": topic_ids[i], "a": number(a[i]), "b": number(b[i]), "difference": number(difference[i])}
            for i in answer.order
        ],
    }


def _side_as_json(side: Side) -> dict[str, Any]:
    return {**run_name(side.run), "mean": side.vector.mean, "topics": side.vector.topics}
