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
from evalhub.campaigns.pages.phase_words import (
    PhaseSummary,
    local_time,
    summarise_phase,
    summarise_phases,
)
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
    visible = Campaign.objects.visible_to(request.user).select_related("team")
    campaigns = visible.prefetch_related(
        "phases__collection", "phases__extensions__participation__team"
    )
    campaigns_page = Paginator(
        campaigns.order_by("-created_at", "slug"), _CAMPAIGNS_OF_A_PAGE
    ).get_page(request.GET.get("page"))
    now = clock.database_now()
    context = {
        "page": campaigns_page,
        "campaigns": [
            (campaign, [summarise_phase(phase, None, now) for phase in campaign.phases.all()])
            for campaign in campaigns_page
        ],
        "leads": Team.objects.led_by(request.user).exists(),
        "now": now,
    }

    return render(request, "campaigns/list.html", context)


@page
def campaign_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """Show the guidelines and phases of a campaign, and what the reader may do next."""
    shown_campaign = visible_campaign(request, campaign)
    own, organiser = (
        participation_of(request.user, shown_campaign),
        is_organiser(shown_campaign, request.user),
    )
    now = clock.database_now()
    phases = summarise_phases(shown_campaign, own, now, organiser=organiser)
    accepted = (
        shown_campaign.participations.filter(state=Participation.State.ACCEPTED).count()
        if own or organiser
        else None
    )
    collections = Collection.objects.visible_to(request.user).filter(
        phases__campaign=shown_campaign
    )
    closes = shown_campaign.registration_closes_at
    context = {
        "campaign": shown_campaign,
        "guidelines": rendered(shown_campaign.guidelines),
        "phases": phases,
        "now": now,
        "own": own,
        "organiser": organiser,
        "accepted": accepted,
        "teams": _teams(shown_campaign, own, organiser, [summary.phase for summary in phases], now),
        "seen_collections": set(collections.values_list("pk", flat=True)),
        "registration_closes": local_time(closes, "UTC", ends=True) if closes else None,
        "takes_registrations": not why_no_registrations(shown_campaign, now),
        "notices": shown_notices(notices_seen_by(request.user, shown_campaign)),
        "snapshots": list(
            snapshots_seen_by(request.user)
            .filter(campaign=shown_campaign)
            .defer("archive", "manifest")
        ),
        "boards": boards_seen(request.user, [summary.phase for summary in phases]),
        "scored": set(collections.scored_for(request.user).values_list("pk", flat=True)),
        "agreements": [
            (agreement, rendered(agreement.text, 4))
            for agreement in shown_campaign.agreements.all()
        ],
        "steps": _next_steps(request, shown_campaign, own, organiser, phases, now),
    }

    return render(request, "campaigns/campaign.html", context)


def _teams(
    campaign: Campaign,
    own: Participation | None,
    organiser: bool,
    phases: list[Phase],
    now: datetime,
) -> list[str] | None:
    """Return the names or pseudonyms of accepted teams; None if the reader may not know them.

    Organisers know always, accepted teams once every phase is over, and everybody once all results
    are public. Phases for runs that come afterwards open later and change nothing. The names are
    sorted, so that their order says nothing.
    """
    evaluated = [phase for phase in phases if phase.kind != Phase.Kind.AFTERWARDS]
    steps = [phase.collection.disclosure for phase in evaluated]
    over = bool(evaluated) and all(last_closing_time(phase) <= now for phase in evaluated)
    accepted = own is not None and own.state == Participation.State.ACCEPTED
    public = all(step == Disclosure.PUBLIC for step in steps)
    if not (organiser or (over and (accepted or public))):
        return None

    rows = campaign.participations.filter(state=Participation.State.ACCEPTED).select_related(
        "team", "campaign"
    )
    least = min(steps, default=Disclosure.PUBLIC)

    return sorted(name.name for name in names_at(least, rows, own, organiser, now).values())


@dataclass(frozen=True)
class Step:
    """What a reader may do next: the words of a link, its address, and a note next to it."""

    words: str
    address: str
    note: str = ""


def _next_steps(
    request: HttpRequest,
    campaign: Campaign,
    own: Participation | None,
    organiser: bool,
    phases: list[PhaseSummary],
    now: datetime,
) -> list[Step]:
    team = reverse("campaign-team-page", args=[campaign.slug])
    if organiser:
        desk = Step("Organise this campaign", reverse("campaign-desk-page", args=[campaign.slug]))
        return [desk]

    if own:
        steps = [Step(f"The desk of {own.name}", team, "your entries, members and what is due")]
        with_results = [
            summary.phase
            for summary in phases
            if summary.state == PhaseState.CLOSED and sees_own_results(request.user, summary.phase)
        ]
        with_entries = (
            set(own.entries.filter(phase__in=with_results).values_list("phase", flat=True))
            if with_results
            else set()
        )
        steps += [
            Step(
                f"Your results of {phase.name}",
                f"{team}#phase-{phase.slug}",
                "and the packet of your team to download",
            )
            for phase in with_results
            if phase.pk in with_entries
        ]
        if own.state == Participation.State.ACCEPTED:
            steps += [
                Step(
                    f"Enter a run into {summary.phase.name}",
                    reverse("campaign-enter-page", args=[campaign.slug, summary.phase.slug]),
                    f"{summary.next} {summary.time_left}",
                )
                for summary in phases
                if summary.state in _OPEN
            ]

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
        Step(
            f"Take part with {participation.name}",
            team,
            "your team is registered; you have not joined yet",
        )
        for participation in mine
    ]
    if not steps and not why_no_registrations(campaign, now):
        steps = [Step("Register a team", team)]

    return steps
