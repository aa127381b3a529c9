"""Which entries of a phase stand on its official board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from django.db.models import Q

from runs.models import Entry, Participation, Phase, Release

Means = Callable[[list[UUID]], Mapping[UUID, float]]
"""means(runs) -> the primary mean of each run that can be ranked, the greater the better"""


class Candidate(Protocol):
    """What decides whether an entry that competes is official."""

    @property
    def run_id(self) -> UUID: ...
    @property
    def participation_id(self) -> int | None: ...
    @property
    def number(self) -> int: ...
    @property
    def arrived_at(self) -> datetime: ...
    @property
    def chosen(self) -> bool: ...


C = TypeVar("C", bound=Candidate)


class Eligible(NamedTuple):
    """An entry that competes; a phase may have thousands."""

    pk: UUID
    run_id: UUID
    participation_id: int
    number: int
    arrived_at: datetime
    chosen: bool


def seen_while_frozen(phase: Phase, own: Participation | None, now: datetime) -> Q:
    """Return the condition for the entries that a team, or None, sees on the leaderboard of a phase.

    While the leaderboard is frozen, until results are released, entries of others count only if
    they arrived before.
    """
    frozen = phase.freeze_board_at
    if (
        frozen is None
        or now < frozen
        or Release.objects.filter(phase=phase, done_at__isnull=False).exists()
    ):
        return Q()
    before = Q(arrived_at__lt=frozen)
    return before | Q(participation=own) if own else before


def eligible(phase: Phase) -> list[Eligible]:
    """Return the entries that compete in a phase, on time and entered."""
    rows = Entry.objects.filter(
        phase=phase, state=Entry.State.ENTERED, role=Entry.Role.COMPETING, late=False
    )
    values = rows.order_by("participation", "number").values_list(*Eligible._fields)
    return [Eligible(*row) for row in values]


def official(phase: Phase, means: Means) -> list[Eligible]:
    """Return the entries of the official board by the rule of the phase."""
    return selected(phase, eligible(phase), means)


def selected(phase: Phase, rows: list[C], means: Means) -> list[C]:
    """Return the competing entries that are official, by the rule of the phase.

    The rule takes of each team all entries, the latest, those that it chose (the latest if it chose
    none), or the best under the judgements that `means` reads.

    Of entries that arrived at the same instant the one with the greater number is the latest; of
    equal means the one that arrived first is the best. Where no entry of a team can be ranked, its
    latest one is official, without a rank.
    """
    rule = phase.selection
    if rule == Phase.Selection.ALL:
        return rows
    mean_of = means([entry.run_id for entry in rows]) if rule == Phase.Selection.BEST else {}

    def place(entry: C) -> tuple[float, datetime, int]:
        return -mean_of[entry.run_id], entry.arrived_at, entry.number

    entries: list[C] = []
    by_team = sorted(rows, key=lambda entry: (entry.participation_id or 0, entry.number))
    for _, group in groupby(by_team, key=lambda entry: entry.participation_id):
        own, preferred = list(group), list[C]()
        if rule == Phase.Selection.CHOSEN:
            preferred = [entry for entry in own if entry.chosen]
        elif rule == Phase.Selection.BEST:
            preferred = sorted((entry for entry in own if entry.run_id in mean_of), key=place)[:1]
        entries += preferred or [max(own, key=lambda entry: (entry.arrived_at, entry.number))]

    return entries
