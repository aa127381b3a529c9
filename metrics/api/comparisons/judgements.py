"""The API of the content of judgements: levels, recall bases, and two versions side by side."""

from __future__ import annotations

from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import number, numbers
from metrics.engine.agreement.assessments import Assessments
from metrics.questions.answer_cache import cached, everybody, of_judged_collection
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.comparisons.judgements import JudgedVersion, JudgementsQuery, read_judgements
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import shape


class LevelShare(TypedDict):
    level: int
    label: str
    judgements: int
    share: float


class LevelOfVersion(LevelShare):
    share_of_relevant: Annotated[
        float | None, "of the documents of level 1 or more; null for levels below 1"
    ]
    per_topic: Annotated[float, "mean number of documents of a topic"]


class TopicJudgements(TypedDict):
    topic_id: str
    judged: int
    relevant: Annotated[int, "the recall base: documents of level 1 or more"]
    levels: Annotated[dict[str, int], "documents by level"]


class JudgementsVersion(TypedDict):
    qrels: int
    active: bool
    judgements: int
    documents: Annotated[int | None, "documents of the collection"]
    rest: Annotated[int | None, "documents of the collection that are relevant to no topic"]
    levels: list[LevelOfVersion]
    topics: list[TopicJudgements]


class CrossTable(TypedDict):
    """The first version against the second: documents by level."""

    levels: list[int]
    both: Annotated[
        list[list[int]],
        "documents judged in both: rows are levels of the first, columns of the second",
    ]
    row_shares: Annotated[list[list[float | None]], "`both` over the sums of its rows"]
    column_shares: Annotated[list[list[float | None]], "`both` over the sums of its columns"]
    only_first: list[int]
    only_second: list[int]
    agreement: Annotated[
        float | None, "share of the documents judged in both that have the same level"
    ]
    kappa: Annotated[float | None, "Cohen's kappa"]
    weighted_kappa: Annotated[float | None, "with linear weights"]
    overlap: Annotated[float | None, "documents relevant in both, over those relevant in either"]
    cosine: Annotated[float | None, "relative relevance: the cosine of both vectors of levels"]


class JudgementsOf(TypedDict):
    """The content of judgements."""

    collection: str
    versions: list[JudgementsVersion]
    compared: Annotated[CrossTable | None, "null where one version was requested"]


class JudgementsView(APIView):
    """The number of documents at each level, for each topic, and the agreement of two versions of
    the judgements."""

    @extend_schema(
        responses=shape(JudgementsOf),
        parameters=[*declared(JudgementsQuery)],
    )
    @cached(of_judged_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection, values=False)
        answer = read_judgements(
            collection=test_collection, query=JudgementsQuery.read(query_of(request))
        )

        return Response(
            JudgementsOf(
                collection=test_collection.slug,
                versions=[_version(test_collection, version) for version in answer.versions],
                compared=_compared(answer.compared) if answer.compared else None,
            )
        )


def _version(collection: Collection, version: JudgedVersion) -> JudgementsVersion:
    names = [str(level) for level in version.levels]
    total = max(1, sum(version.totals))

    levels = []
    for index, name in enumerate(names):
        count = version.totals[index]
        levels.append(
            LevelOfVersion(
                level=version.levels[index],
                label=collection.level_labels.get(name, ""),
                judgements=count,
                share=count / total,
                share_of_relevant=version.shares_of_relevant[index],
                per_topic=count / len(version.counts),
            )
        )

    counts = version.counts.tolist()
    topics = [
        TopicJudgements(
            topic_id=topic_id,
            judged=int(version.judged[index]),
            relevant=int(version.relevant[index]),
            levels=dict(zip(names, counts[index], strict=True)),
        )
        for index, topic_id in enumerate(version.qrels.topic_ids)
    ]

    return JudgementsVersion(
        qrels=version.qrels.version,
        active=version.qrels.active,
        judgements=sum(version.totals),
        documents=collection.documents,
        rest=version.rest,
        levels=levels,
        topics=topics,
    )


def _compared(assessments: Assessments) -> CrossTable:
    return CrossTable(
        levels=assessments.levels.tolist(),
        both=assessments.both.tolist(),
        row_shares=[numbers(row) for row in assessments.row_shares.tolist()],
        column_shares=[numbers(row) for row in assessments.column_shares.tolist()],
        only_first=assessments.only_first.tolist(),
        only_second=assessments.only_second.tolist(),
        agreement=number(assessments.agreement),
        kappa=number(assessments.kappa),
        weighted_kappa=number(assessments.weighted_kappa),
        overlap=number(assessments.overlap),
        cosine=number(assessments.cosine),
    )
