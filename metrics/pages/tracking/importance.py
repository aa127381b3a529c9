"""The page of what explains the values of runs."""

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
from metrics.pages.parts import Query, ShownFigure, fill, query_of
from metrics.questions.answer_cache import all_once_public, kept_page, of_visible_collection
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

# Levels of a parameter that a row shows.
_LEVELS = 8


@dataclass(frozen=True)
class ChangeLine:
    """A change of a value: its texts, the verdict, and where its interval is drawn."""

    name: str
    before: str
    after: str
    pairs: int
    difference: str
    interval: str
    p_value: str
    verdict: str
    significant: bool
    drawn: dict[str, str]


@dataclass(frozen=True)
class AssociatedLine:
    """A parameter with its share of the variance, and the means of its levels: label, runs, mean."""

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
@kept_page(of_visible_collection, shared_by=all_once_public)
def importance_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show which parameters go with a measure, and what changing one of them changed."""
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
    found = read_importance(
        collection=collection, query=ImportanceQuery.read(query, collection, request.user)
    )
    asked = {name: query.get(name, "") for name in names_of(IMPORTANCE)}
    figure = importance_figure(found) if found.associated else None
    return {
        "found": found,
        "changes": _change_lines(found),
        "associated": [_associated_line(one) for one in found.associated],
        "message": found.message,
        "cautions": [caution.message for caution in found.cautions if caution.code != CHOSEN_RUNS],
        "chosen": CHOSEN,
        "figure": figure
        and ShownFigure(figure, "collection-chart", {"collection": collection.slug}, asked),
    }


def _change_lines(found: Importance) -> list[ChangeLine]:
    """Return the changes, their intervals drawn on one scale that has zero and all of them."""
    changes = found.explanation.changes
    ends = [end for change in changes for end in (change.low, change.high) if not math.isnan(end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    scale = 200 / ((high - low) or 1.0)
    lines = []
    for change in changes:
        places = {"zero": 0.0, "low": change.low, "middle": change.difference, "high": change.high}
        drawn = {name: f"{(value - low) * scale:.1f}" for name, value in places.items()}
        setting = found.explanation.settings[change.setting]
        without = math.isnan(change.low)
        verdict = _verdict(found, change)
        lines.append(
            ChangeLine(
                setting.name,
                words_of(setting.values[change.before]),
                words_of(setting.values[change.after]),
                change.pairs,
                signed(change.difference),
                NOTHING if without else f"{signed(change.low)} to {signed(change.high)}",
                probability(change.p_adjusted),
                verdict,
                verdict in VERDICTS,
                {} if without else drawn,
            )
        )
    return lines


def _verdict(found: Importance, change: Change) -> str:
    """Return better or worse for a significant change, seen from its second value; no for others that are tested."""
    if math.isnan(change.p_adjusted) or found.topics < MIN_TOPICS:
        return NOTHING
    if change.p_adjusted >= ALPHA:
        return "no"
    higher = change.difference > 0
    return VERDICTS[higher == found.query.measure.definition.lower_is_better]


def _associated_line(one: Associated) -> AssociatedLine:
    return AssociatedLine(
        one.setting.name,
        with_minus(f"{one.effect:.3f}"),
        NOTHING
        if math.isnan(one.low)
        else with_minus(f"{one.low:.3f}") + " to " + with_minus(f"{one.high:.3f}"),
        probability(one.p_value),
        one.p_value < ALPHA,
        [
            (words_of_level(level.level), level.runs, f"{level.mean:.4f}")
            for level in one.levels[:_LEVELS]
        ],
        len(one.levels) - _LEVELS,
        len(one.setting.names) > 1,
    )
