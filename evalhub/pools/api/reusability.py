"""The API of how far the judgements of a collection reach."""

from __future__ import annotations

from typing import Annotated, TypedDict

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalhub.pools.exports.reusability import reusability_table, sentences
from evalhub.pools.services.reusability import (
    INFERRED,
    NAMED,
    RECORDED,
    MeasureReach,
    Reusability,
    ReusabilityQuery,
    read_reusability,
)
from metrics.api.answers import MeasureCautions, RunName, cautions_of, number, run_name
from metrics.exports.formats import FORMATS
from metrics.questions.answer_cache import cached, of_collection
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.snapshots import read_in_snapshot
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.shapes import OneOf, shape

PARAMETERS = declared(ReusabilityQuery)


class GroupLeftOut(TypedDict):
    """Runs that are left out together, and the judgements that they alone brought."""

    name: str
    runs: int
    pooled: int
    judgements: int
    relevant: Annotated[int, "of level 1 or more"]
    levels: Annotated[dict[str, int], "judgements by level"]


class RunWithout(TypedDict):
    """A run with and without the judgements that its group alone brought."""

    run: RunName
    group: str
    pooled: bool
    judged_depth: Annotated[int, "ranks 1 to this are judged on every topic"]
    median_depth: Annotated[float, "the median over the topics of the run"]
    mean: float | None
    left_out: Annotated[float | None, "null where its group brought nothing to leave out"]
    change: Annotated[float | None, "as a share of the mean"]
    rank: int
    left_out_rank: Annotated[int, "by the left-out mean, among the means of all others"]
    corrected: Annotated[float | None, "the mean of a run that was not pooled, with the bias"]


class ReachOfMeasure(TypedDict):
    measure: str
    mean_change: Annotated[float | None, "mean of the changes of runs"]
    largest_change: Annotated[float | None, "the largest size of a change"]
    largest_drop: Annotated[int, "ranks"]
    tau: Annotated[float | None, "of the official order and that of the left-out means"]
    tau_ap: Annotated[float | None, "with the official order as the truth"]
    bias: Annotated[float | None, "mean loss of a pooled run (Webber and Park, 2009)"]
    bias_error: Annotated[float | None, "leave-one-out error of the bias"]
    runs: list[RunWithout]
    sentences: list[str]


class ReusabilityAnswer(TypedDict):
    collection: str
    qrels: int
    scores: str
    by: str
    pooled_by: Annotated[str, OneOf((RECORDED, NAMED, INFERRED)), "where the pooled runs are from"]
    pools: Annotated[list[int], "numbers of the recorded pools"]
    depth: Annotated[int | None, "null where it differs between runs"]
    groups: list[GroupLeftOut]
    measures: list[ReachOfMeasure]
    cautions: MeasureCautions


class ReusabilityView(APIView):
    """How far the judgements reach: every run without what its own team alone brought to the
    pool."""

    @extend_schema(responses=shape(ReusabilityAnswer), parameters=[*PARAMETERS])
    @cached(of_collection)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        return Response(_answer(test_collection, _read(request, test_collection)))


class ReusabilityExport(APIView):
    """The runs by the first measure as a file: csv at full precision, md and tex as a table."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*PARAMETERS])
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        def read() -> tuple[str, bytes]:
            test_collection = scored_collection(request, collection)
            answer = _read(request, test_collection)
            table = reusability_table(test_collection, answer, answer.measures[0])
            return table.name, FORMATS[kind].content(table)

        name, content = read_in_snapshot(read)
        return HttpResponse(content, headers=FORMATS[kind].headers(name))


def _read(request: Request, collection: Collection) -> Reusability:
    query = ReusabilityQuery.read(query_of(request, collection), collection, request.user)
    return read_reusability(collection=collection, reader=request.user, query=query)


def _answer(collection: Collection, answer: Reusability) -> ReusabilityAnswer:
    return ReusabilityAnswer(
        collection=collection.slug,
        qrels=answer.qrels.version,
        scores=answer.scores,
        by=answer.by,
        pooled_by=answer.pooled.source,
        pools=answer.pooled.pools,
        depth=answer.pooled.depth,
        groups=[
            GroupLeftOut(
                name=group.name,
                runs=group.runs,
                pooled=group.pooled,
                judgements=group.judgements,
                relevant=group.relevant,
                levels={str(level): count for level, count in group.levels.items()},
            )
            for group in answer.groups
        ],
        measures=[_measure(answer, reach) for reach in answer.measures],
        cautions=cautions_of(answer.cautions),
    )


def _measure(answer: Reusability, reach: MeasureReach) -> ReachOfMeasure:
    order, changes = reach.order, reach.changes
    return ReachOfMeasure(
        measure=reach.measure.name,
        mean_change=number(reach.mean_change),
        largest_change=number(reach.largest_change),
        largest_drop=reach.largest_drop,
        tau=number(order.tau),
        tau_ap=number(order.tau_ap),
        bias=number(reach.correction.bias),
        bias_error=number(reach.correction.error),
        runs=[
            RunWithout(
                run=run_name(run.run),
                group=run.group,
                pooled=run.pooled,
                judged_depth=run.judged_depth,
                median_depth=run.median_depth,
                mean=number(float(reach.means[place])),
                left_out=number(float(reach.left_out[place])),
                change=number(float(changes[place])),
                rank=int(order.ranks[place]),
                left_out_rank=int(order.left_out_ranks[place]),
                corrected=number(reach.corrected(place, run)),
            )
            for place, run in enumerate(answer.runs)
        ],
        sentences=sentences(answer, reach),
    )
