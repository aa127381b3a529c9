"""Two runs compared: which is better and how reliably, on which topics, and their rankings of one topic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from metrics.charts.values.charts import RUN_CHARTS, RunChartRequest
from metrics.charts.values.two_rankings import two_rankings_figure
from metrics.engine.analysis.differences import differences
from metrics.engine.significance import TESTS
from metrics.exports.comparisons.words import named_family
from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import Shown, common_parts, curves_part, recall_part
from metrics.pages.comparisons.practical import chances_table, equivalence_part
from metrics.pages.comparisons.tables import bounded, percent, tests_table
from metrics.pages.comparisons.words import agreement, carried_by, headline, report
from metrics.pages.parts import ShownFigure, fill, level_class, run_figure
from metrics.questions.topics import topic_address
from metrics.services.comparisons.comparison import one_of_many
from metrics.services.comparisons.shown_pairs import (
    Bounded,
    ShownPair,
    names_of,
    shown_pairs,
    topics_of,
)
from metrics.services.values.two_rankings import Placed, read_two_rankings
from metrics.tables import NOTHING, figure, signed
from runs.models import Collection, document_address

# All tests of one pair, in addition to the requested ones.
PAIRWISE = [
    name for name, test in TESTS.items() if test.paired and not (test.simultaneous or test.omnibus)
]
# The topics that the page lists; the API has all of them.
_TOPICS_SHOWN = 200
_NEAR = 8
# Rankings are read from the submitted files to their end: from long ones only if a topic is
# requested.
_READ_AT_ONCE = 50_000_000


def two_runs_parts(shown: Shown) -> tuple[dict[str, Any], int]:
    """Return the context of the page, and its status."""
    (pair,) = shown_pairs(shown.answer, shown.compared, np.array([0]))
    names = names_of([pair.a, pair.b])
    among = named_family(shown.answer, shown.family.test) if shown.answer.narrowed else ""
    context = common_parts(shown) | {
        "pair": pair,
        "names": (names[pair.a], names[pair.b]),
        "headline": headline(pair, shown.compared, shown.answer),
        "agreement": agreement(
            pair, shown.answer.query.rule.alpha, baseline=shown.answer.entrants.baseline is not None
        ),
        "found_among": among,
        "tests": tests_table(pair, shown.compared, among),
        "practical": equivalence_part(shown, pair, among),
        "chances": chances_table(shown, pair),
        "means": [figure(shown.compared.measure, value) for value in (pair.mean_a, pair.mean_b)],
        "effects": _effects(pair),
        "report": report(shown.answer, shown.compared, shown.family, pair),
    }

    if shown.link is None:
        context["one_of_many"] = one_of_many(shown.answer.entrants, shown.answer.query)
        context["carried"] = carried_by(pair, topics_of(shown.answer, shown.compared))

    if not shown.in_detail:
        return context, 200

    topics, context["topics"] = _topics(shown, pair)
    status = max(
        fill(context, "differences", _differences, shown, pair),
        fill(context, "curves", curves_part, shown),
        fill(context, "recall", recall_part, shown),
        fill(context, "rankings", _rankings, shown, pair, topics),
    )

    return context, status


def _effects(pair: ShownPair) -> list[tuple[str, str, str]]:
    """Return name and value of each effect size, and its interval or meaning."""
    counts = f"{pair.wins:,}, {pair.ties:,}, {pair.losses:,}"
    return [
        ("Difference of means", signed(pair.difference), "before rounding"),
        (
            "Relative to the second",
            percent(pair.relative),
            "" if math.isnan(pair.relative) else pair.reading,
        ),
        ("Cohen's d", *bounded(pair.cohen_d)),
        ("Hedges's g", *bounded(pair.hedges_g)),
        ("Standardised", *bounded(pair.standardised)),
        ("Cliff's delta", *bounded(pair.cliff_delta)),
        ("Better on a topic", *_share(pair.probability_better)),
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


def _topics(shown: Shown, pair: ShownPair) -> tuple[list[Topic], Table]:
    """Return the topics, the largest difference first, and their table: both values, the
    difference, and that of the means without the topic."""
    compared, qrels = shown.compared, shown.answer.entrants.qrels
    ids = topics_of(shown.answer, compared)
    a, b = (compared.values[int(side[0])] for side in compared.pairs.indices())
    order = np.argsort(-np.abs(a - b), kind="stable")[:_TOPICS_SHOWN].tolist()
    without = (pair.difference + differences(a, b).influence).tolist()
    titles = _titles(shown.collection, [ids[at] for at in order])
    ranking_a, ranking_b = (reverse("ranking-page", args=[run.pk]) for run in (pair.a, pair.b))
    # The address of this page, whether of a stored comparison or not.
    here = {name: value for name, value in shown.text.items() if value}

    base = reverse("topics-page", args=[shown.collection.slug])

    topics, rows = [], []
    for at in order:
        topic_id, size = ids[at], float(a[at] - b[at])
        title = titles.get(topic_id, "")
        both = f"?{urlencode({**here, 'topic': topic_id})}#rankings"
        topics.append(Topic(topic_id, title, size, signed(size), both))

        ranking = urlencode({"topic": topic_id, "qrels": qrels.version})
        page = format_html(
            '&#32;<a class="faint" href="{}" title="all runs on this topic">{}</a>',
            topic_address(base, topic_id),
            Truncator(title).chars(60) or "all runs",
        )
        values = [
            Cell(topic_id, address=both, html=page),
            Cell(figure(compared.measure, a[at]), address=f"{ranking_a}?{ranking}"),
            Cell(figure(compared.measure, b[at]), address=f"{ranking_b}?{ranking}"),
            signed(size),
            NOTHING if math.isnan(without[at]) else signed(without[at]),
        ]

        rows.append(Row(values))

    names = names_of([pair.a, pair.b])
    columns = [
        Column("", "Topic", head=True),
        Column("", names[pair.a]),
        Column("", names[pair.b]),
        Column("", "Difference"),
        Column("", "Means without it"),
    ]

    note = (
        "Largest absolute difference first; in the last column the difference of the means without "
        "the topic. Select a value to see that run's ranking, a topic to see both rankings side by "
        "side."
    )

    return topics, Table("topics", columns, rows, [note], "Differences by topic")


def _titles(collection: Collection, topic_ids: list[str]) -> dict[str, str]:
    return dict(collection.topics.filter(topic_id__in=topic_ids).values_list("topic_id", "title"))


def _differences(shown: Shown, pair: ShownPair) -> ShownFigure:
    first = int(shown.compared.pairs.indices()[0][0])
    asked = {"measure": shown.compared.measure.name, "other": str(pair.b.pk)}
    asked |= {"scores": shown.answer.query.scores} if shown.answer.query.scores else {}

    if shown.answer.stored:
        asked |= {"comparison": str(shown.answer.stored.pk)}
    elif shown.answer.narrowed:
        question = shown.answer.query.address()
        asked |= {name: question[name] for name in ("family", "baseline") if name in question}

    drawn = RUN_CHARTS["topics"](RunChartRequest(pair.a, shown.evaluation(first), asked))
    return run_figure(drawn, pair.a.pk, asked, "wide")


@dataclass(frozen=True)
class RankedLine:
    """A document of one of the two rankings, and its rank in the other."""

    placed: Placed
    label: str
    address: str

    @property
    def kind(self) -> str:
        return level_class(self.placed.document.level)


def _rankings(shown: Shown, pair: ShownPair, topics: list[Topic]) -> dict[str, Any]:
    """Return one topic's rankings side by side: of the requested topic, or of the one with the largest difference."""
    topic = shown.text.get("topic") or topics[0].topic_id
    near: dict[str, Any] = {
        "topics": topics,
        "topic": topic,
        "listed": any(line.topic_id == topic for line in topics),
        "wins": [line for line in topics if line.size > 0][:_NEAR],
        "losses": [line for line in topics if line.size < 0][:_NEAR],
    }

    if not shown.text.get("topic") and pair.a.size + pair.b.size > _READ_AT_ONCE:
        return near

    first, second = (shown.evaluation(int(side[0])) for side in shown.compared.pairs.indices())
    found = read_two_rankings(a=first, b=second, topic_id=topic)
    asked = {
        "runs": f"{pair.a.pk},{pair.b.pk}",
        "topic": topic,
        "scores": shown.answer.query.scores or "",
    }

    labels = shown.collection.level_labels

    def line(one: Placed) -> RankedLine:
        label = str(labels.get(str(one.document.level), ""))
        return RankedLine(one, label, document_address(shown.collection, one.document.doc_id))

    near["sides"] = [(side, [line(one) for one in side.documents]) for side in (found.a, found.b)]
    near |= {"found": found, "title": _titles(shown.collection, [topic]).get(topic, "")}

    if found.a.documents or found.b.documents:
        arguments = {"collection": shown.collection.slug}
        drawn = two_rankings_figure(found).drawn_from(shown.collection, first.qrels.version)
        near["figure"] = ShownFigure(drawn, "collection-chart", arguments, asked)

    return near
