"""The API of topics over all runs: how difficult each is, and what every run reaches on one."""

from __future__ import annotations

from typing import Annotated, TypedDict

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import (
    MeasureCautions,
    RunName,
    Selected,
    cautions_of,
    number,
    page_addresses,
    selected,
)
from metrics.api.comparisons.judgements import LevelShare
from metrics.exports.formats import FORMATS
from metrics.exports.values.heat_map import heat_map_table
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import declared
from metrics.questions.parameters import query_of
from metrics.questions.topics import HEAT_FILE, TOPICS
from metrics.services.boards.heat_map import HeatQuery, read_heat_map
from metrics.services.boards.topics import (
    TopicQuery,
    TopicsQuery,
    TopicValues,
    read_topic_values,
)
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.judged_topic import JudgedTopic, read_judged_topic
from runs.errors import NotFound
from runs.models import Collection
from runs.web.access import scored_collection
from runs.web.fields import JSONObject
from runs.web.shapes import Url, shape


class TopicNumbers(TypedDict):
    """What the runs reach on a topic; null where it is undefined."""

    runs: Annotated[int, "with a value on the topic"]
    mean: Annotated[float | None, "of the runs: the difficulty"]
    spread: Annotated[float | None, "standard deviation of the runs; null below two"]
    best: float | None
    worst: float | None
    disagreement: Annotated[
        float | None,
        "share of the pairs of runs that are in the other order than on the leaderboard, without "
        "ties",
    ]


class DifficultTopic(TypedDict):
    topic_id: str
    title: str
    numbers: TopicNumbers


class TopicDifficulty(Selected):
    """A page of the judged topics with what the runs reach on each."""

    collection: str
    qrels: int
    scores: str
    measure: str
    lower_is_better: bool
    cautions: MeasureCautions
    runs: Annotated[int, "evaluated runs"]
    count: Annotated[int, "judged topics, of those that are selected"]
    next: Url | None
    previous: Url | None
    results: list[DifficultTopic]


class RunOnTopic(TypedDict):
    run: RunName
    value: float | None
    rank: Annotated[int | None, "on this topic; null without a value"]
    leaderboard_rank: int | None
    mean: Annotated[float | None, "on the leaderboard"]


class TopicRuns(TypedDict):
    """One topic: its text, its judgements by level, and a page of the runs, best first."""

    collection: str
    topic_id: str
    listed: Annotated[bool, "whether the collection lists the topic with its text"]
    title: str
    fields: JSONObject
    qrels: int
    judged: int
    relevant: Annotated[int, "documents of level 1 or more"]
    levels: list[LevelShare]
    scores: str
    measure: str
    lower_is_better: bool
    cautions: MeasureCautions
    numbers: TopicNumbers | None
    count: Annotated[int, "evaluated runs"]
    next: Url | None
    previous: Url | None
    results: list[RunOnTopic]


class DifficultyView(APIView):
    """The judged topics by difficulty: mean, spread and extremes of all evaluated runs on each, and
    how many pairs of runs are in the other order than on the leaderboard."""

    @extend_schema(responses=shape(TopicDifficulty), parameters=[*TOPICS])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = TopicsQuery.read(query_of(request), test_collection)
        values = read_topic_values(
            collection=test_collection,
            measure=query.measure,
            scores=query.scores,
            topics=query.topics,
        )

        order = values.order(query.sort, query.descending)
        topics = order[query.offset : query.offset + query.limit]
        ids = [values.topic_ids[topic] for topic in topics]
        listed = test_collection.topics.filter(topic_id__in=ids)
        titles = dict(listed.values_list("topic_id", "title"))

        url, count = request.build_absolute_uri(), len(order)
        page = page_addresses(url, query.offset, query.limit, count)
        answer = TopicDifficulty(
            **selected(values.selection),
            collection=test_collection.slug,
            qrels=values.qrels.version,
            scores=values.scores,
            measure=values.measure.name,
            lower_is_better=values.lower_is_better,
            cautions=cautions_of(values.cautions),
            runs=len(values.runs),
            count=count,
            next=page.next,
            previous=page.previous,
            results=[
                DifficultTopic(topic_id=name, title=titles.get(name, ""), numbers=numbers)
                for name, numbers in zip(ids, _numbers(values, topics), strict=True)
            ],
        )

        return Response(answer)


class TopicView(APIView):
    """One topic: its text, its judgements by level, and what every evaluated run reaches on it,
    best first."""

    @extend_schema(responses=shape(TopicRuns), parameters=[*declared(TopicQuery)])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = TopicQuery.read(query_of(request), test_collection)
        topic_id = query.topic
        values = read_topic_values(
            collection=test_collection, measure=query.measure, scores=query.scores
        )
        text = test_collection.topics.filter(topic_id=topic_id).first()
        topic = values.topic_ids.index(topic_id) if topic_id in values.topic_ids else None
        if text is None and topic is None:
            message = (
                f"topic {topic_id[:40]!r} is neither listed nor judged in {test_collection.slug}"
            )
            raise NotFound(message, code="unknown_topic", pointer="topic")

        # A topic that is listed and not judged has neither judgements nor runs.
        judged, numbers, runs = JudgedTopic([], []), None, []
        if topic is not None:
            judged = read_judged_topic(qrels=values.qrels, topic_id=topic_id)
            numbers, runs = _numbers(values, [topic])[0], _runs(values, topic)

        url, count = request.build_absolute_uri(), len(runs)
        page = page_addresses(url, query.offset, query.limit, count)
        answer = TopicRuns(
            collection=test_collection.slug,
            topic_id=topic_id,
            listed=text is not None,
            title=text.title if text else "",
            fields=text.fields if text else {},
            qrels=values.qrels.version,
            judged=judged.judged,
            relevant=judged.relevant,
            levels=_levels(test_collection, judged),
            scores=values.scores,
            measure=values.measure.name,
            lower_is_better=values.lower_is_better,
            cautions=cautions_of(values.cautions),
            numbers=numbers,
            count=count,
            next=page.next,
            previous=page.previous,
            results=runs[query.offset : query.offset + query.limit],
        )

        return Response(answer)


class HeatMapExport(APIView):
    """Topics against runs as CSV: a row for each topic, the hardest first, a column for each run,
    the best first; with a baseline, differences from it. An undefined value is an empty cell."""

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, parameters=[*HEAT_FILE])
    def get(self, request: Request, collection: str) -> HttpResponse:
        test_collection = scored_collection(request, collection)
        query = HeatQuery.read(query_of(request, test_collection), test_collection)
        heat_map = read_in_snapshot(
            lambda: read_heat_map(collection=test_collection, query=query, whole=True)
        )
        content = FORMATS["csv"].content(heat_map_table(heat_map))

        return HttpResponse(
            content, headers=FORMATS["csv"].headers(f"{test_collection.slug}-heat-map")
        )


def _numbers(values: TopicValues, topics: list[int]) -> list[TopicNumbers]:
    table = values.table
    return [
        TopicNumbers(
            runs=int(table.runs[topic]),
            mean=number(float(table.mean[topic])),
            spread=number(float(table.spread[topic])),
            best=number(float(table.best[topic])),
            worst=number(float(table.worst[topic])),
            disagreement=number(share),
        )
        for topic, share in zip(topics, values.disagreement(topics).tolist(), strict=True)
    ]


def _runs(values: TopicValues, topic: int) -> list[RunOnTopic]:
    """Return all runs, best first; ties as on the leaderboard, runs without a value last."""
    ranks = values.ranks_on(topic)
    last = len(ranks) + 1
    results = []
    for row in sorted(range(len(ranks)), key=lambda row: ranks[row] or last):
        run = values.runs[row]
        results.append(
            RunOnTopic(
                run=RunName(id=run.id, team=run.team, tag=run.tag, created_at=run.created_at),
                value=number(float(values.values[row, topic])),
                rank=ranks[row],
                leaderboard_rank=run.rank,
                mean=number(run.mean),
            )
        )

    return results


def _levels(collection: Collection, judged: JudgedTopic) -> list[LevelShare]:
    total, labels = max(1, judged.judged), collection.level_labels
    return [
        LevelShare(
            level=level,
            label=str(labels.get(str(level), "")),
            judgements=count,
            share=count / total,
        )
        for level, count in judged.levels
    ]
