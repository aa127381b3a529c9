"""The API of curves: measures over ranks, and precision over recall."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import numbers, read_from, topic_curves
from metrics.api.parameters import CONFIDENCE, DEPTH, PER_TOPIC, RECALL, SCORES, VERSION, parameter
from metrics.api.serializers import PrecisionRecallSerializer, RunCurvesSerializer
from metrics.engine.curves import CURVES
from metrics.engine.intervals import Band
from metrics.engine.precision_recall import PrecisionRecall, recall_points
from metrics.engine.readings import Readings
from metrics.models import Evaluation
from metrics.questions.parameters import query_of
from metrics.questions.unchanged import of_scored_run, unchanged
from metrics.questions.values import check_size, curve_query, evaluation_in, recall_query
from metrics.services.values.curves import CurveQuery, DrawnCurve, RecallQuery, read_curves, read_precision_recall
from runs.api.access import scored_run

_NO_BAND: dict[str, Any] = {"low": None, "high": None}


class RunCurveView(APIView):
    """Measures of the gain family, precision or recall at every rank: mean, its interval, and the ideal's mean."""

    @extend_schema(
        responses=RunCurvesSerializer,
        parameters=[
            parameter("measures", f"of {', '.join(CURVES)}, with their parameters; nDCG where left out"),
            parameter("measure", "the same as measures, of which one is given"),
            DEPTH,
            CONFIDENCE,
            parameter("readings", "true: the curves read across and down against the ideal's", OpenApiTypes.BOOL),
            PER_TOPIC,
            SCORES,
            VERSION,
        ],
    )
    @unchanged(of_scored_run)
    def get(self, request: Request, run: UUID) -> Response:
        found = scored_run(request, run)
        text = query_of(request)
        query = curve_query(text)
        evaluation = evaluation_in(text, found)
        if query.per_topic:
            check_size(evaluation.qrels.topics * query.depth * len(query.measures))
        drawn = read_curves(evaluation=evaluation, query=query)
        curves = [_curve_as_json(one, evaluation, query) for one in drawn]
        body = {"depth": query.depth, "confidence": query.confidence, "curves": curves}
        return Response({**read_from(evaluation), **body})


class PrecisionRecallView(APIView):
    """Interpolated precision at even points of recall: one curve, or one for every level of relevance."""

    @extend_schema(
        responses=PrecisionRecallSerializer,
        parameters=[
            *RECALL,
            PER_TOPIC,
            SCORES,
            VERSION,
        ],
    )
    @unchanged(of_scored_run)
    def get(self, request: Request, run: UUID) -> Response:
        found = scored_run(request, run)
        text = query_of(request)
        query = recall_query(text)
        evaluation = evaluation_in(text, found)
        drawn = read_precision_recall(evaluation=evaluation, query=query)
        if query.per_topic:
            check_size(evaluation.qrels.topics * query.points * len(drawn))
        body = {
            "interp": query.interp,
            "rounding": query.rounding if query.interp == "ceiling" else None,
            "confidence": query.confidence,
            "recall": recall_points(query.points).tolist(),
            "curves": [_level_as_json(one, evaluation, query) for one in drawn],
        }
        return Response({**read_from(evaluation), **body})


def _level_as_json(drawn: PrecisionRecall, evaluation: Evaluation, query: RecallQuery) -> dict[str, Any]:
    body = {"rel": drawn.rel, "mean": numbers(drawn.mean.tolist()), **_band(drawn.band(query.confidence))}
    return {**body, "topics": topic_curves(evaluation, drawn.topics)} if query.per_topic else body


def _curve_as_json(drawn: DrawnCurve, evaluation: Evaluation, query: CurveQuery) -> dict[str, Any]:
    curve = drawn.curve
    body: dict[str, Any] = {
        "measure": drawn.measure.name,
        "mean": numbers(curve.mean.tolist()),
        **_band(curve.band(query.confidence)),
        "ideal": numbers(curve.ideal_mean.tolist()),
    }
    if drawn.readings:
        body["readings"] = _readings_as_json(drawn.readings)
    if query.per_topic:
        body["topics"] = topic_curves(evaluation, curve.topics)
    return body


def _band(band: Band | None) -> dict[str, Any]:
    return {"low": numbers(band[0].tolist()), "high": numbers(band[1].tolist())} if band else _NO_BAND


def _readings_as_json(readings: Readings) -> dict[str, Any]:
    return {
        "needed": None if readings.needed is None else [rank or None for rank in readings.needed.tolist()],
        "missed": numbers(readings.missed.tolist()),
        "missed_percent": numbers(readings.percent.tolist()),
        "ideal_horizontal_from": readings.horizontal_from,
    }
