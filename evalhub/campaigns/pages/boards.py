"""The page of the leaderboard of a phase, with the names that the reader may know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from evalhub.campaigns.questions.boards import (
    PhaseRequest,
    of_phase_board,
    phase_board_in,
    phase_query,
    readers_of_a_phase,
)
from evalhub.campaigns.services.boards import (
    AFTERWARDS,
    ALL,
    LATE,
    OFFICIAL,
    PhaseBoard,
    read_phase_board,
)
from metrics.engine.errors import StatisticsError
from metrics.exports.boards import EXPORTS
from metrics.exports.boards.words import best_sentence
from metrics.exports.formats import FORMATS
from metrics.exports.table import Cell
from metrics.pages.boards.table import judged_share, unjudged_note
from metrics.pages.parts import fill, query_string
from metrics.questions.answer_cache import cached_page
from metrics.services.boards.leaderboard import Leaderboard, Row
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.values.judged_views import depths_of
from metrics.tables import NOTHING, Paging, columns_of, mean_cell
from runs.models import Entry, can_see_scores
from runs.services.collections.reduced_qrels import reasons_of_exclusion
from runs.web.parameters import text_of
from runs.web.views import page, reads

_VIEWS = {OFFICIAL: "Official", ALL: "All on time", LATE: "Late", AFTERWARDS: "Afterwards"}
# What the files of a leaderboard read of the page's address.
_OF_FILES = ("measures", "sort", "order", "view", "run_type", "role", "filter")
# A page reads the judgements of every run that it shows.
_LIMIT = 50


@dataclass(frozen=True)
class ShownEntry:
    """A row of the table: an entry with its means as texts.

    `entry_page` and `run_page` are addresses, or empty if the reader does not see these pages.
    """

    row: Row
    entry: Entry
    team: str
    attempts: int | None
    own: bool
    role: str
    kind: str
    means: list[tuple[str, Cell]]
    judged: str
    low_judged: str
    marked: bool
    depth: str
    entry_page: str
    run_page: str

    @property
    def struck(self) -> bool:
        """Return whether the entry was disqualified: its row stays, struck through."""
        return self.entry.state == Entry.State.DISQUALIFIED


@page
@reads("measures", "sort", "order", "offset", "view", "run_type", "role", "filter")
@cached_page(of_phase_board, shared_by=readers_of_a_phase)
def phase_board_page(request: HttpRequest, campaign: str, phase: str) -> HttpResponse:
    """Show a page of the leaderboard of a phase to those who see it in the API."""
    question, query = phase_board_in(request, campaign, phase), text_of(request.GET)
    board_phase = question.phase
    view = query.get("view") or OFFICIAL
    file_query = {name: query[name] for name in _OF_FILES if query.get(name)}
    address = [campaign, phase]
    context: dict[str, Any] = {
        "campaign": board_phase.campaign,
        "phase": board_phase,
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
        "organiser": question.reader.organiser,
        "own": question.reader.own,
        "scored": can_see_scores(request.user, board_phase.collection),
    }
    status = fill(context, "board", _board, request, question, query)

    return render(request, "campaigns/phase_board.html", context, status=status)


def _board(request: HttpRequest, question: PhaseRequest, query: dict[str, str]) -> dict[str, Any]:
    """Return the columns and rows of the table. Raise the errors of leaderboards."""
    phase = question.phase
    board_query = phase_query({**query, "limit": str(_LIMIT)}, phase, request.user)

    try:
        with_best = replace(board_query, standings=StandingsQuery(("tiers",)))
        phase_board = read_phase_board(phase=phase, query=with_best, reader=question.reader)
    except StatisticsError:
        # Too many runs to compare, or too long for a page: it comes without the set of the best.
        phase_board = read_phase_board(phase=phase, query=board_query, reader=question.reader)

    board, standings = phase_board.board, phase_board.standings
    tags = {row.evaluation.pk: row.run.tag for row in board.rows}
    depths = depths_of([row.evaluation.pk for row in board.rows if row.current])
    scored = can_see_scores(request.user, phase.collection)
    kinds = {run_type["key"]: run_type["label"] for run_type in phase.run_types}
    columns = columns_of(board.measures, board.sort, board.descending)

    return {
        "board": board,
        "best": best_sentence(standings, tags) if standings else "",
        "view": board_query.view,
        "columns": columns,
        "with_kinds": bool(kinds),
        "rows_of": [
            kinds.get(board_query.run_type or "", board_query.run_type),
            (board_query.role or "").replace("_", " "),
        ],
        "rows": [_row(question, phase_board, row, depths, kinds, scored) for row in board.rows],
        "paging": Paging(board_query.board.offset, board_query.board.limit, board.total),
        "waiting": _waiting(board),
        "cautions": phase_board.cautions,
    }


def _row(
    question: PhaseRequest,
    phase_board: PhaseBoard,
    row: Row,
    depths: dict[int, int],
    kinds: dict[str, str],
    scored: bool,
) -> ShownEntry:
    entry, reader, board = phase_board.entries[row.run.pk], question.reader, phase_board.board
    name = phase_board.name_of(entry)
    own = reader.own is not None and entry.participation_id == reader.own.pk
    hidden = bool(name and name.hidden)
    judged = row.evaluation.qrels.topics if row.has_values else 0
    means = [
        (
            measure.name,
            mean_cell(measure, row.values[measure.name], judged)
            if row.has_values
            else Cell(NOTHING),
        )
        for measure in board.measures
    ]
    depth = depths.get(row.evaluation.pk) if row.current else None
    campaign = question.phase.campaign.slug

    return ShownEntry(
        row=row,
        entry=entry,
        team=name.name if name else "",
        attempts=phase_board.attempts_of(entry),
        own=own,
        role=""
        if entry.role == Entry.Role.COMPETING
        else entry.label or entry.role.replace("_", " "),
        kind=kinds.get(entry.run_type, entry.run_type),
        means=means,
        judged=NOTHING if row.judged is None else judged_share(row.judged),
        low_judged=unjudged_note(row.judged),
        marked=phase_board.standings is not None
        and phase_board.standings.is_marked(row.evaluation.pk),
        depth=NOTHING if depth is None else str(depth),
        entry_page=reverse("campaign-entry-page", args=[campaign, entry.pk])
        if own or reader.organiser
        else "",
        run_page=reverse("run-page", args=[row.run.pk]) if scored and not hidden else "",
    )


def _waiting(board: Leaderboard) -> int:
    """Return how many entries are still to be evaluated."""
    return board.states.get("queued", 0) + board.states.get("evaluating", 0)
