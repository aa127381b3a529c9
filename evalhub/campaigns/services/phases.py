"""The phases of campaigns: create, change, extend, pause and resume them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.dateparse import parse_datetime

from evalhub.campaigns.services.campaigns import locked
from evalhub.campaigns.services.forms import read_form, read_run_types
from evalhub.campaigns.services.notifications import (
    notify_extended,
    notify_extension_cancelled,
    notify_paused,
    notify_resumed,
    time_text,
)
from evalhub.campaigns.services.phase_times import (
    PhaseState,
    closing_time,
    last_closing_time,
    phase_state,
)
from evalhub.campaigns.services.pseudonyms import ShownName, pseudonym
from evalhub.campaigns.services.read_log import values_seen_since
from evalhub.campaigns.services.tag_patterns import check_naming
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import (
    AuditEvent,
    Campaign,
    Collection,
    Disclosure,
    Extension,
    Participation,
    Phase,
    User,
)
from runs.models.campaigns.disclosure import feedback_on, leaks_to
from runs.models.collections.collections import check_measures
from runs.models.collections.disclosure import files_of
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, changed, record

MAX_PHASES = 50
# An extension that is announced later than this before the old end is called late.
SHORT_NOTICE = timedelta(hours=24)
# A time of a published phase that is further away than this has to be confirmed: the year may be
# mistyped.
FAR_AWAY = timedelta(days=90)
_Action = AuditEvent.Action
# Fields that entries depend on.
_ENTRY_FIELDS = ("run_types", "form")
# Fields that organisers set. The trail has them from the beginning, and fsck compares them with it.
_RECORDED_FIELDS = tuple(
    field.name for field in Phase._meta.concrete_fields
    if field.name not in ("id", "campaign", "paused_at", "paused_reason")
)  # fmt: skip
# Fields that stay as they were published.
_FIXED_FIELDS = ("collection", "kind", "selection")


def create_phase(
    *, campaign: Campaign, user: User, fields: Mapping[str, Any], origin: Origin = SYSTEM
) -> Phase:
    """Return a new phase.

    Raise Conflict if its short name is taken, if the campaign is archived, or if it is an
    evaluation and results on its collection are disclosed; InvalidInput for times, a form or
    measures that do not fit; NotAllowed if the user does not organise the collection.
    """
    slug = fields["slug"]
    try:
        with transaction.atomic():
            campaign = locked(campaign)
            if campaign.state == Campaign.State.ARCHIVED:
                raise Conflict(
                    f"campaign {campaign} is archived; it stays as it is", code="campaign_archived"
                )

            if campaign.phases.count() >= MAX_PHASES:
                raise Conflict(
                    f"campaign {campaign} has {MAX_PHASES} phases", code="too_many_phases"
                )

            phase = Phase(campaign=campaign, **{**fields, **_read_nested(fields)})
            if (
                campaign.state == Campaign.State.PUBLISHED
                and phase.opens_at <= clock.database_now()
            ):
                message = "a phase of a published campaign opens in the future"
                raise InvalidInput(message, pointer="/opens_at")

            _check(phase, user)
            phase.save(force_insert=True)

            after = _audit_fields({name: getattr(phase, name) for name in _RECORDED_FIELDS})
            record(origin, _Action.PHASE_CREATED, phase, collection=phase.collection, after=after)
    except IntegrityError as error:
        if not Phase.objects.filter(campaign=campaign, slug=slug).exists():
            raise

        message = f"campaign {campaign} has a phase {slug!r} already"
        raise Conflict(message, code="slug_taken", pointer="/slug") from error

    return phase


def change_phase(
    *,
    phase: Phase,
    user: User,
    changes: Mapping[str, Any],
    confirm: bool = False,
    origin: Origin = SYSTEM,
) -> None:
    """Change a phase.

    Everything in a draft may change. In a published campaign, times do not move earlier, and only
    `extend_phase` moves an end later. Raise the errors of `create_phase` and `check_far_away`.
    """
    with transaction.atomic():
        phase = locked_phase(phase)
        before, after = changed(phase, {**changes, **_read_nested(changes)})
        if phase.campaign.state == Campaign.State.ARCHIVED and after:
            raise Conflict(
                f"campaign {phase.campaign} is archived; it stays as it is",
                code="campaign_archived",
            )

        if phase.campaign.state != Campaign.State.DRAFT:
            _check_published(phase, after)
            for name in ("opens_at", "late_closes_at"):
                if after.get(name):
                    check_far_away(name, after[name], confirm)

        if set(_ENTRY_FIELDS) & set(after) and phase.entries.exists():
            raise Conflict(
                f"phase {phase.slug} has entries, which answered its form", code="phase_has_entries"
            )

        for name, value in after.items():
            setattr(phase, name, value)

        _check(phase, user)
        phase.save(update_fields=list(after))
        if after:
            record(
                origin,
                _Action.PHASE_CHANGED,
                phase,
                collection=phase.collection,
                before=_audit_fields(before),
                after=_audit_fields(after),
            )


def extend_phase(
    *,
    phase: Phase,
    until: datetime,
    reason: str,
    user: User | None,
    participation: Participation | None = None,
    confirm: bool = False,
    origin: Origin = SYSTEM,
) -> Extension:
    """Let a phase close later, for all teams or for one team, and return the extension.

    The phase may be planned, open or late. The extension can be cancelled until the old end. Raise
    Conflict for a draft, where times are simply changed, for a closed phase, and for an end that
    does not move later (`deadline_only_moves_later`); and the error of `check_far_away`.
    """
    with transaction.atomic():
        # A release of the collection locks its row, too: if both happen at once, the second one
        # sees what the first one did.
        collection = Collection.objects.select_for_update().get(pk=phase.collection_id)
        phase, now = locked_phase(phase), clock.database_now()
        state, old = phase_state(phase, participation, now), closing_time(phase, participation)
        if phase.campaign.state == Campaign.State.DRAFT:
            message = f"campaign {phase.campaign} is a draft: change closes_at of the phase instead"
            raise Conflict(message, code="not_published")
        if phase.campaign.state == Campaign.State.ARCHIVED or state == PhaseState.CLOSED:
            raise Conflict(
                f"phase {phase.slug} is closed and cannot be extended", code="phase_closed"
            )

        if phase.kind == Phase.Kind.EVALUATION and collection.disclosure != Disclosure.ORGANISERS:
            raise Conflict(f"results on {collection} are disclosed", code="evaluation_needs_blind")

        if until <= old:
            message = (
                f"phase {phase.slug} closes at {time_text(old)}; an extension is later than that"
            )
            raise Conflict(message, code="deadline_only_moves_later", pointer="/closes_at")

        check_far_away("closes_at", until, confirm)
        fields = {"old": old, "new": until, "reason": reason, "announced_at": now, "actor": user}
        fields["values_seen_since"] = values_seen_since(phase)
        if participation is None:
            fields["old_late"] = phase.late_closes_at

        extension = Extension.objects.create(phase=phase, participation=participation, **fields)
        if participation is None:
            late = phase.late_closes_at and max(phase.late_closes_at, until)
            Phase.objects.filter(pk=phase.pk).update(closes_at=until, late_closes_at=late)

        team = {"team": participation.team.slug} if participation else {}
        after = {"closes_at": until, "reason": reason, **team}
        record(
            origin,
            _Action.PHASE_EXTENDED,
            phase,
            collection=collection,
            before={"closes_at": old},
            after=after,
        )
        notify_extended(extension, phase, late_notice(extension))

    return extension


def check_far_away(name: str, at: datetime, confirm: bool) -> None:
    """Raise Conflict (`confirmation_needed`) for an unconfirmed time more than 90 days from now."""
    away = at - clock.database_now()
    if away > FAR_AWAY and not confirm:
        message = (
            f"{name} is {time_text(at)}, {away.days:,} days from now: send confirm if that is meant"
        )
        raise Conflict(message, code="confirmation_needed", pointer="/confirm")


def last_extension(phase: Phase, participation: Participation | None) -> Extension | None:
    """Return the last extension of a phase for all teams, or for one team."""
    return phase.extensions.filter(participation=participation).order_by("pk").last()


def cancel_extension(
    *,
    phase: Phase,
    until: datetime,
    reason: str,
    participation: Participation | None = None,
    origin: Origin = SYSTEM,
) -> None:
    """Cancel the last extension of a phase, which is until `until`: it closes at its old end.
    Raise Conflict (`no_extension`) if the last extension has another end, so that a repeated
    request cancels no other one, and (`deadline_has_passed`) once the old end has passed.
    """
    with transaction.atomic():
        phase, now = locked_phase(phase), clock.database_now()
        extension = last_extension(phase, participation)
        whom = f"team {participation.team}" if participation else "all teams"
        if extension is None or extension.new != until:
            message = (
                f"the last extension of phase {phase.slug} for {whom} is not until "
                f"{time_text(until)}"
            )
            raise Conflict(message, code="no_extension")

        if now >= extension.old:
            message = (
                f"the old end {time_text(extension.old)} has passed, so the extension for {whom} "
                "stays"
            )
            raise Conflict(message, code="deadline_has_passed")

        if participation is None:
            late = extension.old_late or phase.late_closes_at
            Phase.objects.filter(pk=phase.pk).update(closes_at=extension.old, late_closes_at=late)

        team = {"team": participation.team.slug} if participation else {}
        record(
            origin,
            _Action.PHASE_EXTENSION_CANCELLED,
            phase,
            collection=phase.collection,
            before={"closes_at": extension.new},
            after={"closes_at": extension.old, "reason": reason, **team},
        )
        notify_extension_cancelled(extension, phase, reason)
        extension.delete()


def visible_extensions(
    phase: Phase, own: Participation | None, organiser: bool
) -> list[tuple[Extension, ShownName | None]]:
    """Return the extensions of a phase that a reader sees, with the name of their team (None: all).

    The extension of one team is shown to this team and to organisers; once results are disclosed
    to participants, everybody sees it under the team's pseudonym. Fetch the phase with
    `extensions__participation__team` and its collection.
    """
    visible: list[tuple[Extension, ShownName | None]] = []
    for extension in phase.extensions.all():
        participation = extension.participation
        if participation is None:
            visible.append((extension, None))
        elif organiser or participation == own:
            slug = participation.team.slug
            visible.append((extension, ShownName(slug, participation.shown_name, hidden=False)))
        elif phase.collection.disclosure >= Disclosure.PARTICIPANTS:
            visible.append((extension, pseudonym(participation)))

    return visible


def late_notice(extension: Extension) -> str:
    """Return how late an extension was announced, or an empty text if in time."""
    return late_notice_between(extension.announced_at, extension.old)


def late_notice_between(announced: datetime, end: datetime) -> str:
    """Return how late an announcement at this instant is for this end, or an empty text."""
    if announced >= end:
        return "announced after the end"

    time_left = end - announced
    if time_left < SHORT_NOTICE:
        return f"announced {int(time_left / timedelta(hours=1))} hours before the end"

    return ""


def pause_phase(*, phase: Phase, reason: str, origin: Origin = SYSTEM) -> None:
    """Take no entries until the phase is resumed; its times stay as they are.

    Raise Conflict unless the phase is open.
    """
    with transaction.atomic():
        phase, now = locked_phase(phase), clock.database_now()
        if (
            phase.campaign.state != Campaign.State.PUBLISHED
            or phase_state(phase, None, now) != PhaseState.OPEN
        ):
            raise Conflict(
                f"phase {phase.slug} is not open, so it cannot be paused", code="phase_not_open"
            )

        Phase.objects.filter(pk=phase.pk).update(paused_at=now, paused_reason=reason)
        record(
            origin,
            _Action.PHASE_PAUSED,
            phase,
            collection=phase.collection,
            after={"reason": reason},
        )
        notify_paused(phase, reason)


def resume_phase(*, phase: Phase, origin: Origin = SYSTEM) -> None:
    """Take entries again. Raise Conflict if the phase is not paused."""
    with transaction.atomic():
        phase, now = locked_phase(phase), clock.database_now()
        if phase.paused_at is None:
            raise Conflict(f"phase {phase.slug} is not paused", code="phase_not_paused")

        before = {"paused_at": phase.paused_at, "reason": phase.paused_reason}
        Phase.objects.filter(pk=phase.pk).update(paused_at=None, paused_reason="")
        record(
            origin,
            _Action.PHASE_RESUMED,
            phase,
            collection=phase.collection,
            before=before,
            after={"resumed_at": now},
        )
        notify_resumed(phase)


@dataclass(frozen=True)
class Pause:
    """When a phase took no entries, and why; `until` is None while it is paused."""

    since: datetime
    until: datetime | None
    reason: str


def pauses_of(phase: Phase) -> list[Pause]:
    """Return the pauses of a phase in their order, from the audit trail."""
    events = AuditEvent.objects.filter(
        object_type="phase", object_id=str(phase), action=_Action.PHASE_RESUMED
    )
    pauses = []

    for event in events.order_by("pk"):
        since = parse_datetime(event.before["paused_at"]) or event.time
        until = parse_datetime(event.after.get("resumed_at") or "") or event.time
        pauses.append(Pause(since, until, event.before["reason"]))

    if phase.paused_at:
        pauses.append(Pause(phase.paused_at, None, phase.paused_reason))

    return pauses


def locked_phase(phase: Phase) -> Phase:
    """Return a phase as it is now, with its campaign, locked until the transaction ends."""
    rows = Phase.objects.select_for_update(of=("self",)).select_related(
        "campaign__team", "collection"
    )
    current = rows.filter(pk=phase.pk).first()
    if current is None:
        raise Conflict(f"phase {phase.slug} was deleted meanwhile", code="conflict")

    return current


def _read_nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form and the run types among these fields, checked and normalised."""
    readers = {"form": read_form, "run_types": read_run_types}
    return {name: read(fields[name]) for name, read in readers.items() if name in fields}


def _check(phase: Phase, user: User) -> None:
    """Raise InvalidInput, NotAllowed or Conflict if the phase cannot be as it is."""
    if phase.closes_at <= phase.opens_at:
        raise InvalidInput("a phase closes after it opens", pointer="/closes_at")
    if phase.late_closes_at and phase.late_closes_at < phase.closes_at:
        raise InvalidInput("late entries end at closes_at or later", pointer="/late_closes_at")

    try:
        qrels = phase.collection.active_qrels if phase.measures else None
        check_measures(phase.measures, phase.collection, phase.collection.documents, qrels)
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages), pointer="/measures") from error

    for name in phase.measure_names:
        if phase.collection.is_reported(name):
            message = (
                f"teams report the values of {name}, and could change them after the deadline: "
                "declare a measure with values from the organisers"
            )
            raise InvalidInput(message, pointer="/measures")

    if not Collection.objects.managed_by(user).filter(pk=phase.collection_id).exists():
        raise NotAllowed(f"only organisers of collection {phase.collection} can use it for a phase")

    _check_feedback(phase)
    check_naming(phase)
    hidden = phase.collection.disclosure == Disclosure.ORGANISERS
    if phase.kind == Phase.Kind.EVALUATION and not hidden and not _is_over(phase):
        message = (
            f"collection {phase.collection} is not blind: entries of an evaluation would see "
            "their scores"
        )
        raise Conflict(message, code="evaluation_needs_blind", pointer="/collection")


def _check_feedback(phase: Phase) -> None:
    """Raise InvalidInput or Conflict if the feedback of a phase does not fit.

    InvalidInput: feedback in an evaluation, or freezing a leaderboard that teams do not see.
    Conflict (`feedback_would_leak`): feedback on judgements that decide an evaluation, or an
    evaluation by judgements on which another phase gives feedback.
    """
    none = Phase.Feedback.NONE
    if phase.freeze_board_at and phase.feedback != Phase.Feedback.BOARD:
        raise InvalidInput(
            "only a phase that shows teams its leaderboard as feedback can freeze it",
            pointer="/freeze_board_at",
        )

    if phase.kind == Phase.Kind.EVALUATION:
        if phase.feedback != none:
            raise InvalidInput("an evaluation gives no feedback: write none", pointer="/feedback")

        others = Phase.objects.exclude(feedback=none).exclude(pk=phase.pk)
        other = others.filter(collection=phase.collection).select_related("campaign").first()
        if other:
            message = (
                f"phase {other} gives feedback on {phase.collection}, which would leak its "
                "judgements"
            )
            raise Conflict(message, code="feedback_would_leak", pointer="/collection")

        active = phase.collection.active_qrels
        leaking = feedback_on(files_of(active), phase.collection)
        if active and leaking:
            message = (
                f"phase {leaking} gives feedback on collection {leaking.collection}, which has "
                "the file of the active "
                f"judgements of {phase.collection} (version {active.version}) and would leak "
                "them. Activate other "
                "judgements, or use another collection"
            )
            raise Conflict(message, code="feedback_would_leak", pointer="/collection")
    elif phase.feedback != none and (decided := leaks_to(phase)):
        message = (
            f"phase {decided} is an evaluation by the same judgements. Values shown at once "
            "would reveal them: "
            "one run with values by topic tells a dozen judgements of each. Use another "
            "collection, or feedback none"
        )
        raise Conflict(message, code="feedback_would_leak", pointer="/feedback")


def _is_over(phase: Phase) -> bool:
    """Return whether a stored phase has closed for every team, so that results may be disclosed."""
    return phase.pk is not None and clock.database_now() >= last_closing_time(phase)


def _check_published(phase: Phase, after: Mapping[str, Any]) -> None:
    """Raise Conflict or InvalidInput for a change that teams could not rely on."""
    if fixed := [name for name in _FIXED_FIELDS if name in after]:
        message = f"{fixed[0]} of a phase stays as it was published"
        raise Conflict(message, code="campaign_published", pointer=f"/{fixed[0]}")

    for name in ("opens_at", "closes_at", "late_closes_at"):
        old, new = getattr(phase, name), after.get(name)
        if name not in after or (old is None and new is not None):
            continue

        if new is None or new < old:
            message = (
                f"{name} was published as {time_text(old)} and does not move earlier; pause the "
                "phase instead"
            )
            raise Conflict(message, code="deadline_only_moves_later", pointer=f"/{name}")

        if name == "closes_at":
            raise InvalidInput(
                "extend the phase with extend/, which takes a reason", pointer="/closes_at"
            )

        if name == "opens_at" and phase.opens_at <= clock.database_now():
            raise Conflict(
                f"phase {phase.slug} has opened", code="phase_has_opened", pointer="/opens_at"
            )


def _audit_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a phase as the audit trail has them, without those that are not set."""
    return {
        name: str(value) if name == "collection" else value
        for name, value in fields.items()
        if value is not None
    }
