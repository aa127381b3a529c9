"""The API of differences between two runs by topic."""

from __future__ import annotations

from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Mean, RunName, number, run_name
from metrics.questions.answer_cache import everybody, kept, of_collection
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.boards import difference
from metrics.services.boards.difference import DifferenceQuery
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape


class Side(RunName, Mean):
    pass


class TopicDifference(TypedDict):
    topic_id: str
    a: float | None
    b: float | None
    difference: Annotated[float | None, "a minus b"]
    influence: Annotated[
        float | None,
        "by how much the mean of the differences changes without this topic; null where no other is left",
    ]


class Difference(TypedDict):
    """Two runs by topic."""

    collection: str
    measure: str
    qrels: int
    scores: str
    a: Side
    b: Side
    wins: Annotated[int, "topics on which a is better"]
    ties: int
    losses: int
    undefined: Annotated[int, "topics on which one of them has no value"]
    order: str
    topics: list[TopicDifference]


class DifferenceView(APIView):
    """Two runs by topic under one measure: for Rprec this is the precision histogram."""

    @extend_schema(
        responses=shape(Difference),
        parameters=[*declared(DifferenceQuery)],
    )
    @kept(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        query = DifferenceQuery.read(query_of(request, found), found)
        return Response(_answer(found, difference.read_difference(collection=found, query=query)))


def _answer(collection: Collection, found: difference.Difference) -> Difference:
    topics, topic_ids = found.topics, found.qrels.topic_ids
    columns = (found.a.vector.values, found.b.vector.values, topics.values, topics.influence)
    rows = [
        [number(value) for value in row]
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return Difference(
        collection=collection.slug,
        measure=found.query.measure.name,
        qrels=found.qrels.version,
        scores=found.scores,
        a=_side(found.a),
        b=_side(found.b),
        wins=topics.wins,
        ties=topics.ties,
        losses=topics.losses,
        undefined=topics.undefined,
        order=found.query.order,
        topics=[
            TopicDifference(topic_id=topic_ids[i], a=a, b=b, difference=minus, influence=influence)
            for i in found.order
            for a, b, minus, influence in [rows[i]]
        ],
    )


def _side(side: difference.Side) -> Side:
    return Side(**run_name(side.run), mean=side.vector.mean, topics=side.vector.topics)
