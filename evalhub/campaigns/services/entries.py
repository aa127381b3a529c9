"""Withdraw, disqualify, order and change entries, and count how many a team may still make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from evalhub.campaigns.services.campaigns import check_organiser, is_organiser
from evalhub.campaigns.services.forms import is_web_address, read_answers, read_run_type
from evalhub.campaigns.services.notifications import notify_ended
from evalhub.campaigns.services.phase_times import PhaseState, phase_state
from evalhub.campaigns.services.phases import locked_phase
from evalhub.campaigns.services.tag_patterns import check_tag_named
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import (
    AuditEvent,
    CampaignMember,
    Disclosure,
    Entry,
    Membership,
    Participation,
    Phase,
    Run,
    User,
)
from runs.models.text import DOI_RULE
from runs.services import clock
from runs.services.audit.trail import SYSTEM, Origin, changed, record

_Action, _State, _Role = AuditEvent.Action, Entry.State, Entry.Role
# Failures of an evaluation that are the server's fault. An entry does not count while its
# evaluation has failed so.
OUR_FAULT = ("evaluation_error", "evaluation_crashed", "evaluation_timeout", "stored_file_corrupt")


@dataclass(frozen=True)
class Allowance:
    """What a team may still enter into a phase; None without a limit.

    `resets_at` is the next midnight UTC.
    """

    slots_left: int | None
    attempts_left_today: int | None
    attempts_left: int | None
    resets_at: datetime


def allowance(phase: Phase, participation: Participation, now: datetime) -> Allowance:
    """Return what a team may still enter into a phase.

    Every competing entry counts as an attempt for good, unless its evaluation has failed by our
    fault. A slot is free again when its entry is withdrawn.
    """
    entries = Entry.objects.filter(phase=phase, participation=participation, role=_Role.COMPETING)
    failed = Run.objects.filter(
        evaluations__qrels__active=True,
        evaluations__state="failed",
        evaluations__error_code__in=OUR_FAULT,
    )
    attempts = entries.exclude(run__in=failed.values("pk"))
    midnight = datetime.combine(now.astimezone(UTC).date(), time(tzinfo=UTC))
    limits = (
        (phase.slots, entries.filter(state=_State.ENTERED)),
        (phase.attempts_daily, attempts.filter(arrived_at__gte=midnight)),
        (phase.attempts_total, attempts),
    )
    slots, today, total = (
        None if limit is None else max(0, limit - rows.count()) for limit, rows in limits
    )

    return Allowance(slots, today, total, midnight + timedelta(days=1))


def ordered(phase: Phase, participation: Participation) -> QuerySet[Entry]:
    """Return the entries of a team that have a priority, the highest priority first."""
    rows = Entry.objects.filter(phase=phase, participation=participation, state=_State.ENTERED)
    return rows.exclude(priority=None).order_by("priority")


def withdraw_entry(*, entry: Entry, user: User, reason: str = "", origin: Origin = SYSTEM) -> None:
    """Withdraw an entry: its slot becomes free, its attempt counts on, later priorities close up.

    Members of its team may do so while the phase is open or late, its owners afterwards until
    participants see the results of an evaluation, and organisers always. Raise NotAllowed for
    others, Conflict (`not_withdrawable`) for an entry in another state.
    """
    with transaction.atomic():
        entry = locked_entry(entry)
        check_may_withdraw(entry, user, clock.database_now())
        if entry.state != _State.ENTERED:
            raise Conflict(f"entry {entry.number} is {entry.state}", code="not_withdrawable")

        _end(entry, _State.WITHDRAWN, reason, origin)


def disqualify_entry(*, entry: Entry, reason: str, origin: Origin = SYSTEM) -> None:
    """Disqualify an entry, for a reason that is shown with it.

    Raise Conflict if it is not entered.
    """
    with transaction.atomic():
        entry = locked_entry(entry)
        if entry.state != _State.ENTERED:
            raise Conflict(f"entry {entry.number} is {entry.state}", code="conflict")

        _end(entry, _State.DISQUALIFIED, reason, origin)


def end_entries(
    participation: Participation, *, disqualified: bool, reason: str, origin: Origin
) -> None:
    """Withdraw or disqualify all entries of a team. The row of the team is locked."""
    for entry in Entry.objects.filter(
        participation=participation, state=_State.ENTERED
    ).select_related("phase"):
        locked_phase(entry.phase)
        entry.refresh_from_db(fields=["priority", "state"])
        _end(entry, _State.DISQUALIFIED if disqualified else _State.WITHDRAWN, reason, origin)


def order_priorities(
    *, phase: Phase, participation: Participation, tags: Sequence[str], origin: Origin = SYSTEM
) -> None:
    """Give the entries of a team the priorities 1, 2, 3 ... in the order of these tags.

    Raise Conflict unless the phase is open, InvalidInput if these are not exactly the tags of its
    entries.
    """
    with transaction.atomic():
        Participation.objects.select_for_update().get(pk=participation.pk)
        phase = locked_phase(phase)
        check_open(phase, participation, clock.database_now())
        rows = list(ordered(phase, participation).select_related("run"))
        by_tag = {entry.run.tag: entry for entry in rows}
        if sorted(tags) != sorted(by_tag):
            message = f"name each entry once: {', '.join(by_tag) or 'there is none'}"
            raise InvalidInput(message, code="invalid", pointer="/order")

        before = [entry.run.tag for entry in rows]
        if list(tags) == before:
            return

        # No two have the same at any time: first the numbers below zero, then their opposites.
        for place, tag in enumerate(tags, 1):
            Entry.objects.filter(pk=by_tag[tag].pk).update(priority=-place)

        ordered(phase, participation).update(priority=-F("priority"))
        target = by_tag[tags[0]]
        record(
            origin,
            _Action.ENTRY_CHANGED,
            target,
            before={"order": before},
            after={"order": list(tags)},
        )


def change_entry(*, entry: Entry, changes: Mapping[str, Any], origin: Origin = SYSTEM) -> None:
    """Change the answers or the run type of an entry, or choose it for the official leaderboard.

    Raise Conflict unless it is entered and its phase is open, or if the team has chosen as many as
    it may; Unprocessable for answers that do not fit the form or contradict the tag.
    """
    with transaction.atomic():
        entry = locked_entry(entry)
        check_open(entry.phase, entry.participation, clock.database_now())
        if entry.state != _State.ENTERED:
            raise Conflict(f"entry {entry.number} is {entry.state}", code="conflict")

        fields = dict(changes)
        if "answers" in fields:
            fields["answers"] = read_answers(entry.phase.form, fields["answers"])
        if "run_type" in fields:
            fields["run_type"] = read_run_type(entry.phase.run_types, fields["run_type"])
        if fields.get("chosen") and not entry.chosen:
            _check_choice(entry)

        before, after = changed(entry, fields)
        if (
            {"answers", "run_type"} & set(after)
            and entry.participation
            and entry.role == _Role.COMPETING
        ):
            check_tag_named(
                entry.phase,
                entry.run.tag,
                team=entry.participation.team.slug,
                run_type=fields.get("run_type", entry.run_type),
                priority=None,
                answers=fields.get("answers", entry.answers),
            )

        Entry.objects.filter(pk=entry.pk).update(**after)
        if after:
            record(origin, _Action.ENTRY_CHANGED, entry, before=before, after=after)


def publish_entry(*, entry: Entry, user: User, origin: Origin = SYSTEM) -> None:
    """Show an entry of a phase of kind afterwards to all who see the leaderboard, for good.

    Raise NotAllowed unless the user is a member of its team, InvalidInput for an entry of another
    kind of phase, Conflict unless it is entered.
    """
    with transaction.atomic():
        entry = locked_entry(entry)
        own = CampaignMember.objects.filter(
            participation=entry.participation_id, user=user, left_at=None
        )
        if entry.participation_id is None or not own.exists():
            raise NotAllowed("only members of its team can publish an entry")
        if entry.phase.kind != Phase.Kind.AFTERWARDS:
            message = (
                f"phase {entry.phase.slug} is not of kind afterwards: its results come out with "
                "a release"
            )
            raise InvalidInput(message, pointer="/published")
        if entry.state != _State.ENTERED:
            raise Conflict(f"entry {entry.number} is {entry.state}", code="conflict")

        if not entry.published:
            Entry.objects.filter(pk=entry.pk).update(published=True)
            record(
                origin,
                _Action.ENTRY_CHANGED,
                entry,
                before={"published": False},
                after={"published": True},
            )


def set_paper(*, entry: Entry, user: User, paper: str, origin: Origin = SYSTEM) -> None:
    """Link an entry to the paper about its run, at any time; an empty text removes the link.

    Raise NotAllowed unless the user is a member of its team or an organiser, InvalidInput for a
    text that is neither a DOI nor an http or https address, Conflict unless it is entered.
    """
    paper = paper.strip()
    if paper and not (re.fullmatch(DOI_RULE, paper) or is_web_address(paper)):
        message = "write an address that begins with https:// or a DOI such as 10.1145/3404835"
        raise InvalidInput(message, pointer="/paper")

    with transaction.atomic():
        entry = locked_entry(entry)
        if not is_organiser(entry.phase.campaign, user):
            check_may_change(entry, user)
        if entry.state != _State.ENTERED:
            raise Conflict(f"entry {entry.number} is {entry.state}", code="conflict")

        before, after = changed(entry, {"paper": paper})
        if after:
            Entry.objects.filter(pk=entry.pk).update(**after)
            record(origin, _Action.ENTRY_CHANGED, entry, before=before, after=after)


def _check_choice(entry: Entry) -> None:
    """Raise Conflict if the phase has nothing to choose, or the team has chosen enough.

    The row of the team is locked.
    """
    phase = entry.phase
    if phase.selection != Phase.Selection.CHOSEN or entry.role != _Role.COMPETING:
        message = (
            f"the official leaderboard of phase {phase.slug} takes entries by the rule "
            f"{phase.selection}"
        )
        raise Conflict(message, code="nothing_to_choose", pointer="/chosen")

    own = {
        "phase": phase,
        "participation": entry.participation_id,
        "state": _State.ENTERED,
        "chosen": True,
    }
    if Entry.objects.filter(**own).count() >= phase.chosen_max:
        message = (
            f"the team has selected {phase.chosen_max:,} already; deselect another entry first"
        )
        raise Conflict(message, code="too_many_chosen", pointer="/chosen")


def check_may_change(entry: Entry, user: Any) -> None:
    """Raise NotAllowed unless the entry is of the user's team, or an organiser's own.

    Organisers see values, so they neither choose among the runs of a team nor answer for it.
    """
    own = CampaignMember.objects.filter(
        participation=entry.participation_id, user=user, left_at=None
    )
    if entry.participation is None:
        check_organiser(entry.phase.campaign, user)
    elif not own.exists():
        raise NotAllowed("only members of its team can change an entry")


def check_may_withdraw(entry: Entry, user: User, now: datetime) -> None:
    """Raise NotAllowed unless the user may withdraw the entry now."""
    if is_organiser(entry.phase.campaign, user):
        return

    own = CampaignMember.objects.filter(
        participation=entry.participation_id, user=user, left_at=None
    )
    if entry.participation is None or not own.exists():
        raise NotAllowed("only members of its team can withdraw an entry")
    if results_stay(entry.phase):
        raise NotAllowed("participants see the results: only organisers can withdraw an entry now")

    if phase_state(entry.phase, entry.participation, now) == PhaseState.CLOSED:
        owner = {"team": entry.participation.team_id, "user": user, "role": Membership.Role.OWNER}
        if not Membership.objects.filter(**owner).exists():
            raise NotAllowed(
                "the phase is closed: only owners of the team can withdraw its entries now"
            )


def results_stay(phase: Phase) -> bool:
    """Return whether participants see the results of an evaluation.

    Teams can withdraw nothing then: they could choose by the results what stays on the leaderboard.
    """
    return (
        phase.kind == Phase.Kind.EVALUATION
        and phase.collection.disclosure >= Disclosure.PARTICIPANTS
    )


def check_open(phase: Phase, participation: Participation | None, now: datetime) -> None:
    """Raise Conflict unless the phase is open for the team at this instant."""
    state = phase_state(phase, participation, now)
    if state != PhaseState.OPEN:
        code = "phase_closed" if state == PhaseState.LATE else f"phase_{state}"
        raise Conflict(f"phase {phase.slug} is {state}", code=code)


def locked_entry(entry: Entry) -> Entry:
    """Return an entry as it is now, with its team and phase, and lock them all."""
    if entry.participation_id:
        Participation.objects.select_for_update().get(pk=entry.participation_id)

    phase = locked_phase(entry.phase)
    current = Entry.objects.select_related("participation__team", "run").get(pk=entry.pk)
    current.phase = phase

    return current


def _end(entry: Entry, state: Entry.State, reason: str, origin: Origin) -> None:
    """End an entry and close up the later priorities. Its team and phase are locked."""
    freed = entry.priority
    fields = {
        "state": state,
        "priority": None,
        "chosen": False,
        "state_reason": reason,
        "state_changed_at": clock.database_now(),
    }
    Entry.objects.filter(pk=entry.pk).update(**fields)
    if freed is not None and entry.participation is not None:
        # By way of numbers below zero, so that no two have the same in between.
        later = ordered(entry.phase, entry.participation).filter(priority__gt=freed)
        later.update(priority=1 - F("priority"))
        ordered(entry.phase, entry.participation).filter(priority__lt=0).update(
            priority=-F("priority")
        )

    action = _Action.ENTRY_WITHDRAWN if state == _State.WITHDRAWN else _Action.ENTRY_DISQUALIFIED
    why = {"reason": reason} if reason else {}
    record(origin, action, entry, before={"priority": freed}, after=why)
    notify_ended(entry, state, reason)
