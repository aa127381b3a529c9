"""The API of evaluations: those of a run, the progress of a collection, and requests for more."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics import models
from metrics.questions.declared import SCORES
from metrics.questions.parameters import query_of, scores_in
from metrics.services.boards.asked import active_qrels
from metrics.services.boards.evaluating import read_progress
from metrics.services.queue.queueing import queue_evaluation, queue_evaluations
from runs.api.access import (
    check_scores,
    managed_collection,
    owned_run,
    scored_collection,
    scored_run,
)
from runs.api.fields import ChoiceField
from runs.api.parameters import KnownFields
from runs.api.shapes import OneOf, shape
from runs.errors import NotFound
from runs.models import Collection, Scope


class Evaluation(TypedDict):
    """An evaluation of a run under one version of the judgements."""

    qrels: int
    scores: Annotated[str, OneOf(Collection.Scores.choices)]
    engine_version: str
    state: Annotated[str, OneOf(models.Evaluation.State.choices)]
    since: datetime
    attempts: int
    error_code: str
    error_message: str
    seconds: float | None


class NewEvaluationSerializer(KnownFields, serializers.Serializer[Any]):
    scores = ChoiceField(choices=("float64", "float32"))


class Progress(TypedDict):
    """The progress of evaluating a collection."""

    qrels: int
    scores: str
    total: Annotated[int, "live runs"]
    evaluated: int
    states: dict[str, int]
    computing: Annotated[
        dict[str, int],
        "measures that workers are computing, with the number of evaluated runs that lack each",
    ]
    done: Annotated[bool, "nothing waits any more; what failed stays failed"]


class Queued(TypedDict):
    queued: Annotated[int, "evaluations that this request queued"]


def evaluation_answer(evaluation: models.Evaluation) -> Evaluation:
    return Evaluation(
        qrels=evaluation.qrels.version,
        scores=evaluation.scores,
        engine_version=evaluation.engine_version,
        state=evaluation.state,
        since=evaluation.since,
        attempts=evaluation.attempts,
        error_code=evaluation.error_code,
        error_message=evaluation.error_message,
        seconds=evaluation.seconds,
    )


class RunEvaluations(APIView):
    """Every evaluation of a run, newest judgements first; POST requests one with another score precision."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(responses=shape(Evaluation)(many=True))
    def get(self, request: Request, run: UUID) -> Response:
        found = scored_run(request, run, values=False)
        rows = found.evaluations.select_related("qrels").order_by("-qrels__version", "scores")
        return Response([evaluation_answer(row) for row in rows])

    @extend_schema(request=NewEvaluationSerializer, responses={202: shape(Evaluation)})
    def post(self, request: Request, run: UUID) -> Response:
        found = owned_run(request, run)
        check_scores(request, found.collection, values=False)
        evaluation = queue_evaluation(found, _new_scores(request))
        if evaluation is None:
            raise NotFound(
                f"collection {found.collection} has no active judgements yet",
                code="no_active_qrels",
            )
        return Response(evaluation_answer(evaluation), status.HTTP_202_ACCEPTED)


class CollectionEvaluations(APIView):
    """The number of runs evaluated under the active judgements; POST requests another score precision for every run."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(responses=shape(Progress), parameters=[SCORES])
    def get(self, request: Request, collection: str) -> Response:
        found = scored_collection(request, collection, values=False)
        progress = read_progress(collection=found, scores=scores_in(query_of(request)))
        answer = Progress(
            qrels=progress.qrels.version,
            scores=progress.scores,
            total=progress.total,
            evaluated=progress.evaluated,
            states=progress.states,
            computing=progress.computing,
            done=progress.done,
        )
        return Response(answer)

    @extend_schema(request=NewEvaluationSerializer, responses={202: shape(Queued)})
    def post(self, request: Request, collection: str) -> Response:
        found = managed_collection(request, collection)
        queued = queue_evaluations(active_qrels(found), _new_scores(request))
        return Response(Queued(queued=queued), status.HTTP_202_ACCEPTED)


def _new_scores(request: Request) -> str:
    serializer = NewEvaluationSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    scores: str = serializer.validated_data["scores"]
    return scores
