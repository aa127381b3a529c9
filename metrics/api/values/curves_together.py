"""The API of the curves of several runs: over ranks with their readings, and precision over recall."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Coverage, RunName, coverage, run_name
from metrics.api.values.curves import Curve, LevelCurve, curve_answer, level_answer
from metrics.engine.curve.precision_recall import recall_points
from metrics.engine.curve.readings import Readings, against_best
from metrics.questions.answer_cache import everybody, kept, of_collection
from metrics.questions.declared import (
    CHOSEN_RUNS,
    CONFIDENCE,
    CURVE_MEASURES,
    DEPTH,
    RANKS,
    READINGS,
    RECALL,
)
from metrics.questions.parameters import query_of
from metrics.questions.values import check_size
from metrics.services.boards.curves_together import MAX_RUNS, TogetherQuery, choose_together
from metrics.services.values.curves import (
    CurveQuery,
    RecallQuery,
    read_curves_of,
    read_precision_recall_of,
)
from runs.web.access import scored_collection
from runs.web.shapes import shape

# At every rank: mean, both ends of its interval and the ideal; against the ideal what is needed,
# missed and its per cent, and against the best run what is needed and missed.
_FIGURES, _READ_FIGURES = 4, 5


class RunOfCurves(RunName):
    coverage: Coverage
    curves: list[Curve]


class BestOfCurve(TypedDict):
    measure: str
    runs: Annotated[
        list[UUID] | None,
        "for each rank the run with the highest mean, the first of equals; null in whole for a curve that may fall",
    ]


class CollectionCurves(TypedDict):
    """Measures of several runs at every rank, or at the named ones, each with the ideal."""

    collection: str
    qrels: int
    scores: str
    depth: int
    ranks: Annotated[list[int], "those that every list of a curve has values at"]
    confidence: float
    runs: list[RunOfCurves]
    best: NotRequired[list[BestOfCurve]]


class RunOfLevels(RunName):
    coverage: Coverage
    curves: list[LevelCurve]


class CollectionPrecisionRecall(TypedDict):
    """Interpolated precision of several runs at points of recall, a curve for each level."""

    collection: str
    qrels: int
    scores: str
    interp: str
    rounding: str | None
    confidence: float
    recall: Annotated[list[float], "the points"]
    runs: list[RunOfLevels]


class CollectionCurvesView(APIView):
    """The mean curves of several runs in one answer. With readings=true each is read against the ideal's and, if it
    cannot fall, against the best run's at every rank."""

    @extend_schema(
        responses=shape(CollectionCurves),
        parameters=[*CURVE_MEASURES, DEPTH, RANKS, CONFIDENCE, READINGS, *CHOSEN_RUNS],
    )
    @kept(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        text = query_of(request, found)
        query = CurveQuery.read(text)
        chosen = choose_together(
            collection=found, query=TogetherQuery.read(text, found, request.user), most=MAX_RUNS
        )
        figures = _FIGURES + (_READ_FIGURES if query.with_readings else 0)
        check_size(len(chosen) * len(query.measures) * query.points * figures, "measures")
        rows, read = {}, {}
        for pk, drawn in read_curves_of(evaluations=chosen, query=query):
            rows[pk] = [curve_answer(one, query) for one in drawn]
            read[pk] = [one.readings for one in drawn if one.readings]
        answer = CollectionCurves(
            collection=found.slug,
            qrels=chosen[0].qrels.version,
            scores=chosen[0].scores,
            depth=query.depth,
            ranks=(query.places + 1).tolist(),
            confidence=query.confidence,
            runs=[
                RunOfCurves(**run_name(one.run), coverage=coverage(one), curves=rows[one.pk])
                for one in chosen
            ],
        )
        if query.with_readings:
            answer["best"] = _add_best(answer["runs"], [read[one.pk] for one in chosen], query)
        return Response(answer)


class CollectionPrecisionRecallView(APIView):
    """Interpolated precision of several runs at even points of recall: one curve each, or one for every level."""

    @extend_schema(responses=shape(CollectionPrecisionRecall), parameters=[*RECALL, *CHOSEN_RUNS])
    @kept(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        text = query_of(request, found)
        query = RecallQuery.read(text)
        chosen = choose_together(
            collection=found, query=TogetherQuery.read(text, found, request.user), most=MAX_RUNS
        )
        drawn = dict(read_precision_recall_of(evaluations=chosen, query=query))
        answer = CollectionPrecisionRecall(
            collection=found.slug,
            qrels=chosen[0].qrels.version,
            scores=chosen[0].scores,
            interp=query.interp,
            rounding=query.rounding_of_recall,
            confidence=query.confidence,
            recall=recall_points(query.points).tolist(),
            runs=[
                RunOfLevels(
                    **run_name(one.run),
                    coverage=coverage(one),
                    curves=[level_answer(level, query) for level in drawn[one.pk]],
                )
                for one in chosen
            ],
        )
        return Response(answer)


def _add_best(
    runs: list[RunOfCurves], read: list[list[Readings]], query: CurveQuery
) -> list[BestOfCurve]:
    """Return the best run of each measure at each rank, and add to every run's readings the rank it needs for that and
    what it misses of it."""
    shown, best = query.places, []
    for place, measure in enumerate(query.measures):
        against = against_best([readings[place] for readings in read], query.depth)
        best.append(BestOfCurve(measure=measure.name, runs=None))
        if against:
            best[-1]["runs"] = [runs[run]["id"] for run in against.best[shown].tolist()]
        for number, run in enumerate(runs):
            readings, needed, missed = run["curves"][place]["readings"], None, None
            if against:
                needed = [rank or None for rank in against.needed[number, shown].tolist()]
                missed = against.missed[number, shown].tolist()
            readings["needed_for_best"], readings["missed_of_best"] = needed, missed
    return best
