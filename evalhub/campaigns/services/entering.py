"""Enter runs into phases: `enter_run` and `enter_stored` decide for the API and pages."""

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
from evalhub.campaigns.services.notifications import notify_received, time_text
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
class EntryRequest:
    """What is requested of an entry, without its run.

    `arrived_at` is when the last byte of the request had arrived. Without a `participation` it is
    the organisers' own, and does not compete. With `on_behalf` an organiser enters for a team, also
    after the end, and says why in `reason`.
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
    """A run that is uploaded into a phase, and stored together with its entry."""

    request: EntryRequest
    # The entry, and whether it is new.
    stored: list[tuple[Entry, bool]] = field(default_factory=list)

    def check(self) -> Run:
        # What needs no lock is checked before the file is read, and again in the transaction.
        self.check_request()
        return self.check_file()

    def check_request(self) -> None:
        """Raise Conflict if the phase takes no entry now, and the errors of `check_answers`."""
        _check_time(self.request, self.request.phase)
        self.check_answers()

    def check_answers(self) -> None:
        """Raise Unprocessable for a type or answers that do not fit the phase."""
        request = self.request
        if request.participation and request.role == _Role.COMPETING:
            read_run_type(request.phase.run_types, request.run_type)
            read_answers(request.phase.form, request.answers)

    def refusal_now(self, run: Run) -> Conflict | None:
        """Return why the phase does not take the entry now: its time, or a tag that is taken."""
        try:
            _check_time(self.request, self.request.phase)
            self.find_existing(run)
            _check_tag(self.request.phase.campaign, self.request.participation, run)
        except Conflict as refusal:
            return refusal

        return None

    def check_summary(self, summary: RunSummary) -> None:
        """Raise Unprocessable for a file with more documents for a topic than the phase takes."""
        _check_documents(self.request.phase, summary.topics, "/file")

    def check_file(self) -> Run:
        """Read and check the file and return its run, whether or not it can be entered."""
        run = super().check()
        check_run(self.request, run)
        return run

    def keep_again(self, existing: Run) -> None:
        """Store the entry of a run that is new or was stored before."""
        super().keep_again(existing)
        self.stored.append(store_entry(self.request, existing))

    def count(self, run: Run) -> None:
        """Count nothing: the limits of the phase apply, and not those of the collection."""


def enter_run(
    *,
    upload: EntryUpload,
    enqueue: Callable[[Run], object],
    again: Callable[[Run], object] | None = None,
) -> tuple[Entry, bool]:
    """Check and store an uploaded run with its entry; return the entry and whether it is new.

    Raise the errors of `submit` and of `store_entry`; then nothing is stored.
    """
    submit(upload=upload, enqueue=enqueue, again=again)
    return upload.stored[-1]


def enter_stored(request: EntryRequest, run: Run) -> tuple[Entry, bool]:
    """Enter a run that is stored in the collection; return the entry and whether it is new.

    Raise the errors of `store_entry`, and InvalidInput for a run of another team or collection.
    """
    phase, team = request.phase, request.participation
    team_id = team.team_id if team else phase.campaign.team_id
    if run.collection_id != phase.collection_id or run.team_id != team_id or run.deleted_at:
        message = f"run {run.pk} is none of the team's runs in collection {phase.collection}"
        raise InvalidInput(message, code="unknown_run", pointer="/run")

    check_run(request, run)
    if phase.max_documents is not None and run.documents > phase.max_documents:
        _check_documents(phase, read_stored(run.sha256, partial(_documents_of, run)), "/run")

    return store_entry(request, run)


def store_entry(request: EntryRequest, run: Run) -> tuple[Entry, bool]:
    """Store the entry of a stored run, or find its existing one; return it and whether it is new.

    A withdrawn entry is entered again while the phase is open. The row of the team is locked while
    its limits are counted, that of the campaign while tags are compared, and that of the phase
    while its state is read. Raise Conflict if the phase does not take it, a limit of slots, a tag
    or a priority is in its way or an agreement is not signed; LimitReached (`attempts_exceeded`);
    NotAllowed for whoever may not enter for the team.
    """
    if run.replicate_of_id or run.has_replicates:
        raise Conflict(
            f"run {run.tag} is or has a replicate, and a phase takes single runs; submit the file "
            "under a tag of its own, without replicate",
            code="replicates_not_entered",
        )
    if not run.has_ranking:
        message = f"run {run.tag} has no ranking, and phases take rankings"
        raise Conflict(message, code="no_ranking")

    with transaction.atomic():
        team = locked_participation(request.participation) if request.participation else None
        campaign = Campaign.objects.select_for_update().get(pk=request.phase.campaign_id)
        phase = locked_phase(request.phase)
        phase.campaign = campaign

        existing = Entry.objects.filter(phase=phase, run=run).first()
        if existing and existing.state == _State.ENTERED:
            return existing, False

        _check_may_enter(request, team)
        late = _check_time(request, phase)
        if existing and existing.state == _State.DISQUALIFIED:
            raise Conflict(f"the run was disqualified: {existing.state_reason}", code="conflict")
        if existing and (late or existing.role != request.role):
            raise Conflict(
                f"phase {phase.slug} is not open, and the entry was withdrawn", code="phase_closed"
            )

        _check_tag(campaign, team, run)
        if team and request.role == _Role.COMPETING:
            _check_signed(request, team)
            _check_limits(request, phase, team, new=existing is None)
            fields = {
                "priority": _free_priority(request, phase, team),
                "run_type": read_run_type(phase.run_types, request.run_type),
                "answers": read_answers(phase.form, request.answers),
            }
        else:
            # What organisers enter answers no form.
            fields = {"priority": None, "run_type": request.run_type, "answers": request.answers}

        if existing:
            entry = _enter_again(existing, fields, request, phase)
        else:
            entry = _create_entry(request, phase, team, run, late=late, fields=fields)

        if team:
            entry.phase, entry.participation, entry.run = phase, team, run
            notify_received(entry, allowance(phase, team, entry.arrived_at))

    return entry, existing is None


def _enter_again(
    withdrawn: Entry, fields: Mapping[str, Any], request: EntryRequest, phase: Phase
) -> Entry:
    state = {"state": _State.ENTERED, "state_reason": "", "state_changed_at": request.arrived_at}
    Entry.objects.filter(pk=withdrawn.pk).update(**fields, **state)
    record(request.origin, _Action.ENTRY_RESTORED, withdrawn, collection=phase.collection)

    return Entry.objects.get(pk=withdrawn.pk)


def _create_entry(
    request: EntryRequest,
    phase: Phase,
    team: Participation | None,
    run: Run,
    *,
    late: bool,
    fields: Mapping[str, Any],
) -> Entry:
    last = Entry.objects.filter(phase=phase).aggregate(last=Max("number"))["last"] or 0
    entry = Entry.objects.create(
        phase=phase,
        participation=team,
        run=run,
        number=last + 1,
        late=late,
        role=request.role,
        label=request.label,
        entered_by=request.user,
        arrived_at=request.arrived_at,
        **fields,
    )

    after = {
        "phase": str(phase),
        "number": entry.number,
        "tag": run.tag,
        "sha256": run.sha256,
        "late": late,
        "arrived_at": entry.arrived_at,
    }
    if request.reason:
        after["reason"] = request.reason

    record(request.origin, _Action.ENTRY_MADE, entry, collection=phase.collection, after=after)

    return entry


def check_run(request: EntryRequest, run: Run) -> None:
    """Raise Unprocessable for a run that this phase does not take.

    Its tag is too long, another than in its file or not formed as the phase requires, or topics are
    missing that have to be answered.
    """
    counts = run.warnings.get("counts", {})
    if len(run.tag) > MAX_TAG and not request.phase.naming:
        message = (
            f"the tag {run.tag!r} has {len(run.tag)} characters; "
            f"in a campaign it has at most {MAX_TAG}"
        )
        raise Unprocessable(message, code="bad_run_tag", pointer="/tag")

    if counts.get("tag_differs"):
        message = (
            f"the tag {run.tag!r} is another than in the file; in a campaign they are the same"
        )
        raise Unprocessable(message, code="tag_differs", pointer="/tag")

    if request.participation and request.role == _Role.COMPETING:
        check_tag_named(
            request.phase,
            run.tag,
            team=request.participation.team.slug,
            run_type=request.run_type,
            priority=request.priority,
            answers=request.answers,
        )

    if request.phase.must_answer_all and counts.get("topic_missing"):
        message = (
            f"{counts['topic_missing']:,} topics have no document; "
            f"phase {request.phase.slug} asks for all of them"
        )
        raise Unprocessable(message, code="topic_missing", pointer="/file")


def _check_documents(phase: Phase, topics: Mapping[str, int], pointer: str) -> None:
    """Raise Unprocessable if a topic has more documents than the phase takes.

    `topics` has the number of documents of each topic.
    """
    most = phase.max_documents
    if most is None:
        return

    long = [topic for topic, documents in topics.items() if documents > most]
    if long:
        more = f", and {len(long) - 1:,} others have too many" if len(long) > 1 else ""
        message = (
            f"topic {long[0]} has {topics[long[0]]:,} documents{more}; "
            f"phase {phase.slug} takes at most {most:,}"
        )
        raise Unprocessable(message, code="too_many_documents_per_topic", pointer=pointer)


def _documents_of(run: Run, opener: Opener) -> dict[str, int]:
    """Return the number of documents of each topic of a stored run."""
    blocks = read_run(opener, grouped=run.grouped)
    return {
        topic.decode(): int(documents)
        for block in blocks
        for topic, documents in zip(block.topic_ids, np.diff(block.topic_starts), strict=True)
    }


def _check_may_enter(request: EntryRequest, team: Participation | None) -> None:
    """Raise NotAllowed unless the user may enter for the team, Conflict unless it is accepted."""
    if team is None or request.on_behalf or request.role != _Role.COMPETING:
        check_organiser(request.phase.campaign, request.user)
    elif not CampaignMember.objects.filter(
        participation=team, user=request.user, left_at=None
    ).exists():
        raise NotAllowed(f"only members of team {team.team} in this campaign can enter its runs")

    if request.on_behalf and not request.reason:
        raise InvalidInput(
            "say why the organisers enter for a team", code="required", pointer="/reason"
        )

    if team and team.state != Participation.State.ACCEPTED:
        raise Conflict(f"team {team.team} is {team.state}, not accepted", code="team_not_accepted")


def _check_time(request: EntryRequest, phase: Phase) -> bool:
    """Return whether the entry is late. Raise Conflict if it did not arrive in time.

    Organisers enter for a team after the end, and their own runs whenever the campaign is
    published.
    """
    if phase.campaign.state != Campaign.State.PUBLISHED:
        raise Conflict(f"campaign {phase.campaign} is {phase.campaign.state}", code="phase_closed")
    if request.participation is None:
        return False

    state = phase_state(phase, request.participation, request.arrived_at)
    if state == PhaseState.PLANNED:
        raise Conflict(
            f"phase {phase.slug} opens at {time_text(phase.opens_at)}", code="phase_planned"
        )

    if state == PhaseState.PAUSED:
        reason = f": {phase.paused_reason}" if phase.paused_reason else ""
        raise Conflict(f"phase {phase.slug} is paused{reason}", code="phase_paused")

    if state == PhaseState.CLOSED and not request.on_behalf:
        raise Conflict(
            f"phase {phase.slug} is closed; "
            f"the last byte of your run arrived at {time_text(request.arrived_at)}",
            code="phase_closed",
        )

    disclosed = phase.collection.disclosure >= Disclosure.TEAMS
    if phase.kind == Phase.Kind.AFTERWARDS and not disclosed:
        raise Conflict(
            f"phase {phase.slug} takes entries when results on {phase.collection} "
            "are released to teams",
            code="release_needed",
        )

    # Organisers may still enter for a team that forgot, until participants see everything.
    hidden = Collection.objects.filter(
        pk=phase.collection_id, blind=True, shown_to__lt=Disclosure.PARTICIPANTS
    )
    if phase.kind == Phase.Kind.EVALUATION and not hidden.exists():
        raise Conflict("results on the collection are disclosed", code="evaluation_needs_blind")

    return state in (PhaseState.LATE, PhaseState.CLOSED)


def _check_tag(campaign: Campaign, team: Participation | None, run: Run) -> None:
    """Raise Conflict for a tag that is the team's name, or taken in a campaign with unique tags.

    What organisers enter has the tags of their own team.
    """
    names = (team.team.slug, team.team.name, team.name) if team else ()
    if run.tag.lower() in (name.lower() for name in names):
        raise Conflict(
            f"the tag {run.tag!r} is the name of the team", code="tag_is_team_name", pointer="/tag"
        )

    same_tag = Entry.objects.filter(phase__campaign=campaign, run__tag=run.tag)
    others = same_tag.exclude(run__team=run.team_id)
    if campaign.tag_scope == Campaign.TagScope.CAMPAIGN and others.exists():
        message = f"another entry of the campaign has the tag {run.tag!r}; choose a new one"
        raise Conflict(message, code="tag_taken", pointer="/tag")


def _check_signed(request: EntryRequest, team: Participation) -> None:
    """Raise Conflict for an agreement without the signature of the user, or of an owner.

    Where organisers enter for a team, one signature of its members is enough.
    """
    owners = Membership.objects.filter(team=team.team, role=Membership.Role.OWNER).values("user")
    for agreement in request.phase.campaign.agreements.all():
        by_owner = agreement.required_of == Agreement.RequiredOf.ONE_OWNER
        signatures = Signature.objects.filter(agreement=agreement, participation=team)
        if by_owner:
            signatures = signatures.filter(user__in=owners)
        elif not request.on_behalf:
            signatures = signatures.filter(user=request.user)

        if not signatures.exists():
            signer = "an owner of the team" if by_owner else "you"
            raise Conflict(
                f"the agreement {agreement.title!r} ({agreement.sha256[:12]}) "
                f"is not signed by {signer}",
                code="agreement_missing",
            )


def _check_limits(request: EntryRequest, phase: Phase, team: Participation, *, new: bool) -> None:
    """Raise LimitReached or Conflict if no attempt or slot is left; the team's row is locked.

    An entry that is entered again was counted as an attempt before.
    """
    rest = allowance(phase, team, request.arrived_at)
    if new and rest.attempts_left == 0:
        message = (
            f"team {team.team} has used its {phase.attempts_total} attempts in phase {phase.slug}"
        )
        raise LimitReached(message, wait=None, code="attempts_exceeded")

    if new and rest.attempts_left_today == 0:
        wait = max(1.0, (rest.resets_at - request.arrived_at).total_seconds())
        message = (
            f"team {team.team} has used its {phase.attempts_daily} attempts of today; "
            "they reset at midnight UTC"
        )
        raise LimitReached(message, wait=wait, code="attempts_exceeded")

    if rest.slots_left == 0:
        message = (
            f"team {team.team} has {phase.slots} entries in phase {phase.slug}, "
            "the most there are; withdraw one"
        )
        raise Conflict(message, code="no_slot_left")


def _free_priority(request: EntryRequest, phase: Phase, team: Participation) -> int:
    """Return the next free priority.

    Raise Conflict for a requested one that is taken, InvalidInput for one that leaves a gap.
    """
    free = ordered(phase, team).count() + 1
    if request.priority is not None and request.priority < free:
        message = (
            f"another entry has priority {request.priority}; PUT priorities/ changes their order"
        )
        raise Conflict(message, code="priority_taken", pointer="/priority")

    if request.priority is not None and request.priority > free:
        raise InvalidInput(
            f"the next free priority is {free}; there are no gaps", pointer="/priority"
        )

    return free
