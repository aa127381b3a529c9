"""The API of values, leaderboards and measures."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import aggregates_of, cautions_of, numbers, read_from
from metrics.api.parameters import MEASURE_NAMES, SCORES, VERSION, parameter
from metrics.api.serializers import (
    EvaluationSerializer,
    MeasureSerializer,
    NewEvaluationSerializer,
    ProgressSerializer,
    RunValuesSerializer,
)
from metrics.engine.curves import CURVES
from metrics.engine.measures.definition import MeasureDefinition, show
from metrics.models import Evaluation
from metrics.questions.parameters import choice_in, measures_in, query_of, scores_in
from metrics.questions.unchanged import of_measures, of_scored_run, unchanged
from metrics.questions.values import evaluation_in
from metrics.services.boards.leaderboard import active_qrels, read_progress
from metrics.services.queue.lifecycle import queue_evaluation, queue_evaluations
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.known_measures import OF, Of, find_measure, of_what, search_measures
from metrics.services.values.values import read_reasons, read_values
from runs.api.access import check_scores, managed_collection, owned_run, scored_collection, scored_run
from runs.errors import NotFound
from runs.models import Scope


class RunValuesView(APIView):
    """A run's values for every topic, and their means. What is not stored is computed from the judged view."""

    @extend_schema(responses=RunValuesSerializer, parameters=[MEASURE_NAMES, SCORES, VERSION])
    @unchanged(of_scored_run)
    def get(self, request: Request, run: UUID) -> Response:
        found = scored_run(request, run)
        query = query_of(request)
        measures = measures_in(query, "measures", found.collection.measures, found.collection.documents)
        evaluation = evaluation_in(query, found)
        values = read_values(evaluation=evaluation, measures=measures)
        columns = {name: numbers(vector.tolist()) for name, vector in values.vectors.items()}
        reasons = read_reasons(values)
        topics = [
            {
                "topic_id": topic_id,
                "values": {name: column[index] for name, column in columns.items()},
                "undefined": {name: reason for name, column in reasons.items() if (reason := column[index])},
            }
            for index, topic_id in enumerate(values.topic_ids)
        ]
        aggregates = aggregates_of(measures)
        body = {
            **read_from(evaluation),
            "cautions": cautions_of(qrels_cautions(measures, evaluation.qrels)),
            "means": {
                name: {"mean": mean, "topics": count, "aggregate": aggregates[name]}
                for name, (mean, count) in values.means.items()
            },
            "topics": topics,
        }
        return Response(body)


class RunEvaluations(APIView):
    """Every evaluation of a run, newest judgements first; POST asks for one with another score type."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(responses=EvaluationSerializer(many=True))
    def get(self, request: Request, run: UUID) -> Response:
        found = scored_run(request, run)
        rows = found.evaluations.select_related("qrels").order_by("-qrels__version", "scores")
        return Response(EvaluationSerializer(rows, many=True).data)

    @extend_schema(request=NewEvaluationSerializer, responses={202: EvaluationSerializer})
    def post(self, request: Request, run: UUID) -> Response:
        found = owned_run(request, run)
        check_scores(request, found.collection)
        evaluation = queue_evaluation(found, _new_scores(request))
        if evaluation is None:
            raise NotFound(f"collection {found.collection} has no active judgements yet", code="no_active_qrels")
        return Response(EvaluationSerializer(evaluation).data, status.HTTP_202_ACCEPTED)


class CollectionEvaluations(APIView):
    """How many runs are evaluated under the active judgements; POST asks for another score type for every run."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(responses=ProgressSerializer, parameters=[SCORES])
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection)
        progress = read_progress(collection=found, scores=scores_in(query_of(request)))
        return Response(ProgressSerializer(progress).data)

    @extend_schema(request=NewEvaluationSerializer, responses={202: OpenApiTypes.OBJECT})
    def post(self, request: Request, collection: str) -> Response:
        found = managed_collection(request, collection)
        queued = queue_evaluations(active_qrels(found), _new_scores(request))
        return Response({"queued": queued}, status.HTTP_202_ACCEPTED)


class MeasureList(generics.GenericAPIView[Any]):
    """Every measure of runs and of sessions with its parameters, formula, range and source; `search` finds some."""

    pagination_class = None
    queryset = Evaluation.objects.none()

    @extend_schema(
        responses=MeasureSerializer(many=True),
        parameters=[
            parameter("search", "words that a name, a parameter or the definition has"),
            parameter("of", "measures of these only; all where left out", choices=tuple(OF)),
        ],
    )
    @unchanged(of_measures)
    def get(self, request: Request) -> Response:
        query = query_of(request)
        found = search_measures(query.get("search", ""), cast(Of | None, choice_in(query, "of", tuple(OF))))
        return Response([measure_as_json(definition) for definition in found])


class MeasureDetail(APIView):
    """One measure of runs or of sessions, by any of its names: nDCG, ndcg_cut_10, P(rel=2)@5, sDCG."""

    @extend_schema(responses=MeasureSerializer)
    @unchanged(of_measures)
    def get(self, request: Request, measure: str) -> Response:
        return Response(measure_as_json(find_measure(measure)))


def _new_scores(request: Request) -> str:
    serializer = NewEvaluationSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    scores: str = serializer.validated_data["scores"]
    return scores


def measure_as_json(definition: MeasureDefinition) -> dict[str, Any]:
    """A definition with the sections of its docstring."""
    parameters = [{"name": p.name, "default": show(p.default), "text": p.text} for p in definition.parameters]
    return {
        "name": definition.name,
        "of": of_what(definition),
        "elsewhere": "",
        **definition.sections(),
        "cutoff": definition.cutoff.value,
        "default_cutoff": definition.default_cutoff,
        "aggregate": definition.aggregate.value,
        "lower_is_better": definition.lower_is_better,
        "curve": definition.name in CURVES,
        "aliases": list(definition.aliases),
        "trec_eval": definition.trec_eval,
        "parameters": parameters,
    }
