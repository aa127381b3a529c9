"""The page of importance: which parameters go with a measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.tracking.importance import importance_figure
from metrics.engine.explanation.explaining import ALPHA
from metrics.engine.explanation.matched import Change
from metrics.engine.significance.verdicts import MIN_TOPICS, VERDICTS
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import KINDS
from metrics.pages.parts import PageFigure, Query, fill, query_of
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.questions.declared import IMPORTANCE, names_of
from metrics.services.boards.selection import tested_measures
from metrics.services.tracking.importance import (
    CHOSEN,
    CHOSEN_RUNS,
    Associated,
    Importance,
    ImportanceQuery,
    read_importance,
    words_of,
    words_of_level,
)
from metrics.tables import NOTHING, probability, signed, with_minus
from runs.models import Collection
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# Levels of a parameter in a row.
_LEVELS = 8


@dataclass(frozen=True)
class ChangeLine:
    """A change of a value: its texts, its verdict, and the positions of its interval."""

    name: str
    before: str
    after: str
    pairs: int
    difference: str
    interval: str
    p_value: str
    verdict: str
    significant: bool
    positions: dict[str, str]


@dataclass(frozen=True)
class AssociatedLine:
    """A parameter with its share of the variance, and the label, runs and mean of its levels."""

    name: str
    effect: str
    interval: str
    p_value: str
    certain: bool
    levels: list[tuple[str, int, str]]
    more: int
    together: bool


@page
@reads(*names_of(IMPORTANCE))
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def importance_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show which parameters go with a measure, and the effect of changing one of them."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "tab": "importance",
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
        "measure": query.get("measure") or tested_measures(collection)[0],
    }

    status = fill(context, "answer", _answer, request, collection, query)

    return render(request, "metrics/importance.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    importance = read_importance(
        collection=collection, query=ImportanceQuery.read(query, collection, request.user)
    )
    parameters = {name: query.get(name, "") for name in names_of(IMPORTANCE)}
    figure = importance_figure(importance) if importance.associated else None

    return {
        "importance": importance,
        "changes": _change_lines(importance),
        "associated": [_associated_line(association) for association in importance.associated],
        "message": importance.message,
        "cautions": [
            caution.message for caution in importance.cautions if caution.code != CHOSEN_RUNS
        ],
        "chosen": CHOSEN,
        "figure": figure
        and PageFigure(figure, "collection-chart", {"collection": collection.slug}, parameters),
    }


def _change_lines(importance: Importance) -> list[ChangeLine]:
    """Return the changes; all intervals are drawn on one scale, which contains zero."""
    changes = importance.explanation.changes
    ends = [end for change in changes for end in (change.low, change.high) if not math.isnan(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])

    scale = 200 / ((high - low) or 1.0)
    lines = []
    for change in changes:
        places = {"zero": 0.0, "low": change.low, "middle": change.difference, "high": change.high}
        positions = {name: f"{(value - low) * scale:.1f}" for name, value in places.items()}
        setting = importance.explanation.settings[change.setting]
        without = math.isnan(change.low)
        verdict = _verdict(importance, change)
        lines.append(
            ChangeLine(
                name=setting.name,
                before=words_of(setting.values[change.before]),
                after=words_of(setting.values[change.after]),
                pairs=change.pairs,
                difference=signed(change.difference),
                interval=NOTHING if without else f"{signed(change.low)} to {signed(change.high)}",
                p_value=probability(change.p_adjusted),
                verdict=verdict,
                significant=verdict in VERDICTS,
                positions={} if without else positions,
            )
        )

    return lines


def _verdict(importance: Importance, change: Change) -> str:
    """Return the verdict of a change, seen from its second value; "no" if it is not significant."""
    if math.isnan(change.p_adjusted) or importance.topics < MIN_TOPICS:
        return NOTHING
    if change.p_adjusted >= ALPHA:
        return "no"

    higher = change.difference > 0
    return VERDICTS[higher == importance.query.measure.definition.lower_is_better]


def _associated_line(association: Associated) -> AssociatedLine:
    interval = NOTHING
    if not math.isnan(association.low):
        low, high = (with_minus(f"{end:.3f}") for end in (association.low, association.high))
        interval = f"{low} to {high}"

    return AssociatedLine(
        name=association.setting.name,
        effect=with_minus(f"{association.effect:.3f}"),
        interval=interval,
        p_value=probability(association.p_value),
        certain=association.p_value < ALPHA,
        levels=[
            (words_of_level(level.level), level.runs, f"{level.mean:.4f}")
            for level in association.levels[:_LEVELS]
        ],
        more=len(association.levels) - _LEVELS,
        together=len(association.setting.names) > 1,
    )
