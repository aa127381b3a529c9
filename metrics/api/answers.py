"""Parts that several answers share.

`shape` of a TypedDict is its description (runs/web/shapes.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, NamedTuple, NotRequired, TypedDict
from uuid import UUID

from rest_framework.utils.urls import replace_query_param

from metrics.engine.cautions import Caution as EngineCaution
from metrics.engine.measures.definition import Aggregate as EngineAggregate
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.topic_selection import TopicSelection
from runs.models import Run
from runs.web.shapes import OneOf

AGGREGATES = (*(aggregate.value for aggregate in EngineAggregate), "pooled ratio")
Aggregate = Annotated[str, OneOf(AGGREGATES)]


class Caution(TypedDict):
    code: str
    message: str


# About the measures of an answer under its judgements.
MeasureCautions = Annotated[
    list[Caution],
    "of measures that do not suit the judgements: gains that leave out levels, "
    "subtopics that are none",
]


class Mean(TypedDict):
    mean: float | None
    topics: Annotated[int, "topics with a value"]


class RunName(TypedDict):
    id: UUID
    team: str
    tag: str
    created_at: datetime


class Coverage(TypedDict):
    answered: Annotated[int | None, "null for a run that is not evaluated"]
    judged: int


class ReadFrom(TypedDict):
    """The run and its evaluation from which an answer was made."""

    run: UUID
    qrels: int
    scores: str
    engine_version: str
    stale: bool
    coverage: Coverage


class Selected(TypedDict):
    """The topics of an answer that is not of all."""

    topics_filter: NotRequired[Annotated[str, "the topics that are selected, if not all"]]
    topics_selected: NotRequired[Annotated[int, "how many these are"]]


def number(value: float | None) -> float | None:
    """Return a number for JSON: null for NaN and infinity, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def numbers(values: Sequence[float]) -> list[float | None]:
    return [number(value) for value in values]


def cautions_of(cautions: Iterable[EngineCaution]) -> list[Caution]:
    return [Caution(code=caution.code, message=caution.message) for caution in cautions]


def run_name(run: Run) -> RunName:
    return RunName(id=run.pk, team=run.team.slug, tag=run.tag, created_at=run.created_at)


def selected(selection: TopicSelection | None) -> Selected:
    if selection is None:
        return Selected()
    return Selected(topics_filter=selection.text, topics_selected=selection.topics)


def coverage(evaluation: Evaluation) -> Coverage:
    return Coverage(answered=evaluation.topics_answered, judged=evaluation.qrels.topics)


def read_from(evaluation: Evaluation) -> ReadFrom:
    return ReadFrom(
        run=evaluation.run_id,
        qrels=evaluation.qrels.version,
        scores=evaluation.scores,
        engine_version=evaluation.engine_version,
        stale=evaluation.is_stale,
        coverage=coverage(evaluation),
    )


def aggregates_of(measures: Iterable[Measure]) -> dict[str, Aggregate]:
    """Return how each measure's value of a run is computed, such as mean or pooled ratio."""
    return {measure.name: measure.aggregate_name for measure in measures}


class PageAddresses(NamedTuple):
    """The addresses of the pages after and before a page, None where there is none."""

    next: str | None
    previous: str | None


def page_addresses(url: str, offset: int, limit: int, count: int) -> PageAddresses:
    """Return the neighbours of the page of `count` rows that the request to `url` returns."""
    after, before = offset + limit, max(0, offset - limit)
    return PageAddresses(
        next=replace_query_param(url, "offset", after) if after < count else None,
        previous=replace_query_param(url, "offset", before) if offset else None,
    )
