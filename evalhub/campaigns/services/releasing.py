"""Do releases: at their time by the dispatcher, or at once by an organiser."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial

from django.db import transaction

from evalhub.campaigns.services.guards import check_phases_over
from evalhub.campaigns.services.notifications import notify_released
from evalhub.campaigns.services.phase_times import last_closing_time
from evalhub.campaigns.services.releases import (
    check_planned,
    check_releaser,
    due_releases,
    locked_release,
)
from metrics.engine.errors import EvalHubError
from metrics.models import Evaluation
from metrics.services.boards.board_question import primary_means
from metrics.services.boards.official_entries import official
from runs.errors import Conflict
from runs.models import AuditEvent, Disclosure, Entry, Phase, Qrels, Release, User
from runs.services import clock
from runs.services.audit.trail import Origin, record
from runs.services.collections.collections import disclose, locked_collection

logger = logging.getLogger(__name__)
# Why a release that is due is not done: it waits, or another dispatcher or an organiser came first.
_EXPECTED = (
    "evaluations_running",
    "release_needs_qrels",
    "phase_not_over",
    "already_released",
    "release_cancelled",
)
# What such a release waits for.
WAITS_FOR = ("evaluations", "qrels", "phase")


def release_due() -> int:
    """Do every release whose time has come and which waits for nothing. Return how many were done.

    Several dispatchers may do this at once: each release is done in one transaction that holds its
    row, and whoever comes second finds it done. A dispatcher that dies in between leaves it
    planned.
    """
    done = 0
    for release in due_releases(clock.database_now()).select_related("planned_by"):
        try:
            do_release(release=release, origin=Origin(actor=release.planned_by))
            done += 1
        except Conflict as refusal:
            if refusal.code not in _EXPECTED:
                logger.warning("the %s waits: %s", release, refusal.message)
        except EvalHubError as error:
            # The others are not kept from their time by this one.
            logger.error("the %s failed: %s", release, error.message)

    return done


def release_now(
    *, release: Release, user: User, force: bool = False, reason: str = "", origin: Origin
) -> Release:
    """Do a planned release at once. With `force` and a reason it does not wait for evaluations.

    Raise the errors of `do_release`, and NotAllowed unless the user is an organiser.
    """
    check_releaser(release.phase, user)
    return do_release(release=release, force=force, reason=reason, origin=origin)


def do_release(
    *, release: Release, force: bool = False, reason: str = "", origin: Origin
) -> Release:
    """Do a planned release in one transaction: its audience sees results by active judgements.

    Raise Conflict if it is done or cancelled, if its version of judgements is not the active one or
    none is (`release_needs_qrels`), while entries are evaluated (`evaluations_running`), and before
    the phase is over.
    """
    with transaction.atomic():
        current = locked_release(release)
        check_planned(current)
        phase, audience = current.phase, Disclosure(current.audience)
        # Judgements are activated under the lock of this row: the versions below do not change.
        collection = locked_collection(phase.collection)
        phase.collection = collection
        check_phases_over(collection)
        qrels = collection.active_qrels
        if qrels is None or current.qrels_id not in (None, qrels.pk):
            need = (
                "active judgements"
                if current.qrels is None
                else f"version {current.qrels.version} to be active"
            )
            raise Conflict(f"the {current} needs {need}", code="release_needs_qrels")

        running = count_running(phase, qrels)
        if running and not force:
            message = (
                f"{running:,} entries of phase {phase.slug} are still to be evaluated under "
                "these judgements"
            )
            raise Conflict(message, code="evaluations_running")

        before = collection.disclosure
        if before < audience:
            disclose(collection=collection, to=audience, origin=origin)

        entries = official(phase, partial(primary_means, qrels, phase))
        now = clock.database_now()
        fields = {"done_at": now, "qrels": qrels, "official": [str(entry.pk) for entry in entries]}
        Release.objects.filter(pk=current.pk).update(**fields)
        recorded = {"disclosure": audience.label, "qrels": qrels.version, "sha256": qrels.sha256}
        forced = {"forced": reason, "running": running} if force else {}
        recorded |= {"entries": len(entries), **forced}
        action = AuditEvent.Action.RELEASE_DONE
        record(
            origin,
            action,
            current,
            collection=collection,
            before={"disclosure": before.label},
            after=recorded,
        )
        notify_released(current)

    return Release.objects.select_related("phase__campaign", "phase__collection", "qrels").get(
        pk=current.pk
    )


def count_running(phase: Phase, qrels: Qrels) -> int:
    """Return how many entered runs of a phase wait for an evaluation under these judgements.

    A failed evaluation is final.
    """
    runs = Entry.objects.filter(phase=phase, state=Entry.State.ENTERED).values("run")
    state = Evaluation.State
    done = Evaluation.objects.current(qrels, phase.collection.scores).filter(
        state__in=(state.EVALUATED, state.FAILED)
    )

    return runs.exclude(run__in=done.values("run")).count()


def waits_for(release: Release, now: datetime) -> tuple[str | None, int]:
    """Return what a due release waits for, or None, and how many evaluations are missing.

    A release that waits only for its time is not due.
    """
    if release.done_at or release.cancelled_at:
        return None, 0

    qrels = release.phase.collection.active_qrels
    running = count_running(release.phase, qrels) if qrels else 0
    if release.planned_at is None or release.planned_at > now:
        return None, running
    if qrels is None or release.qrels_id not in (None, qrels.pk):
        return "qrels", running
    if now < last_closing_time(release.phase):
        return "phase", running

    return "evaluations" if running else None, running
