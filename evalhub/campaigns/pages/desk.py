"""The organisers' desk: the state of every phase, the teams, and the entries."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.http import urlencode
from rest_framework.request import Request

from evalhub.campaigns.pages.desk_pages import DeskPage
from evalhub.campaigns.pages.phase_counts import PhaseCounts, phase_counts, with_problem
from evalhub.campaigns.pages.phase_words import local_time, time_line
from evalhub.campaigns.services.checks import topics_without_relevant
from evalhub.campaigns.services.notifications import unreachable_teams
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
# Teams that one link names.
_OF_AN_ADDRESS = 100
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

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        now = clock.database_now()
        phases = phase_counts(campaign, now)
        for counts in phases:
            _add_barren_topics(request, campaign, counts)

        lanes, place = time_line([counts.summary for counts in phases], now)
        waiting = campaign.participations.filter(state=_STATE.REQUESTED).count()

        return {
            "phases": phases,
            "boards": boards_seen(request.user, [counts.summary.phase for counts in phases]),
            "lanes": lanes,
            "place": place,
            "waiting": waiting,
            "unreachable": unreachable_teams(campaign) if settings.EVALHUB_MAIL_URL else [],
            "teams": campaign.participations.filter(
                state__in=(_STATE.REQUESTED, _STATE.ACCEPTED)
            ).count(),
            "steps": _steps(campaign, phases, waiting),
        }


def _add_barren_topics(request: Request, campaign: Campaign, counts: PhaseCounts) -> None:
    """Propose to exclude topics without a relevant document, while topics can be excluded.

    Every run has the same value on such a topic.
    """
    phase = counts.summary.phase
    if phase.collection.disclosure != Disclosure.ORGANISERS or not can_see_scores(
        request.user, phase.collection
    ):
        return

    topics, total = topics_without_relevant(phase)
    if topics:
        address = reverse("campaign-act-page", args=[campaign.slug, "exclude-topics"])
        names = ", ".join(topics[:_NAMED]) + (", ..." if len(topics) > _NAMED else "")
        remaining = total - len(topics)
        single = len(topics) == 1
        message = (
            f"{len(topics)} of {total} topics {'has' if single else 'have'} no relevant document ({names}): measures such "
            f"as AP and nDCG are 0 there for every run. Exclude {'it' if single else 'them'}"
        )
        message += (
            f", and their means are {total / remaining:.3f} times as large" if remaining else ""
        )
        counts.problems.append((message, f"{address}?{urlencode({'phase': phase.slug})}"))


def _steps(
    campaign: Campaign, phases: list[PhaseCounts], waiting: int
) -> list[tuple[str, str, str]]:
    """Return what the organisers do next: the words of a link, its address, and its effect."""
    address = [campaign.slug]
    steps = []
    if waiting:
        effect = f"{waiting} team{' waits' if waiting == 1 else 's wait'} for your decision"
        steps.append(
            (
                "Accept or decline teams",
                f"{reverse('campaign-teams-page', args=address)}?state=requested",
                effect,
            )
        )

    if campaign.state == Campaign.State.DRAFT:
        if not campaign.guidelines:
            steps.append(
                (
                    "Write the guidelines",
                    reverse("campaign-settings-page", args=address),
                    "what teams shall do",
                )
            )

        effect = (
            "another task or period"
            if phases
            else "a task in a window of time; a campaign needs one"
        )
        steps.append(("Add a phase", reverse("campaign-new-phase-page", args=address), effect))
        if phases:
            publish = reverse("campaign-act-page", args=[campaign.slug, "publish"])
            steps.append(("Publish", publish, "show the campaign and open its registration"))
    elif campaign.state == Campaign.State.PUBLISHED:
        for counts in phases:
            steps += _results_steps(counts)

        if any(release.release.done_at for counts in phases for release in counts.releases):
            effect = "freeze results under an address that papers cite"
            steps.append(
                ("Make a snapshot", reverse("campaign-snapshot-page", args=address), effect)
            )

        steps.append(
            (
                "Add a phase",
                reverse("campaign-new-phase-page", args=address),
                "it opens in the future",
            )
        )
        steps.append(
            (
                "Enter a run yourself",
                reverse("campaign-own-entry-page", args=address),
                "a baseline, or for a team",
            )
        )

    return steps


def _results_steps(counts: PhaseCounts) -> list[tuple[str, str, str]]:
    """Return what is next where runs wait for judgements, or results can be released."""
    phase = counts.summary.phase
    closed = counts.summary.state == PhaseState.CLOSED
    if phase.collection.active_qrels is None and (closed or counts.waits_for_judgements):
        judgements = reverse("manage-judgements-page", args=[phase.collection.slug])
        number = counts.unfinished
        effect = f"{number} run{' waits' if number == 1 else 's wait'} for them"
        return [(f"Upload judgements for {phase.name}", judgements, effect if number else "")]

    if not closed or phase.kind != Phase.Kind.EVALUATION or not counts.releasing:
        return []

    audience, address = counts.releasing[0]
    effect = (
        f"still to be evaluated: {counts.unfinished}"
        if counts.unfinished
        else "it is over, and nothing waits for evaluation"
    )

    return [(f"Release results of {phase.name} to {audience}", address, effect)]


class TeamsPage(DeskPage):
    """The teams of a campaign, with their people and what the organisers may do."""

    name, template = "campaign-teams-page", "campaigns/teams.html"
    reads = ("state", "page")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        chosen_state = request.query_params.get("state", "")
        rows = campaign.participations.select_related("team").prefetch_related(
            "members__user", "signatures"
        )
        numbers = dict(
            campaign.participations.order_by().values_list("state").annotate(n=Count("pk"))
        )
        if chosen_state in _STATE.values:
            rows = rows.filter(state=chosen_state)

        entered = Count("entries", filter=Q(entries__state=Entry.State.ENTERED))
        page = Paginator(
            rows.annotate(entered=entered).order_by("requested_at", "pk"), _OF_A_PAGE
        ).get_page(request.query_params.get("page"))
        address = [campaign.slug]

        return {
            "page": page,
            "teams": [
                (
                    team,
                    [
                        (
                            f"{reverse('campaign-act-page', args=[*address, name])}?{urlencode({'team': team.team.slug})}",
                            words,
                        )
                        for name, words in _OF_TEAM.get(_STATE(team.state), ())
                        if campaign.state == Campaign.State.PUBLISHED
                    ],
                    len({signature.user_id for signature in team.signatures.all()}),
                )
                for team in page
            ],
            "states": [
                (state, numbers.get(state, 0)) for state in _STATE.values if numbers.get(state)
            ],
            "chosen_state": chosen_state,
            "requested": _all_requested(campaign),
            "query_prefix": f"{urlencode({'state': chosen_state})}&" if chosen_state else "",
            "agreements": campaign.agreements.count(),
            "open_phases": [
                phase
                for phase in campaign.phases.prefetch_related("extensions")
                if campaign.state == Campaign.State.PUBLISHED
            ],
        }


def _all_requested(campaign: Campaign) -> list[str]:
    """Return the short names of the teams that wait, at most as many as an address has room for."""
    waiting = campaign.participations.filter(state=_STATE.REQUESTED).order_by("requested_at", "pk")
    return list(waiting.values_list("team__slug", flat=True)[:_OF_AN_ADDRESS])


class EntriesPage(DeskPage):
    """The entries of a campaign, filtered by phase, team, state and problem."""

    name, template = "campaign-entries-page", "campaigns/entries.html"
    reads = ("phase", "team", "state", "problem", "sha256", "page")

    def about(self, request: Request, campaign: Campaign, **kwargs: str) -> dict[str, Any]:
        filters = {
            name: request.query_params.get(name, "") for name in self.reads if name != "page"
        }
        filters = {name: text for name, text in filters.items() if text}
        page = Paginator(_filtered(campaign, filters), _OF_A_PAGE).get_page(
            request.query_params.get("page")
        )
        run_statuses = statuses([entry.run for entry in page], request.user)

        return {
            "page": page,
            "entries": [
                (
                    entry,
                    run_statuses[str(entry.run_id)],
                    local_time(entry.arrived_at, entry.phase.zone),
                )
                for entry in page
            ],
            "filters": filters,
            "query_prefix": f"{urlencode(filters)}&" if filters else "",
            "phases": list(campaign.phases.all()),
            "teams": list(campaign.participations.select_related("team").order_by("name")),
            "states": Entry.State.choices,
            "problems": _PROBLEMS,
        }


def _filtered(campaign: Campaign, filters: dict[str, str]) -> QuerySet[Entry]:
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
    rows = rows.filter(
        **{column: filters[name] for name, column in columns.items() if name in filters}
    )
    problem = filters.get("problem", "")
    entries: QuerySet[Entry] = (
        with_problem(rows.filter(state=Entry.State.ENTERED), problem) if problem else rows
    )

    return entries
