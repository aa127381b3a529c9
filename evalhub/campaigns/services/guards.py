"""Checks of campaigns on other actions: uploads, withdrawals, releases and reading files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q

from evalhub.campaigns.services.phase_times import PhaseState, last_closing_time, phase_state
from runs.errors import Conflict, NotAllowed
from runs.models import Campaign, Collection, Entry, Participation, Phase, Release, Run
from runs.models.campaigns.disclosure import is_participant
from runs.services import clock

_ACCEPTED, _ENTERED = Participation.State.ACCEPTED, Entry.State.ENTERED
# The kinds of phases that make entries official on the leaderboard of their collection.
_DECIDING = (Phase.Kind.EVALUATION, Phase.Kind.DEVELOPMENT)


def check_outside(run: Run) -> None:
    """Raise Conflict (`enter_through_phase`) for a run that is uploaded past an open phase.

    A participant has to enter it into the phase while an evaluation is open to the team; anybody
    else except organisers has to wait for the last end of an evaluation or development phase.
    """
    phases = _phases([run.collection_id], *_DECIDING)
    if not phases:
        return

    now = clock.database_now()
    managers = Collection.objects.managed_by(run.submitted_by)

    for phase in phases:
        theirs = Q(team=run.team_id) | Q(members__user=run.submitted_by_id, members__left_at=None)
        team = Participation.objects.filter(
            theirs, campaign=phase.campaign_id, state=_ACCEPTED
        ).first()
        if team is None:
            is_open = phase.opens_at <= now < last_closing_time(phase)
            if is_open and not managers.filter(pk=run.collection_id).exists():
                message = (
                    f"phase {phase.slug} of {phase.campaign} is open: "
                    "take part in the campaign and enter the run into the phase"
                )
                raise Conflict(message, code="enter_through_phase")
        elif phase.kind == Phase.Kind.EVALUATION and phase_state(phase, team, now) in (
            PhaseState.OPEN,
            PhaseState.PAUSED,
        ):
            message = (
                f"team {team.team} takes part in {phase.campaign}: enter the run into its phase "
                f"{phase.slug}"
            )
            raise Conflict(message, code="enter_through_phase")


def check_not_entered(run: Run) -> None:
    """Raise Conflict for a run that is entered in a phase, or was disqualified there."""
    entry = _entry_of(run)
    if entry:
        entered = entry.state == _ENTERED
        do = (
            "withdraw the entry first"
            if entered
            else "it was disqualified, which stays on record with its run"
        )
        raise Conflict(
            f"run {run.tag} is entry {entry.number} of {entry.phase}; {do}", code="entered_in_phase"
        )


def check_stays_single(run: Run) -> None:
    """Raise Conflict for an entered or disqualified run that is to be a replicate.

    Results of its phase name the run, also when the phase is over.
    """
    entry = _entry_of(run)
    if entry:
        raise Conflict(
            f"run {run.tag} is entry {entry.number} of {entry.phase}, and a phase takes single runs; "
            "leave it, and submit its file again with replicate",
            code="replicates_not_entered",
            pointer="/replicate",
        )


def _entry_of(run: Run) -> Entry | None:
    """Return an entry of a run that was not withdrawn, one that counts before others."""
    entries = Entry.objects.filter(run=run).exclude(state=Entry.State.WITHDRAWN)
    return entries.select_related("phase__campaign").order_by("-state").first()


def check_removable(run: Run) -> None:
    """Raise Conflict for a run that is entered in a phase, until its entry is disqualified."""
    entry = Entry.objects.filter(run=run, state=_ENTERED).select_related("phase__campaign").first()
    if entry:
        message = (
            f"run {run.tag} is entry {entry.number} of {entry.phase}; disqualify the entry first"
        )
        raise Conflict(message, code="entered_in_phase")


def check_file_released(run: Run, user: Any) -> None:
    """Raise NotAllowed for the file of another team's entered run that was not released to the user.

    Files of withdrawn or disqualified entries are never released, except in phases without
    official entries.
    """
    deciding = Q(state=_ENTERED) | Q(phase__kind__in=_DECIDING)
    entries = list(
        Entry.objects.filter(deciding, run=run).select_related(
            "phase__campaign", "phase__collection"
        )
    )
    if not entries or Run.objects.owned_by(user).filter(pk=run.pk).exists():
        return
    if Collection.objects.managed_by(user).filter(pk=run.collection_id).exists():
        return

    phases = [entry.phase for entry in entries if entry.state == _ENTERED]

    for phase in phases:
        releases = Release.objects.filter(phase=phase, with_run_files=True).exclude(done_at=None)
        public = releases.filter(audience=Release.Audience.PUBLIC)
        participants = releases.filter(audience=Release.Audience.PARTICIPANTS)
        if public.exists() or (participants.exists() and is_participant(user, phase)):
            return

    if not phases:
        message = (
            f"the entry of run {run.tag} in {entries[0].phase} was {entries[0].state}, so its "
            "file is not released"
        )
        raise NotAllowed(message)

    message = (
        f"run {run.tag} takes part in {phases[0]}; the organisers have not released the files of "
        "its runs"
    )
    raise NotAllowed(message)


def check_phases_over(collection: Collection) -> None:
    """Raise Conflict if an evaluation phase on a collection has not closed for every team.

    The row of the collection is locked.
    """
    for phase in _phases([collection.pk], Phase.Kind.EVALUATION):
        if clock.database_now() < last_closing_time(phase):
            message = f"phase {phase} is not over; its entries would see the judgements"
            raise Conflict(message, code="phase_not_over")


def last_ends(collections: Iterable[int]) -> dict[int, datetime]:
    """Return when the last evaluation phase on each collection has closed for every team.

    Nothing can be released before. The collections are named by their keys.
    """
    ends: dict[int, datetime] = {}
    for phase in _phases(collections, Phase.Kind.EVALUATION):
        end = last_closing_time(phase)
        ends[phase.collection_id] = max(ends.get(phase.collection_id, end), end)

    return ends


def _phases(collections: Iterable[int], *kinds: Phase.Kind) -> list[Phase]:
    """Return the phases of these kinds on collections, of published campaigns."""
    published = Phase.objects.filter(
        collection__in=collections, kind__in=kinds, campaign__state=Campaign.State.PUBLISHED
    )
    return list(published.select_related("campaign").prefetch_related("extensions"))
