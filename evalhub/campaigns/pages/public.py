"""The list of campaigns, and the page of one, which everybody reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from evalhub.campaigns.api.notices import notices_seen_by
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.pages.notices import shown_notices
from evalhub.campaigns.pages.phase_words import ShownPhase, shown_phase, shown_phases, shown_time
from evalhub.campaigns.questions.lookup import participation_of, visible_campaign
from evalhub.campaigns.services.campaigns import is_organiser
from evalhub.campaigns.services.phase_times import PhaseState, last_closing_time
from evalhub.campaigns.services.pseudonyms import names_at
from evalhub.campaigns.services.snapshots import snapshots_seen_by
from evalhub.campaigns.services.teams import why_no_registrations
from runs.models import (
    Campaign,
    Collection,
    Disclosure,
    Participation,
    Phase,
    Team,
    boards_seen,
    sees_own_results,
)
from runs.models.collections.disclosure import in_team_of
from runs.services import clock
from runs.web.views import page, reads

_CAMPAIGNS_OF_A_PAGE = 50
_OPEN = (PhaseState.OPEN, PhaseState.LATE)


@page
@reads("page")
def campaigns_page(request: HttpRequest) -> HttpResponse:
    """List published campaigns, and drafts of the reader's, newest first."""
    seen = Campaign.objects.visible_to(request.user).select_related("team")
    found = seen.prefetch_related("phases__collection", "phases__extensions__participation__team")
    shown = Paginator(found.order_by("-created_at", "slug"), _CAMPAIGNS_OF_A_PAGE).get_page(
        request.GET.get("page")
    )
    now = clock.database_now()
    context = {
        "page": shown,
        "campaigns": [
            (one, [shown_phase(phase, None, now) for phase in one.phases.all()]) for one in shown
        ],
        "leads": Team.objects.led_by(request.user).exists(),
        "now": now,
    }

    return render(request, "campaigns/list.html", context)


@page
def campaign_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """Show the guidelines of a campaign, its phases with their times, and what the reader may do next."""
    found = visible_campaign(request, campaign)
    own, organiser = participation_of(request.user, found), is_organiser(found, request.user)
    now = clock.database_now()
    phases = shown_phases(found, own, now, organiser=organiser)
    accepted = (
        found.participations.filter(state=Participation.State.ACCEPTED).count()
        if own or organiser
        else None
    )
    collections = Collection.objects.visible_to(request.user).filter(phases__campaign=found)
    closes = found.registration_closes_at
    context = {
        "campaign": found,
        "guidelines": rendered(found.guidelines),
        "phases": phases,
        "now": now,
        "own": own,
        "organiser": organiser,
        "accepted": accepted,
        "teams": _teams(found, own, organiser, [one.phase for one in phases], now),
        "seen_collections": set(collections.values_list("pk", flat=True)),
        "registration_closes": shown_time(closes, "UTC", ends=True) if closes else None,
        "takes_registrations": not why_no_registrations(found, now),
        "notices": shown_notices(notices_seen_by(request.user, found)),
        "snapshots": list(
            snapshots_seen_by(request.user).filter(campaign=found).defer("archive", "manifest")
        ),
        "boards": boards_seen(request.user, [one.phase for one in phases]),
        "scored": set(collections.scored_for(request.user).values_list("pk", flat=True)),
        "agreements": [(one, rendered(one.text, 4)) for one in found.agreements.all()],
        "steps": _next_steps(request, found, own, organiser, phases, now),
    }

    return render(request, "campaigns/campaign.html", context)


def _teams(
    campaign: Campaign,
    own: Participation | None,
    organiser: bool,
    phases: list[Phase],
    now: datetime,
) -> list[str] | None:
    """Return the names or pseudonyms of the accepted teams, or None where the reader cannot know who takes part.

    Organisers know always, accepted teams once every phase is over, and everybody once all results
    are public. Phases for runs that come afterwards open later and change nothing. The names are
    sorted, so that their order says nothing.
    """
    held = [one for one in phases if one.kind != Phase.Kind.AFTERWARDS]
    steps = [one.collection.disclosure for one in held]
    over = bool(held) and all(last_closing_time(one) <= now for one in held)
    accepted = own is not None and own.state == Participation.State.ACCEPTED
    public = all(step == Disclosure.PUBLIC for step in steps)
    if not (organiser or (over and (accepted or public))):
        return None

    rows = campaign.participations.filter(state=Participation.State.ACCEPTED).select_related(
        "team", "campaign"
    )
    least = min(steps, default=Disclosure.PUBLIC)

    return sorted(one.name for one in names_at(least, rows, own, organiser, now).values())


@dataclass(frozen=True)
class Step:
    """What a reader may do next: the words of a link, its address, and what is said beside it."""

    words: str
    address: str
    beside: str = ""


def _next_steps(
    request: HttpRequest,
    campaign: Campaign,
    own: Participation | None,
    organiser: bool,
    phases: list[ShownPhase],
    now: datetime,
) -> list[Step]:
    team = reverse("campaign-team-page", args=[campaign.slug])
    if organiser:
        desk = Step("Organise this campaign", reverse("campaign-desk-page", args=[campaign.slug]))
        return [desk]

    if own:
        steps = [Step(f"The desk of {own.name}", team, "your entries, members and what is due")]
        told = [
            one.phase
            for one in phases
            if one.state == PhaseState.CLOSED and sees_own_results(request.user, one.phase)
        ]
        with_entries = (
            set(own.entries.filter(phase__in=told).values_list("phase", flat=True))
            if told
            else set()
        )
        steps += [
            Step(f"Your results of {one.name}", f"{team}#phase-{one.slug}", "and the packet of your team to download")
            for one in told if one.pk in with_entries
        ]  # fmt: skip
        if own.state == Participation.State.ACCEPTED:
            steps += [
                Step(f"Enter a run into {one.phase.name}", _phase_address(campaign, one.phase.slug), _due(one))
                for one in phases if one.state in _OPEN
            ]  # fmt: skip

        return steps

    if not request.user.is_authenticated:
        login = f"{reverse('login')}?{urlencode({'next': team})}"
        if not why_no_registrations(campaign, now):
            return [
                Step(
                    "Log in to register a team",
                    login,
                    "without an account, ask the organisers for one",
                )
            ]

        return [Step("Log in", login, "if your team takes part")]

    mine = campaign.participations.filter(in_team_of(request.user)).select_related("team")
    steps = [
        Step(f"Take part with {one.name}", team, "your team is registered; you have not joined yet")
        for one in mine
    ]
    if not steps and not why_no_registrations(campaign, now):
        steps = [Step("Register a team", team)]

    return steps


def _phase_address(campaign: Campaign, phase: str) -> str:
    return reverse("campaign-enter-page", args=[campaign.slug, phase])


def _due(shown: ShownPhase) -> str:
    return f"{shown.next} {shown.left}"
