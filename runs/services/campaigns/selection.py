"""Which entries of a phase stand on its official board."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import Q

from runs.models import Entry, Participation, Phase, Release

Means = Callable[[list[UUID]], Mapping[UUID, float]]
"""means(runs) -> the mean of the primary measure of each run that has one, the greater the better"""


def seen_while_frozen(phase: Phase, own: Participation | None, now: datetime) -> Q:
    """Return the condition of the entries of a phase that a team, or somebody without one, sees on its leaderboard:
    once this is frozen, those of others that arrived before, until results are released."""
    frozen = phase.freeze_board_at
    if frozen is None or now < frozen or Release.objects.filter(phase=phase, done_at__isnull=False).exists():
        return Q()
    before = Q(arrived_at__lt=frozen)
    return before | Q(participation=own) if own else before


def eligible(phase: Phase, seen: Q | None = None) -> list[Entry]:
    """Return the entries that compete in a phase, on time and entered, by team and number; of these those that are
    `seen`."""
    rows = Entry.objects.filter(phase=phase, state=Entry.State.ENTERED, role=Entry.Role.COMPETING, late=False)
    return list(rows.filter(seen or Q()).order_by("participation", "number"))


def official(phase: Phase, means: Means, seen: Q | None = None) -> list[Entry]:
    """Return the entries of the official board by the rule of the phase; of each team all, the latest, those that it
    chose (the latest if it chose none), or the best under the judgements that `means` reads.

    Of entries that arrived at the same instant the one with the greater number is the latest; of equal means the one
    that arrived first is the best. A team none of whose entries has a mean has no best one. Entries that are not `seen`
    are as if they were not there.
    """
    rows, rule = eligible(phase, seen), phase.selection
    if rule == Phase.Selection.ALL:
        return rows
    known = means([entry.run_id for entry in rows]) if rule == Phase.Selection.BEST else {}
    found: list[Entry] = []
    for _, group in groupby(rows, key=lambda entry: entry.participation_id):
        own = list(group)
        chosen = [entry for entry in own if entry.chosen] if rule == Phase.Selection.CHOSEN else []
        if rule == Phase.Selection.BEST:
            found += _best(own, known)
        else:
            found += chosen or [max(own, key=lambda entry: (entry.arrived_at, entry.number))]
    return found


def _best(entries: Iterable[Entry], means: Mapping[UUID, float]) -> list[Entry]:
    placed = [entry for entry in entries if entry.run_id in means]
    if not placed:
        return []
    return [min(placed, key=lambda entry: (-means[entry.run_id], entry.arrived_at, entry.number))]
