"""A leaderboard for readers of a share link: what its maker sees on the page, without what belongs
to one reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpResponse

from metrics.charts.boards.charts import COLLECTION_CHART_READS, COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.exports.boards import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.pages.boards.statistics import statistics_question
from metrics.pages.boards.views import add_table, baseline_tags, page_question
from metrics.pages.parts import Query, fill, shared_figure, shared_files
from metrics.questions.declared import names_of
from metrics.questions.run_ids import without_labels
from metrics.questions.shares import parameters_of_link
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.leaderboard import read_leaderboard, read_whole_board
from metrics.services.boards.standings import read_standings
from metrics.services.snapshots import read_in_snapshot
from metrics.tables import Paging
from runs.models import ShareLink


def page(link: ShareLink, parameters: Mapping[str, str]) -> tuple[str, dict[str, Any], int]:
    """Return the template of the leaderboard's page, its context and its status.

    Raise the errors of leaderboards.
    """
    query = {**_query(link), **parameters}
    question = page_question(link.collection, query, link.created_by)
    board = read_leaderboard(collection=link.collection, query=question)
    paging = Paging(question.offset, question.limit, board.total)
    context: dict[str, Any] = {
        "query": query,
        "qrels": board.qrels,
        "board": {
            "board": board,
            "paging": paging,
            "own_teams": set(),
            "baseline_tags": baseline_tags(link.collection, query),
        },
        "exports": shared_files(link, EXPORTS),
    }
    status = add_table(context, query, at_once=True)
    name = parameters_of_link(link).get("chart", "")
    if name:
        fill(context, "chart", lambda: shared_figure(chart(link, name), link))

    return "metrics/collection.html", context, status


def file(link: ShareLink, kind: str) -> HttpResponse:
    def read() -> bytes:
        query = _query(link)
        question = BoardQuery.read(query, link.collection, link.created_by)
        question = replace(
            question, measures=list(dict.fromkeys([*question.measures, question.sort]))
        )
        board = read_whole_board(collection=link.collection, query=question)
        statistics = statistics_question(query) if board.ranked else None
        standings = read_standings(board=board, query=statistics) if statistics else None

        return FORMATS[kind].content(EXPORTS[kind](link.collection, board, standings))

    headers = FORMATS[kind].headers(f"{link.collection.slug}-leaderboard")
    return HttpResponse(read_in_snapshot(read), headers=headers)


def chart(link: ShareLink, name: str) -> Figure:
    query = _query(link)
    if name != query.get("chart"):
        raise Http404("there is no such chart of this page")

    read = names_of(COLLECTION_CHART_READS[name])
    parameters = {name: text for name, text in query.items() if name in read}
    return COLLECTION_CHARTS[name](link.collection, parameters, link.created_by)


def _query(link: ShareLink) -> Query:
    """Return the parameters of the link, with ids for the labels of its maker."""
    return without_labels(parameters_of_link(link), link.collection, link.created_by)
