"""The API of single rankings: the documents of a run for one topic, with their judgements."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import ReadFrom, read_from
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.values.rankings import RankingQuery, read_ranking
from metrics.services.values.values import find_evaluation
from runs.services.collections.documents import read_titles
from runs.web.access import scored_run
from runs.web.shapes import Kind, shape


class RankedDocument(TypedDict):
    rank: Annotated[int, Kind(serializers.IntegerField, min_value=1)]
    doc_id: str
    title: Annotated[str, "empty if the collection has none"]
    score: float
    level: Annotated[int | None, "null for an unjudged document"]
    gain: float
    sum: Annotated[float | None, "of gains down to this rank; null below rank 1000"]
    tied: Annotated[bool, "whether another document of the topic has this score"]


class Ranking(ReadFrom):
    """The ranking of a run for one topic."""

    topic_id: str
    count: Annotated[int, "documents in the whole ranking"]
    documents: list[RankedDocument]


class RankingView(APIView):
    """The documents of one topic in the order of the tie rule, each with its level or null for an
    unjudged document."""

    @extend_schema(responses=shape(Ranking), parameters=[*declared(RankingQuery)])
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run)
        query = RankingQuery.read(query_of(request))
        evaluation = find_evaluation(run=submitted_run, query=query.evaluation)
        ranking = read_ranking(evaluation=evaluation, topic_id=query.topic, gains=query.gains)

        documents = ranking.documents[query.offset : query.offset + query.limit]
        sums = ranking.cumulated
        titles = read_titles(submitted_run.collection, (row.doc_id for row in documents))
        answer = Ranking(
            **read_from(evaluation),
            topic_id=ranking.topic_id,
            count=len(ranking.documents),
            documents=[
                RankedDocument(
                    rank=document.rank,
                    doc_id=document.doc_id,
                    title=titles[document.doc_id].title,
                    score=document.score,
                    level=document.level,
                    gain=document.gain,
                    sum=sums[document.rank - 1] if document.rank <= len(sums) else None,
                    tied=document.tied,
                )
                for document in documents
            ],
        )

        return Response(answer)
