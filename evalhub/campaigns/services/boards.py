"""The leaderboard of a phase: its entries, with names as the reader sees them."""

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
from metrics.services.question import Choice, Parameter, Question, nested, parameter
from metrics.services.values.judged_views import means_of
from runs.models import Disclosure, Entry, Participation, Phase, Qrels, Release, Team

OFFICIAL, ALL, LATE, AFTERWARDS = "official", "all", "late", "afterwards"
VIEWS = (OFFICIAL, ALL, LATE, AFTERWARDS)
# The fields of an entry, its phase and its team that a row shows.
_ROW_FIELDS = (
    "phase__slug", "run_id", "number", "role", "label", "run_type", "priority", "late", "chosen",
    "paper", "state", "state_reason", "participation__campaign_id", "participation__name",
    "participation__former_name", "participation__pseudonym", "participation__anonymous_until",
    "participation__team__slug", "participation__team__name",
)  # fmt: skip
_ENTERED, _DISQUALIFIED, _COMPETING = (
    Entry.State.ENTERED,
    Entry.State.DISQUALIFIED,
    Entry.Role.COMPETING,
)


@dataclass(frozen=True)
class Reader:
    """The reader of a phase's leaderboard: the reader's own team, and whether it is an organiser.

    `now` decides which names are hidden.
    """

    own: Participation | None
    organiser: bool
    now: datetime


@dataclass(frozen=True)
class PhaseQuery(Question):
    """The parameters of a phase's leaderboard.

    `run_type` and `role` select rows and do not change ranks.
    """

    board: BoardQuery = nested(BoardQuery)
    view: str = parameter(
        Choice(
            "the official entries, all on time, late ones, or also those that came afterwards",
            default=OFFICIAL,
            choices=VIEWS,
        )
    )
    run_type: str | None = parameter(Parameter("rows of this type alone; ranks stay"))
    role: str | None = parameter(
        Choice("rows of this role alone; ranks stay", choices=tuple(Entry.Role.values))
    )
    standings: StandingsQuery | None = None


@dataclass(frozen=True)
class PhaseBoard:
    """A leaderboard with pseudonyms for hidden teams.

    `entries` are by the run of each row, `names` and `attempts` by the key of a team. `attempts`
    counts all entries, also withdrawn ones, and is None unless the phase gives feedback.
    """

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

    def paper_of(self, entry: Entry) -> str:
        """Return where the paper about an entry is; it would name a hidden team."""
        name = self.name_of(entry)
        return "" if name and name.hidden else entry.paper_address

    def as_file(self) -> Leaderboard:
        """Return the leaderboard with what files say of the entry of each row."""
        return replace(
            self.board,
            rows=[replace(row, extra=self._entry_fields(row)) for row in self.board.rows],
        )

    def _entry_fields(self, row: Row) -> dict[str, Any]:
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
            "paper": self.paper_of(entry),
            **({} if self.attempts is None else {"attempts": self.attempts_of(entry)}),
            "entry_state": entry.state,
            "entry_reason": entry.state_reason,
        }


def read_phase_board(
    *, phase: Phase, query: PhaseQuery, reader: Reader, whole: bool = False
) -> PhaseBoard:
    """Return a page of the leaderboard of a phase, or with `whole` all rows.

    Rows without a rank or a tier, placed by their means, are baselines, entries out of competition,
    late entries, entries that came afterwards and entries that were disqualified after the public
    release. They may be baselines of the statistics, but not with tiers, ranks and expected
    means. Raise the errors of leaderboards.
    """
    qrels = active_qrels(phase.collection)
    entries = {entry.run_id: entry for entry in _entries(phase, query.view, reader, qrels)}
    unranked = frozenset(run for run, entry in entries.items() if not entry.is_ranked)

    statistics = query.standings
    baselines = unranked.intersection(map(UUID, statistics.baselines if statistics else []))
    if statistics and baselines and {"tiers", "ranks", "expected"} & set(statistics.parts):
        message = (
            "this baseline does not compete: ask for its statistics without tiers, ranks and "
            "expected means"
        )
        raise StatisticsError(message, code="bad_parameter", pointer="statistics")

    among = Among(frozenset(entries), unranked, _selected_runs(entries.values(), query), baselines)
    board_query = replace(query.board, among=among)
    read = read_whole_board if whole else read_leaderboard
    board = read(collection=phase.collection, query=board_query)
    standings = None
    if statistics:
        received = _received(phase, reader)
        standings = read_standings(board=board, query=statistics, received=received)

    # Replace the names of hidden teams.
    row_entries = _row_entries(phase, board, entries)
    teams = {entry.participation for entry in row_entries.values() if entry.participation}
    names = shown_names(phase, teams, reader.own, reader.organiser, reader.now)
    rows = [_masked(row, row_entries[row.run.pk], names) for row in board.rows]

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
        board=replace(board, rows=rows),
        standings=standings,
        entries=row_entries,
        names=names,
        attempts=_attempts(phase, reader),
        cautions=cautions,
    )


def _row_entries(
    phase: Phase, board: Leaderboard, entries: dict[UUID, PhaseEntry]
) -> dict[UUID, Entry]:
    """Return the entries of the rows of a leaderboard by their runs."""
    rows = Entry.objects.filter(
        phase__campaign=phase.campaign_id, run__in=[row.run.pk for row in board.rows]
    )
    rows = rows.select_related("phase", "participation__team").only(*_ROW_FIELDS)
    # A run may be entered in several phases.
    row_entries = {
        entry.run_id: entry for entry in rows if entry.phase_id == entries[entry.run_id].phase_id
    }

    for entry in row_entries.values():
        if entry.participation:
            entry.participation.campaign = phase.campaign

    return row_entries


def _unpooled(phase: Phase, qrels: Qrels, later: list[UUID]) -> list[Caution]:
    """Return a caution if a later run has fewer judged documents in its top ten than all before.

    The runs before were entered in time, when the judgements were made. An unjudged document counts
    as not relevant.
    """
    in_time = Entry.objects.filter(
        phase__campaign=phase.campaign_id, phase__collection=phase.collection_id
    )
    in_time = in_time.filter(role=_COMPETING, state=_ENTERED, late=False).exclude(
        phase__kind=Phase.Kind.AFTERWARDS
    )
    evaluations = (
        Evaluation.objects.filter(Q(run__in=later) | Q(run__entries__in=in_time))
        .evaluated()
        .counting(Q(qrels=qrels), phase.collection.scores)
        .distinct()
    )
    runs = dict(evaluations.values_list("pk", "run_id"))
    means = means_of(list(runs), [JUDGED], qrels.pk)
    judged_shares = {
        run: share for pk, run in runs.items() if (share := means[pk, JUDGED.name][0]) is not None
    }

    later_runs = set(later)
    shares_before = [share for run, share in judged_shares.items() if run not in later_runs]
    if not shares_before:
        return []

    least = min(shares_before)
    count = sum(run in later_runs and share < least for run, share in judged_shares.items())
    if not count:
        return []

    subject = (
        "1 run that came afterwards has"
        if count == 1
        else f"{count:,} runs that came afterwards have"
    )
    message = (
        f"{subject} fewer judged documents among the first ten than every run before (less than "
        f"{least:.3f})"
    )

    return [Caution("unpooled_runs", f"{message}: what is not judged counts as not relevant")]


def _attempts(phase: Phase, reader: Reader) -> dict[int, int] | None:
    """Return how many entries of each team the reader sees; None if the phase gives no feedback."""
    if phase.feedback == Phase.Feedback.NONE:
        return None

    entries = _visible_entries(phase, reader).filter(role=_COMPETING).exclude(participation=None)

    return dict(entries.values_list("participation").annotate(n=Count("pk")))


def _received(phase: Phase, reader: Reader) -> Received:
    """Count the entries of a phase that the reader sees, withdrawn ones included."""
    withdrawn = Q(state=Entry.State.WITHDRAWN)
    return Received(
        **_visible_entries(phase, reader).aggregate(
            runs=Count("pk"),
            teams=Count("run__team", distinct=True),
            withdrawn=Count("pk", filter=withdrawn),
            since=Min("arrived_at"),
        )
    )


def _visible_entries(phase: Phase, reader: Reader) -> QuerySet[Entry]:
    """Return the entries of a phase that the reader sees, without an order.

    While the leaderboard is frozen, teams see no later entries of others.
    """
    visible = Q() if reader.organiser else seen_while_frozen(phase, reader.own, reader.now)
    return Entry.objects.filter(visible, phase=phase).order_by()


def _entries(phase: Phase, view: str, reader: Reader, qrels: Qrels) -> list[PhaseEntry]:
    """Return the entries of a view.

    The official view has the entries of the last release, or before the first release those that
    the phase's rule selects now.
    """
    afterwards = phase.kind == Phase.Kind.AFTERWARDS
    rows = _visible_entries(phase, reader)
    if afterwards:
        rows = rows.filter(_published_to(reader))
    if view == LATE:
        return read_phase_entries(rows.filter(late=True, state=_ENTERED))

    in_time = rows.filter(late=False).exclude(state=Entry.State.WITHDRAWN)
    on_time = _without_disqualified(phase, read_phase_entries(in_time, afterwards=afterwards))
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
    """Return the condition for entries that came afterwards and that the reader sees.

    A team sees its own, published ones and those of organisers; organisers see all.
    """
    if reader.organiser:
        return Q()

    visible = Q(published=True) | Q(participation=None)

    return visible | Q(participation=reader.own) if reader.own else visible


def _without_disqualified(phase: Phase, entries: list[PhaseEntry]) -> list[PhaseEntry]:
    """Leave out disqualified entries, unless they were official in a public release.

    Somebody who read that leaderboard finds them again, with the reason.
    """
    if all(entry.state == _ENTERED for entry in entries):
        return entries

    public = Release.objects.filter(phase=phase, audience=Release.Audience.PUBLIC).exclude(
        done_at=None
    )
    released = runs_of(
        {pk for official in public.values_list("official", flat=True) for pk in official}
    )

    return [entry for entry in entries if entry.state == _ENTERED or entry.run_id in released]


def _selected_runs(entries: Iterable[PhaseEntry], query: PhaseQuery) -> frozenset[UUID] | None:
    """Return the runs to list, or None for all."""
    if query.run_type is None and query.role is None:
        return None

    return frozenset(
        entry.run_id
        for entry in entries
        if query.run_type in (None, entry.run_type) and query.role in (None, entry.role)
    )


def _masked(row: Row, entry: Entry, names: dict[int, ShownName]) -> Row:
    """Return a row without the names of a hidden team: its slug, name, tag, system and labels.

    The row of a disqualified entry says why it has no rank.
    """
    if entry.state == _DISQUALIFIED:
        row = replace(row, reason=f"disqualified: {entry.state_reason}")

    name = names[entry.participation_id] if entry.participation_id else None
    if name is None or not name.hidden:
        return row

    run = copy.copy(row.run)
    run.team = Team(slug=name.slug, name=name.name)
    run.tag = hidden_tag(entry)
    run.system = run.version = None

    return replace(row, run=run, labels=(), chosen=None, cells={})
