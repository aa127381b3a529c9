"""Enter runs into phases. `enter_run` decides for the API, pages and commands: there is no other way into a phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max

from evalhub.campaigns.services.campaigns import check_organiser
from evalhub.campaigns.services.entries import allowance, ordered
from evalhub.campaigns.services.forms import read_answers, read_run_type
from evalhub.campaigns.services.notifications import said, tell_received
from evalhub.campaigns.services.phase_times import PhaseState, phase_state
from evalhub.campaigns.services.phases import locked_phase
from evalhub.campaigns.services.tag_patterns import check_tag_named
from evalhub.campaigns.services.teams import locked_participation
from runs.errors import Conflict, InvalidInput, LimitReached, NotAllowed, Unprocessable
from runs.formats.scanning.pieces import Opener
from runs.formats.trec_run import RunSummary, read_run
from runs.models import (
    Agreement,
    AuditEvent,
    Campaign,
    CampaignMember,
    Collection,
    Disclosure,
    Entry,
    Membership,
    Participation,
    Phase,
    Run,
    Signature,
    User,
)
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.storage.files import read_stored
from runs.services.submissions.runs import RunUpload
from runs.services.submissions.submissions import submit

# Of a run that is entered; a run outside campaigns may have more.
MAX_TAG = 20
_Action, _Role, _State = AuditEvent.Action, Entry.Role, Entry.State


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an entry is to be, beside its run. `arrived_at` is when the last byte of the request had arrived.

    Without a `participation` it is the organisers' own, and does not compete. With `on_behalf` an
    organiser enters for a team, also after the end, and says why in `reason`.
    """

    phase: Phase
    user: User
    arrived_at: datetime
    participation: Participation | None
    role: str = _Role.COMPETING
    label: str = ""
    run_type: str = ""
    priority: int | None = None
    answers: dict[str, Any] = field(default_factory=dict)
    on_behalf: bool = False
    reason: str = ""
    origin: Origin = SYSTEM


@dataclass(frozen=True, kw_only=True)
class EntryUpload(RunUpload):
    """A run that is uploaded into a phase: the run, its queued evaluation and its entry are stored together."""

    asked: Asked
    # The entry, and whether it is new.
    stored: list[tuple[Entry, bool]] = field(default_factory=list)

    def check(self) -> Run:
        # Before the file is read, what needs no lock; the same is decided again in the transaction.
        self.check_asked()
        return self.check_file()

    def check_asked(self) -> None:
        """Raise Conflict if the phase takes no entry now, Unprocessable for a type or answers that do not fit it."""
        _check_time(self.asked, self.asked.phase)
        self.check_answers()

    def check_answers(self) -> None:
        """Raise Unprocessable for a type or answers that do not fit the phase."""
        asked = self.asked
        if asked.participation and asked.role == _Role.COMPETING:
            read_run_type(asked.phase.run_types, asked.run_type)
            read_answers(asked.phase.form, asked.answers)

    def refusal_now(self, run: Run) -> Conflict | None:
        """Return why the phase takes no such entry at this time: of its time, or because the tag is taken."""
        try:
            _check_time(self.asked, self.asked.phase)
            self.find_existing(run)
            _check_tag(self.asked.phase.campaign, self.asked.participation, run)
        except Conflict as refusal:
            return refusal
        return None

    def check_summary(self, summary: RunSummary) -> None:
        """Raise Unprocessable for a file with more documents for a topic than the phase takes."""
        _check_documents(self.asked.phase, summary.topics, "/file")

    def check_file(self) -> Run:
        """Read the file and return its run, as `check` does, whatever else stands in the way of the entry."""
        made = super().check()
        check_run(self.asked, made)
        return made

    def keep_again(self, there: Run) -> None:
        """Store the entry, of a run that is stored now or was there already."""
        super().keep_again(there)
        self.stored.append(store_entry(self.asked, there))

    def count(self, made: Run) -> None:
        """The limits of the phase count, and not those of the collection."""


def enter_run(
    *,
    upload: EntryUpload,
    enqueue: Callable[[Run], object],
    again: Callable[[Run], object] | None = None,
) -> tuple[Entry, bool]:
    """Check and store an uploaded run with its entry, as `submit` does. Return the entry, and whether it is new.

    Raise the errors of `submit` and of `store_entry`; then nothing is stored.
    """
    submit(upload=upload, enqueue=enqueue, again=again)
    return upload.stored[-1]


def enter_stored(asked: Asked, run: Run) -> tuple[Entry, bool]:
    """Enter a run that is in the collection already. Return the entry, and whether it is new. Raise the errors of
    `store_entry`, and InvalidInput for a run of another team or collection."""
    own = asked.participation.team_id if asked.participation else asked.phase.campaign.team_id
    if run.collection_id != asked.phase.collection_id or run.team_id != own or run.deleted_at:
        message = f"run {run.pk} is none of the team's runs in collection {asked.phase.collection}"
        raise InvalidInput(message, code="unknown_run", pointer="/run")
    check_run(asked, run)
    if asked.phase.max_documents is not None and run.documents > asked.phase.max_documents:
        _check_documents(asked.phase, read_stored(run.sha256, partial(_documents_of, run)), "/run")
    return store_entry(asked, run)


def store_entry(asked: Asked, run: Run) -> tuple[Entry, bool]:
    """Store the entry of a stored run, or find the one that it has; a withdrawn one is entered again while the phase is
    open. Return it, and whether it is new.

    The row of the team is locked while its limits are counted, that of the campaign while tags are
    compared, and that of the phase while its state is read. Raise Conflict if the phase does not
    take it, a limit of slots, a tag or a priority is in its way or an agreement is not signed;
    LimitReached (`attempts_exceeded`); NotAllowed for whoever may not enter for the team.
    """
    with transaction.atomic():
        team = locked_participation(asked.participation) if asked.participation else None
        campaign = Campaign.objects.select_for_update().get(pk=asked.phase.campaign_id)
        phase = locked_phase(asked.phase)
        phase.campaign = campaign
        there = Entry.objects.filter(phase=phase, run=run).first()
        if there and there.state == _State.ENTERED:
            return there, False
        _check_may_enter(asked, team)
        late = _check_time(asked, phase)
        if there and there.state == _State.DISQUALIFIED:
            raise Conflict(f"the run was disqualified: {there.state_reason}", code="conflict")
        if there and (late or there.role != asked.role):
            raise Conflict(
                f"phase {phase.slug} is not open, and the entry was withdrawn", code="phase_closed"
            )
        _check_tag(campaign, team, run)
        competing = team is not None and asked.role == _Role.COMPETING
        if competing and team:
            _check_signed(asked, team)
            _check_limits(asked, phase, team, new=there is None)
        fields = {
            "priority": _free_priority(asked, phase, team) if competing and team else None,
            "run_type": read_run_type(phase.run_types, asked.run_type)
            if competing
            else asked.run_type,
            "answers": read_answers(phase.form, asked.answers) if competing else asked.answers,
        }
        if there:
            restored = {
                **fields,
                "state": _State.ENTERED,
                "state_reason": "",
                "state_changed_at": asked.arrived_at,
            }
            Entry.objects.filter(pk=there.pk).update(**restored)
            record(asked.origin, _Action.ENTRY_RESTORED, there, collection=phase.collection)
            restored_entry = Entry.objects.get(pk=there.pk)
            _send_receipt(restored_entry, phase, team, run)
            return restored_entry, False
        last = Entry.objects.filter(phase=phase).aggregate(last=Max("number"))["last"] or 0
        identity = {
            "phase": phase,
            "participation": team,
            "run": run,
            "number": last + 1,
            "late": late,
        }
        said_of_it = {"role": asked.role, "label": asked.label, "entered_by": asked.user}
        made = Entry.objects.create(**identity, **said_of_it, **fields, arrived_at=asked.arrived_at)
        after = {
            "phase": str(phase),
            "number": made.number,
            "tag": run.tag,
            "sha256": run.sha256,
            "late": late,
        }
        reason = {"reason": asked.reason} if asked.reason else {}
        record(
            asked.origin,
            _Action.ENTRY_MADE,
            made,
            collection=phase.collection,
            after={**after, "arrived_at": made.arrived_at, **reason},
        )
        _send_receipt(made, phase, team, run)
    return made, True


def _send_receipt(made: Entry, phase: Phase, team: Participation | None, run: Run) -> None:
    if team:
        made.phase, made.participation, made.run = phase, team, run
        tell_received(made, allowance(phase, team, made.arrived_at))


def check_run(asked: Asked, run: Run) -> None:
    """Raise Unprocessable for a run that this phase does not take: its tag is too long, another than in its file or
    not formed as the phase wants it, or topics are missing that have to be answered."""
    counts = run.warnings.get("counts", {})
    if len(run.tag) > MAX_TAG and not asked.phase.naming:
        message = f"the tag {run.tag!r} has {len(run.tag)} characters; in a campaign it has at most {MAX_TAG}"
        raise Unprocessable(message, code="bad_run_tag", pointer="/tag")
    if counts.get("tag_differs"):
        message = (
            f"the tag {run.tag!r} is another than in the file; in a campaign they are the same"
        )
        raise Unprocessable(message, code="tag_differs", pointer="/tag")
    if asked.participation and asked.role == _Role.COMPETING:
        check_tag_named(
            asked.phase,
            run.tag,
            team=asked.participation.team.slug,
            run_type=asked.run_type,
            priority=asked.priority,
            answers=asked.answers,
        )
    if asked.phase.must_answer_all and counts.get("topic_missing"):
        message = f"{counts['topic_missing']:,} topics have no document; phase {asked.phase.slug} asks for all of them"
        raise Unprocessable(message, code="topic_missing", pointer="/file")


def _check_documents(phase: Phase, topics: Mapping[str, int], pointer: str) -> None:
    """Raise Unprocessable if a topic has more documents than the phase takes; `topics` has how many each has."""
    most = phase.max_documents
    long = [topic for topic, documents in topics.items() if most is not None and documents > most]
    if long:
        more = f", and {len(long) - 1:,} others have too many" if len(long) > 1 else ""
        message = f"topic {long[0]} has {topics[long[0]]:,} documents{more}; phase {phase.slug} takes at most {most:,}"
        raise Unprocessable(message, code="too_many_documents_per_topic", pointer=pointer)


def _documents_of(run: Run, opener: Opener) -> dict[str, int]:
    """Return how many documents each topic of a stored run has."""
    blocks = read_run(opener, grouped=run.grouped)
    return {
        topic.decode(): int(documents)
        for block in blocks
        for topic, documents in zip(block.topic_ids, np.diff(block.topic_starts), strict=True)
    }


def _check_may_enter(asked: Asked, team: Participation | None) -> None:
    """Raise NotAllowed unless the user is in the team or an organiser who enters for it, Conflict unless the team is
    accepted."""
    if team is None or asked.on_behalf or asked.role != _Role.COMPETING:
        check_organiser(asked.phase.campaign, asked.user)
    elif not CampaignMember.objects.filter(
        participation=team, user=asked.user, left_at=None
    ).exists():
        raise NotAllowed(f"only members of team {team.team} in this campaign can enter its runs")
    if asked.on_behalf and not asked.reason:
        raise InvalidInput(
            "say why the organisers enter for a team", code="required", pointer="/reason"
        )
    if team and team.state != Participation.State.ACCEPTED:
        raise Conflict(f"team {team.team} is {team.state}, not accepted", code="team_not_accepted")


def _check_time(asked: Asked, phase: Phase) -> bool:
    """Return whether the entry is late. Raise Conflict if the phase does not take it at the instant of its arrival.

    Organisers enter for a team after the end, and their own runs whenever the campaign is
    published.
    """
    if phase.campaign.state != Campaign.State.PUBLISHED:
        raise Conflict(f"campaign {phase.campaign} is {phase.campaign.state}", code="phase_closed")
    if asked.participation is None:
        return False
    state = phase_state(phase, asked.participation, asked.arrived_at)
    if state == PhaseState.PLANNED:
        raise Conflict(f"phase {phase.slug} opens at {said(phase.opens_at)}", code="phase_planned")
    if state == PhaseState.PAUSED:
        reason = f": {phase.paused_reason}" if phase.paused_reason else ""
        raise Conflict(f"phase {phase.slug} is paused{reason}", code="phase_paused")
    if state == PhaseState.CLOSED and not asked.on_behalf:
        message = f"phase {phase.slug} is closed; the last byte of your run arrived at {said(asked.arrived_at)}"
        raise Conflict(message, code="phase_closed")
    disclosed = phase.collection.disclosure >= Disclosure.TEAMS
    if phase.kind == Phase.Kind.AFTERWARDS and not disclosed:
        message = f"phase {phase.slug} takes entries when results on {phase.collection} are released to teams"
        raise Conflict(message, code="release_needed")
    # Organisers may still enter for a team that forgot, until participants see everything.
    hidden = Collection.objects.filter(
        pk=phase.collection_id, blind=True, shown_to__lt=Disclosure.PARTICIPANTS
    )
    if phase.kind == Phase.Kind.EVALUATION and not hidden.exists():
        raise Conflict("results on the collection are disclosed", code="evaluation_needs_blind")
    return state in (PhaseState.LATE, PhaseState.CLOSED)


def _check_tag(campaign: Campaign, team: Participation | None, run: Run) -> None:
    """Raise Conflict for a tag that is the team's name, or another team's in a campaign where tags are unique; what
    organisers enter has the tags of their own team."""
    if team and run.tag.lower() in (
        team.team.slug.lower(),
        team.team.name.lower(),
        team.name.lower(),
    ):
        raise Conflict(
            f"the tag {run.tag!r} is the name of the team", code="tag_is_team_name", pointer="/tag"
        )
    others = Entry.objects.filter(phase__campaign=campaign, run__tag=run.tag).exclude(
        run__team=run.team_id
    )
    if campaign.tag_scope == Campaign.TagScope.CAMPAIGN and others.exists():
        message = f"another entry of the campaign has the tag {run.tag!r}; choose a new one"
        raise Conflict(message, code="tag_taken", pointer="/tag")


def _check_signed(asked: Asked, team: Participation) -> None:
    """Raise Conflict for an agreement that the user has not signed, or of which an owner's signature is needed and
    none is there. Where organisers enter for a team, one signature of its members is enough."""
    owners = Membership.objects.filter(team=team.team, role=Membership.Role.OWNER).values("user")
    for agreement in asked.phase.campaign.agreements.all():
        signed = Signature.objects.filter(agreement=agreement, participation=team)
        if agreement.required_of == Agreement.RequiredOf.ONE_OWNER:
            signed = signed.filter(user__in=owners)
        elif not asked.on_behalf:
            signed = signed.filter(user=asked.user)
        if not signed.exists():
            who = (
                "an owner of the team"
                if agreement.required_of == Agreement.RequiredOf.ONE_OWNER
                else "you"
            )
            message = f"the agreement {agreement.title!r} ({agreement.sha256[:12]}) is not signed by {who}"
            raise Conflict(message, code="agreement_missing")


def _check_limits(asked: Asked, phase: Phase, team: Participation, *, new: bool) -> None:
    """Raise LimitReached or Conflict if nothing is left; the row of the team is locked. An entry that is entered again
    was counted as an attempt before."""
    left = allowance(phase, team, asked.arrived_at)
    if new and left.attempts_left == 0:
        message = (
            f"team {team.team} has used its {phase.attempts_total} attempts in phase {phase.slug}"
        )
        raise LimitReached(message, wait=None, code="attempts_exceeded")
    if new and left.attempts_left_today == 0:
        wait = max(1.0, (left.resets_at - asked.arrived_at).total_seconds())
        message = f"team {team.team} has used its {phase.attempts_daily} attempts of today; they reset at midnight UTC"
        raise LimitReached(message, wait=wait, code="attempts_exceeded")
    if left.slots_left == 0:
        message = f"team {team.team} has {phase.slots} entries in phase {phase.slug}, the most there are; withdraw one"
        raise Conflict(message, code="no_slot_left")


def _free_priority(asked: Asked, phase: Phase, team: Participation) -> int:
    """Return the next free priority. Raise Conflict for one that is taken, InvalidInput for one that leaves a gap."""
    free = ordered(phase, team).count() + 1
    if asked.priority is not None and asked.priority < free:
        message = (
            f"another entry has priority {asked.priority}; PUT priorities/ changes their order"
        )
        raise Conflict(message, code="priority_taken", pointer="/priority")
    if asked.priority is not None and asked.priority > free:
        raise InvalidInput(
            f"the next free priority is {free}; there are no gaps", pointer="/priority"
        )
    return free
