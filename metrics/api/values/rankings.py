"""The API of single rankings: the documents of a run for one topic, with their judgements."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import ReadFrom, read_from
from metrics.questions.declared import SCORES, VERSION, parameter
from metrics.questions.parameters import query_of
from metrics.questions.rankings import ranking_gains_in, topic_in
from metrics.questions.values import evaluation_in
from metrics.services.question import MAX_LIMIT
from metrics.services.values.rankings import read_ranking
from runs.parameters import MAX_OFFSET, integer_in
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

    @extend_schema(
        responses=shape(Ranking),
        parameters=[
            parameter("topic", "the topic; it must be a judged one"),
            parameter("gains", "gain map for gain and sum; default: linear"),
            parameter("offset", "ranks to skip, default: 0", OpenApiTypes.INT),
            parameter(
                "limit", f"ranks to answer, default: 100, at most {MAX_LIMIT}", OpenApiTypes.INT
            ),
            SCORES,
            VERSION,
        ],
    )
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run)
        query = query_of(request)
        offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
        limit = integer_in(query, "limit", 100, 1, MAX_LIMIT)

        evaluation = evaluation_in(query, submitted_run)
        ranking = read_ranking(
            evaluation=evaluation, topic_id=topic_in(query), gains=ranking_gains_in(query)
        )

        documents, sums = ranking.documents[offset : offset + limit], ranking.cumulated
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
