"""Acts on a campaign, which `ACTS` lists; a page says what each does and asks to confirm it.

Services decide who may do what, and when. The page says what they refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from evalhub.campaigns.api.inputs import ExtensionSerializer
from evalhub.campaigns.pages.act import ENTERED, Act, Target, many, people, warn_of_unreachable
from evalhub.campaigns.pages.desk_pages import answer
from evalhub.campaigns.pages.inputs import ZONES, time_in, zone_shown
from evalhub.campaigns.pages.phase_counts import hidden_collections
from evalhub.campaigns.pages.phase_words import local_time, summarise_phase
from evalhub.campaigns.pages.release_acts import RELEASE_ACTS
from evalhub.campaigns.questions.lookup import (
    participations_of,
    visible_campaign,
    visible_entry,
    visible_participation,
    visible_phase,
)
from evalhub.campaigns.services.campaigns import (
    archive_campaign,
    check_organiser,
    delete_draft,
    is_organiser,
    publish_campaign,
)
from evalhub.campaigns.services.entries import disqualify_entry, publish_entry, withdraw_entry
from evalhub.campaigns.services.exclusions import exclude_topics
from evalhub.campaigns.services.phase_times import closing_time
from evalhub.campaigns.services.phases import (
    cancel_extension,
    extend_phase,
    pause_phase,
    resume_phase,
)
from evalhub.campaigns.services.teams import change_state, decide_teams, leave
from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import queue_judged
from runs.models import (
    Campaign,
    CampaignMember,
    Entry,
    Extension,
    Participation,
    Release,
    Scope,
)
from runs.models.campaigns.disclosure import sees_results
from runs.services import clock
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of
from runs.web.parameters import text_of


def _says_publish(target: Target) -> list[str]:
    phases = target.campaign.phases.count()
    return [
        f"Everyone who can reach this server sees the page of the campaign with its guidelines and"
        f" {many(phases, 'phase')}; teams can register if registration is open.",
        f"Participants sign {many(target.campaign.agreements.count(), 'agreement')} before they enter runs.",
        "From then on no time of a phase moves earlier, and the campaign cannot be deleted.",
        *(
            f"Participants do not see collection {collection.name}, and could not enter runs into it: make it public first."
            for collection in hidden_collections(target.campaign)
        ),
        *warn_of_unreachable(target),
    ]


def _publish(target: Target) -> str:
    publish_campaign(campaign=target.campaign, origin=target.origin)
    return f"Campaign {target.campaign.name} is published."


def _says_archive(target: Target) -> list[str]:
    entries = Entry.objects.filter(phase__campaign=target.campaign, state=ENTERED).count()
    return [
        f"It concerns {people(target)} and {many(entries, 'entry', 'entries')}.",
        "The campaign stays readable as it is. It takes no more teams or runs, and this cannot be undone.",
    ]


def _archive(target: Target) -> str:
    archive_campaign(campaign=target.campaign, origin=target.origin)
    return f"Campaign {target.campaign.name} is archived."


def _says_delete(target: Target) -> list[str]:
    phases, agreements = target.campaign.phases.count(), target.campaign.agreements.count()
    contents = f"{many(phases, 'phase')} and {many(agreements, 'agreement')}"
    return [f"The draft is deleted with {contents}. Its collections stay. This cannot be undone."]


def _delete(target: Target) -> str:
    delete_draft(campaign=target.campaign, origin=target.origin)
    return f"Draft {target.campaign.name} deleted."


def _closes(target: Target, team: Participation | None = None) -> str:
    time = summarise_phase(target.of_phase, team, clock.database_now()).closes
    return f"{time.local} ({time.utc})"


def _says_extend(target: Target) -> list[str]:
    phase = target.of_phase
    entries = phase.entries.filter(state=ENTERED)
    with_entries = many(
        entries.values("participation").distinct().count(), "team has", "teams have"
    )
    addressees = f"team {target.team.name} alone" if target.team else people(target)
    audience = (
        "organisers and that team see it"
        if target.team
        else "everyone who reads the page of the campaign sees it"
    )

    return [
        f"Phase {phase.name} closes at {_closes(target, target.team)}. {with_entries} entries in it.",
        f"The extension is for {addressees}; {audience}, with your reason and the time at which it was announced. Less than 24"
        " hours before the end, that is said, too.",
        "A deadline moves later only. The extension can be cancelled until the end above."
        if clock.database_now() < closing_time(phase, target.team)
        else "A deadline moves later only. The end has passed, so the extension cannot be cancelled.",
    ]


def _extend(target: Target) -> str:
    form, phase = target.request.data, target.of_phase
    zone = str(form.get("zone", "")).strip() or phase.zone
    form_fields = {
        "closes_at": time_in(form, "closes_at", zone),
        "zone": zone,
        "reason": target.reason(),
        "confirm": "confirm" in form,
    }
    serializer = ExtensionSerializer(phase, data=form_fields)
    serializer.is_valid(raise_exception=True)
    until, reason = serializer.validated_data["closes_at"], serializer.validated_data["reason"]
    extend_phase(
        phase=phase,
        user=target.user,
        until=until,
        reason=reason,
        confirm=serializer.validated_data["confirm"],
        participation=target.team,
        origin=target.origin,
    )

    time = local_time(until, phase.zone, ends=True)
    addressees = f"team {target.team.name}" if target.team else "all teams"

    return f"Phase {phase.name} closes for {addressees} at {time.local} ({time.utc})."


def _says_cancel_extension(target: Target) -> list[str]:
    phase, extension = target.of_phase, target.of_extension
    addressees = f"team {target.team.name} alone" if target.team else people(target)
    old, new = (local_time(at, phase.zone, ends=True) for at in (extension.old, extension.new))

    return [
        f"Phase {phase.name} closes for {addressees} at {old.local} ({old.utc}) instead of {new.local} ({new.utc}).",
        "They read your reason. Once the old end has passed, the extension stays.",
    ]


def _cancel_extension(target: Target) -> str:
    cancel_extension(
        phase=target.of_phase,
        until=target.of_extension.new,
        reason=target.reason(),
        participation=target.team,
        origin=target.origin,
    )
    return f"Extension of phase {target.of_phase.name} cancelled."


def _says_pause(target: Target) -> list[str]:
    return [
        f"Phase {target.of_phase.name} takes no runs of {people(target)} until you resume it. They read your reason.",
        f"Its times stay as they are: it closes at {_closes(target)}. Extend it if teams need the time back.",
    ]


def _pause(target: Target) -> str:
    pause_phase(phase=target.of_phase, reason=target.reason(), origin=target.origin)
    return f"Phase {target.of_phase.name} is paused."


def _says_resume(target: Target) -> list[str]:
    phase = target.of_phase
    return [
        f"Phase {phase.name} takes runs from {people(target)} again. It closes at {_closes(target)}."
    ]


def _resume(target: Target) -> str:
    resume_phase(phase=target.of_phase, origin=target.origin)
    return f"Phase {target.of_phase.name} takes runs again."


def _says_exclude(target: Target) -> list[str]:
    phase = target.of_phase
    runs = phase.collection.runs.filter(deleted_at=None).count()
    excluded = ", ".join(phase.excluded_topics or []) if sees_results(target.user, phase) else ""

    return [
        f"The topics that you name do not count in phase {phase.name}, and all others do.",
        *([f"Now these do not count: {excluded}."] if excluded else []),
        f"The judgements of {phase.collection.name} get a version without them, by which {many(runs, 'run')} are "
        "evaluated again, those of other phases there, too.",
        "All who see results read your reason. Once results are released to teams, nothing more can be excluded.",
    ]


def _exclude(target: Target) -> str:
    phase = target.of_phase
    topics = str(target.request.data.get("topics", "")).replace(",", " ").split()
    reason = target.reason(required=False)
    exclude_topics(
        phase=phase,
        topics=topics,
        reason=reason,
        user=target.user,
        enqueue=queue_judged,
        origin=target.origin,
    )

    return f"Topics that do not count in phase {phase.name}: {', '.join(topics) or 'none'}."


def _says_of_team(effect: str) -> Callable[[Target], list[str]]:
    def says(target: Target) -> list[str]:
        team = target.of_team
        members = many(team.members.filter(left_at=None).count(), "member")
        entries = many(team.entries.filter(state=ENTERED).count(), "entry", "entries")

        return [
            f"Team {team.name} ({team.team.slug}) has {members} and {entries}; it is {team.state}.",
            effect,
        ]

    return says


def _change_team(state: str, *, required: bool = False) -> Callable[[Target], str]:
    def change(target: Target) -> str:
        team = target.of_team
        reason = target.reason(required=required)
        change_state(
            participation=team, state=state, user=target.user, reason=reason, origin=target.origin
        )

        return f"Team {team.name} is {state} now."

    return change


def _says_of_teams(state: str, effect: str) -> Callable[[Target], list[str]]:
    def says(target: Target) -> list[str]:
        changing = [team for team in target.teams if team.state != state]
        names = ", ".join(team.name for team in changing)
        same = len(target.teams) - len(changing)

        return [
            f"{many(len(changing), 'team')}: {names}." if changing else "No team changes.",
            effect,
            *(
                [f"{many(same, 'other team is', 'other teams are')} {state} already."]
                if same
                else []
            ),
        ]

    return says


def _change_teams(state: str) -> Callable[[Target], str]:
    def change(target: Target) -> str:
        decisions = decide_teams(
            campaign=target.campaign,
            teams=[team.team.slug for team in target.teams],
            state=state,
            user=target.user,
            reason=target.reason(required=False),
            origin=target.origin,
        )
        changed = sum(decision.changed for decision in decisions)
        refused = [decision.detail for decision in decisions if decision.code]
        words = f"{many(changed, 'team is', 'teams are')} {state} now."

        return " ".join([words, *(f"{detail[0].upper()}{detail[1:]}." for detail in refused)])

    return change


def _says_lift(target: Target) -> list[str]:
    member, team = target.of_member, target.of_member.participation
    membership = (
        f"left it on {member.left_at:%Y-%m-%d}"
        if member.left_at
        else "takes part with it, and leaves it by this"
    )
    return [
        f"Team {team.name} has entries, so that people who leave it can join no other. {member.user} {membership}.",
        f"From then on {member.user} may join another team of the campaign. The audit trail keeps your reason.",
    ]


def _lift(target: Target) -> str:
    member, reason = target.of_member, target.reason()
    leave(member=member, user=target.user, reason=reason, origin=target.origin)
    return f"{member.user} may join another team."


def _says_of_entry(effect: str) -> Callable[[Target], list[str]]:
    def says(target: Target) -> list[str]:
        entry = target.of_entry
        owner = (
            f"of team {entry.participation.name}" if entry.participation else "of the organisers"
        )
        return [
            f"Entry {entry.number} of phase {entry.phase.name}: run {entry.run.tag} {owner}; it is {entry.state}.",
            effect,
        ]

    return says


def _withdraw(target: Target) -> str:
    reason = target.reason(required=False)
    withdraw_entry(entry=target.of_entry, user=target.user, reason=reason, origin=target.origin)
    return f"Entry {target.of_entry.number} ({target.of_entry.run.tag}) withdrawn."


def _publish_entry(target: Target) -> str:
    publish_entry(entry=target.of_entry, user=target.user, origin=target.origin)
    return f"Entry {target.of_entry.number} ({target.of_entry.run.tag}) published."


def _disqualify(target: Target) -> str:
    check_organiser(target.campaign, target.user)
    disqualify_entry(entry=target.of_entry, reason=target.reason(), origin=target.origin)
    return f"Entry {target.of_entry.number} ({target.of_entry.run.tag}) disqualified."


_TEAMS, _ENTRIES = "campaign-teams-page", "campaign-entries-page"
ACTS: dict[str, Act] = {
    "publish": Act("Publish the campaign", "Publish", _says_publish, _publish),
    "archive": Act("Archive the campaign", "Archive", _says_archive, _archive),
    "delete": Act("Delete the draft", "Delete", _says_delete, _delete, back="campaigns-page"),
    "extend": Act("Extend a phase", "Extend", _says_extend, _extend, ("closes_at", "zone", "reason")),
    "cancel-extension": Act(
        "Cancel an extension", "Cancel the extension", _says_cancel_extension, _cancel_extension, ("reason",),
    ),
    "pause": Act("Pause a phase", "Pause", _says_pause, _pause, ("reason",)),
    "resume": Act("Resume a phase", "Resume", _says_resume, _resume),
    "exclude-topics": Act(
        "Exclude topics", "Exclude", _says_exclude, _exclude, ("topics", "maybe-reason"),
    ),
    "accept": Act(
        "Accept a team", "Accept", _says_of_team("Its members can sign the agreements and enter runs."),
        _change_team("accepted"), back=_TEAMS,
    ),
    "decline": Act(
        "Decline a team", "Decline", _says_of_team("It cannot enter runs. Its owners can request again."),
        _change_team("declined"), ("maybe-reason",), back=_TEAMS,
    ),
    "accept-teams": Act(
        "Accept teams", "Accept",
        _says_of_teams("accepted", "Their members can sign the agreements and enter runs."),
        _change_teams("accepted"), back=_TEAMS,
    ),
    "decline-teams": Act(
        "Decline teams", "Decline",
        _says_of_teams("declined", "They cannot enter runs. Their owners can request again."),
        _change_teams("declined"), ("maybe-reason",), back=_TEAMS,
    ),
    "remove": Act(
        "Remove a team", "Remove", _says_of_team("Its entries are disqualified, for the reason that you give."),
        _change_team("removed", required=True), ("reason",), back=_TEAMS,
    ),
    "lift": Act("Let a person join another team", "Let join", _says_lift, _lift, ("reason",), back=_TEAMS),
    "leave": Act(
        "Withdraw your team", "Withdraw the team",
        _says_of_team("Its entries are withdrawn, and it can no longer enter runs."),
        _change_team("withdrawn"), ("maybe-reason",), organisers=False, back="campaign-team-page",
    ),
    "request": Act(
        "Request again", "Request again", _says_of_team("The organisers decide again whether it takes part."),
        _change_team("requested"), organisers=False, back="campaign-team-page",
    ),
    "withdraw": Act(
        "Withdraw an entry", "Withdraw",
        _says_of_entry("Its slot becomes free and its attempt stays counted. Later priorities close up."),
        _withdraw, ("maybe-reason",), organisers=False, back="",
    ),
    "publish-entry": Act(
        "Publish an entry", "Publish",
        _says_of_entry("Everyone who sees the leaderboard of its phase finds it there, permanently."),
        _publish_entry, organisers=False, back="",
    ),
    "disqualify": Act(
        "Disqualify an entry", "Disqualify",
        _says_of_entry("It leaves the campaign's results. Everyone who sees the entry reads your reason."),
        _disqualify, ("reason",), back=_ENTRIES,
    ),
    **RELEASE_ACTS,
}  # fmt: skip

# Acts on the teams that the parameter `teams` names.
_OF_MANY = ("accept-teams", "decline-teams")


class ActPage(FormPage):
    """Confirm and do an act. The address names the phase, team or entry that it is about."""

    scopes = {"POST": Scope.MANAGE}
    reads = ("phase", "team", "teams", "entry", "extension", "release", "member")
    fields = (
        "reason",
        "zone",
        "closes_at_day",
        "closes_at_time",
        "confirm",
        "at_day",
        "at_time",
        "force",
        "with_run_files",
        "topics",
    )

    def get(self, request: Request, campaign: str, act: str) -> HttpResponse:
        return self._page(request, *_target(request, campaign, act))

    def post(self, request: Request, campaign: str, act: str) -> HttpResponse:
        action, target = _target(request, campaign, act)
        try:
            done = action.do(target)
        except (EvalHubError, APIException) as error:
            return self._page(request, *_target(request, campaign, act), refusal_of(error))

        messages.success(request, done)

        return redirect_to(request, _back(action, target))

    def _page(
        self, request: Request, act: Act, target: Target, refused: Refusal | None = None
    ) -> HttpResponse:
        zone = zone_shown(target.phase.zone) if target.phase else "AoE"
        context = {
            "campaign": target.campaign,
            "act": act,
            "says": act.says(target),
            "back": _back(act, target),
            "form_values": request.data if refused else {"zone": zone},
            "zones": ZONES,
        }
        return answer(request, "campaigns/act.html", context, refused)


def _target(request: Request, slug: str, name: str) -> tuple[Act, Target]:
    """Return an act and its target, as the address names them.

    Raise Http404 for what the reader does not see, and NotAllowed if only organisers may do it.
    """
    campaign, query = visible_campaign(request, slug), request.query_params
    act = ACTS.get(name)
    if act is None:
        raise Http404(f"there is no act {name[:40]!r}")
    if act.organisers:
        check_organiser(campaign, request.user)

    entry = visible_entry(request, _key(query["entry"])) if "entry" in query else None
    if entry and entry.phase.campaign_id != campaign.pk:
        raise Http404(f"campaign {slug} has no such entry")

    release = Release.objects.select_related("phase__campaign__team", "phase__collection", "qrels")
    if "release" in query:
        check_organiser(campaign, request.user)

    extension = query.get("extension", "")

    return act, Target(
        request=request,
        extension=Extension.objects.filter(pk=int(extension), phase__campaign=campaign).first()
        if extension.isdecimal() and len(extension) < 10
        else None,
        release=release.filter(pk=_key(query["release"]), phase__campaign=campaign).first()
        if "release" in query
        else None,
        campaign=campaign,
        phase=visible_phase(request, slug, query["phase"]) if "phase" in query else None,
        team=visible_participation(request, slug, query["team"]) if "team" in query else None,
        entry=entry,
        member=_member(campaign, query["member"]) if "member" in query else None,
        teams=_teams(request, campaign) if name in _OF_MANY else (),
    )


def _teams(request: Request, campaign: Campaign) -> list[Participation]:
    """Return the teams that the address names, by name. Raise Http404 for none, and for others."""
    slugs = text_of(request.query_params).get("teams", "").split(",")
    rows = participations_of(request.user, campaign).filter(team__slug__in=slugs)
    teams = list(rows.order_by("name", "pk"))
    if not teams or len(teams) < len(set(slugs)):
        raise Http404("choose teams of the campaign first")

    return teams


def _member(campaign: Campaign, username: str) -> CampaignMember | None:
    return (
        campaign.members.select_related("user", "participation__team")
        .filter(user__username=username)
        .first()
    )


def _key(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404("there is no such entry") from error


def _back(act: Act, target: Target) -> str:
    """Return the page from which somebody does this."""
    if act.back == "campaigns-page":
        return reverse(act.back)

    name = act.back or (
        _ENTRIES if is_organiser(target.campaign, target.user) else "campaign-team-page"
    )

    return reverse(name, args=[target.campaign.slug])
