"""Pages of leaderboards."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.api.queries import board_query, standings_query
from metrics.api.unchanged import of_asked_board, unchanged_page
from metrics.pages.parts import Query
from metrics.pages.parts import fill as _fill
from metrics.pages.parts import query_of as _query
from metrics.services.fingerprints import Fingerprint, of_boards, of_listed
from metrics.services.leaderboard import read_leaderboard
from metrics.services.standings import read_standings
from metrics.tables import (
    Paging,
    board_lines,
    columns_of,
    level_lines,
    statistics_columns,
    with_statistics,
)
from runs.api.access import check_scores, counted_collection, visible_collection
from runs.models import Collection, Qrels, can_see_scores
from runs.views import page


def _collection_fingerprint(request: HttpRequest, slug: str) -> Fingerprint | None:
    """None where the judgements are blind: a tag would tell of every change behind them."""
    found = visible_collection(request, slug)
    return of_boards(found) + of_listed(found) if can_see_scores(request.user, found) else None


def _board_fingerprint(request: HttpRequest, slug: str) -> Fingerprint | None:
    """None also where the question has no answer, as the page then says."""
    found = visible_collection(request, slug)
    board = of_asked_board(request, found) if can_see_scores(request.user, found) else None
    return board + of_listed(found) if board else None


@page
@unchanged_page(_board_fingerprint)
def collection_page(request: HttpRequest, slug: str) -> HttpResponse:
    """A collection with its leaderboard."""
    collection = counted_collection(request, slug)
    query = _query(request)
    context: dict[str, Any] = {"collection": collection}
    context["measures"] = query.get("measures") or ", ".join(collection.measures)
    status = _fill(context, "board", _board, request, collection, query)
    qrels = context["board"]["board"].qrels if "board" in context else _qrels(request, collection)
    context |= {"qrels": qrels, "levels": level_lines(collection, qrels)}
    return render(request, "metrics/collection.html", context, status=status)


def _qrels(request: HttpRequest, collection: Collection) -> Qrels | None:
    return collection.active_qrels if can_see_scores(request.user, collection) else None


def _board(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    asked, statistics = board_query(query, collection, request.user), standings_query(query)
    board = read_leaderboard(collection=collection, query=asked)
    standings = read_standings(board=board, query=statistics) if statistics else None
    lines = board_lines(board)
    return {
        "board": board,
        "columns": columns_of(board.measures, board.sort, board.descending),
        "lines": with_statistics(lines, board, standings) if standings else lines,
        "standings": standings,
        "statistics": statistics_columns(board, standings) if standings else [],
        "paging": Paging(asked.offset, asked.limit, board.total),
        "waiting": [
            (state, board.states[state]) for state in ("queued", "evaluating", "failed") if state in board.states
        ],
    }
