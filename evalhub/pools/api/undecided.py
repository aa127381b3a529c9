"""The API of what unjudged documents decide between two runs."""

from __future__ import annotations

from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.pools.exports.undecided import sentence
from evalhub.pools.services.undecided import Undecided, UndecidedQuery, read_undecided
from metrics.api.answers import RunName, run_name
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape

# Documents that are listed.
MOST = 1_000


class OpenDocumentAnswer(TypedDict):
    topic_id: str
    doc_id: str
    rank_a: int | None
    rank_b: int | None
    change: Annotated[float, "of the mean difference if the document has the top level"]


class UndecidedAnswer(TypedDict):
    """Between what the mean difference of two runs lies whatever their unjudged documents are."""

    collection: str
    measure: str
    qrels: int
    a: RunName
    b: RunName
    difference: Annotated[float, "mean of a minus mean of b: unjudged is not relevant"]
    low: float
    high: float
    holds: Annotated[bool, "whether the same run is ahead whatever the documents are"]
    level: Annotated[int, "the top level, which an unjudged document has at most"]
    ranks: Annotated[int, "ranks of each run that were looked at"]
    undecided: Annotated[int, "unjudged documents that can change the difference"]
    documents: Annotated[list[OpenDocumentAnswer], f"the largest change first, at most {MOST:,}"]
    sentence: str


class UndecidedView(APIView):
    """Whether an order of two runs holds whatever their unjudged documents are, and the documents
    that would decide it, ready to be judged."""

    @extend_schema(responses=shape(UndecidedAnswer), parameters=[*declared(UndecidedQuery)])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = UndecidedQuery.read(query_of(request, test_collection), test_collection)
        answer = read_undecided(collection=test_collection, query=query)
        return Response(_answer(test_collection, answer))


def _answer(collection: Collection, answer: Undecided) -> UndecidedAnswer:
    bounds = answer.bounds
    return UndecidedAnswer(
        collection=collection.slug,
        measure=answer.query.measure.name,
        qrels=answer.qrels.version,
        a=run_name(answer.a.run),
        b=run_name(answer.b.run),
        difference=bounds.difference,
        low=bounds.low,
        high=bounds.high,
        holds=bounds.decided,
        level=answer.level,
        ranks=answer.ranks,
        undecided=len(bounds.documents),
        documents=[
            OpenDocumentAnswer(
                topic_id=answer.topic_ids[document.topic],
                doc_id=document.doc_id.decode(),
                rank_a=document.ranks[0],
                rank_b=document.ranks[1],
                change=document.change,
            )
            for document in bounds.documents[:MOST]
        ],
        sentence=sentence(answer),
    )
