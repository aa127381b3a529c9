"""Keep snapshots: store one, withdraw it, give it a DOI, and find those that a user sees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Max, Q, QuerySet

from evalhub.campaigns.services.campaigns import locked
from runs.errors import Conflict
from runs.models import AuditEvent, Campaign, Collection, Phase, Snapshot, User
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, record

# Of a snapshot's SHA-256 in its address; more where two begin alike.
CODE = 20
MAX_SNAPSHOTS = 200
_Action = AuditEvent.Action


def keep_snapshot(
    *,
    campaign: Campaign,
    phase: Phase | None,
    label: str,
    manifest: bytes,
    archive: Callable[[Snapshot], bytes],
    user: User,
    origin: Origin = SYSTEM,
) -> tuple[Snapshot, bool]:
    """Store a snapshot, whose archive is made of its number, time and address. Return it, and whether it is new: the
    same content is one snapshot. Raise Conflict if the campaign has too many."""
    sha256 = hashlib.sha256(manifest).hexdigest()
    with transaction.atomic():
        campaign = locked(campaign)
        same = Snapshot.objects.filter(sha256=sha256).first()
        if same:
            return same, False

        others = Snapshot.objects.filter(campaign=campaign)
        if others.count() >= MAX_SNAPSHOTS:
            raise Conflict(
                f"campaign {campaign} has {MAX_SNAPSHOTS} snapshots", code="too_many_snapshots"
            )

        length = CODE

        while Snapshot.objects.filter(code=sha256[:length]).exists():
            length += 1

        before = others.filter(phase=phase, withdrawn_at=None).order_by("-number").first()
        made = Snapshot(
            campaign=campaign,
            phase=phase,
            number=(others.aggregate(most=Max("number"))["most"] or 0) + 1,
            code=sha256[:length],
            sha256=sha256,
            label=label,
            manifest=manifest.decode(),
            created_at=_whole_second(clock.database_now()),
            actor=user,
            supersedes=before,
        )
        made.archive = archive(made)
        made.archive_bytes = len(made.archive)
        made.archive_sha256 = hashlib.sha256(made.archive).hexdigest()
        made.save(force_insert=True)
        after = {"sha256": sha256, "label": label, "phase": phase.slug if phase else None}
        record(
            origin,
            _Action.SNAPSHOT_MADE,
            made,
            collection=phase.collection if phase else None,
            after=after,
        )

    return made, True


def withdraw_snapshot(*, snapshot: Snapshot, reason: str, origin: Origin = SYSTEM) -> Snapshot:
    """Withdraw a snapshot for a reason that everybody reads who opens it; its address stays. Raise Conflict if it is
    withdrawn already."""
    with transaction.atomic():
        rows = Snapshot.objects.filter(pk=snapshot.pk, withdrawn_at=None)
        if not rows.update(withdrawn_at=clock.database_now(), withdrawn_reason=reason):
            raise Conflict(
                f"snapshot {snapshot.code} is withdrawn already", code="already_withdrawn"
            )

        record(origin, _Action.SNAPSHOT_WITHDRAWN, snapshot, after={"reason": reason})

    return Snapshot.objects.get(pk=snapshot.pk)


def give_doi(*, snapshot: Snapshot, doi: str, origin: Origin = SYSTEM) -> Snapshot:
    """Give a snapshot its DOI, once. Raise Conflict if it has another, or is withdrawn."""
    with transaction.atomic():
        found = Snapshot.objects.select_for_update().get(pk=snapshot.pk)
        if found.withdrawn_at:
            raise Conflict(f"snapshot {found.code} is withdrawn", code="already_withdrawn")

        if found.doi and found.doi != doi:
            message = (
                f"snapshot {found.code} has the DOI {found.doi}, which papers may cite already"
            )
            raise Conflict(message, code="doi_given", pointer="/doi")

        if not found.doi:
            Snapshot.objects.filter(pk=found.pk).update(doi=doi)
            record(origin, _Action.SNAPSHOT_CHANGED, found, before={"doi": ""}, after={"doi": doi})
            found.doi = doi

    return found


def snapshots_seen_by(user: Any) -> QuerySet[Snapshot]:
    """Return the snapshots of campaigns that the user sees, if the user sees all of their results as well: of one phase
    those on its collection, of a campaign those on the collections of all its phases. Hidden names
    are pseudonyms in a snapshot as on the leaderboard."""
    hidden = Collection.objects.exclude(pk__in=Collection.objects.disclosed_to(user).values("pk"))
    of_all = Phase.objects.filter(collection__in=hidden.values("pk")).values("campaign")
    rows = Snapshot.objects.filter(campaign__in=Campaign.objects.visible_to(user).values("pk"))
    rows = rows.filter(Q(phase__isnull=False) | ~Q(campaign__in=of_all))
    rows = rows.exclude(phase__collection__in=hidden.values("pk"))

    return rows.select_related("campaign__team", "phase__collection").defer("archive")


def _whole_second(moment: datetime) -> datetime:
    """Files of an archive have no smaller unit of time."""
    return moment.replace(microsecond=0)
