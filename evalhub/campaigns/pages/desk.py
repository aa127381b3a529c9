"""The organisers' desk: the state of every phase, the teams, and the entries."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from evalhub.campaigns.pages.desk_pages import DeskPage
from evalhub.campaigns.pages.phase_counts import PhaseCounts, phase_counts, with_problem
from evalhub.campaigns.pages.phase_words import shown_time, time_line
from evalhub.campaigns.services.checks import topics_without_relevant
from evalhub.campaigns.services.phase_times import PhaseState
from metrics.services.queue.status import statuses
from runs.models import (
    Campaign,
    Disclosure,
    Entry,
    Participation,
    Phase,
    boards_seen,
    can_see_scores,
)
from runs.services import clock

_OF_A_PAGE = 50
# Topics that are named in a sentence.
_NAMED = 10
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

    name, template = "campaign-desk-page", "campaigns/desk.html"

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        now = clock.database_now()
        phases = phase_counts(campaign, now)
        for one in phases:
            _add_barren_topics(request, campaign, one)

        lanes, place = time_line([one.shown for one in phases], now)
        waiting = campaign.participations.filter(state=_STATE.REQUESTED).count()

        return {
            "phases": phases,
            "boards": boards_seen(request.user, [one.shown.phase for one in phases]),
            "lanes": lanes,
            "place": place,
            "waiting": waiting,
            "steps": _steps(campaign, phases, waiting),
        }


def _add_barren_topics(request: Request, campaign: Campaign, of: PhaseCounts) -> None:
    """Propose to exclude topics without a relevant document, on which every run has the same value, as long as they can
    be excluded."""
    phase = of.shown.phase
    if phase.collection.disclosure != Disclosure.ORGANISERS or not can_see_scores(
        request.user, phase.collection
    ):
        return

    topics, among = topics_without_relevant(phase)
    if topics:
        act = reverse("campaign-act-page", args=[campaign.slug, "exclude-topics"])
        named = ", ".join(topics[:_NAMED]) + (", ..." if len(topics) > _NAMED else "")
        left = among - len(topics)
        one = len(topics) == 1
        said = (
            f"{len(topics)} of {among} topics {'has' if one else 'have'} no relevant document ({named}): measures such "
            f"as AP and nDCG are 0 there for every run. Exclude {'it' if one else 'them'}"
        )
        said += f", and their means are {among / left:.3f} times as large" if left else ""
        of.problems.append((said, f"{act}?{urlencode({'phase': phase.slug})}"))


def _steps(
    campaign: Campaign, phases: list[PhaseCounts], waiting: int
) -> list[tuple[str, str, str]]:
    """Return what the organisers do next: the words of a link, its address, and its effect."""
    of = [campaign.slug]
    steps = []
    if waiting:
        said = f"{waiting} team{' waits' if waiting == 1 else 's wait'} for your decision"
        steps.append(
            (
                "Accept or decline teams",
                f"{reverse('campaign-teams-page', args=of)}?state=requested",
                said,
            )
        )

    if campaign.state == Campaign.State.DRAFT:
        if not campaign.guidelines:
            steps.append(
                (
                    "Write the guidelines",
                    reverse("campaign-settings-page", args=of),
                    "what teams shall do",
                )
            )

        said = (
            "another task or period"
            if phases
            else "a task in a window of time; a campaign needs one"
        )
        steps.append(("Add a phase", reverse("campaign-new-phase-page", args=of), said))
        if phases:
            publish = reverse("campaign-act-page", args=[campaign.slug, "publish"])
            steps.append(("Publish", publish, "show the campaign and open its registration"))
    elif campaign.state == Campaign.State.PUBLISHED:
        for one in phases:
            steps += _after_the_end(one)

        if any(release.release.done_at for one in phases for release in one.releases):
            said = "freeze results under an address that papers cite"
            steps.append(("Make a snapshot", reverse("campaign-snapshot-page", args=of), said))

        steps.append(
            ("Add a phase", reverse("campaign-new-phase-page", args=of), "it opens in the future")
        )
        steps.append(
            (
                "Enter a run yourself",
                reverse("campaign-own-entry-page", args=of),
                "a baseline, or for a team",
            )
        )

    return steps


def _after_the_end(of: PhaseCounts) -> list[tuple[str, str, str]]:
    """Return what is next once a phase is closed: to upload its judgements, or to release its results further."""
    phase = of.shown.phase
    if of.shown.state != PhaseState.CLOSED or phase.kind != Phase.Kind.EVALUATION:
        return []

    if phase.collection.active_qrels is None:
        judgements = reverse("manage-judgements-page", args=[phase.collection.slug])
        return [
            (f"Upload judgements for {phase.name}", judgements, "its runs are evaluated by them")
        ]

    if not of.releasing:
        return []

    audience, address = of.releasing[0]
    said = (
        f"still to be evaluated: {of.running}"
        if of.running
        else "it is over, and nothing waits for evaluation"
    )

    return [(f"Release results of {phase.name} to {audience}", address, said)]


class TeamsPage(DeskPage):
    """The teams of a campaign, with their people and what the organisers may do."""

    name, template = "campaign-teams-page", "campaigns/teams.html"
    reads = ("state", "page")

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        asked = request.query_params.get("state", "")
        rows = campaign.participations.select_related("team").prefetch_related(
            "members__user", "signatures"
        )
        counted = dict(
            campaign.participations.order_by().values_list("state").annotate(n=Count("pk"))
        )
        if asked in _STATE.values:
            rows = rows.filter(state=asked)

        entered = Count("entries", filter=Q(entries__state=Entry.State.ENTERED))
        page = Paginator(
            rows.annotate(entered=entered).order_by("requested_at", "pk"), _OF_A_PAGE
        ).get_page(request.query_params.get("page"))
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
            "states": [
                (state, counted.get(state, 0)) for state in _STATE.values if counted.get(state)
            ],
            "asked": asked,
            "kept": f"{urlencode({'state': asked})}&" if asked else "",
            "agreements": campaign.agreements.count(),
            "open_phases": [
                phase
                for phase in campaign.phases.prefetch_related("extensions")
                if campaign.state == Campaign.State.PUBLISHED
            ],
        }


class EntriesPage(DeskPage):
    """The entries of a campaign, filtered by phase, team, state and problem."""

    name, template = "campaign-entries-page", "campaigns/entries.html"
    reads = ("phase", "team", "state", "problem", "sha256", "page")

    def about(self, request: Request, campaign: Campaign, **found: str) -> dict[str, Any]:
        asked = {name: request.query_params.get(name, "") for name in self.reads if name != "page"}
        asked = {name: text for name, text in asked.items() if text}
        page = Paginator(_filtered(campaign, asked), _OF_A_PAGE).get_page(
            request.query_params.get("page")
        )
        known = statuses([entry.run for entry in page], request.user)

        return {
            "page": page,
            "entries": [
                (one, known[str(one.run_id)], shown_time(one.arrived_at, one.phase.zone))
                for one in page
            ],
            "asked": asked,
            "kept": f"{urlencode(asked)}&" if asked else "",
            "phases": list(campaign.phases.all()),
            "teams": list(campaign.participations.select_related("team").order_by("name")),
            "states": Entry.State.choices,
            "problems": _PROBLEMS,
        }


def _filtered(campaign: Campaign, asked: dict[str, str]) -> QuerySet[Entry]:
    with_all = (
        "phase__campaign",
        "phase__collection",
        "participation__team",
        "run__team",
        "run__collection",
    )
    rows = (
        Entry.objects.filter(phase__campaign=campaign)
        .select_related(*with_all)
        .order_by("phase__place", "phase", "number")
    )
    columns = {
        "phase": "phase__slug",
        "team": "participation__team__slug",
        "state": "state",
        "sha256": "run__sha256",
    }
    rows = rows.filter(**{column: asked[name] for name, column in columns.items() if name in asked})
    problem = asked.get("problem", "")
    found: QuerySet[Entry] = (
        with_problem(rows.filter(state=Entry.State.ENTERED), problem) if problem else rows
    )

    return found
