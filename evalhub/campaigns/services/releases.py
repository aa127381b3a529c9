"""Plan and cancel releases. evalhub.campaigns.services.releasing does them, by evaluations."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from evalhub.campaigns.services.notifications import time_text
from evalhub.campaigns.services.phase_times import last_closing_time
from evalhub.campaigns.services.phases import locked_phase
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, Campaign, Collection, Phase, Qrels, Release, User
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, record

_Action = AuditEvent.Action


def plan_release(
    *,
    phase: Phase,
    audience: int,
    user: User,
    at: datetime | None = None,
    qrels: int | None = None,
    with_run_files: bool = False,
    note: str = "",
    origin: Origin = SYSTEM,
) -> Release:
    """Plan a release of the results of a phase; without `at`, an organiser does it by hand.

    Raise NotAllowed unless the user organises the collection, InvalidInput for an unknown version
    of judgements, Conflict for a time that is past or before the phase is over, for a campaign that
    is not published, and if this audience has results by the same judgements already.
    """
    with transaction.atomic():
        phase, now = locked_phase(phase), clock.database_now()
        check_releaser(phase, user)
        if phase.campaign.state != Campaign.State.PUBLISHED:
            message = (
                f"campaign {phase.campaign} is {phase.campaign.state}; a published one has releases"
            )
            raise Conflict(message, code="not_published")

        version = None
        if qrels is not None:
            version = phase.collection.qrels.filter(version=qrels).first()
            if version is None:
                message = f"collection {phase.collection} has no judgements of version {qrels}"
                raise InvalidInput(message, pointer="/qrels")

        if at is not None and at <= now:
            message = (
                f"{time_text(at)} is past; leave `at` out and POST to now/, or give a later time"
            )
            raise Conflict(message, code="release_in_the_past", pointer="/at")

        phase_end = last_closing_time(phase)
        if at is not None and at < phase_end and phase.kind == Phase.Kind.EVALUATION:
            message = (
                f"phase {phase.slug} closes at {time_text(phase_end)}; its results are released then "
                "or later"
            )
            raise Conflict(message, code="phase_not_over", pointer="/at")

        _check_new(phase, audience, version or phase.collection.active_qrels)
        fields = {
            "planned_at": at,
            "qrels": version,
            "with_run_files": with_run_files,
            "note": note,
        }
        release = Release.objects.create(phase=phase, audience=audience, planned_by=user, **fields)
        after = {"planned_at": at, "qrels": qrels, "with_run_files": with_run_files}
        recorded = {name: value for name, value in after.items() if value is not None}
        record(
            origin, _Action.RELEASE_PLANNED, release, collection=phase.collection, after=recorded
        )

    return release


def cancel_release(*, release: Release, user: User, origin: Origin = SYSTEM) -> None:
    """Cancel a planned release.

    Raise Conflict for one that is done or cancelled, NotAllowed as for planning.
    """
    with transaction.atomic():
        current = locked_release(release)
        check_releaser(current.phase, user)
        check_planned(current)
        Release.objects.filter(pk=current.pk).update(cancelled_at=clock.database_now())
        record(origin, _Action.RELEASE_CANCELLED, current, collection=current.phase.collection)


def check_releaser(phase: Phase, user: User) -> None:
    """Raise NotAllowed unless the user is an organiser of the campaign and of the collection."""
    campaigns = Campaign.objects.organised_by(user).filter(pk=phase.campaign_id)
    collections = Collection.objects.managed_by(user).filter(pk=phase.collection_id)
    if not (campaigns.exists() and collections.exists()):
        raise NotAllowed(
            f"only organisers of campaign {phase.campaign} and its collection can release results"
        )


def check_planned(release: Release) -> None:
    """Raise Conflict for a release that is done or cancelled."""
    if release.done_at:
        raise Conflict(
            f"the {release} was done at {time_text(release.done_at)}, permanently",
            code="already_released",
        )

    if release.cancelled_at:
        raise Conflict(f"the {release} was cancelled; plan another one", code="release_cancelled")


def locked_release(release: Release) -> Release:
    """Return a release as it is now, with its phase, locked until the transaction ends."""
    rows = Release.objects.select_for_update(of=("self",))
    return rows.select_related("phase__campaign__team", "phase__collection", "planned_by").get(
        pk=release.pk
    )


def due_releases(now: datetime) -> QuerySet[Release]:
    """Return the planned releases whose time has come, in the order of their times."""
    rows = Release.objects.filter(done_at=None, cancelled_at=None, planned_at__lte=now)
    return rows.order_by("planned_at", "audience")


def _check_new(phase: Phase, audience: int, qrels: Qrels | None) -> None:
    """Raise Conflict if this audience has the results by these judgements, or will have them.

    The row of the phase is locked.
    """
    last = (
        Release.objects.filter(phase=phase)
        .exclude(done_at=None)
        .order_by("-audience", "-done_at")
        .first()
    )
    if last and last.audience >= audience:
        message = (
            f"the results of phase {phase.slug} are released to {last.get_audience_display()} "
            "already"
        )
        if last.audience > audience:
            raise Conflict(message, code="already_released", pointer="/audience")
        if qrels is None or last.qrels_id == qrels.pk:
            message += (
                "; they can be released again by other judgements: activate these, or name their "
                "version in qrels"
            )
            raise Conflict(message, code="already_released")

    if Release.objects.filter(
        phase=phase, cancelled_at=None, done_at=None, audience=audience
    ).exists():
        message = (
            f"a release of phase {phase.slug} to {Release.Audience(audience).label} is planned; "
            "cancel it first"
        )
        raise Conflict(message, code="already_planned", pointer="/audience")
