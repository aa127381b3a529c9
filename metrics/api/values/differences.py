"""The API of differences between two runs by topic."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, Mean, RunName, cautions_of, numbers, run_name
from metrics.questions.answer_cache import cached, everybody, of_collection
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
        "by how much the mean of the differences changes without this topic; null where no other "
        "is left",
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
    topics_filter: NotRequired[Annotated[str, "the topics that count, if not all"]]
    cautions: NotRequired[Annotated[list[Caution], "of the selected topics"]]
    topics: list[TopicDifference]


class DifferenceView(APIView):
    """Two runs by topic under one measure: for Rprec this is the precision histogram."""

    @extend_schema(
        responses=shape(Difference),
        parameters=[*declared(DifferenceQuery)],
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = DifferenceQuery.read(query_of(request, test_collection), test_collection)

        return Response(
            _answer(
                test_collection, difference.read_difference(collection=test_collection, query=query)
            )
        )


def _answer(collection: Collection, answer: difference.Difference) -> Difference:
    topics = answer.topics
    a, b = numbers(answer.a.values.tolist()), numbers(answer.b.values.tolist())
    differences, influence = numbers(topics.values.tolist()), numbers(topics.influence.tolist())

    result = Difference(
        collection=collection.slug,
        measure=answer.query.measure.name,
        qrels=answer.qrels.version,
        scores=answer.scores,
        a=_side(answer.a),
        b=_side(answer.b),
        wins=topics.wins,
        ties=topics.ties,
        losses=topics.losses,
        undefined=topics.undefined,
        order=answer.query.order,
        topics=[
            TopicDifference(
                topic_id=answer.topic_ids[index],
                a=a[index],
                b=b[index],
                difference=differences[index],
                influence=influence[index],
            )
            for index in answer.order
        ],
    )
    if answer.selection:
        result["topics_filter"] = answer.selection.text
        result["cautions"] = cautions_of(answer.selection.cautions)

    return result


def _side(side: difference.Side) -> Side:
    return Side(**run_name(side.run), mean=side.mean, topics=side.topics)
