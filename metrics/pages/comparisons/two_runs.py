"""Two runs compared: which is better and how reliably, on which topics, and their rankings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from metrics.charts.comparisons.charts import COMPARED_CHARTS
from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.two_rankings import two_rankings_figure
from metrics.engine.analysis.differences import differences
from metrics.engine.significance import TESTS
from metrics.exports.comparisons.methods import method_words, weighted_words
from metrics.exports.comparisons.words import named_family
from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import ShownComparison, common_parts, fill_curves
from metrics.pages.comparisons.controls import address
from metrics.pages.comparisons.practical import chances_table, equivalence_part
from metrics.pages.comparisons.tables import bounded, percent, tests_table
from metrics.pages.comparisons.topic_groups import groups_part
from metrics.pages.comparisons.words import agreement, carried_by, headline, report
from metrics.pages.parts import PageFigure, fill, level_class, run_figure
from metrics.questions.declared import COMPARISON
from metrics.questions.declared import names_of as names_of_parameters
from metrics.questions.topics import topic_address
from metrics.services.comparisons.comparison import one_of_many
from metrics.services.comparisons.replicates import compare_methods
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    ShownPair,
    names_of,
    shown_pairs,
    topics_of,
)
from metrics.services.comparisons.weights import compare_with_weights
from metrics.services.values.two_rankings import Placed, read_two_rankings, titles_of_both
from metrics.tables import NOTHING, figure, signed
from runs.models import document_address
from runs.services.collections.collections import read_topic_titles

# All tests of one pair, in addition to the requested ones.
PAIRWISE = [
    name for name, test in TESTS.items() if test.paired and not (test.simultaneous or test.omnibus)
]
# The topics that the page lists; the API has all of them.
_TOPICS_SHOWN = 200
_NEAR = 8
# Rankings are read from the submitted files to their end: long ones only for a requested topic.
_READ_AT_ONCE = 50_000_000


def two_runs_parts(comparison: ShownComparison) -> tuple[dict[str, Any], int]:
    """Return the context of the page, and its status."""
    (pair,) = shown_pairs(comparison.answer, comparison.compared, np.array([0]))
    names = names_of([pair.a, pair.b])
    among = (
        named_family(comparison.answer, comparison.family.test)
        if comparison.answer.narrowed
        else ""
    )
    context = common_parts(comparison) | {
        "pair": pair,
        "names": (names[pair.a], names[pair.b]),
        "headline": headline(pair, comparison.compared, comparison.answer),
        "agreement": agreement(
            pair,
            comparison.answer.query.rule.alpha,
            baseline=comparison.answer.entrants.pairs.are_some,
        ),
        "tests": tests_table(pair, comparison.compared, among),
        "practical": equivalence_part(comparison, pair, among),
        "chances": chances_table(comparison, pair),
        "means": [
            figure(comparison.compared.measure, value) for value in (pair.mean_a, pair.mean_b)
        ],
        "effects": _effects(pair),
        "more_effects": _more_effects(pair),
        "report": report(comparison.answer, comparison.compared, comparison.family, pair),
    }

    if comparison.link is None:
        context["one_of_many"] = one_of_many(comparison.answer.entrants, comparison.answer.query)
        context["carried"] = carried_by(pair, topics_of(comparison.answer, comparison.compared))
        context["swapped"] = _swapped(comparison, pair)

    methods = compare_methods(comparison.answer, comparison.compared)
    if methods:
        words = method_words(methods.test) if methods.test else ""
        context["methods"] = {"words": words, "sentence": methods.sentence}

    status = 200
    if comparison.answer.query.by and comparison.link is None:
        status = fill(context, "groups", groups_part, comparison, pair)
    if comparison.answer.query.weights and comparison.link is None:
        status = max(status, fill(context, "weighted", _weighted, comparison))

    if not comparison.in_detail:
        return context, status

    topics, context["topics"] = _topics(comparison, pair)
    status = max(
        status,
        fill(context, "scatter", _scatter, comparison, pair),
        fill(context, "differences", _differences, comparison, pair),
    )
    context["ranked"] = pair.a.has_ranking and pair.b.has_ranking
    if context["ranked"]:
        rankings = fill(context, "rankings", _rankings, comparison, pair, topics)
        status = max(status, rankings)

    context["drawn"] = all(run.has_ranking or run.has_replicates for run in (pair.a, pair.b))
    if context["drawn"] and comparison.has_curves:
        status = max(status, fill_curves(context, comparison))

    return context, status


def _weighted(comparison: ShownComparison) -> str:
    pair = compare_with_weights(comparison.answer, comparison.compared)
    return weighted_words(pair) if pair else ""


def _swapped(comparison: ShownComparison, pair: ShownPair) -> str:
    """Return the address with the runs in the other order: the first one becomes the baseline.

    It is empty for a pair of a larger family, where a baseline would change what is tested.
    """
    answer = comparison.answer
    if answer.narrowed or answer.stored:
        return ""
    return address(comparison.collection, {**comparison.text, "baseline": str(pair.a.pk)})


def _effects(pair: ShownPair) -> list[tuple[str, str, str]]:
    """Return name and value of each usual effect size, and its interval or meaning."""
    return [
        ("Difference of means", signed(pair.difference), "before rounding"),
        (
            "Relative to the second",
            percent(pair.relative),
            "" if math.isnan(pair.relative) else pair.reading,
        ),
        ("Cohen's d", *bounded(pair.cohen_d)),
        ("Hedges's g", *bounded(pair.hedges_g)),
        ("Better on a topic", *_share(pair.probability_better)),
    ]


def _more_effects(pair: ShownPair) -> list[tuple[str, str, str]]:
    counts = f"{pair.wins:,}, {pair.ties:,}, {pair.losses:,}"
    return [
        ("Standardised", *bounded(pair.standardised)),
        ("Cliff's delta", *bounded(pair.cliff_delta)),
        ("Wins, ties, losses", counts, "of topics"),
    ]


def _share(chance: Bounded) -> tuple[str, str]:
    """Return a chance and its interval in per cent."""
    return f"{100 * chance.value:.0f}%", f"{100 * chance.low:.0f}% to {100 * chance.high:.0f}%"


@dataclass(frozen=True)
class Topic:
    """A topic of two runs, and the address of both rankings of it. `size` is the difference."""

    topic_id: str
    title: str
    size: float
    difference: str
    both: str


def _topics(comparison: ShownComparison, pair: ShownPair) -> tuple[list[Topic], Table]:
    """Return the topics, the largest difference first, and their table.

    It has both values, their difference, and the difference of the means without the topic.
    """
    compared, qrels = comparison.compared, comparison.answer.entrants.qrels
    ids = topics_of(comparison.answer, compared)
    a, b = (compared.values[int(side[0])] for side in compared.pairs.indices())
    order = np.argsort(-np.abs(a - b), kind="stable")[:_TOPICS_SHOWN].tolist()
    differences_without = (pair.difference + differences(a, b).influence).tolist()
    titles = read_topic_titles(comparison.collection, [ids[place] for place in order])
    # The address of this page, whether of a stored comparison or not.
    page_query = {name: value for name, value in comparison.text.items() if value}

    base = reverse("topics-page", args=[comparison.collection.slug])
    ranked = pair.a.has_ranking and pair.b.has_ranking

    topics, rows = [], []
    for place in order:
        topic_id, size = ids[place], float(a[place] - b[place])
        title = titles.get(topic_id, "")
        both = f"?{urlencode({**page_query, 'topic': topic_id})}#rankings" if ranked else ""
        topics.append(Topic(topic_id, title, size, signed(size), both))

        ranking = urlencode({"topic": topic_id, "qrels": qrels.version})
        rankings = [
            f"{reverse('ranking-page', args=[run.pk])}?{ranking}" if run.has_ranking else ""
            for run in (pair.a, pair.b)
        ]
        page = format_html(
            '&#32;<a class="faint" href="{}" title="all runs on this topic">{}</a>',
            topic_address(base, topic_id),
            Truncator(title).chars(60) or "all runs",
        )
        values = [
            Cell(topic_id, address=both, html=page),
            Cell(figure(compared.measure, a[place]), address=rankings[0]),
            Cell(figure(compared.measure, b[place]), address=rankings[1]),
            signed(size),
            NOTHING
            if math.isnan(differences_without[place])
            else signed(differences_without[place]),
        ]

        rows.append(Row(values))

    names = names_of([pair.a, pair.b])
    columns = [
        Column("", "Topic", head=True),
        Column("", names[pair.a]),
        Column("", names[pair.b]),
        Column("", "Difference"),
        Column("", "Means without it", narrow="Without it"),
    ]

    note = (
        "Largest absolute difference first; in the last column the difference of the means without "
        "the topic. Select a value to see that run's ranking, a topic to see both rankings side by "
        "side."
    )

    return topics, Table("topics", columns, rows, [note], "Differences by topic")


def _question(comparison: ShownComparison) -> dict[str, str]:
    """Return the parameters of the page, to which points and bars lead, without measure and runs.

    The tests that the page adds are not among them.
    """
    if stored := comparison.answer.stored:
        return {"comparison": str(stored.pk), "scores": comparison.answer.query.scores or ""}

    names = {*names_of_parameters(COMPARISON)} - {"measures", "measure", "runs", "weights"}
    return {name: text for name, text in comparison.text.items() if name in names and text}


def _scatter(comparison: ShownComparison, pair: ShownPair) -> PageFigure:
    parameters = {
        **_question(comparison),
        "measures": comparison.compared.measure.name,
        "runs": f"{pair.a.pk},{pair.b.pk}",
    }
    figure = COMPARED_CHARTS["topic-scatter"](comparison.collection, parameters)
    arguments = {"collection": comparison.collection.slug}

    return PageFigure(figure, "collection-chart", arguments, parameters, "half")


def _differences(comparison: ShownComparison, pair: ShownPair) -> PageFigure:
    first = int(comparison.compared.pairs.indices()[0][0])
    parameters = {
        **_question(comparison),
        "measure": comparison.compared.measure.name,
        "other": str(pair.b.pk),
    }
    figure = RUN_CHARTS["topics"](RunChartRequest(pair.a, comparison.evaluation(first), parameters))
    return run_figure(figure, pair.a.pk, parameters, "half")


@dataclass(frozen=True)
class RankedLine:
    """A document of one of the two rankings, and its rank in the other."""

    placed: Placed
    label: str
    address: str
    title: str

    @property
    def kind(self) -> str:
        return level_class(self.placed.document.level)


def _rankings(comparison: ShownComparison, pair: ShownPair, topics: list[Topic]) -> dict[str, Any]:
    """Return the rankings of both runs for one topic.

    It is the requested topic, or else the one with the largest difference.
    """
    topic = comparison.text.get("topic") or topics[0].topic_id
    part: dict[str, Any] = {
        "topics": topics,
        "topic": topic,
        "listed": any(line.topic_id == topic for line in topics),
        "wins": [line for line in topics if line.size > 0][:_NEAR],
        "losses": [line for line in topics if line.size < 0][:_NEAR],
    }

    if not comparison.text.get("topic") and pair.a.size + pair.b.size > _READ_AT_ONCE:
        return part

    first, second = (
        comparison.evaluation(int(side[0])) for side in comparison.compared.pairs.indices()
    )
    rankings = read_two_rankings(a=first, b=second, topic_id=topic)
    parameters = {
        "runs": f"{pair.a.pk},{pair.b.pk}",
        "topic": topic,
        "scores": comparison.answer.query.scores or "",
    }

    labels = comparison.collection.level_labels
    titles = titles_of_both(comparison.collection, rankings)

    def line(placed: Placed) -> RankedLine:
        doc_id = placed.document.doc_id
        return RankedLine(
            placed=placed,
            label=str(labels.get(str(placed.document.level), "")),
            address=document_address(comparison.collection, doc_id),
            title=titles[doc_id],
        )

    part["sides"] = [
        (side, [line(placed) for placed in side.documents]) for side in (rankings.a, rankings.b)
    ]
    part |= {
        "both": rankings,
        "title": read_topic_titles(comparison.collection, [topic]).get(topic, ""),
    }

    if rankings.a.documents or rankings.b.documents:
        arguments = {"collection": comparison.collection.slug}
        figure = two_rankings_figure(rankings, titles).drawn_from(
            comparison.collection, first.qrels
        )
        part["figure"] = PageFigure(figure, "collection-chart", arguments, parameters)

    return part
