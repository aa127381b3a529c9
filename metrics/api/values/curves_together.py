"""The API of the curves of several runs: over ranks, and precision over recall."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Coverage, RunName, Selected, coverage, run_name, selected
from metrics.api.values.curves import (
    Curve,
    LevelCurve,
    check_size,
    curve_answer,
    level_answer,
)
from metrics.engine.curve.precision_recall import recall_points
from metrics.engine.curve.readings import Readings, against_best
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import CHOSEN_RUNS, CURVES, RECALL, TOPICS
from metrics.questions.parameters import query_of
from metrics.services.boards.curves_together import MAX_RUNS, TogetherQuery, choose_together
from metrics.services.boards.topic_selection import SelectionQuery, flags_of
from metrics.services.values.curves import (
    CurveQuery,
    RecallQuery,
    read_curves_of,
    read_precision_recall_of,
)
from runs.web.access import scored_collection
from runs.web.shapes import shape

# Numbers at every rank: the mean, both ends of its interval, and the ideal. Readings add what is
# needed, missed and missed per cent of the ideal, and needed and missed of the best run.
_FIGURES, _READ_FIGURES = 4, 5


class RunOfCurves(RunName):
    coverage: Coverage
    curves: list[Curve]


class BestOfCurve(TypedDict):
    measure: str
    runs: Annotated[
        list[UUID] | None,
        "for each rank the run with the highest mean, the first of equals; null in whole for a "
        "curve that may fall",
    ]


class CollectionCurves(Selected):
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


class CollectionPrecisionRecall(Selected):
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
    """The mean curves of several runs in one answer.

    With readings=true each is read against the ideal's and, if it cannot fall, against the best
    run's at every rank.
    """

    @extend_schema(responses=shape(CollectionCurves), parameters=[*CURVES, *CHOSEN_RUNS, TOPICS])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        text = query_of(request, test_collection)
        query, selection_query = CurveQuery.read(text), SelectionQuery.read(text)
        evaluations = choose_together(
            collection=test_collection,
            query=TogetherQuery.read(text, test_collection, request.user),
            most=MAX_RUNS,
        )
        selection = selection_query.select(evaluations[0])
        figures = _FIGURES + (_READ_FIGURES if query.with_readings else 0)
        check_size(len(evaluations) * len(query.measures) * query.points * figures, "measures")

        curves, readings = {}, {}
        for pk, run_curves in read_curves_of(
            evaluations=evaluations, query=query, selected=flags_of(selection)
        ):
            curves[pk] = [curve_answer(curve, query) for curve in run_curves]
            readings[pk] = [curve.readings for curve in run_curves if curve.readings]

        answer = CollectionCurves(
            collection=test_collection.slug,
            qrels=evaluations[0].qrels.version,
            scores=evaluations[0].scores,
            depth=query.depth,
            ranks=(query.places + 1).tolist(),
            confidence=query.confidence,
            runs=[
                RunOfCurves(
                    **run_name(evaluation.run),
                    coverage=coverage(evaluation),
                    curves=curves[evaluation.pk],
                )
                for evaluation in evaluations
            ],
        )

        if selection:
            answer["topics_filter"] = selection.text
            answer["topics_selected"] = selection.topics
        if query.with_readings:
            in_order = [readings[evaluation.pk] for evaluation in evaluations]
            answer["best"] = _add_best(answer["runs"], in_order, query)

        return Response(answer)


class CollectionPrecisionRecallView(APIView):
    """Interpolated precision of several runs at even points of recall: one curve each, or one for
    every level."""

    @extend_schema(
        responses=shape(CollectionPrecisionRecall), parameters=[*RECALL, *CHOSEN_RUNS, TOPICS]
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        text = query_of(request, test_collection)
        query, selection_query = RecallQuery.read(text), SelectionQuery.read(text)
        evaluations = choose_together(
            collection=test_collection,
            query=TogetherQuery.read(text, test_collection, request.user),
            most=MAX_RUNS,
        )
        selection = selection_query.select(evaluations[0])
        level_curves = dict(
            read_precision_recall_of(
                evaluations=evaluations, query=query, selected=flags_of(selection)
            )
        )
        answer = CollectionPrecisionRecall(
            **selected(selection),
            collection=test_collection.slug,
            qrels=evaluations[0].qrels.version,
            scores=evaluations[0].scores,
            interp=query.interp,
            rounding=query.rounding_of_recall,
            confidence=query.confidence,
            recall=recall_points(query.points).tolist(),
            runs=[
                RunOfLevels(
                    **run_name(evaluation.run),
                    coverage=coverage(evaluation),
                    curves=[level_answer(level, query) for level in level_curves[evaluation.pk]],
                )
                for evaluation in evaluations
            ],
        )

        return Response(answer)


def _add_best(
    runs: list[RunOfCurves], readings_of: list[list[Readings]], query: CurveQuery
) -> list[BestOfCurve]:
    """Return the best run of each measure at each rank, and add the readings against it to `runs`.

    `readings_of` has those against the ideal: of each run, by measure.
    """
    places, best = query.places, []
    for index, measure in enumerate(query.measures):
        against = against_best([readings[index] for readings in readings_of], query.depth)
        best_runs = None
        if against:
            best_runs = [runs[row]["id"] for row in against.best[places].tolist()]

        best.append(BestOfCurve(measure=measure.name, runs=best_runs))

        for row, run in enumerate(runs):
            needed = missed = None
            if against:
                needed = [rank or None for rank in against.needed[row, places].tolist()]
                missed = against.missed[row, places].tolist()

            readings = run["curves"][index]["readings"]
            readings["needed_for_best"], readings["missed_of_best"] = needed, missed

    return best
