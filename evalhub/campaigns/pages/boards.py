"""The page of the leaderboard of a phase, with the names that the reader may know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from evalhub.campaigns.exports.phase_table import as_shown
from evalhub.campaigns.pages.tabs import campaign_tabs
from evalhub.campaigns.questions.boards import (
    PhaseRequest,
    of_phase_board_page,
    phase_board_in,
    phase_query,
    readers_of_a_phase,
    seen_boards,
)
from evalhub.campaigns.services.boards import (
    AFTERWARDS,
    ALL,
    LATE,
    OFFICIAL,
    PhaseBoard,
    read_phase_board,
)
from evalhub.campaigns.services.pooled import pooled_runs_seen
from metrics.engine.errors import StatisticsError
from metrics.exports.boards import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.pages.boards.statistics import NONE, BoardStatistics, statistics_question
from metrics.pages.boards.table import BoardRow, board_table
from metrics.pages.parts import Query, fill, query_string
from metrics.questions.answer_cache import cached_page
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.tables import Paging
from runs.models import Entry, can_see_scores
from runs.services.collections.reduced_qrels import reasons_of_exclusion
from runs.web.parameters import text_of
from runs.web.views import page, reads

_VIEWS = {OFFICIAL: "Official", ALL: "All on time", LATE: "Late", AFTERWARDS: "Afterwards"}
# What the files of a leaderboard read of the page's address.
_OF_FILES = ("measures", "sort", "order", "view", "run_type", "role", "filter")
# The statistics of a page that asks for none; ranks and expected means are resampled on request.
_AT_ONCE = ("intervals", "tiers")
_LIMIT = 50
# Those of the overview of a campaign, and how many entries it compares.
_FIRST_ROWS, _MOST_COMPARED = 10, 100


@dataclass(frozen=True)
class ShownEntry:
    """A row of the table with the entry of its run.

    `entry_page` and `run_page` are addresses, or empty if the reader does not see these pages.
    `pooled` is None where the reader sees no pool.
    """

    line: BoardRow
    entry: Entry
    team: str
    attempts: int | None
    own: bool
    role: str
    kind: str
    entry_page: str
    run_page: str
    paper: str
    pooled: bool | None

    @property
    def struck(self) -> bool:
        """Return whether the entry was disqualified: its row stays, struck through."""
        return self.entry.state == Entry.State.DISQUALIFIED


@page
@reads("measures", "sort", "order", "offset", "view", "run_type", "role", "filter", "statistics")
@cached_page(of_phase_board_page, shared_by=readers_of_a_phase)
def phase_board_page(request: HttpRequest, campaign: str, phase: str) -> HttpResponse:
    """Show a page of the leaderboard of a phase to those who see it in the API."""
    question, query = phase_board_in(request, campaign, phase), text_of(request.GET)
    board_phase = question.phase
    view = query.get("view") or OFFICIAL
    file_query = {name: query[name] for name in _OF_FILES if query.get(name)}
    address = [campaign, phase]
    context: dict[str, Any] = {
        **campaign_tabs(request, board_phase.campaign, "leaderboard"),
        "phase": board_phase,
        "phases": seen_boards(request, board_phase.campaign),
        "query": query,
        "views": [
            (words, query_string(query, view=name, offset=None), name == view)
            for name, words in _VIEWS.items()
        ],
        "files": [
            (
                FORMATS[kind].title,
                f"{reverse('phase-board-export', args=[*address, kind])}{f'?{urlencode(file_query)}' if file_query else ''}",
            )
            for kind in EXPORTS
        ],
        "excluded": reasons_of_exclusion(board_phase.collection),
        "scored": can_see_scores(request.user, board_phase.collection),
    }
    status = fill(context, "board", read_table, request, question, query)

    return render(request, "campaigns/phase_board.html", context, status=status)


def read_table(
    request: HttpRequest, question: PhaseRequest, query: Query, limit: int = _LIMIT
) -> dict[str, Any]:
    """Return the table of a page of the leaderboard, and the entries of its rows.

    Raise the errors of leaderboards.
    """
    phase = question.phase
    parameters = {name: text for name, text in query.items() if name != "statistics"}
    board_query = phase_query({**parameters, "limit": str(limit)}, phase, request.user)
    statistics = _statistics_question(query)

    try:
        with_statistics = replace(board_query, standings=statistics)
        phase_board = read_phase_board(phase=phase, query=with_statistics, reader=question.reader)
    except StatisticsError:
        if query.get("statistics"):
            raise
        # Too many runs to compare, or too long for a page: it comes without statistics.
        phase_board = read_phase_board(phase=phase, query=board_query, reader=question.reader)

    board, standings = phase_board.board, phase_board.standings
    page_statistics = BoardStatistics(standings) if standings else None
    table = board_table(board, page_statistics, own_teams=set(), query=query, shorts={})
    table = as_shown(table, phase, board.measures)
    kinds = {run_type["key"]: run_type["label"] for run_type in phase.run_types}
    scored = can_see_scores(request.user, phase.collection)
    pooled = pooled_runs_seen(phase, request.user)

    return {
        "board": board,
        "table": table,
        "statistics": page_statistics,
        "view": board_query.view,
        "with_pools": pooled is not None,
        "with_kinds": bool(kinds),
        "rows_of": [
            kinds.get(board_query.run_type or "", board_query.run_type),
            (board_query.role or "").replace("_", " "),
        ],
        "rows": [_row(question, phase_board, line, kinds, scored, pooled) for line in table.rows],
        "paging": Paging(board_query.board.offset, board_query.board.limit, board.total),
        # The statistics have them, too.
        "cautions": [] if standings else phase_board.cautions,
    }


def read_first_rows(request: HttpRequest, question: PhaseRequest) -> dict[str, Any]:
    """Return the table of the first rows. Many entries are not compared: nothing keeps this answer."""
    compared = question.phase.entries.count() <= _MOST_COMPARED
    query = {} if compared else {"statistics": "intervals"}
    return read_table(request, question, query, _FIRST_ROWS)


def _statistics_question(query: Query) -> StandingsQuery | None:
    """Return the statistics that the address names, or those that a page has at once."""
    named = query.get("statistics")
    if named == NONE:
        return None
    return statistics_question(query) if named else StandingsQuery(_AT_ONCE)


def _row(
    question: PhaseRequest,
    phase_board: PhaseBoard,
    line: BoardRow,
    kinds: dict[str, str],
    scored: bool,
    pooled: set[UUID] | None,
) -> ShownEntry:
    run, reader = line.board_row.run, question.reader
    entry = phase_board.entries[run.pk]
    name = phase_board.name_of(entry)
    own = reader.own is not None and entry.participation_id == reader.own.pk
    hidden = bool(name and name.hidden)
    campaign = question.phase.campaign.slug

    return ShownEntry(
        line=line,
        entry=entry,
        team=name.name if name else "",
        attempts=phase_board.attempts_of(entry),
        own=own,
        role=""
        if entry.role == Entry.Role.COMPETING
        else entry.label or entry.role.replace("_", " "),
        kind=kinds.get(entry.run_type, entry.run_type),
        entry_page=reverse("campaign-entry-page", args=[campaign, entry.pk])
        if own or reader.organiser
        else "",
        run_page=reverse("run-page", args=[run.pk]) if scored and not hidden else "",
        paper=phase_board.paper_of(entry),
        pooled=None if pooled is None else run.pk in pooled,
    )
