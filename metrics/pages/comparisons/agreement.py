"""The page of agreement between two versions of the judgements: three sentences and a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.exports.comparisons.agreement import (
    AGREEMENT_TABLES,
    estimates_table,
    runs_table,
    sentences,
    topics_table,
)
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import KINDS
from metrics.pages.parts import Query, fill, query_of
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.questions.declared import AGREEMENT, names_of
from metrics.services.boards.selection import tested_measures
from metrics.services.comparisons.agreement import (
    AgreementQuery,
    VersionAgreement,
    read_agreement,
)
from runs.models import Collection, can_see_scores
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# The size of a cell of the picture, and the room for its labels, in its own units.
_CELL, _ROOM = 72, 64


@dataclass(frozen=True)
class Cell:
    """A cell of the confusion matrix: its place, its text, and its shade from 0 to 1."""

    x: int
    y: int
    text: str
    shade: str
    dark: bool
    title: str


@page
@reads(*names_of(AGREEMENT))
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def agreement_page(request: HttpRequest, slug: str, version: int) -> HttpResponse:
    """Show how far a version agrees with another one, and what that does to the runs."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "version": version,
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
        "tables": AGREEMENT_TABLES,
        "measure": query.get("measure") or tested_measures(collection)[0],
    }
    if can_see_scores(request.user, collection):
        context["others"] = list(
            collection.qrels.exclude(version=version).order_by("version").defer("prompt")
        )

    status = fill(context, "answer", _answer, request, collection, version, query)
    return render(request, "metrics/agreement.html", context, status=status)


def _answer(
    request: HttpRequest, collection: Collection, version: int, query: Query
) -> dict[str, Any]:
    check_scores(request, collection)
    question = AgreementQuery.read(query, collection, request.user)
    answer = read_agreement(collection=collection, version=version, query=question)

    return {
        "agreement": answer,
        "sentences": sentences(answer),
        "picture": _picture(collection, answer) if answer.documents else None,
        # The page has the sentences at its top.
        "estimates": replace(estimates_table(collection, answer), notes=()),
        "runs": replace(runs_table(collection, answer), notes=()) if answer.effects else None,
        "topics": replace(topics_table(collection, answer), notes=()),
        "cautions": [caution.message for caution in answer.cautions],
    }


def _picture(collection: Collection, answer: VersionAgreement) -> dict[str, Any]:
    """Return the confusion matrix: a row is a level of the reference, shaded by shares of rows."""
    confusion = answer.agreement.confusion
    sums = confusion.sum(axis=1)
    cells = []
    for row, (level, counts) in enumerate(zip(answer.levels, confusion.tolist(), strict=True)):
        for column, (other, count) in enumerate(zip(answer.levels, counts, strict=True)):
            part = count / int(sums[row]) if sums[row] else 0.0
            title = (
                f"level {level} in v{answer.reference.version}, {other} in v{answer.qrels.version}: "
                f"{count:,} documents, {part:.0%} of the row"
            )
            cells.append(
                Cell(
                    x=_ROOM + column * _CELL,
                    y=_ROOM + row * _CELL,
                    text=f"{count:,}",
                    shade=f"{part:.3f}",
                    dark=part > 0.5,
                    title=title,
                )
            )

    size = len(answer.levels) * _CELL
    return {
        "cells": cells,
        "cell": _CELL,
        "middle": _CELL // 2,
        "width": _ROOM + size + 2,
        "height": _ROOM + size + 2,
        "marks": [
            (_ROOM + place * _CELL + _CELL // 2, level) for place, level in enumerate(answer.levels)
        ],
        "center": _ROOM + size // 2,
        "labels": [
            f"{level} {collection.level_labels[str(level)]}"
            for level in answer.levels
            if collection.level_labels.get(str(level))
        ],
    }
