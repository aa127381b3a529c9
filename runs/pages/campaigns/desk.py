"""The organisers' desk: the state of every phase, the teams, and the entries."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from metrics.services.queue.status import statuses
from runs.models import Campaign, Entry, Participation, boards_seen
from runs.pages.campaigns.overview import phase_counts, with_problem
from runs.pages.campaigns.parts import DeskPage
from runs.pages.campaigns.shown import shown_time, time_line
from runs.services.campaigns import clock

_OF_A_PAGE = 50
_STATE = Participation.State
# What organisers may do with a team in a state, with the words of the button.
_OF_TEAM = {
    _STATE.REQUESTED: (("accept", "Accept"), ("decline", "Decline")),
    _STATE.DECLINED: (("accept", "Accept"),),
    _STATE.REMOVED: (("accept", "Accept again"),),
    _STATE.ACCEPTED: (("remove", "Remove"),),
}
_PROBLEMS = {"failed": "evaluation failed", "unanswered": "topics without an answer"}


class OverviewPage(DeskPage):
    """The state of every phase with its counts, and what comes next."""

    name, template = "campaign-desk-page", "runs/campaigns/desk.html"

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        now = clock.database_now()
        phases = phase_counts(campaign, now)
        lanes, place = time_line([one.shown for one in phases], now)
        waiting = campaign.participations.filter(state=_STATE.REQUESTED).count()
        return {
            "phases": phases,
            "boards": boards_seen(request.user, [one.shown.phase for one in phases]),
            "lanes": lanes,
            "place": place,
            "waiting": waiting,
            "steps": _steps(campaign, bool(phases), waiting),
        }


def _steps(campaign: Campaign, has_phases: bool, waiting: int) -> list[tuple[str, str, str]]:
    """Return what the organisers do next with the whole campaign: the words of a link, its address, and its effect."""
    of = [campaign.slug]
    steps = []
    if waiting:
        said = f"{waiting} team{' waits' if waiting == 1 else 's wait'} for your decision"
        steps.append(("Accept or decline teams", f"{reverse('campaign-teams-page', args=of)}?state=requested", said))
    if campaign.state == Campaign.State.DRAFT:
        if not campaign.guidelines:
            steps.append(("Write the guidelines", reverse("campaign-settings-page", args=of), "what teams shall do"))
        said = "another task or period" if has_phases else "a task in a window of time; a campaign needs one"
        steps.append(("Add a phase", reverse("campaign-new-phase-page", args=of), said))
        if has_phases:
            publish = reverse("campaign-act-page", args=[campaign.slug, "publish"])
            steps.append(("Publish", publish, "show the campaign and open its registration"))
    elif campaign.state == Campaign.State.PUBLISHED:
        steps.append(("Add a phase", reverse("campaign-new-phase-page", args=of), "it opens in the future"))
        steps.append(("Enter a run yourself", reverse("campaign-own-entry-page", args=of), "a baseline, or for a team"))
    return steps


class TeamsPage(DeskPage):
    """The teams of a campaign, with their people and what the organisers may do."""

    name, template = "campaign-teams-page", "runs/campaigns/teams.html"
    reads = ("state", "page")

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        asked = request.query_params.get("state", "")
        rows = campaign.participations.select_related("team").prefetch_related("members__user", "signatures")
        counted = dict(campaign.participations.order_by().values_list("state").annotate(n=Count("pk")))
        if asked in _STATE.values:
            rows = rows.filter(state=asked)
        entered = Count("entries", filter=Q(entries__state=Entry.State.ENTERED))
        page = Paginator(rows.annotate(entered=entered).order_by("requested_at", "pk"), _OF_A_PAGE).get_page(
            request.query_params.get("page")
        )
        act = [campaign.slug]
        return {
            "page": page,
            "teams": [
                (
                    team,
                    [
                        (
                            f"{reverse('campaign-act-page', args=[*act, name])}?{urlencode({'team': team.team.slug})}",
                            words,
                        )
                        for name, words in _OF_TEAM.get(_STATE(team.state), ())
                        if campaign.state == Campaign.State.PUBLISHED
                    ],
                    len({one.user_id for one in team.signatures.all()}),
                )
                for team in page
            ],
            "states": [(state, counted.get(state, 0)) for state in _STATE.values if counted.get(state)],
            "asked": asked,
            "kept": f"{urlencode({'state': asked})}&" if asked else "",
            "agreements": campaign.agreements.count(),
            "open_phases": [one for one in campaign.phases.all() if campaign.state == Campaign.State.PUBLISHED],
        }


class EntriesPage(DeskPage):
    """The entries of a campaign, filtered by phase, team, state and problem."""

    name, template = "campaign-entries-page", "runs/campaigns/entries.html"
    reads = ("phase", "team", "state", "problem", "sha256", "page")

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        asked = {name: request.query_params.get(name, "") for name in self.reads if name != "page"}
        asked = {name: text for name, text in asked.items() if text}
        page = Paginator(_filtered(campaign, asked), _OF_A_PAGE).get_page(request.query_params.get("page"))
        known = statuses([entry.run for entry in page], request.user)
        return {
            "page": page,
            "entries": [(one, known[str(one.run_id)], shown_time(one.arrived_at, one.phase.zone)) for one in page],
            "asked": asked,
            "kept": f"{urlencode(asked)}&" if asked else "",
            "phases": list(campaign.phases.all()),
            "teams": list(campaign.participations.select_related("team").order_by("name")),
            "states": Entry.State.choices,
            "problems": _PROBLEMS,
        }


def _filtered(campaign: Campaign, asked: dict[str, str]) -> QuerySet[Entry]:
    with_all = ("phase__campaign", "phase__collection", "participation__team", "run__team", "run__collection")
    rows = (
        Entry.objects.filter(phase__campaign=campaign)
        .select_related(*with_all)
        .order_by("phase__place", "phase", "number")
    )
    columns = {"phase": "phase__slug", "team": "participation__team__slug", "state": "state", "sha256": "run__sha256"}
    rows = rows.filter(**{column: asked[name] for name, column in columns.items() if name in asked})
    problem = asked.get("problem", "")
    found: QuerySet[Entry] = with_problem(rows.filter(state=Entry.State.ENTERED), problem) if problem else rows
    return found
