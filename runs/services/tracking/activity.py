"""Recent activity of others where a user works: runs, notes and labels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from runs.models import Collection, LabelMove, Note, Run, Team

_LONG = ("metadata", "costs", "ir_metadata", "warnings", "known_warnings")


@dataclass(frozen=True)
class Deed:
    """Something that somebody did: `kind` is run, note or label, `item` the run, note or move."""

    at: datetime
    kind: str
    item: Any


def recent_activity(user: Any, limit: int) -> list[Deed]:
    """Return what others did last, latest first.

    These are runs and notes that the user sees in collections that the user's teams own or have
    submitted to, and moves of the teams' labels.
    """
    teams = list(Team.objects.of(user).values_list("pk", flat=True))
    submitted = Run.objects.filter(team__in=teams, deleted_at=None).order_by().values("collection")
    collections = (
        Collection.objects.visible_to(user)
        .filter(Q(team__in=teams) | Q(pk__in=submitted))
        .order_by()
        .values("pk")
    )

    visible = Run.objects.visible_to(user).filter(collection__in=collections)
    runs = (
        visible.exclude(submitted_by=user)
        .select_related("team", "collection")
        .defer(*_LONG)
        .order_by("-created_at")
    )

    about = Q(run__in=visible) | Q(collection__in=collections) | Q(experiment__team__in=teams)
    notes = (
        Note.objects.filter(about)
        .exclude(author=user)
        .select_related("run", "collection", "experiment")
    )

    moves = (
        LabelMove.objects.filter(team__in=teams, to_run__in=visible)
        .exclude(by=user)
        .select_related("team", "to_run")
    )

    deeds = [Deed(run.created_at, "run", run) for run in runs[:limit]]
    deeds += [Deed(note.created_at, "note", note) for note in notes[:limit]]
    deeds += [Deed(move.at, "label", move) for move in moves[:limit]]

    return sorted(deeds, key=lambda deed: deed.at, reverse=True)[:limit]
