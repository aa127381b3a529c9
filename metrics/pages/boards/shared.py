"""A shared leaderboard: the table of its exports, without links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse

from metrics.charts.boards.charts import COLLECTION_CHART_READS, COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.exports.boards import EXPORTS
from metrics.exports.boards.tables import best_of, paper_table
from metrics.exports.formats import FORMATS
from metrics.pages.boards.statistics import asked_statistics, read_statistics
from metrics.pages.parts import Query, fill
from metrics.questions.declared import names_of
from metrics.questions.run_ids import without_labels
from metrics.questions.shares import parameters_of_link
from metrics.services.boards.asked import BoardQuery
from metrics.services.boards.leaderboard import read_leaderboard, read_whole_board
from metrics.services.boards.standings import read_standings
from metrics.services.snapshots import read_in_snapshot
from metrics.tables import Paging
from runs.models import ShareLink
from runs.parameters import MAX_OFFSET, integer_in

FILES = {"csv": "CSV", "tex": "LaTeX", "md": "Markdown", "trec_eval": "trec_eval"}
_OF_CHART = names_of(COLLECTION_CHART_READS["means"])


def _asked(link: ShareLink) -> tuple[Query, BoardQuery]:
    """Return the parameters of the link and the query of its leaderboard, as its maker reads it."""
    query = without_labels(parameters_of_link(link), link.collection, link.created_by)
    asked = BoardQuery.read(query, link.collection, link.created_by)
    return query, replace(asked, measures=list(dict.fromkeys([*asked.measures, asked.sort])))


def page(link: ShareLink, given: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    query, asked = _asked(link)
    asked = replace(asked, offset=integer_in(given, "offset", 0, 0, MAX_OFFSET))
    board = read_leaderboard(collection=link.collection, query=asked)
    context: dict[str, Any] = {
        "board": board,
        "paging": Paging(asked.offset, asked.limit, board.total),
    }
    status = fill(context, "sure", read_statistics, board, query, True)
    sure = context.get("sure")
    standings = sure.standings if sure else None
    context["table"] = paper_table(link.collection, board, standings)
    context["best"] = best_of(board, standings)
    fill(context, "figure", chart, link, "means")
    context["figures"] = [context["figure"]] if "figure" in context else []
    return context, status


def file(link: ShareLink, kind: str) -> HttpResponse:
    def read() -> bytes:
        query, asked = _asked(link)
        board = read_whole_board(collection=link.collection, query=asked)
        wanted = asked_statistics(query) if board.ranked else None
        standings = read_standings(board=board, query=wanted) if wanted else None
        return FORMATS[kind].content(EXPORTS[kind](link.collection, board, standings))

    headers = FORMATS[kind].headers(f"{link.collection.slug}-leaderboard")
    return HttpResponse(read_in_snapshot(read), headers=headers)


def chart(link: ShareLink, name: str) -> Figure:
    if name != "means":
        raise Http404("there is no such chart of this page")
    query, _ = _asked(link)
    drawn = {name: text for name, text in query.items() if name in _OF_CHART}
    return COLLECTION_CHARTS["means"](link.collection, drawn, link.created_by)
