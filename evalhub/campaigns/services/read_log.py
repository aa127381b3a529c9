"""Record when organisers read values of entries that nobody else sees yet.

Extensions that are announced afterwards say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils.dateparse import parse_datetime

from runs.models import AuditEvent, Collection, Disclosure, Entry, Phase
from runs.services import clock
from runs.services.audit.reading import after_snapshot
from runs.services.audit.trail import Origin, record

_READ = AuditEvent.Action.VALUES_READ


def note_values_read(collection: Collection, origin: Origin) -> None:
    """Record that somebody reads values that only organisers see, once for each person and phase.

    Only phases with entries of teams are recorded, after the open snapshot and before the values
    are sent.
    """
    if origin.actor is None or collection.disclosure != Disclosure.ORGANISERS:
        return

    entered = Entry.objects.filter(
        phase__collection=collection, participation__isnull=False
    ).order_by()
    phases = list(
        Phase.objects.filter(pk__in=entered.values("phase"))
        .select_related("campaign")
        .order_by("pk")
    )
    if phases and (new := _not_noted(phases, origin)):
        after_snapshot(lambda: _note(new, collection, origin))


def values_seen_since(phase: Phase) -> datetime | None:
    """Return when an organiser first read values of a phase that nobody else saw, or None."""
    rows = AuditEvent.objects.filter(object_id=str(phase), action=_READ).values_list(
        "after", flat=True
    )
    times = [at for after in rows if (at := parse_datetime(after["at"]))]

    return min(times, default=None)


def _not_noted(phases: Sequence[Phase], origin: Origin) -> list[Phase]:
    rows = AuditEvent.objects.filter(object_id__in=[str(phase) for phase in phases], action=_READ)
    noted = set(
        rows.filter(actor_key=origin.actor.pk if origin.actor else None).values_list(
            "object_id", flat=True
        )
    )
    return [phase for phase in phases if str(phase) not in noted]


def _note(phases: Sequence[Phase], collection: Collection, origin: Origin) -> None:
    with transaction.atomic():
        # If two requests come at once, the second one finds what the first one wrote.
        locked = Phase.objects.select_for_update(of=("self",)).filter(
            pk__in=[phase.pk for phase in phases]
        )
        for phase in _not_noted(list(locked.select_related("campaign").order_by("pk")), origin):
            record(origin, _READ, phase, collection=collection, after={"at": clock.database_now()})
