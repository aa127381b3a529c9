"""The pages of topics: all of a collection by difficulty, and one with judgements and every run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.pages.parts import Query, fill, level_class, query_of, query_string
from metrics.questions.answer_cache import cached_page, of_visible_collection
from metrics.questions.topics import topic_address
from metrics.services.boards.selection import tested_measures
from metrics.services.boards.topics import TopicsQuery, TopicValues, ValuedRun, read_topic_values
from metrics.services.values.judged_topic import read_judged_topic
from metrics.tables import NOTHING, Paging, figure, with_minus
from runs.errors import NotFound
from runs.models import Collection, Qrels, can_see_scores, document_address
from runs.parameters import MAX_OFFSET, integer_in
from runs.services.collections.collections import read_topic_titles
from runs.services.collections.documents import read_titles
from runs.services.collections.topic_attributes import attribute_keys, attributes_of
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

_ROWS_OF_A_PAGE = 100
_DOCUMENTS_SHOWN = 100
# The columns that sort the topics: the name of the order, the heading, and its meaning.
_HEADINGS = (
    ("difficulty", "Mean", "of all runs"),
    ("best", "Best", "the best run's value"),
    ("spread", "Spread", "standard deviation of the runs"),
    (
        "disagreement",
        "Disagreement",
        "share of the pairs of runs in the other order than on the leaderboard",
    ),
)
# The width of what is drawn in a cell.
_WIDTH = 90.0


@page
@reads("measure", "sort", "order", "offset", "scores", "topic", "topics")
@cached_page(of_visible_collection)
def topics_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the topics of a collection by difficulty; with `topic`, that topic, whatever its id."""
    collection = visible_collection(request, slug)
    query = query_of(request)
    if query.get("topic"):
        return _one_topic(request, collection, query, query["topic"])

    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "known_measures": tested_measures(collection),
        "offset": integer_in(query, "offset", 0, 0, MAX_OFFSET),
    }

    if can_see_scores(request.user, collection):
        context["topic_keys"] = attribute_keys(collection)

    status = fill(context, "answer", _topics, request, collection, query)
    if "answer" not in context and context["answer_problem"].is_state:
        context |= _listed(collection, context["offset"])

    return render(request, "metrics/topics.html", context, status=status)


@page
@reads("measure", "offset", "scores")
@cached_page(of_visible_collection)
def topic_page(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """Show one topic."""
    return _one_topic(request, visible_collection(request, slug), query_of(request), topic)


@dataclass(frozen=True)
class Scale:
    """The horizontal scale of the drawings in cells: from 0, or a lower value, to 1 or more."""

    low: float
    high: float

    def place(self, value: float) -> str:
        return f"{_WIDTH * (value - self.low) / (self.high - self.low):.1f}"

    def bar(self, value: float) -> tuple[str, str] | None:
        """Return where a bar from 0 to the value begins, and its width."""
        if math.isnan(value):
            return None
        return self.place(min(0.0, value)), f"{_WIDTH * abs(value) / (self.high - self.low):.1f}"


def _scale(values: TopicValues) -> Scale:
    ends = [
        float(value) for value in (*values.table.best, *values.table.worst) if not math.isnan(value)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    return Scale(low, 1.0 if 0 < high <= 1 else high or 1.0)


@dataclass(frozen=True)
class TopicLine:
    """A topic of the table; `positions` are those of the worst, the mean and the best value."""

    topic_id: str
    title: str
    address: str
    mean: str
    best: str
    spread: str
    disagreement: str
    runs: int
    positions: tuple[str, str, str] | None


def _topics(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    """Return the table of topics and the parts above it."""
    check_scores(request, collection)
    question = TopicsQuery.read({**query, "limit": str(_ROWS_OF_A_PAGE)}, collection)
    values = read_topic_values(
        collection=collection,
        measure=question.measure,
        scores=question.scores,
        topics=question.topics,
    )
    # The positions of the topics, in the order of the table, and those on this page.
    order = values.order(question.sort, question.descending)
    topics_of_page = order[question.offset : question.offset + question.limit]
    table, scale = values.table, _scale(values)

    base = reverse("topics-page", args=[collection.slug])
    titles = read_topic_titles(collection, [values.topic_ids[topic] for topic in topics_of_page])

    def line(topic: int, disagreement: float) -> TopicLine:
        name, number = values.topic_ids[topic], float(table.mean[topic])
        worst, best = float(table.worst[topic]), float(table.best[topic])
        positions = None
        if not math.isnan(number):
            positions = (scale.place(worst), scale.place(number), scale.place(best))

        return TopicLine(
            name,
            titles.get(name, ""),
            topic_address(base, name),
            _value(number),
            _value(best),
            _value(float(table.spread[topic])),
            _share(disagreement),
            int(table.runs[topic]),
            positions,
        )

    same_topics = {name: query.get(name, "") for name in ("scores", "topics")}
    parameters = {"measure": question.measure.name, **same_topics}
    file_parameters = {"measures": question.measure.name, **same_topics, "layout": "wide"}

    return {
        "values": values,
        "cautions": [caution.message for caution in values.cautions],
        "exports": [
            ("JSON", reverse("difficulty", args=[collection.slug]) + query_string(parameters)),
            (
                "values of all runs (CSV)",
                reverse("collection-values-export", args=[collection.slug, "csv"])
                + query_string(file_parameters),
            ),
        ],
        "map": reverse("heat-map-page", args=[collection.slug]) + query_string(parameters),
        "lines": [
            line(topic, disagreement)
            for topic, disagreement in zip(
                topics_of_page, values.disagreement(topics_of_page).tolist(), strict=True
            )
        ],
        "paging": Paging(question.offset, question.limit, len(order)),
        "headings": [_heading(heading, question, values.lower_is_better) for heading in _HEADINGS],
        "sort": question.sort,
        "unsolved": int((table.best[order] == 0).sum()) if not values.lower_is_better else 0,
        "listed": collection.topics.count(),
    }


@dataclass(frozen=True)
class Heading:
    """A column that sorts the table, its present order, and the order that a click requests."""

    name: str
    text: str
    title: str
    sorting: str
    next_order: str


def _heading(
    heading: tuple[str, str, str], question: TopicsQuery, lower_is_better: bool
) -> Heading:
    name = heading[0]
    if name != question.sort:
        return Heading(*heading, sorting="", next_order="")

    # The numbers rise with difficulty, or fall: a difficult topic has a low mean, unless lower
    # values are better.
    upwards = (name == "difficulty") != (lower_is_better and name in ("difficulty", "best"))
    sorting = "ascending" if question.descending == upwards else "descending"

    return Heading(*heading, sorting=sorting, next_order="asc" if question.descending else "desc")


def _listed(collection: Collection, offset: int) -> dict[str, Any]:
    """Return the topics with their titles, for a reader who sees no values."""
    base = reverse("topics-page", args=[collection.slug])
    names = collection.topics.order_by("position").values_list("topic_id", "title")
    return {
        "listed": [
            (name, title, topic_address(base, name))
            for name, title in names[offset : offset + _ROWS_OF_A_PAGE]
        ],
        "paging": Paging(offset, _ROWS_OF_A_PAGE, names.count()),
    }


def _value(value: float) -> str:
    return NOTHING if math.isnan(value) else with_minus(f"{value:.4f}")


def _share(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.0%}"


@dataclass(frozen=True)
class RunLine:
    """A run on a topic; `bar` is the beginning of its bar and its width."""

    rank: int | None
    run: ValuedRun
    value: str
    bar: tuple[str, str] | None
    mean: str
    ranking: str


def _one_topic(
    request: HttpRequest, collection: Collection, query: Query, topic_id: str
) -> HttpResponse:
    """Show a topic that is listed or, to readers who see scores, judged."""
    text = collection.topics.filter(topic_id=topic_id).first()
    scored = can_see_scores(request.user, collection)
    qrels = collection.active_qrels if scored else None
    if qrels and topic_id not in qrels.topic_ids:
        qrels = None

    if text is None and qrels is None:
        message = f"topic {topic_id[:40]!r} is not among the topics of {collection.slug}"
        raise NotFound(message, code="unknown_topic", pointer="topic")

    fields: list[tuple[str, Any]] = []

    if text:
        fields = [
            (name.replace("_", " ").capitalize(), value) for name, value in text.fields.items()
        ]

    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "known_measures": tested_measures(collection),
        "topic_id": topic_id,
        "text": text,
        "fields": fields,
        "attributes": attributes_of(collection, [topic_id]).get(topic_id, {}),
        "scored": scored,
        "qrels": qrels,
    }

    status = 200
    if qrels:
        status = fill(context, "answer", _runs, collection, query, topic_id)
        status = max(status, fill(context, "judged", _judged, collection, qrels, topic_id))

    return render(request, "metrics/topic.html", context, status=status)


def _runs(collection: Collection, query: Query, topic_id: str) -> dict[str, Any]:
    """Return the value of every run on a topic, best first, and how difficult the topic is."""
    question = TopicsQuery.read(
        {**query, "sort": "", "order": "", "limit": str(_ROWS_OF_A_PAGE)}, collection
    )
    values = read_topic_values(
        collection=collection, measure=question.measure, scores=question.scores
    )
    topic, table = values.topic_ids.index(topic_id), values.table
    ranks, values_of_runs = values.ranks_on(topic), values.values[:, topic].tolist()
    last, scale = len(ranks) + 1, _scale(values)
    order = sorted(range(len(ranks)), key=lambda row: ranks[row] or last)
    parameters = urlencode(
        {"topic": topic_id, **({"scores": query["scores"]} if query.get("scores") else {})}
    )

    def line(row: int) -> RunLine:
        run, value = values.runs[row], values_of_runs[row]
        mean = NOTHING if run.mean is None else figure(values.measure, run.mean)
        ranking = f"{reverse('ranking-page', args=[run.id])}?{parameters}"
        return RunLine(
            ranks[row], run, figure(values.measure, value), scale.bar(value), mean, ranking
        )

    base = reverse("topics-page", args=[collection.slug])
    neighbours = (
        values.topic_ids[topic - 1] if topic else None,
        *values.topic_ids[topic + 1 : topic + 2],
        None,
    )

    return {
        "values": values,
        "cautions": [caution.message for caution in values.cautions],
        "lines": [line(row) for row in order[question.offset : question.offset + question.limit]],
        "paging": Paging(question.offset, question.limit, len(order)),
        "numbers": [
            (
                "Mean of the runs",
                _value(float(table.mean[topic])),
                f"of {table.runs[topic]:,} with a value",
            ),
            (
                "Difficulty",
                f"{values.order('difficulty').index(topic) + 1:,}",
                f"of {len(values.topic_ids):,}; 1 is the hardest",
            ),
            ("Best", _value(float(table.best[topic])), ""),
            ("Worst", _value(float(table.worst[topic])), ""),
            ("Spread", _value(float(table.spread[topic])), "standard deviation of the runs"),
            (
                "Disagree\N{SOFT HYPHEN}ment",
                _share(float(values.disagreement([topic])[0])),
                "pairs of runs unlike the leaderboard",
            ),
        ],
        "zero": scale.place(float(table.mean[topic])) if table.runs[topic] else "",
        "neighbours": [
            (name, topic_address(base, name)) if name else None for name in neighbours[:2]
        ],
    }


def _judged(collection: Collection, qrels: Qrels, topic_id: str) -> dict[str, Any]:
    """Return the judgements of a topic by level, and its first documents, highest level first."""
    judged = read_judged_topic(qrels=qrels, topic_id=topic_id, most=_DOCUMENTS_SHOWN)
    labels, total = collection.level_labels, max(1, judged.judged)
    titles = read_titles(collection, (doc_id for doc_id, _ in judged.documents))
    return {
        "judged": judged,
        "levels": [
            (
                level,
                str(labels.get(str(level), "")),
                level_class(level),
                count,
                f"{count / total:.1%}",
            )
            for level, count in judged.levels
        ],
        "documents": [
            (
                doc_id,
                document_address(collection, doc_id),
                titles[doc_id].title,
                level,
                level_class(level),
            )
            for doc_id, level in judged.documents
        ],
        "more": judged.judged - len(judged.documents),
    }
