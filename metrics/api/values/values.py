"""The API of a run's values by topic."""

from __future__ import annotations

from typing import Annotated, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import (
    Aggregate,
    Mean,
    MeasureCautions,
    ReadFrom,
    Selected,
    aggregates_of,
    cautions_of,
    numbers,
    read_from,
    selected,
)
from metrics.engine.measures.undefined import REASONS
from metrics.questions.answer_cache import cached, everybody, of_scored_run
from metrics.questions.declared import TOPICS, declared
from metrics.questions.parameters import query_of
from metrics.services.boards.topic_selection import SelectionQuery, flags_of
from metrics.services.values.common_values import qrels_cautions
from metrics.services.values.values import (
    RunValuesQuery,
    find_evaluation,
    read_reasons,
    read_values,
)
from runs.web.access import scored_run
from runs.web.shapes import OneOf, shape


class RunMean(Mean):
    aggregate: Annotated[Aggregate, "what `mean` is of the topics' values"]
    sampling_error: Annotated[
        float | None,
        "standard error of an estimate from sampled judgements, of the sampling of documents alone",
    ]


class TopicValues(TypedDict):
    topic_id: str
    values: dict[str, float | None]
    undefined: Annotated[
        dict[str, Annotated[str, OneOf(REASONS)]], "why a value is null, for each that is"
    ]
    sampling_errors: Annotated[dict[str, float], "of estimates from sampled judgements"]


class RunValues(ReadFrom, Selected):
    """A run's values."""

    cautions: MeasureCautions
    means: dict[str, RunMean]
    topics: list[TopicValues]


class RunValuesView(APIView):
    """A run's values for every topic, and their means.

    Values that are not stored are computed from the judged view.
    """

    @extend_schema(responses=shape(RunValues), parameters=[*declared(RunValuesQuery), TOPICS])
    @cached(of_scored_run, shared_by=everybody)
    def get(self, request: Request, run: UUID) -> Response:
        submitted_run = scored_run(request, run)
        text = query_of(request)
        query = RunValuesQuery.read(text, submitted_run.collection)
        selection_query = SelectionQuery.read(text)
        evaluation = find_evaluation(run=submitted_run, query=query.evaluation)
        selection = selection_query.select(evaluation)
        values = read_values(
            evaluation=evaluation, measures=query.measures, selected=flags_of(selection)
        )

        columns = {name: numbers(vector.tolist()) for name, vector in values.vectors.items()}
        errors = {name: error.values.tolist() for name, error in values.errors.items()}
        reasons = read_reasons(values)
        aggregates = aggregates_of(query.measures)

        answer = RunValues(
            **read_from(evaluation),
            **selected(selection),
            cautions=cautions_of(
                [
                    *(selection.cautions if selection else []),
                    *qrels_cautions(query.measures, evaluation.qrels),
                ]
            ),
            means={
                name: RunMean(
                    mean=mean,
                    topics=count,
                    aggregate=aggregates[name],
                    sampling_error=values.errors[name].mean if name in values.errors else None,
                )
                for name, (mean, count) in values.means.items()
            },
            topics=[
                TopicValues(
                    topic_id=topic_id,
                    values={name: column[index] for name, column in columns.items()},
                    undefined={
                        name: reason
                        for name, column in reasons.items()
                        if (reason := column[index])
                    },
                    sampling_errors={name: column[index] for name, column in errors.items()},
                )
                for index, topic_id in enumerate(values.topic_ids)
            ],
        )

        return Response(answer)
