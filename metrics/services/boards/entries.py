"""Read the entries of a collection's phases.

They decide which runs its leaderboard ranks, and what each row says of its entry.

The official entries of a collection are those of its evaluation phases; of its development phases
where it has no evaluation. Phases of drafts, phases for training and phases afterwards make no
entry official.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from metrics.services.boards.official_entries import selected
from runs.models import Campaign, Collection, Entry, Phase, Release

# Which runs a leaderboard shows and ranks.
OFFICIAL, EVERY = "official", "all"
SHOWN_ENTRIES = (OFFICIAL, EVERY)
# What a row says of its entry; of a run in several phases, the first of these.
DISQUALIFIED = "disqualified"
BASELINE = "baseline"
OUT_OF_COMPETITION = "out_of_competition"
LATE = "late"
NOT_SELECTED = "not_selected"
AFTERWARDS = "afterwards"
WITHDRAWN = "withdrawn"
NOT_ENTERED = "not_entered"
STATUSES = (
    OFFICIAL,
    DISQUALIFIED,
    BASELINE,
    OUT_OF_COMPETITION,
    LATE,
    NOT_SELECTED,
    AFTERWARDS,
    WITHDRAWN,
    NOT_ENTERED,
)
BARRED = (DISQUALIFIED, WITHDRAWN)
_ENTERED, _COMPETING = Entry.State.ENTERED, Entry.Role.COMPETING

# means(phase, runs) -> the mean of the phase's primary measure of each run that has one, the
# greater the better
PhaseMeans = Callable[[Phase, list[UUID]], Mapping[UUID, float]]


class PhaseEntry(NamedTuple):
    """What decides about the place of an entry; a phase may have thousands."""

    run_id: UUID
    phase_id: int
    role: str
    late: bool
    run_type: str
    state: str
    participation_id: int | None
    number: int
    arrived_at: datetime
    chosen: bool
    published: bool
    afterwards: bool = False

    @property
    def is_ranked(self) -> bool:
        """Return whether it has a rank where it is among the entries of a board."""
        return (
            self.role == _COMPETING
            and self.state == _ENTERED
            and not (self.late or self.afterwards)
        )


_FIELDS = PhaseEntry._fields[:-1]


def read_phase_entries(entries: QuerySet[Entry], *, afterwards: bool = False) -> list[PhaseEntry]:
    """Return the entries, in the order of their numbers."""
    rows = entries.order_by("phase_id", "number").values_list(*_FIELDS)
    return [PhaseEntry._make((*row, afterwards)) for row in rows]


def official_of(phase: Phase, on_time: list[PhaseEntry], means: PhaseMeans) -> list[PhaseEntry]:
    """Return the entries of the official board among those that came in time.

    They are those of the last release, or before a release those that the rule of the phase selects
    now, and all that do not compete.
    """
    if phase.selection == Phase.Selection.ALL:
        return on_time

    releases = Release.objects.filter(phase=phase).exclude(done_at=None)
    release = releases.order_by("-done_at", "-audience").first()
    if release:
        chosen = runs_of(release.official)
    else:
        competing = [
            entry for entry in on_time if entry.role == _COMPETING and entry.state == _ENTERED
        ]
        rows = selected(phase, competing, lambda runs: means(phase, runs))
        chosen = {entry.run_id for entry in rows}

    return [entry for entry in on_time if entry.role != _COMPETING or entry.run_id in chosen]


def runs_of(entries: Iterable[str]) -> set[UUID]:
    """Return the runs of entries, by the ids of these."""
    return set(Entry.objects.filter(pk__in=entries).order_by().values_list("run_id", flat=True))


class EntryStatus(NamedTuple):
    """What a row says of its entry: its status, its campaign/phase, and its number there."""

    status: str
    place: str | None = None
    number: int | None = None

    @property
    def words(self) -> str:
        return self.status.replace("_", " ")


_NO_ENTRY = EntryStatus(NOT_ENTERED)


@dataclass(frozen=True)
class CollectionEntries:
    """The entries of a collection by their runs, and the phases that make them official."""

    by_run: Mapping[UUID, EntryStatus]
    phases: tuple[Phase, ...]

    def of(self, run: UUID) -> EntryStatus:
        return self.by_run.get(run, _NO_ENTRY)

    def with_status(self, *statuses: str) -> frozenset[UUID]:
        """Return the runs whose entries have one of these statuses."""
        return frozenset(run for run, entry in self.by_run.items() if entry.status in statuses)


def read_entries(collection: Collection, means: PhaseMeans) -> CollectionEntries | None:
    """Return the entries of a collection, None where no phase makes one official."""
    phases = (
        Phase.objects.filter(collection=collection)
        .exclude(campaign__state=Campaign.State.DRAFT)
        .select_related("campaign")
    )

    of_kind = {kind: [phase for phase in phases if phase.kind == kind] for kind in Phase.Kind}
    deciding = of_kind[Phase.Kind.EVALUATION] or of_kind[Phase.Kind.DEVELOPMENT]
    if not deciding:
        return None

    phases_by_key = {phase.pk: phase for phase in (*deciding, *of_kind[Phase.Kind.AFTERWARDS])}
    entries = read_phase_entries(
        Entry.objects.filter(phase__in=phases_by_key, run__deleted_at=None)
    )
    official = set[UUID]()

    for phase in deciding:
        phase.collection = collection
        ranked = [entry for entry in entries if entry.phase_id == phase.pk and entry.is_ranked]
        official.update(entry.run_id for entry in official_of(phase, ranked, means))

    by_run: dict[UUID, EntryStatus] = {}
    for entry in entries:
        phase = phases_by_key[entry.phase_id]
        status = _status(entry, phase, official)
        status_of_run = by_run.get(entry.run_id, _NO_ENTRY).status
        if STATUSES.index(status) < STATUSES.index(status_of_run):
            by_run[entry.run_id] = EntryStatus(status, str(phase), entry.number)

    return CollectionEntries(by_run, tuple(deciding))


def _status(entry: PhaseEntry, phase: Phase, official: set[UUID]) -> str:
    if entry.state != _ENTERED:
        return entry.state
    if phase.kind == Phase.Kind.AFTERWARDS:
        # Who else entered afterwards is for its team to publish.
        return AFTERWARDS if entry.published or entry.participation_id is None else NOT_ENTERED
    if entry.role != _COMPETING:
        return entry.role
    if entry.late:
        return LATE
    return OFFICIAL if entry.run_id in official else NOT_SELECTED
