"""The API of curves: measures over ranks, and precision-recall curves."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import Aggregate, ReadFrom, Selected, numbers, read_from, selected
from metrics.engine.curve import precision_recall
from metrics.engine.curve.intervals import Band
from metrics.engine.judgement.steps import Matrix
from metrics.models import Evaluation
from metrics.questions.answer_cache import cached, everybody, of_scored_run
from metrics.questions.declared import TOPICS, declared
from metrics.questions.parameters import query_of
from metrics.services.boards.topic_selection import SelectionQuery, TopicSelection, flags_of
from metrics.services.values.curves import (
    CurveQuery,
    MeasureCurve,
    RecallQuery,
    read_curves,
    read_precision_recall,
)
from metrics.services.values.values import EvaluationQuery, find_evaluation
from runs.errors import InvalidInput
from runs.web.access import scored_run
from runs.web.shapes import shape

MAX_VALUES = 1_000_000


class CurvePoints(TypedDict):
    topic_id: str
    values: list[float]


class Readings(TypedDict):
    needed: Annotated[
        list[int | None] | None,
        "for each rank, the rank at which the run has what the ideal has there; null where it "
        "never has, and in whole for a curve that may fall",
    ]
    missed: Annotated[list[float], "the ideal minus the actual mean"]
    missed_percent: Annotated[list[float | None], "of the ideal; null where that is 0"]
    ideal_horizontal_from: Annotated[
        int | None, "the last rank at which the ideal gains anything: where to stop"
    ]
    needed_for_best: NotRequired[
        Annotated[
            list[int | None] | None,
            "of several runs: the rank at which the run has what the best of them has at the rank; "
            "null as in `needed`",
        ]
    ]
    missed_of_best: NotRequired[
        Annotated[
            list[float] | None,
            "of several runs: the mean of the best of them at the rank minus the run's; null for a "
            "curve that may fall",
        ]
    ]


class MeanCurve(TypedDict):
    mean: Annotated[list[float], "averaged over topics"]
    low: Annotated[
        list[float] | None,
        "of the interval of the mean, which may lie beyond the range; null with fewer than two "
        "topics",
    ]
    high: list[float] | None
    topics: NotRequired[list[CurvePoints]]


class Curve(MeanCurve):
    measure: str
    aggregate: Annotated[
        Aggregate,
        "what mean is: pooled ratio with norm='average', the ratio of the topics' averaged vectors",
    ]
    ideal: Annotated[list[float], "the ideal's averaged over topics"]
    readings: NotRequired[Readings]


class RunCurves(ReadFrom, Selected):
    """Measures at ranks 1..depth: averaged over topics, with the ideal, and by topic if
    requested."""

    depth: int
    ranks: Annotated[list[int], "those that every list of a curve has values at"]
    confidence: float
    curves: list[Curve]


class LevelCurve(MeanCurve):
    rel: NotRequired[Annotated[int, "lowest relevant level"]]
    level: NotRequired[Annotated[int, "the only relevant level, in place of rel"]]
    gains: NotRequired[
        Annotated[str, "in place of rel: of generalised precision over generalised recall"]
    ]


class PrecisionRecall(ReadFrom, Selected):
    """Interpolated precision at points of recall, one curve for each lowest or single relevant
    level or gain map."""

    interp: str
    rounding: Annotated[str | None, "null where no recall is made a number of documents"]
    confidence: float
    recall: Annotated[list[float], "the points"]
    curves: list[LevelCurve]


class RunCurveView(APIView):
    """Measures of the gain family, precision or recall at every rank: mean, its interval, and the
    ideal's mean."""

    @extend_schema(
        responses=shape(RunCurves),
        parameters=[*declared(CurveQuery), *declared(EvaluationQuery), TOPICS],
    )
    @cached(of_scored_run, shared_by=everybody)
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run)
        text = query_of(request)
        query = CurveQuery.read(text)
        selection_query = SelectionQuery.read(text)
        evaluation = find_evaluation(run=submitted_run, query=EvaluationQuery.read(text))
        selection = selection_query.select(evaluation)
        topic_ids = _topic_ids(evaluation, selection)
        if query.per_topic:
            check_size(len(topic_ids) * query.points * len(query.measures))

        curves = []
        for curve in read_curves(evaluation=evaluation, query=query, selected=flags_of(selection)):
            entry = curve_answer(curve, query)
            if query.per_topic:
                entry["topics"] = _topics(topic_ids, curve.curve.topics[:, query.places])

            curves.append(entry)

        answer = RunCurves(
            **read_from(evaluation),
            **selected(selection),
            depth=query.depth,
            ranks=(query.places + 1).tolist(),
            confidence=query.confidence,
            curves=curves,
        )
        return Response(answer)


class PrecisionRecallView(APIView):
    """Interpolated precision at equally spaced points of recall: one curve, or one for every level
    of relevance."""

    @extend_schema(
        responses=shape(PrecisionRecall),
        parameters=[*declared(RecallQuery), *declared(EvaluationQuery), TOPICS],
    )
    @cached(of_scored_run, shared_by=everybody)
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run)
        text = query_of(request)
        query = RecallQuery.read(text)
        selection_query = SelectionQuery.read(text)
        evaluation = find_evaluation(run=submitted_run, query=EvaluationQuery.read(text))
        selection = selection_query.select(evaluation)
        topic_ids = _topic_ids(evaluation, selection)
        level_curves = read_precision_recall(
            evaluation=evaluation, query=query, selected=flags_of(selection)
        )
        if query.per_topic:
            check_size(len(topic_ids) * query.points * len(level_curves))

        curves = []
        for curve in level_curves:
            entry = level_answer(curve, query)
            if query.per_topic:
                entry["topics"] = _topics(topic_ids, curve.topics)

            curves.append(entry)

        answer = PrecisionRecall(
            **read_from(evaluation),
            **selected(selection),
            interp=query.interp,
            rounding=query.rounding_of_recall,
            confidence=query.confidence,
            recall=precision_recall.recall_points(query.points).tolist(),
            curves=curves,
        )
        return Response(answer)


def check_size(values: int, pointer: str = "per_topic") -> None:
    """Raise InvalidInput if the curves of all topics, or of all runs, make too long an answer."""
    if values > MAX_VALUES:
        scope = "of single topics " if pointer == "per_topic" else ""
        message = (
            f"{values:,} values {scope}requested; the limit is {MAX_VALUES:,}: "
            "use fewer ranks or curves"
        )
        raise InvalidInput(message, code="too_many_values", pointer=pointer)


def curve_answer(drawn: MeasureCurve, query: CurveQuery) -> Curve:
    """Return a curve at the requested ranks, with its readings if they were requested."""
    curve, places = drawn.curve, query.places
    low, high = _ends(curve.band(query.confidence), places)
    answer = Curve(
        measure=drawn.measure.name,
        aggregate=drawn.measure.aggregate_name,
        mean=curve.mean[places].tolist(),
        low=low,
        high=high,
        ideal=curve.ideal_mean[places].tolist(),
    )

    if readings := drawn.readings:
        needed = None
        if readings.needed is not None:
            needed = [rank or None for rank in readings.needed[places].tolist()]

        answer["readings"] = Readings(
            needed=needed,
            missed=readings.missed[places].tolist(),
            missed_percent=numbers(readings.percent[places].tolist()),
            ideal_horizontal_from=readings.horizontal_from,
        )

    return answer


def level_answer(curve: precision_recall.PrecisionRecall, query: RecallQuery) -> LevelCurve:
    """Return the curve of one level and all above it, of the level alone, or of gains."""
    low, high = _ends(curve.band(query.confidence))
    mean = curve.mean.tolist()

    if curve.gains:
        return LevelCurve(gains=str(curve.gains), mean=mean, low=low, high=high)
    if curve.alone:
        return LevelCurve(level=curve.rel, mean=mean, low=low, high=high)

    return LevelCurve(rel=curve.rel, mean=mean, low=low, high=high)


def _ends(
    band: Band | None, places: Any = slice(None)
) -> tuple[list[float], list[float]] | tuple[None, None]:
    """Return the lower and the upper ends of the intervals at some places of a curve."""
    if not band:
        return None, None
    return band[0][places].tolist(), band[1][places].tolist()


def _topic_ids(evaluation: Evaluation, selection: TopicSelection | None) -> list[str]:
    topic_ids: list[str] = evaluation.qrels.topic_ids
    return selection.among(topic_ids) if selection else topic_ids


def _topics(topic_ids: list[str], curves: Matrix) -> list[CurvePoints]:
    """Return the curve of every topic, in the order of the judgements."""
    rows = zip(topic_ids, curves.tolist(), strict=True)
    return [CurvePoints(topic_id=topic_id, values=values) for topic_id, values in rows]
