"""The API of the content of judgements: levels, the recall base of each topic, and two versions side by side."""

from __future__ import annotations

from typing import Annotated, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import number, numbers
from metrics.engine.agreement.assessments import Assessments
from metrics.questions.answer_cache import everybody, kept, of_judged_collection
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
    """The number of documents at each level, for each topic, and the agreement of two versions of the judgements."""

    @extend_schema(
        responses=shape(JudgementsOf),
        parameters=[*declared(JudgementsQuery)],
    )
    @kept(of_judged_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection, values=False)
        answer = read_judgements(collection=found, query=JudgementsQuery.read(query_of(request)))
        return Response(
            JudgementsOf(
                collection=found.slug,
                versions=[_version(found, version) for version in answer.versions],
                compared=_compared(answer.compared) if answer.compared else None,
            )
        )


def _version(collection: Collection, version: JudgedVersion) -> JudgementsVersion:
    names, total = [str(level) for level in version.levels], max(1, sum(version.totals))
    rows = zip(
        version.qrels.topic_ids,
        version.judged,
        version.relevant,
        version.counts.tolist(),
        strict=True,
    )
    return JudgementsVersion(
        qrels=version.qrels.version,
        active=version.qrels.active,
        judgements=sum(version.totals),
        documents=collection.documents,
        rest=version.rest,
        levels=[
            LevelOfVersion(
                level=level,
                label=collection.level_labels.get(name, ""),
                judgements=count,
                share=count / total,
                share_of_relevant=share_of_relevant,
                per_topic=count / len(version.counts),
            )
            for level, name, count, share_of_relevant in zip(
                version.levels, names, version.totals, version.shares_of_relevant, strict=True
            )
        ],
        topics=[
            TopicJudgements(
                topic_id=topic_id,
                judged=int(judged),
                relevant=int(relevant),
                levels=dict(zip(names, counts, strict=True)),
            )
            for topic_id, judged, relevant, counts in rows
        ],
    )


def _compared(found: Assessments) -> CrossTable:
    return CrossTable(
        levels=found.levels.tolist(),
        both=found.both.tolist(),
        row_shares=[numbers(row) for row in found.row_shares.tolist()],
        column_shares=[numbers(row) for row in found.column_shares.tolist()],
        only_first=found.only_first.tolist(),
        only_second=found.only_second.tolist(),
        agreement=number(found.agreement),
        kappa=number(found.kappa),
        weighted_kappa=number(found.weighted_kappa),
        overlap=number(found.overlap),
        cosine=number(found.cosine),
    )
