"""Notify teams and organisers of the events of a campaign, by mails and webhooks.

They are written in the transaction of the event. No notification depends on judgements: entries and
times do not, and teams hear about evaluations only where the phase gives feedback. Who is notified
of an event is decided only here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from runs.models import (
    Campaign,
    CampaignMember,
    CampaignNotice,
    Entry,
    Extension,
    Invitation,
    Mail,
    Membership,
    Participation,
    Phase,
    PhaseMoment,
    Qrels,
    Release,
    Team,
    User,
    Webhook,
)
from runs.models.campaigns.disclosure import gives_feedback
from runs.services.mail.outbox import write_mails
from runs.services.webhooks.events import announce_of_campaign

Event = Webhook.Event
_ACCEPTED = Participation.State.ACCEPTED
# Most lines of a digest.
_DIGEST_LINES = 200
# Mails that invite a person into a campaign, in a day: taking invitations back and making them
# again sends no more.
MAX_INVITED = 5
_INVITED = "member.invited"


def notify(
    event: Webhook.Event,
    campaign: Campaign,
    teams: Sequence[Participation],
    *,
    organisers: bool,
    subject: str,
    text: str,
    path: str,
    about: dict[str, Any],
) -> None:
    """Write an event for the members of these teams, and with `organisers` also for organisers.

    `path` is the address of its object below the API and `about` its ids and states, for webhooks;
    organisers' webhooks get every event. Mails have a link to the page of the campaign.
    """
    whom = Q(campaign_memberships__participation__in=teams, campaign_memberships__left_at=None)
    if organisers:
        whom |= Q(memberships__team=campaign.team_id, memberships__role=Membership.Role.OWNER)

    recipients = User.objects.filter(whom, is_active=True).distinct().order_by("pk")
    link = f"{settings.EVALHUB_URL}/campaigns/{campaign.slug}/" if settings.EVALHUB_URL else ""
    why = f"You get this because you take part in the campaign {campaign.name}, or organise it."
    body = "\n\n".join(part for part in (text, link, f"-- \n{why}") if part)
    write_mails(
        campaign=campaign,
        event=event,
        recipients=recipients,
        subject=f"[{campaign.name}] {subject}",
        text=body,
    )
    hooked = Team.objects.filter(Q(participations__in=teams) | Q(pk=campaign.team_id)).values("pk")
    announce_of_campaign(event, teams=hooked, path=path, about={"campaign": campaign.slug, **about})


def notify_received(entry: Entry, allowance: Any) -> None:
    """Notify a team of its entry, with its allowance: the receipt."""
    phase, run, team = entry.phase, entry.run, entry.participation
    if team is None:
        return

    limits = (
        ("slots", allowance.slots_left),
        ("attempts today", allowance.attempts_left_today),
        ("attempts", allowance.attempts_left),
    )
    lines = [
        f"The run {run.tag} of team {team.name} was entered into phase {phase.name} of "
        f"{phase.campaign.name}.",
        "",
        f"Entry:    {entry.number}{', late' if entry.late else ''}",
        f"Arrived:  {entry.arrived_at:%Y-%m-%d %H:%M:%S.%f} UTC, the last byte",
        f"SHA-256:  {run.sha256}",
        f"Priority: {entry.priority if entry.priority is not None else 'none'}",
        *[f"Left:     {count} {limit}" for limit, count in limits if count is not None],
        "",
        "This is the receipt; keep it.",
    ]
    late = "late " if entry.late else ""
    subject = f"{phase.name}: received {late}entry {entry.number}, {run.tag}"
    _notify_entry_team(Event.ENTRY_RECEIVED, entry, subject, "\n".join(lines))


def notify_ended(entry: Entry, state: Entry.State, reason: str) -> None:
    """Notify a team that its entry was withdrawn or disqualified."""
    event = Event.ENTRY_WITHDRAWN if state == Entry.State.WITHDRAWN else Event.ENTRY_DISQUALIFIED
    text = f"Entry {entry.number}, {entry.run.tag}, of phase {entry.phase.name} was {state}."
    more = f" The reason: {reason}" if reason else ""
    _notify_entry_team(
        event,
        entry,
        f"{entry.phase.name}: entry {entry.number}, {entry.run.tag}, is {state}",
        text + more,
    )


def notify_evaluated(run: UUID, *, failed: bool, our_fault: bool = False) -> None:
    """Notify the teams of a run that its evaluation has ended, where the phase gives feedback.

    Organisers are notified of every failure. An entry does not count as an attempt while its
    evaluation has failed by `our_fault`.
    """
    entered = Entry.objects.filter(run=run, state=Entry.State.ENTERED)
    of = ("phase__campaign", "phase__collection", "run", "participation")

    for entry in entered.select_related(*of):
        event = Event.ENTRY_FAILED if failed else Event.ENTRY_EVALUATED
        open_to_team = gives_feedback(entry.phase, "own", "board")
        if not (open_to_team or failed):
            continue

        happened = "could not be evaluated" if failed else "is evaluated"
        subject = f"{entry.phase.name}: entry {entry.number}, {entry.run.tag}, {happened}"
        counts = ""
        if failed and entry.role == Entry.Role.COMPETING:
            free = (
                " The fault is the server's: as long as that is so, the entry does not count as "
                "an attempt."
            )
            counts = free if our_fault else " It counts as an attempt."

        teams = [entry.participation] if entry.participation and open_to_team else []
        about = _entry_fields(entry, "failed" if failed else "evaluated")
        text = (
            f"Entry {entry.number}, {entry.run.tag}, of phase {entry.phase.name} "
            f"{happened}.{counts}"
        )
        path, campaign = f"entries/{entry.pk}/", entry.phase.campaign
        notify(
            event,
            campaign,
            teams,
            organisers=failed,
            subject=subject,
            text=text,
            path=path,
            about=about,
        )


def notify_extended(extension: Extension, phase: Phase, notice: str) -> None:
    """Notify all teams, or the one that the extension is for, that a phase closes later."""
    teams = [extension.participation] if extension.participation else accepted(phase.campaign)
    text = (
        f"Phase {phase.name} closes at {time_text(extension.new)} instead of "
        f"{time_text(extension.old)}"
        f"{' for your team' if extension.participation else ''}. The reason: {extension.reason}"
        f"{f' ({notice})' if notice else ''}"
    )
    _notify_phase_teams(
        Event.PHASE_EXTENDED,
        phase,
        teams,
        f"{phase.name} closes later: {time_text(extension.new)}",
        text,
    )


def notify_extension_cancelled(extension: Extension, phase: Phase, reason: str) -> None:
    """Notify all teams, or the one that had the extension, that a phase closes at its old end."""
    teams = [extension.participation] if extension.participation else accepted(phase.campaign)
    text = (
        f"The extension of phase {phase.name} is cancelled"
        f"{' for your team' if extension.participation else ''}: it closes at "
        f"{time_text(extension.old)}, "
        f"not at {time_text(extension.new)}. The reason: {reason}"
    )
    subject = f"{phase.name} closes at {time_text(extension.old)} after all"
    _notify_phase_teams(Event.PHASE_EXTENSION_CANCELLED, phase, teams, subject, text)


def notify_paused(phase: Phase, reason: str) -> None:
    text = (
        f"Phase {phase.name} takes no entries at present. The reason: {reason}\n\nIts end stays "
        "as it is."
    )
    _notify_phase_teams(
        Event.PHASE_PAUSED, phase, accepted(phase.campaign), f"{phase.name} is paused", text
    )


def notify_resumed(phase: Phase) -> None:
    text = f"Phase {phase.name} takes entries again. It closes at {time_text(phase.closes_at)}."
    _notify_phase_teams(
        Event.PHASE_RESUMED, phase, accepted(phase.campaign), f"{phase.name} goes on", text
    )


def notify_moment(phase: Phase, kind: str, at: datetime, teams: Sequence[Participation]) -> None:
    """Notify teams that a phase has opened, closes soon or has closed for them."""
    if kind == PhaseMoment.Kind.OPENED:
        text = f"Phase {phase.name} takes entries. It closes at {time_text(at)}."
        _notify_phase_teams(Event.PHASE_OPENED, phase, teams, f"{phase.name} is open", text)
    elif kind == PhaseMoment.Kind.CLOSED:
        late = (
            f" Late entries are taken until {time_text(phase.late_closes_at)}."
            if phase.late_closes_at
            else ""
        )
        _notify_phase_teams(
            Event.PHASE_CLOSED,
            phase,
            teams,
            f"{phase.name} has closed",
            f"Phase {phase.name} closed at {time_text(at)}.{late}",
        )
    else:
        hours = kind.removeprefix("closing_")
        text = (
            f"Phase {phase.name} closes at {time_text(at)}. The last byte of an entry has to "
            "arrive before that instant; "
            "the instant itself is late.\n\nYou get this because your team has no entry yet, or "
            "slots left."
        )
        _notify_phase_teams(
            Event.PHASE_CLOSING,
            phase,
            teams,
            f"{phase.name} closes in less than {hours} hours",
            text,
        )


def notify_team(participation: Participation, state: str, reason: str = "") -> None:
    """Notify organisers that a team asks to take part, or a team of their answer."""
    events = {
        Participation.State.REQUESTED: Event.TEAM_REQUESTED,
        Participation.State.ACCEPTED: Event.TEAM_ACCEPTED,
        Participation.State.DECLINED: Event.TEAM_DECLINED,
        Participation.State.REMOVED: Event.TEAM_REMOVED,
    }
    event = events.get(Participation.State(state))
    if event is None:
        return

    campaign, asks = participation.campaign, event == Event.TEAM_REQUESTED
    happened = "asks to take part" if asks else f"was {state}"
    text = (
        f"Team {participation.name} {happened} in "
        f"{campaign.name}.{f' The reason: {reason}' if reason else ''}"
    )
    path, about = (
        f"campaigns/{campaign.slug}/teams/{participation.team.slug}/",
        {"team": participation.team.slug},
    )
    teams = [] if asks else [participation]
    subject = f"team {participation.name} {happened}"
    notify(
        event,
        campaign,
        teams,
        organisers=asks,
        subject=subject,
        text=text,
        path=path,
        about={**about, "state": state},
    )


def notify_invited(invitation: Invitation) -> None:
    """Notify only the user who is invited to take part in a campaign with a team.

    The mail says who invites, and where to accept.
    """
    user, team, participation = invitation.user, invitation.team, invitation.participation
    if participation is None:
        return

    campaign = participation.campaign
    recent = Mail.objects.filter(
        campaign=campaign, event=_INVITED, created_at__gt=timezone.now() - timedelta(days=1)
    )
    if recent.filter(recipient=user).count() >= MAX_INVITED:
        return

    by = f"{invitation.invited_by} invites you" if invitation.invited_by else "You are invited"
    role = Membership.Role(invitation.role).label.lower()
    where = f":\n{settings.EVALHUB_URL}/account/" if settings.EVALHUB_URL else "."
    parts = (
        f"{by} to team {team.name} ({team.slug}) as {role}, and to take part with it in "
        f"{campaign.name}.",
        f"Accept or decline this on your account page{where}",
        "Until you accept, you do not take part.",
        f"-- \nYou get this because an owner of the team invited your user name, {user}.",
    )
    subject = f"[{campaign.name}] you are invited to team {team.slug}"
    write_mails(
        campaign=campaign,
        event=_INVITED,
        recipients=[user],
        subject=subject,
        text="\n\n".join(parts),
    )


def notify_released(release: Release) -> None:
    """Notify all teams and organisers that results were released, and where to get the packet.

    The results themselves are not in the mail.
    """
    phase, campaign = release.phase, release.phase.campaign
    audience = release.get_audience_display()
    before = Release.objects.filter(phase=phase, audience__gte=release.audience).exclude(
        done_at=None
    )
    how = " again, by newer judgements" if before.exclude(pk=release.pk).exists() else ""
    text = (
        f"The results of phase {phase.name} of {campaign.name} are released to {audience}{how}. "
        "Your team's packet:\n\n"
        f"evh campaign packet {campaign.slug} {phase.slug}"
    )
    subject = f"{phase.name}: results are released to {audience}{how}"
    path, about = (
        f"releases/{release.pk}/",
        {"phase": phase.slug, "release": str(release.pk), "audience": audience},
    )
    teams = accepted(campaign)
    notify(
        Event.RELEASE_DONE,
        campaign,
        teams,
        organisers=True,
        subject=subject,
        text=text,
        path=path,
        about=about,
    )


def notify_superseded(qrels: Qrels) -> None:
    """Notify the teams of phases with results by other judgements that these judgements count now.

    The mail contains no values.
    """
    done = Release.objects.filter(phase__collection=qrels.collection_id).exclude(done_at=None)
    latest = {
        release.phase_id: release
        for release in done.select_related("phase__campaign", "qrels").order_by("done_at")
    }

    for release in latest.values():
        if release.qrels is None or release.qrels_id == qrels.pk:
            continue

        phase, campaign = release.phase, release.phase.campaign
        text = (
            f"The results of phase {phase.name} of {campaign.name} were released by version "
            f"{release.qrels.version} of "
            f"the judgements. Version {qrels.version} is active now: every run is evaluated "
            "again, and leaderboards "
            "follow. Packets and snapshots stay as they were made until the organisers release "
            "again."
        )
        subject, path = (
            f"{phase.name}: newer judgements",
            f"campaigns/{campaign.slug}/phases/{phase.slug}/",
        )
        about, teams = {"phase": phase.slug, "qrels": qrels.version}, accepted(campaign)
        notify(
            Event.QRELS_SUPERSEDED,
            campaign,
            teams,
            organisers=True,
            subject=subject,
            text=text,
            path=path,
            about=about,
        )


def notify_waiting(release: Release) -> None:
    """Notify organisers that a release that is due waits."""
    phase, campaign = release.phase, release.phase.campaign
    text = (
        f"The {release} was due at {time_text(cast(datetime, release.planned_at))} and waits. "
        "Its address says for what."
    )
    path, about = f"releases/{release.pk}/", {"phase": phase.slug, "release": str(release.pk)}
    subject = f"{phase.name}: a release waits"
    notify(
        Event.RELEASE_WAITING,
        campaign,
        [],
        organisers=True,
        subject=subject,
        text=text,
        path=path,
        about=about,
    )


def notify_digest(campaign: Campaign, day: datetime, entries: Sequence[Entry]) -> None:
    """Notify organisers of the entries that arrived or left on a day, without their evaluations."""
    lines = []
    for entry in entries[:_DIGEST_LINES]:
        whose = entry.participation.name if entry.participation else "organisers"
        arrived = (
            f"arrived at {time_text(entry.arrived_at)}{', late' if entry.late else ''}; "
            f"{entry.state}"
        )
        lines.append(
            f"{entry.phase.name}, entry {entry.number}: {entry.run.tag} of {whose}, {arrived}"
        )

    if more := len(entries) - len(lines):
        lines.append(f"and {more:,} more")

    link = f"{settings.EVALHUB_URL}/campaigns/{campaign.slug}/desk/" if settings.EVALHUB_URL else ""
    why = f"You get this once a day because you organise the campaign {campaign.name}."
    owners = Q(memberships__team=campaign.team_id, memberships__role=Membership.Role.OWNER)
    write_mails(
        campaign=campaign,
        event="entries.digest",
        recipients=User.objects.filter(owners, is_active=True).distinct().order_by("pk"),
        subject=f"[{campaign.name}] entries of {day:%Y-%m-%d}: {len(entries):,}",
        text="\n\n".join(part for part in ("\n".join(lines), link, f"-- \n{why}") if part),
    )


def notify_posted(notice: CampaignNotice) -> None:
    """Notify the teams that a notice is for, which are all accepted ones unless some were chosen."""
    campaign = notice.campaign
    path = f"campaigns/{campaign.slug}/notices/"
    fields: dict[str, Any] = {
        "subject": notice.title,
        "text": notice.text,
        "about": {"notice": str(notice.pk)},
    }
    to_chosen = notice.audience == CampaignNotice.Audience.CHOSEN
    teams = list(notice.teams.all()) if to_chosen else accepted(campaign)
    notify(Event.NOTICE_POSTED, campaign, teams, organisers=True, path=path, **fields)


def accepted(campaign: Campaign) -> list[Participation]:
    return list(campaign.participations.filter(state=_ACCEPTED))


def unreachable_teams(campaign: Campaign) -> list[Participation]:
    """Return the teams in which no active member has a mail address, by name."""
    reached = CampaignMember.objects.filter(
        participation=OuterRef("pk"), left_at=None, user__is_active=True
    ).exclude(user__email="")
    states = (Participation.State.REQUESTED, _ACCEPTED)
    rows = campaign.participations.filter(~Exists(reached), state__in=states)
    return list(rows.select_related("team").order_by("name"))


def time_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _entry_fields(entry: Entry, state: str) -> dict[str, Any]:
    team = {"team": entry.participation.team.slug} if entry.participation else {}
    return {
        "phase": entry.phase.slug,
        "entry": str(entry.pk),
        "run": str(entry.run_id),
        **team,
        "state": state,
    }


def _notify_entry_team(event: Webhook.Event, entry: Entry, subject: str, text: str) -> None:
    if entry.participation is None:
        return

    state = event.removeprefix("entry.")
    path, campaign = f"entries/{entry.pk}/", entry.phase.campaign
    about, teams = _entry_fields(entry, state), [entry.participation]
    notify(
        event, campaign, teams, organisers=False, subject=subject, text=text, path=path, about=about
    )


def _notify_phase_teams(
    event: Webhook.Event, phase: Phase, teams: Sequence[Participation], subject: str, text: str
) -> None:  # fmt: skip
    path, about = f"campaigns/{phase.campaign.slug}/phases/{phase.slug}/", {"phase": phase.slug}
    notify(
        event,
        phase.campaign,
        teams,
        organisers=False,
        subject=subject,
        text=text,
        path=path,
        about=about,
    )
