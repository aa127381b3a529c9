"""The page of judgements: levels, the recall base of each topic, and two versions side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.engine.agreement.assessments import Assessments
from metrics.pages.parts import Query, fill, level_class, query_of
from metrics.questions.answer_cache import Subject, cached_page
from metrics.questions.topics import topic_address
from metrics.services.comparisons.judgements import (
    JudgedVersion,
    JudgementsAnswer,
    JudgementsQuery,
    read_judgements,
)
from metrics.tables import NOTHING, Paging
from runs.models import Collection, can_see_scores
from runs.parameters import MAX_OFFSET, integer_in
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

_TOPICS_OF_A_PAGE = 100
# The values that compare two versions: name, field and meaning.
_FIGURES = (
    ("Agreement", "agreement", "share of the documents judged in both that have the same level"),
    (
        "Cohen’s kappa",
        "kappa",
        "agreement beyond chance: 1 is complete, 0 what independent judges would have",
    ),
    (
        "Weighted kappa",
        "weighted_kappa",
        "the same, with distant levels counting more than neighbouring ones",
    ),
    ("Overlap", "overlap", "documents relevant in both, over those relevant in either"),
    (
        "Relative relevance",
        "cosine",
        "cosine of both vectors of levels over the documents judged in both",
    ),
)


@dataclass(frozen=True)
class LevelLine:
    """A level of a version with its number of documents.

    The percentages are of all judgements and of the relevant ones.
    """

    level: int
    label: str
    css: str
    judgements: int
    percent: str
    percent_of_relevant: str
    per_topic: float


def _judged_collection(request: HttpRequest, slug: str) -> Subject | None:
    """Return the collection, or None while its judgements are blind; the page has no values."""
    collection = visible_collection(request, slug)
    return Subject(collection) if can_see_scores(request.user, collection) else None


@page
@reads("qrels", "offset")
@cached_page(_judged_collection)
def judgements_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the content of the judgements, and the agreement of two versions."""
    collection = visible_collection(request, slug)
    query = query_of(request)
    context: dict[str, Any] = {"collection": collection, "query": query}
    status = fill(context, "answer", _read, request, collection, query)

    if "answer" in context:
        answer: JudgementsAnswer = context["answer"]
        offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
        first = answer.versions[0]
        context |= {
            "all_versions": list(
                collection.qrels.order_by("version").values_list("version", "active", "judgements")
            ),
            "versions": [version.qrels.version for version in answer.versions],
            "tables": [(version, _level_lines(collection, version)) for version in answer.versions],
            "topics": _topic_lines(collection, first, offset),
            "paging": Paging(offset, _TOPICS_OF_A_PAGE, len(first.qrels.topic_ids)),
            "cross": _cross(answer.compared) if answer.compared else None,
        }

    return render(request, "metrics/judgements.html", context, status=status)


def _read(request: HttpRequest, collection: Collection, query: Query) -> JudgementsAnswer:
    check_scores(request, collection, values=False)
    return read_judgements(collection=collection, query=JudgementsQuery.read(query))


def _level_lines(collection: Collection, version: JudgedVersion) -> list[LevelLine]:
    total = max(1, sum(version.totals))
    lines = []
    for level, count, share_of_relevant in zip(
        version.levels, version.totals, version.shares_of_relevant, strict=True
    ):
        lines.append(
            LevelLine(
                level=level,
                label=collection.level_labels.get(str(level), ""),
                css=level_class(level),
                judgements=count,
                percent=f"{count / total:.1%}",
                percent_of_relevant=NOTHING
                if share_of_relevant is None
                else f"{share_of_relevant:.1%}",
                per_topic=count / len(version.counts),
            )
        )

    return lines


def _topic_lines(
    collection: Collection, version: JudgedVersion, offset: int
) -> list[dict[str, Any]]:
    """Return the topics of one page of the table."""
    titles = dict(collection.topics.values_list("topic_id", "title"))
    base = reverse("topics-page", args=[collection.slug])
    last = offset + _TOPICS_OF_A_PAGE
    ids = version.qrels.topic_ids[offset:last]
    judged, relevant = version.judged.tolist(), version.relevant.tolist()

    return [
        {
            "topic_id": topic_id,
            "title": titles.get(topic_id, ""),
            "page": topic_address(base, topic_id) if version.qrels.active else "",
            "judged": judged[place],
            "relevant": relevant[place],
            "counts": version.counts[place].tolist(),
        }
        for place, topic_id in enumerate(ids, offset)
    ]


def _cross(compared: Assessments) -> dict[str, Any]:
    """Return the table of the levels in two versions, and the figures of their agreement.

    A row has a level of the first version; a cell for each level of the second version, with the
    number of documents, their share of the column, and whether the levels are the same; and the
    number of documents that only the first version judges.
    """
    levels = compared.levels.tolist()
    rows = []
    for level, counts, shares, alone in zip(
        levels,
        compared.both.tolist(),
        compared.column_shares.tolist(),
        compared.only_first.tolist(),
        strict=True,
    ):
        cells = [
            (count, "" if math.isnan(share) else f"{share:.1%}", level == other)
            for count, share, other in zip(counts, shares, levels, strict=True)
        ]
        rows.append((level, cells, alone))

    figures = []
    for name, field, text in _FIGURES:
        value = getattr(compared, field)
        figures.append((name, NOTHING if math.isnan(value) else f"{value:.4f}", text))

    return {
        "levels": levels,
        "rows": rows,
        "only_second": compared.only_second.tolist(),
        "figures": figures,
    }
