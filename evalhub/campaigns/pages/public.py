"""The list of campaigns, and the public pages of one: overview, leaderboard, rules and citation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from evalhub.campaigns.api.notices import notices_seen_by
from evalhub.campaigns.exports.citation_data import cited_of
from evalhub.campaigns.exports.citations import FORMS
from evalhub.campaigns.pages.boards import read_first_rows
from evalhub.campaigns.pages.markdown import rendered
from evalhub.campaigns.pages.notices import shown_notices
from evalhub.campaigns.pages.phase_words import PhaseSummary, summarise_phase, summarise_phases
from evalhub.campaigns.pages.setup import FEEDBACKS, SELECTIONS
from evalhub.campaigns.pages.tabs import campaign_tabs
from evalhub.campaigns.questions.boards import phase_board_in, seen_boards
from evalhub.campaigns.questions.lookup import visible_campaign
from evalhub.campaigns.questions.snapshots import site_of
from evalhub.campaigns.services.phase_times import PhaseState, last_closing_time
from evalhub.campaigns.services.pseudonyms import names_at
from evalhub.campaigns.services.snapshots import snapshots_seen_by
from evalhub.campaigns.services.teams import why_no_registrations
from metrics.pages.parts import fill
from runs.models import (
    Campaign,
    Collection,
    Disclosure,
    Participation,
    Phase,
    Snapshot,
    Team,
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
    """Show the results of a campaign after their release, or else its next deadline."""
    shown_campaign = visible_campaign(request, campaign)
    context = campaign_tabs(request, shown_campaign, "overview")
    own, organiser = context["own"], context["organiser"]
    now = clock.database_now()
    phases = summarise_phases(shown_campaign, own, now, organiser=organiser)
    released = _released_phase(request, shown_campaign, phases)
    snapshots = _snapshots(request, shown_campaign)
    context |= {
        "phases": phases,
        "deadline": _deadline(phases, released),
        "released": released,
        "now": now,
        "teams": _teams(shown_campaign, own, organiser, [summary.phase for summary in phases], now),
        "notices": shown_notices(notices_seen_by(request.user, shown_campaign)),
        "snapshot": next(
            (snapshot for snapshot in snapshots if snapshot.withdrawn_at is None), None
        ),
        "steps": _next_steps(request, shown_campaign, own, organiser, phases, now),
        "link": True,
    }

    status = 200
    if released:
        question = phase_board_in(request, campaign, released.slug)
        status = fill(context, "board", read_first_rows, request, question)

    return render(request, "campaigns/campaign.html", context, status=status)


@page
def leaderboard_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """Lead to the leaderboard of a phase, or say when there will be one."""
    shown_campaign = visible_campaign(request, campaign)
    boards = seen_boards(request, shown_campaign)
    if boards:
        return HttpResponseRedirect(reverse("phase-board-page", args=[campaign, boards[-1].slug]))

    context = campaign_tabs(request, shown_campaign, "leaderboard")
    now = clock.database_now()
    context |= {"phases": summarise_phases(shown_campaign, context["own"], now), "now": now}

    return render(request, "campaigns/leaderboard.html", context)


@page
def rules_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """Show the guidelines of a campaign, the limits of its phases and its agreements."""
    shown_campaign = visible_campaign(request, campaign)
    context = campaign_tabs(request, shown_campaign, "rules")
    now = clock.database_now()
    collections = Collection.objects.visible_to(request.user).filter(
        phases__campaign=shown_campaign
    )
    context |= {
        "guidelines": rendered(shown_campaign.guidelines),
        "phases": [
            (summary, FEEDBACKS[summary.phase.feedback], SELECTIONS[summary.phase.selection])
            for summary in summarise_phases(
                shown_campaign, context["own"], now, organiser=context["organiser"]
            )
        ],
        "now": now,
        "seen_collections": set(collections.values_list("pk", flat=True)),
        "agreements": [
            (agreement, rendered(agreement.text, 4))
            for agreement in shown_campaign.agreements.all()
        ],
    }

    return render(request, "campaigns/rules.html", context)


@page
def cite_page(request: HttpRequest, campaign: str) -> HttpResponse:
    """Show how to cite the newest snapshot of a campaign, and list the others."""
    shown_campaign = visible_campaign(request, campaign)
    snapshots = _snapshots(request, shown_campaign)
    newest = next((snapshot for snapshot in snapshots if snapshot.withdrawn_at is None), None)
    cited = cited_of(newest, site_of(request)) if newest else None
    context = {
        **campaign_tabs(request, shown_campaign, "cite"),
        "snapshots": [snapshot for snapshot in snapshots if snapshot != newest],
        "snapshot": newest,
        "cited": cited,
        "bibtex": FORMS["bib"][0](cited) if cited else "",
        "forms": list(FORMS),
    }

    return render(request, "campaigns/cite.html", context)


def _snapshots(request: HttpRequest, campaign: Campaign) -> list[Snapshot]:
    """Return the snapshots of a campaign that the reader sees, newest first."""
    rows = snapshots_seen_by(request.user).filter(campaign=campaign)
    return list(rows.defer("archive", "manifest").order_by("-number"))


def _released_phase(
    request: HttpRequest, campaign: Campaign, phases: list[PhaseSummary]
) -> Phase | None:
    """Return the last phase whose released results the reader sees, or None.

    Organisers read values before the release on its leaderboard alone, where this is recorded.
    """
    boards = {phase.pk for phase in seen_boards(request, campaign)}
    released = [
        summary.phase
        for summary in phases
        if summary.phase.pk in boards
        and summary.state == PhaseState.CLOSED
        and summary.phase.kind == Phase.Kind.EVALUATION
        and summary.phase.collection.disclosure >= Disclosure.PARTICIPANTS
    ]

    return released[-1] if released else None


def _deadline(phases: list[PhaseSummary], released: Phase | None) -> PhaseSummary | None:
    """Return the phase that changes first by the clock, those for late comers only before results."""
    running = [
        summary
        for summary in phases
        if summary.until and not (released and summary.phase.kind == Phase.Kind.AFTERWARDS)
    ]
    # What is open comes before what opens later.
    return min(
        running,
        key=lambda summary: (summary.state == PhaseState.PLANNED, summary.until),
        default=None,
    )


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
    """Return what the reader may do next in a campaign; organisers have their dashboard."""
    team = reverse("campaign-team-page", args=[campaign.slug])
    if organiser:
        return []
    if own:
        return _steps_of_member(request, campaign, own, phases, team)

    if request.user.is_authenticated:
        mine = campaign.participations.filter(in_team_of(request.user)).select_related("team")
        steps = [
            Step(
                f"Take part with {participation.name}",
                team,
                "your team is registered; you have not joined yet",
            )
            for participation in mine
        ]
        if steps:
            return steps

    return [] if why_no_registrations(campaign, now) else [Step("Register a team", team)]


def _steps_of_member(
    request: HttpRequest,
    campaign: Campaign,
    own: Participation,
    phases: list[PhaseSummary],
    team: str,
) -> list[Step]:
    """Return the phases that take runs of a team, and those with results of its own."""
    steps = []
    if own.state == Participation.State.ACCEPTED:
        steps += [
            Step(
                f"Enter a run into {summary.phase.name}",
                reverse("campaign-enter-page", args=[campaign.slug, summary.phase.slug]),
            )
            for summary in phases
            if summary.state in _OPEN
        ]

    with_results = [
        summary.phase
        for summary in phases
        if summary.state == PhaseState.CLOSED and sees_own_results(request.user, summary.phase)
    ]
    if not with_results:
        return steps

    with_entries = set(own.entries.filter(phase__in=with_results).values_list("phase", flat=True))

    return [
        *steps,
        *(
            Step(
                f"Your results of {phase.name}",
                f"{team}#phase-{phase.slug}",
                "and the packet of your team to download",
            )
            for phase in with_results
            if phase.pk in with_entries
        ),
    ]
