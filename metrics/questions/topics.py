"""The parameters of topics: how difficult they are for the runs, and one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from metrics.engine.grammar import Measure
from metrics.questions.declared import SCORES, parameter
from metrics.questions.parameters import MAX_LIMIT, choice_in, measure_in, scores_in
from metrics.questions.run_ids import run_id_in
from metrics.services.values.heat_map import MAX_RUNS, MAX_TOPICS, MEAN, HeatQuery
from metrics.services.values.selection import tested_measures
from metrics.services.values.topics import TOPIC_SORTS
from runs.api.parameters import MAX_OFFSET, integer_in
from runs.models import Collection

_MEASURE = parameter("measure", "one measure; default: the collection's first")
# The parameters of the topics of a collection, and of the runs on one topic.
TOPICS: tuple[OpenApiParameter, ...] = (
    _MEASURE,
    parameter("sort", "default: difficulty", choices=tuple(TOPIC_SORTS)),
    parameter(
        "order",
        "desc: the most difficult, ... first; asc; default: the worst first, topic as judged",
        choices=("desc", "asc"),
    ),
    parameter("limit", "topics of a page, default: 100, at most 200", OpenApiTypes.INT),
    parameter("offset", "topics to pass over", OpenApiTypes.INT),
    SCORES,
)
ONE_TOPIC: tuple[OpenApiParameter, ...] = (
    parameter("topic", "the id of the topic"),
    _MEASURE,
    parameter("limit", "runs of a page, default: 100, at most 200", OpenApiTypes.INT),
    parameter("offset", "runs to pass over", OpenApiTypes.INT),
    SCORES,
)
# The parameters of the picture of runs against topics, and those of the same as a file.
HEAT_FILE: tuple[OpenApiParameter, ...] = (
    _MEASURE,
    parameter("baseline", f"what is subtracted: the id of a run, or {MEAN}; default: nothing"),
    SCORES,
)
HEAT_MAP: tuple[OpenApiParameter, ...] = (
    *HEAT_FILE,
    parameter("limit", f"runs, default: 50, at most {MAX_RUNS}", OpenApiTypes.INT),
    parameter("offset", "runs to pass over, best first", OpenApiTypes.INT),
    parameter("topic_limit", f"topics, default: 100, at most {MAX_TOPICS}", OpenApiTypes.INT),
    parameter("topic_offset", "topics to pass over, the hardest first", OpenApiTypes.INT),
)


@dataclass(frozen=True)
class TopicsQuery:
    """A measure, and a page of a table."""

    measure: Measure
    scores: str | None
    sort: str
    descending: bool
    offset: int
    limit: int


def topics_query(parameters: Mapping[str, str], collection: Collection) -> TopicsQuery:
    """Return which topics to show, in which order."""
    sort = choice_in(parameters, "sort", tuple(TOPIC_SORTS)) or "difficulty"
    order = choice_in(parameters, "order", ("desc", "asc"))
    return TopicsQuery(
        measure=topic_measure(parameters, collection),
        scores=scores_in(parameters),
        sort=sort,
        descending=TOPIC_SORTS[sort] if order is None else order == "desc",
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=integer_in(parameters, "limit", 100, 1, MAX_LIMIT),
    )


def heat_query(parameters: Mapping[str, str], collection: Collection) -> HeatQuery:
    """Return which runs and topics to show, and what to subtract."""
    baseline = MEAN if parameters.get("baseline") == MEAN else run_id_in(parameters, "baseline")
    return HeatQuery(
        measure=topic_measure(parameters, collection),
        scores=scores_in(parameters),
        baseline=baseline,
        offset=integer_in(parameters, "offset", 0, 0, MAX_OFFSET),
        limit=integer_in(parameters, "limit", 50, 1, MAX_RUNS),
        topic_offset=integer_in(parameters, "topic_offset", 0, 0, MAX_OFFSET),
        topic_limit=integer_in(parameters, "topic_limit", 100, 1, MAX_TOPICS),
    )


def topic_measure(parameters: Mapping[str, str], collection: Collection) -> Measure:
    """Return the measure, by default the collection's first that has values of topics."""
    return measure_in(parameters, "measure", tested_measures(collection)[0], collection.documents)


def topic_address(topics_page: str, topic_id: str) -> str:
    """Return the address of the page of a topic, below that of the collection's topics.

    Browsers and proxies resolve slashes and dots in paths, even encoded ones: such ids are parameters.
    """
    if "/" in topic_id or topic_id in (".", ".."):
        return f"{topics_page}?{urlencode({'topic': topic_id})}"
    return f"{topics_page}{quote(topic_id, safe='')}/"
