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
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.services.boards.board_question import active_qrels, qrels_version
from metrics.services.boards.evaluating import ProgressQuery, read_progress
from metrics.services.question import MAX_VERSION
from metrics.services.queue.queueing import queue_evaluation, queue_evaluations
from runs.models import Collection, Qrels, Scope
from runs.web.access import (
    check_scores,
    managed_collection,
    owned_run,
    scored_collection,
    scored_run,
)
from runs.web.fields import ChoiceField
from runs.web.parameters import KnownFields
from runs.web.shapes import OneOf, shape


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
    scores = ChoiceField(
        choices=("float64", "float32"), required=False, help_text="default: the collection's"
    )
    qrels = serializers.IntegerField(
        min_value=1,
        max_value=MAX_VERSION,
        required=False,
        help_text="a version of the judgements; default: the active one",
    )


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
    """Every evaluation of a run, newest judgements first; POST requests one with another score
    precision, or under another version of the judgements."""

    scopes = {"POST": Scope.SUBMIT}

    @extend_schema(responses=shape(Evaluation)(many=True))
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run, values=False)
        rows = submitted_run.evaluations.select_related("qrels").order_by(
            "-qrels__version", "scores"
        )
        return Response([evaluation_answer(row) for row in rows])

    @extend_schema(request=NewEvaluationSerializer, responses={202: shape(Evaluation)})
    def post(self, request: Request, run: UUID) -> Response:
        submitted_run = owned_run(request, run)
        check_scores(request, submitted_run.collection, values=False)
        qrels, scores = _requested(request, submitted_run.collection)
        evaluation = queue_evaluation(submitted_run, scores, qrels)

        return Response(evaluation_answer(evaluation), status.HTTP_202_ACCEPTED)


class CollectionEvaluations(APIView):
    """The number of runs evaluated under the active judgements or another version; POST requests
    other scores or judgements for every run."""

    scopes = {"POST": Scope.MANAGE}

    @extend_schema(responses=shape(Progress), parameters=[*declared(ProgressQuery)])
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection, values=False)
        query = ProgressQuery.read(query_of(request))
        progress = read_progress(collection=test_collection, query=query)

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
        test_collection = managed_collection(request, collection)
        count = queue_evaluations(*_requested(request, test_collection))
        return Response(Queued(queued=count), status.HTTP_202_ACCEPTED)


def _requested(request: Request, collection: Collection) -> tuple[Qrels, str | None]:
    """Return the judgements and scores that a request names; None is those of the collection."""
    serializer = NewEvaluationSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)

    version = serializer.validated_data.get("qrels")
    qrels = qrels_version(collection, version) if version else active_qrels(collection)

    return qrels, serializer.validated_data.get("scores")
