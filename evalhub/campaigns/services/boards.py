"""The leaderboard of a phase: the entries of the phase alone, with names as the reader sees them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet

from evalhub.campaigns.services.pseudonyms import ShownName, hidden_tag, shown_names
from evalhub.campaigns.services.results import JUDGED
from metrics.engine.cautions import Caution
from metrics.engine.errors import StatisticsError
from metrics.models import Evaluation
from metrics.services.boards.board_question import Among, BoardQuery, active_qrels, primary_means
from metrics.services.boards.entries import (
    PhaseEntry,
    official_of,
    read_phase_entries,
    runs_of,
)
from metrics.services.boards.leaderboard import Leaderboard, Row, read_leaderboard, read_whole_board
from metrics.services.boards.official_entries import seen_while_frozen
from metrics.services.boards.standing_parts import Received, Standings, StandingsQuery
from metrics.services.boards.standings import read_standings
from metrics.services.values.judged_views import means_of
from runs.models import Disclosure, Entry, Participation, Phase, Qrels, Release, Team

OFFICIAL, ALL, LATE, AFTERWARDS = "official", "all", "late", "afterwards"
VIEWS = (OFFICIAL, ALL, LATE, AFTERWARDS)
# The fields of an entry, its phase and its team that a row shows.
_SHOWN = (
    "phase__slug", "run_id", "number", "role", "label", "run_type", "priority", "late", "chosen", "state",
    "state_reason", "participation__campaign_id", "participation__name", "participation__former_name",
    "participation__pseudonym", "participation__anonymous_until", "participation__team__slug",
    "participation__team__name",
)  # fmt: skip
_ENTERED, _DISQUALIFIED, _COMPETING = (
    Entry.State.ENTERED,
    Entry.State.DISQUALIFIED,
    Entry.Role.COMPETING,
)


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
    """A leaderboard whose rows have hidden names replaced, the entry of each row's run, and by the keys of their teams
    the names and, where the phase gives feedback, the numbers of entries that each has made,
    withdrawn ones included."""

    board: Leaderboard
    standings: Standings | None
    entries: dict[UUID, Entry]
    names: dict[int, ShownName]
    attempts: dict[int, int] | None
    cautions: list[Caution]

    def attempts_of(self, entry: Entry) -> int | None:
        """Return how many entries the team of an entry has made, where the phase gives feedback."""
        return (
            self.attempts.get(entry.participation_id)
            if self.attempts and entry.participation_id
            else None
        )

    def name_of(self, entry: Entry) -> ShownName | None:
        """Return the name of an entry's team; None for an entry of the organisers."""
        return self.names[entry.participation_id] if entry.participation_id else None

    def as_file(self) -> Leaderboard:
        """Return the leaderboard with what files say of the entry of each row."""
        return replace(
            self.board, rows=[replace(row, extra=self._beside(row)) for row in self.board.rows]
        )

    def _beside(self, row: Row) -> dict[str, Any]:
        entry = self.entries[row.run.pk]
        name = self.name_of(entry)
        return {
            "entry": entry.number,
            "phase": entry.phase.slug,
            "team_name": name.name if name else None,
            "role": entry.role,
            "label": entry.label,
            "run_type": entry.run_type,
            "late": str(entry.late).lower(),
            "priority": entry.priority,
            **({} if self.attempts is None else {"attempts": self.attempts_of(entry)}),
            "entry_state": entry.state,
            "entry_reason": entry.state_reason,
        }


def read_phase_board(
    *, phase: Phase, query: PhaseQuery, reader: Reader, whole: bool = False
) -> PhaseBoard:
    """Return a page of the leaderboard of a phase, or with `whole` all rows.

    Baselines and entries out of competition stand at their place without a rank, and so do late
    entries, those that came afterwards and those that were disqualified after the public release.
    They are in no tier; one of them may be the baseline of the statistics, alone. Raise the errors
    of leaderboards.
    """
    qrels = active_qrels(phase.collection)
    entries = {entry.run_id: entry for entry in _entries(phase, query.view, reader, qrels)}
    beside = frozenset(run for run, entry in entries.items() if not entry.is_ranked)
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
    standings = None
    if asked:
        received = _received(phase, reader)
        standings = read_standings(board=board, query=asked, received=received)

    found = _shown(phase, board, entries)
    teams = {entry.participation for entry in found.values() if entry.participation}
    names = shown_names(phase, teams, reader.own, reader.organiser, reader.now)
    rows = [_masked(row, found[row.run.pk], names) for row in board.rows]
    later = [
        run
        for run, entry in entries.items()
        if entry.afterwards or phase.kind == Phase.Kind.AFTERWARDS
    ]
    sees_all = reader.organiser or phase.collection.disclosure >= Disclosure.PARTICIPANTS
    cautions = _unpooled(phase, board.qrels, later) if later and sees_all else []
    if standings and cautions:
        standings = replace(standings, cautions=[*standings.cautions, *cautions])

    return PhaseBoard(
        replace(board, rows=rows), standings, found, names, _attempts(phase, reader), cautions
    )


def _shown(phase: Phase, board: Leaderboard, entries: dict[UUID, PhaseEntry]) -> dict[UUID, Entry]:
    """Return the entries of the rows of a leaderboard by their runs."""
    rows = Entry.objects.filter(
        phase__campaign=phase.campaign_id, run__in=[row.run.pk for row in board.rows]
    )
    rows = rows.select_related("phase", "participation__team").only(*_SHOWN)
    # A run may be entered in several phases.
    found = {
        entry.run_id: entry for entry in rows if entry.phase_id == entries[entry.run_id].phase_id
    }

    for entry in found.values():
        if entry.participation:
            entry.participation.campaign = phase.campaign

    return found


def _unpooled(phase: Phase, qrels: Qrels, later: list[UUID]) -> list[Caution]:
    """Return a caution if fewer of the top ten documents of a run that came afterwards are judged than of any run that
    was there when the judgements were made: what is not judged counts as not relevant."""
    held = Entry.objects.filter(
        phase__campaign=phase.campaign_id, phase__collection=phase.collection_id
    )
    held = held.filter(role=_COMPETING, state=_ENTERED, late=False).exclude(
        phase__kind=Phase.Kind.AFTERWARDS
    )
    of_both = Q(run__in=later) | Q(run__entries__in=held)
    done = (
        Evaluation.objects.filter(of_both)
        .evaluated()
        .counting(Q(qrels=qrels), phase.collection.scores)
        .distinct()
    )
    keys = dict(done.values_list("pk", "run_id"))
    shares = means_of(list(keys), [JUDGED], qrels.pk)
    judged = {
        run: share for pk, run in keys.items() if (share := shares[pk, JUDGED.name][0]) is not None
    }
    after = set(later)
    least = min((share for run, share in judged.items() if run not in after), default=None)
    below = [
        share
        for run, share in judged.items()
        if run in after and least is not None and share < least
    ]
    if not below:
        return []

    which = (
        "1 run that came afterwards has"
        if len(below) == 1
        else f"{len(below):,} runs that came afterwards have"
    )
    message = f"{which} fewer judged documents among the first ten than every run before (less than {least:.3f})"

    return [Caution("unpooled_runs", f"{message}: what is not judged counts as not relevant")]


def _attempts(phase: Phase, reader: Reader) -> dict[int, int] | None:
    """Return how many entries each team has made that the reader sees, or None where nobody learns from them."""
    if phase.feedback == Phase.Feedback.NONE:
        return None
    entries = _entries_seen(phase, reader).filter(role=_COMPETING).exclude(participation=None)
    return dict(entries.values_list("participation").annotate(n=Count("pk")))


def _received(phase: Phase, reader: Reader) -> Received:
    """Count the entries of a phase that the reader sees, withdrawn ones included."""
    withdrawn = Q(state=Entry.State.WITHDRAWN)
    return Received(
        **_entries_seen(phase, reader).aggregate(
            runs=Count("pk"),
            teams=Count("run__team", distinct=True),
            withdrawn=Count("pk", filter=withdrawn),
            since=Min("arrived_at"),
        )
    )


def _entries_seen(phase: Phase, reader: Reader) -> QuerySet[Entry]:
    """Return the entries of a phase, without an order; for teams without the later ones of others while the leaderboard
    is frozen."""
    seen = Q() if reader.organiser else seen_while_frozen(phase, reader.own, reader.now)
    return Entry.objects.filter(seen, phase=phase).order_by()


def _entries(phase: Phase, view: str, reader: Reader, qrels: Qrels) -> list[PhaseEntry]:
    """Return the entries that a view is of. On the official one stand those of the last release, or before one those
    that the phase's rule selects now."""
    afterwards = phase.kind == Phase.Kind.AFTERWARDS
    rows = _entries_seen(phase, reader)
    if afterwards:
        rows = rows.filter(_published_to(reader))
    if view == LATE:
        return read_phase_entries(rows.filter(late=True, state=_ENTERED))

    in_time = rows.filter(late=False).exclude(state=Entry.State.WITHDRAWN)
    on_time = _stood(phase, read_phase_entries(in_time, afterwards=afterwards))
    if view == ALL:
        return on_time

    official = official_of(phase, on_time, partial(primary_means, qrels))
    if view == AFTERWARDS:
        later = Entry.objects.filter(state=_ENTERED, phase__kind=Phase.Kind.AFTERWARDS)
        later = later.filter(_published_to(reader), phase__collection=phase.collection_id)
        later = later.filter(phase__campaign=phase.campaign_id).exclude(phase=phase)

        return [*official, *read_phase_entries(later, afterwards=True)]

    return official


def _published_to(reader: Reader) -> Q:
    """Return the condition of entries that came afterwards and that the reader sees: those of the own team, published
    ones and those of organisers, who see all."""
    if reader.organiser:
        return Q()

    shown = Q(published=True) | Q(participation=None)

    return shown | Q(participation=reader.own) if reader.own else shown


def _stood(phase: Phase, entries: list[PhaseEntry]) -> list[PhaseEntry]:
    """Leave out disqualified entries, but for those that stood on the official leaderboard when it was released to the
    public: who read it then finds them with the reason."""
    if all(entry.state == _ENTERED for entry in entries):
        return entries

    public = Release.objects.filter(phase=phase, audience=Release.Audience.PUBLIC).exclude(
        done_at=None
    )
    stood = runs_of(
        {pk for official in public.values_list("official", flat=True) for pk in official}
    )

    return [entry for entry in entries if entry.state == _ENTERED or entry.run_id in stood]


def _rows(entries: Iterable[PhaseEntry], query: PhaseQuery) -> frozenset[UUID] | None:
    """Return the runs whose rows are asked for, or None for all."""
    if query.run_type is None and query.role is None:
        return None
    kept = (entry for entry in entries if query.run_type in (None, entry.run_type))
    return frozenset(entry.run_id for entry in kept if query.role in (None, entry.role))


def _masked(row: Row, entry: Entry, names: dict[int, ShownName]) -> Row:
    """Return a row without anything that names a hidden team: its slug and name, tag, system and labels. The row of a
    disqualified entry says why it has no rank."""
    if entry.state == _DISQUALIFIED:
        row = replace(row, reason=f"disqualified: {entry.state_reason}")

    shown = names[entry.participation_id] if entry.participation_id else None
    if shown is None or not shown.hidden:
        return row

    run = copy.copy(row.run)
    run.team, run.system, run.tag, run.version = (
        Team(slug=shown.slug, name=shown.name),
        None,
        hidden_tag(entry),
        None,
    )

    return replace(row, run=run, labels=(), chosen=None, cells={})
