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

# Characters of a snapshot's SHA-256 in its address; more where two begin alike.
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
    """Store a snapshot. Return it, and whether it is new: the same content is one snapshot.

    `archive` makes the archive from the snapshot's number, time and address. Raise Conflict if the
    campaign has too many snapshots.
    """
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
        snapshot = Snapshot(
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
        snapshot.archive = archive(snapshot)
        snapshot.archive_bytes = len(snapshot.archive)
        snapshot.archive_sha256 = hashlib.sha256(snapshot.archive).hexdigest()
        snapshot.save(force_insert=True)
        after = {"sha256": sha256, "label": label, "phase": phase.slug if phase else None}
        record(
            origin,
            _Action.SNAPSHOT_MADE,
            snapshot,
            collection=phase.collection if phase else None,
            after=after,
        )

    return snapshot, True


def withdraw_snapshot(*, snapshot: Snapshot, reason: str, origin: Origin = SYSTEM) -> Snapshot:
    """Withdraw a snapshot for a reason that is shown at its address, which stays.

    Raise Conflict if it is withdrawn already.
    """
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
        current = Snapshot.objects.select_for_update().get(pk=snapshot.pk)
        if current.withdrawn_at:
            raise Conflict(f"snapshot {current.code} is withdrawn", code="already_withdrawn")

        if current.doi and current.doi != doi:
            message = (
                f"snapshot {current.code} has the DOI {current.doi}, which papers may cite already"
            )
            raise Conflict(message, code="doi_given", pointer="/doi")

        if not current.doi:
            Snapshot.objects.filter(pk=current.pk).update(doi=doi)
            record(
                origin, _Action.SNAPSHOT_CHANGED, current, before={"doi": ""}, after={"doi": doi}
            )
            current.doi = doi

    return current


def snapshots_seen_by(user: Any) -> QuerySet[Snapshot]:
    """Return the snapshots that the user sees: those of visible campaigns with visible results.

    For a snapshot of one phase, these are the results on its collection; for one of a campaign,
    those on the collections of all phases. Hidden names are pseudonyms, as on the leaderboard.
    """
    hidden = Collection.objects.exclude(pk__in=Collection.objects.disclosed_to(user).values("pk"))
    of_all = Phase.objects.filter(collection__in=hidden.values("pk")).values("campaign")
    rows = Snapshot.objects.filter(campaign__in=Campaign.objects.visible_to(user).values("pk"))
    rows = rows.filter(Q(phase__isnull=False) | ~Q(campaign__in=of_all))
    rows = rows.exclude(phase__collection__in=hidden.values("pk"))

    return rows.select_related("campaign__team", "phase__collection").defer("archive")


def _whole_second(moment: datetime) -> datetime:
    """Return the moment in whole seconds, as files of an archive have it."""
    return moment.replace(microsecond=0)
