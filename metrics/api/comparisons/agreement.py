"""The API of agreement between versions of the judgements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Caution, RunName, cautions_of, number, run_name
from metrics.engine.agreement import intervals
from metrics.engine.agreement.assessors import UNDEFINED, AssessorAgreement, Estimate
from metrics.exports.comparisons.agreement import (
    AGREEMENT_TABLES,
    COEFFICIENTS,
    agreement_table,
    sentences,
)
from metrics.exports.formats import FORMATS
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import AGREEMENT, parameter
from metrics.questions.parameters import query_of
from metrics.services.comparisons.agreement import (
    AgreementQuery,
    RunEffects,
    VersionAgreement,
    read_agreement,
)
from metrics.services.snapshots import read_in_snapshot
from runs.models import Collection
from runs.parameters import choice_in
from runs.web.access import scored_collection
from runs.web.shapes import OneOf, shape

_TABLE = parameter("table", "of the file, default: coefficients", choices=AGREEMENT_TABLES)


class Coefficient(TypedDict):
    value: float | None
    low: Annotated[float | None, "of the interval over bootstrap samples of the topics"]
    high: float | None
    reason: Annotated[
        str, OneOf(("", *UNDEFINED)), "why it is undefined: no document is judged in both, or all "
        "judgements have the same level",
    ]  # fmt: skip


class RelevantAgreement(TypedDict):
    """The agreement on which documents are relevant."""

    level: Annotated[int, "the least level of a relevant document"]
    overlap: Annotated[Coefficient, "documents relevant in both over those relevant in either"]
    kappa: Coefficient


class TopicAgreement(TypedDict):
    topic_id: str
    documents: Annotated[int, "judged in both"]
    coefficients: dict[str, float | None]
    relevant: Annotated[list[dict[str, float | None]], "overlap and kappa, by level"]


class CoefficientOfOrders(TypedDict):
    value: float | None
    low: float | None
    high: float | None


class Verdicts(TypedDict):
    """Significant differences of runs: of those under the reference, how many are the same under
    the version."""

    test: str
    alpha: float
    pairs: int
    significant: Annotated[int, "under the reference"]
    same: Annotated[int, "significant in the same direction"]
    lost: Annotated[int, "not significant under the version"]
    reversed: Annotated[int, "significant in the other direction"]
    gained: Annotated[int, "significant under the version alone"]


class JudgedRun(TypedDict):
    run: RunName
    reference: Annotated[float, "mean under the reference"]
    mean: Annotated[float, "mean under the version"]
    difference: float
    residual: Annotated[
        float | None, "standardised, of the regression of differences on means of the reference"
    ]
    outlying: Annotated[bool, "whether the residual is beyond 2"]
    judged_reference: Annotated[float, "mean of Judged@k under the reference"]
    judged: float
    uses_model: Annotated[bool | None, "null unless uses_model is given"]


class JudgeFamily(TypedDict):
    """Runs of the judge's family against the others, by a permutation test of mean differences."""

    runs: int
    others: int
    difference: Annotated[float | None, "mean difference of the family minus that of the others"]
    p_value: float | None
    exact: Annotated[bool, "whether every division of the runs was tried"]


class Effects(TypedDict):
    measure: str
    topics: int
    tau: CoefficientOfOrders
    tau_ap: Annotated[CoefficientOfOrders, "with the order under the reference as the truth"]
    verdicts: Verdicts
    k: Annotated[int, "of Judged@k"]
    runs: list[JudgedRun]
    family: JudgeFamily | None


class AgreementOfVersions(TypedDict):
    """A version of the judgements against another one, the reference."""

    collection: str
    qrels: int
    judged_by: Annotated[str, "empty unless a model or clicks took part"]
    reference: int
    reference_judged_by: str
    documents: Annotated[int, "judged in both"]
    topics: Annotated[int, "with such documents"]
    levels: list[int]
    confusion: Annotated[
        list[list[int]], "documents: rows are levels of the reference, columns of the version"
    ]
    coefficients: dict[str, Coefficient]
    relevant: list[RelevantAgreement]
    by_topic: list[TopicAgreement]
    runs: Annotated[Effects | None, "null where too few runs are evaluated under both"]
    runs_reason: Annotated[str, "why there are no effects on runs"]
    sentences: list[str]
    confidence: float
    resamples: int
    seed: int
    cautions: list[Caution]


class AgreementView(APIView):
    """How far a version of the judgements agrees with another one, overall and by topic, and what
    it does to the runs: their order, significant differences, and runs that it favours."""

    @extend_schema(responses=shape(AgreementOfVersions), parameters=[*AGREEMENT])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str, version: int) -> Response:
        test_collection = scored_collection(request, collection)
        return Response(_answer(test_collection, _read(request, test_collection, version)))


class AgreementExport(APIView):
    """The agreement as a file: csv at full precision, md and tex as a table."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*AGREEMENT, _TABLE])
    def get(self, request: Request, collection: str, version: int, kind: str) -> HttpResponse:
        def read() -> tuple[str, bytes]:
            test_collection = scored_collection(request, collection)
            which = choice_in(query_of(request), "table", AGREEMENT_TABLES) or COEFFICIENTS
            answer = _read(request, test_collection, version)
            table = agreement_table(test_collection, answer, which)
            return table.name, FORMATS[kind].content(table)

        name, content = read_in_snapshot(read)
        return HttpResponse(content, headers=FORMATS[kind].headers(name))


def _read(request: Request, collection: Collection, version: int) -> VersionAgreement:
    query = AgreementQuery.read(query_of(request, collection), collection, request.user)
    return read_agreement(collection=collection, version=version, query=query)


def _answer(collection: Collection, answer: VersionAgreement) -> AgreementOfVersions:
    agreement, query = answer.agreement, answer.query
    return AgreementOfVersions(
        collection=collection.slug,
        qrels=answer.qrels.version,
        judged_by=answer.qrels.authors,
        reference=answer.reference.version,
        reference_judged_by=answer.reference.authors,
        documents=answer.documents,
        topics=answer.topics,
        levels=answer.levels,
        confusion=agreement.confusion.tolist(),
        coefficients=coefficients_of(agreement),
        relevant=relevant_agreements(agreement),
        by_topic=topic_agreements(agreement, answer.topic_ids),
        runs=_effects(query, answer.effects) if answer.effects else None,
        runs_reason=answer.problem.message if answer.problem else "",
        sentences=sentences(answer),
        confidence=query.confidence,
        resamples=query.resamples,
        seed=query.seed,
        cautions=cautions_of(answer.cautions),
    )


def coefficients_of(agreement: AssessorAgreement) -> dict[str, Coefficient]:
    return {name: _coefficient(estimate) for name, estimate in agreement.estimates.items()}


def relevant_agreements(agreement: AssessorAgreement) -> list[RelevantAgreement]:
    return [
        RelevantAgreement(
            level=threshold.level,
            overlap=_coefficient(threshold.overlap),
            kappa=_coefficient(threshold.kappa),
        )
        for threshold in agreement.thresholds
    ]


def topic_agreements(
    agreement: AssessorAgreement, topic_ids: Sequence[str]
) -> list[TopicAgreement]:
    """Return the agreement on each topic with documents that several assessors judge."""
    return [
        TopicAgreement(
            topic_id=topic_id,
            documents=int(agreement.documents[place]),
            coefficients={
                name: number(float(estimate.topics[place]))
                for name, estimate in agreement.estimates.items()
            },
            relevant=[
                {
                    "level": threshold.level,
                    "overlap": number(float(threshold.overlap.topics[place])),
                    "kappa": number(float(threshold.kappa.topics[place])),
                }
                for threshold in agreement.thresholds
            ],
        )
        for place, topic_id in enumerate(topic_ids)
        if agreement.documents[place]
    ]


def _coefficient(estimate: Estimate) -> Coefficient:
    return Coefficient(
        value=number(estimate.value),
        low=number(estimate.low),
        high=number(estimate.high),
        reason=estimate.reason,
    )


def _of_orders(agreement: intervals.Agreement) -> CoefficientOfOrders:
    return CoefficientOfOrders(
        value=number(agreement.value), low=number(agreement.low), high=number(agreement.high)
    )


def _effects(query: AgreementQuery, effects: RunEffects) -> Effects:
    changes, group = effects.verdicts, effects.group
    return Effects(
        measure=query.measure.name,
        topics=effects.topics,
        tau=_of_orders(effects.tau),
        tau_ap=_of_orders(effects.tau_ap),
        verdicts=Verdicts(
            test=query.test,
            alpha=query.alpha,
            pairs=changes.pairs,
            significant=changes.significant,
            same=changes.same,
            lost=changes.lost,
            reversed=changes.reversed,
            gained=changes.gained,
        ),
        k=query.depth,
        runs=[
            JudgedRun(
                run=run_name(judged.run),
                reference=judged.reference,
                mean=judged.mean,
                difference=judged.difference,
                residual=number(judged.residual),
                outlying=judged.outlying,
                judged_reference=judged.judged_reference,
                judged=judged.judged,
                uses_model=judged.uses_model,
            )
            for judged in effects.runs
        ],
        family=JudgeFamily(
            runs=group.runs,
            others=group.others,
            difference=number(group.difference),
            p_value=number(group.p_value),
            exact=group.exact,
        )
        if group
        else None,
    )
