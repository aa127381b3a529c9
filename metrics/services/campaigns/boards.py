"""The leaderboard of a phase: the entries of the phase alone, with names as the reader sees them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from metrics.engine.errors import StatisticsError
from metrics.services.boards.leaderboard import Among, BoardQuery, Leaderboard, Row, read_leaderboard, read_whole_board
from metrics.services.boards.standing_parts import Standings, StandingsQuery
from metrics.services.boards.standings import read_standings
from metrics.services.campaigns.releasing import primary_means
from runs.models import Entry, Participation, Phase, Release, Team
from runs.services.campaigns.names import ShownName, hidden_tag, shown_names
from runs.services.campaigns.selection import official

OFFICIAL, ALL, LATE, AFTERWARDS = "official", "all", "late", "afterwards"
VIEWS = (OFFICIAL, ALL, LATE, AFTERWARDS)
_ENTERED, _COMPETING = Entry.State.ENTERED, Entry.Role.COMPETING
_WITH = ("phase", "participation__team", "participation__campaign")


@dataclass(frozen=True)
class Reader:
    """Who reads the leaderboard of a phase: the own team there, and whether it is an organiser; `now` decides which
    names are hidden."""

    own: Participation | None
    organiser: bool
    now: datetime


@dataclass(frozen=True)
class PhaseQuery:
    """The parameters of a phase's leaderboard. `run_type` and `role` select rows and change no rank."""

    board: BoardQuery
    standings: StandingsQuery | None = None
    view: str = OFFICIAL
    run_type: str | None = None
    role: str | None = None


@dataclass(frozen=True)
class PhaseBoard:
    """A leaderboard whose rows have hidden names replaced, the entry of each run, and the names of teams by their
    keys."""

    board: Leaderboard
    standings: Standings | None
    entries: dict[UUID, Entry]
    names: dict[int, ShownName]


def read_phase_board(*, phase: Phase, query: PhaseQuery, reader: Reader, whole: bool = False) -> PhaseBoard:
    """Return a page of the leaderboard of a phase, or with `whole` all rows.

    Baselines and entries out of competition stand at their place without a rank, and so do late entries. They are in
    no tier; one of them may be the baseline of the statistics, alone. Raise the errors of leaderboards.
    """
    entries = {entry.run_id: entry for entry in _entries(phase, query.view, reader)}
    beside = frozenset(run for run, entry in entries.items() if not _is_ranked(entry))
    asked = query.standings
    baseline = UUID(asked.baseline) if asked and asked.baseline else None
    against = baseline if baseline in beside else None
    if asked and against and {"tiers", "ranks", "expected"} & set(asked.parts):
        message = "this baseline does not compete: ask for its statistics without tiers, ranks and expected means"
        raise StatisticsError(message, code="bad_parameter", pointer="statistics")
    among = Among(frozenset(entries), beside, _rows(entries.values(), query), against)
    board_query = replace(query.board, among=among)
    read = read_whole_board if whole else read_leaderboard
    board = read(collection=phase.collection, query=board_query)
    standings = read_standings(board=board, query=asked) if asked else None
    teams = {entry.participation for entry in entries.values() if entry.participation}
    names = shown_names(phase, teams, reader.own, reader.organiser, reader.now)
    rows = [_masked(row, entries[row.run.pk], names) for row in board.rows]
    return PhaseBoard(replace(board, rows=rows), standings, entries, names)


def _entries(phase: Phase, view: str, reader: Reader) -> list[Entry]:
    """Return the entries that a view is of. On the official one stand those of the last release, or before one those
    that the phase's rule selects now."""
    rows = Entry.objects.filter(phase=phase, state=_ENTERED).defer("answers").select_related(*_WITH)
    if view == LATE:
        return list(rows.filter(late=True))
    on_time = list(rows.filter(late=False))
    if view == ALL:
        return on_time
    if view == AFTERWARDS:
        later = Entry.objects.filter(state=_ENTERED, phase__kind=Phase.Kind.AFTERWARDS).select_related(*_WITH)
        later = later.filter(phase__campaign=phase.campaign_id, phase__collection=phase.collection_id)
        if not reader.organiser:
            later = later.filter(participation=reader.own)
        on_time = [*_official(phase, on_time), *later]
        return list({entry.run_id: entry for entry in on_time}.values())
    return _official(phase, on_time)


def _official(phase: Phase, on_time: list[Entry]) -> list[Entry]:
    done = Release.objects.filter(phase=phase).exclude(done_at=None).order_by("-done_at", "-audience").first()
    if phase.selection == Phase.Selection.ALL:
        return on_time
    if done:
        chosen = set(done.official)
    else:
        qrels = phase.collection.active_qrels
        found = official(phase, lambda runs: primary_means(phase, qrels, runs) if qrels else {})
        chosen = {str(entry.pk) for entry in found}
    return [entry for entry in on_time if entry.role != _COMPETING or str(entry.pk) in chosen]


def _is_ranked(entry: Entry) -> bool:
    return entry.role == _COMPETING and not entry.late and entry.phase.kind != Phase.Kind.AFTERWARDS


def _rows(entries: Iterable[Entry], query: PhaseQuery) -> frozenset[UUID] | None:
    """Return the runs whose rows are asked for, or None for all."""
    if query.run_type is None and query.role is None:
        return None
    kept = (entry for entry in entries if query.run_type in (None, entry.run_type))
    return frozenset(entry.run_id for entry in kept if query.role in (None, entry.role))


def _masked(row: Row, entry: Entry, names: dict[int, ShownName]) -> Row:
    """Return a row without anything that names a hidden team: its slug and name, tag, system and labels."""
    shown = names[entry.participation_id] if entry.participation_id else None
    if shown is None or not shown.hidden:
        return row
    run = copy.copy(row.run)
    run.team, run.system, run.tag, run.version = Team(slug=shown.slug, name=shown.name), None, hidden_tag(entry), None
    return replace(row, run=run, labels=(), chosen=None, cells={})
