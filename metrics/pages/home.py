"""The home page, and the page of all leaderboards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.pages.boards.table import Bar, interval_bar
from metrics.services.boards.leaders import Leader, Leaders, read_leaders
from metrics.services.queue.status import failed_runs, statuses
from metrics.tables import figure
from runs.models import Campaign, CampaignMember, Collection, Invitation, Run, Team, User
from runs.models.accounts.accounts import is_staff
from runs.models.collections.disclosure import in_team_of, led_by
from runs.services.accounts.first_account import has_code
from runs.services.tracking.activity import recent_activity
from runs.web.access import collections_of
from runs.web.views import page, reads

_MAX_LEADERBOARDS = 6
_MAX_RUNS, _MAX_CAMPAIGNS, _MAX_UNJUDGED, _MAX_DEEDS = 8, 5, 3, 10


@dataclass(frozen=True)
class LeadersCard:
    """The first runs of the leaderboard of a collection: each with its mean and its interval."""

    collection: Collection
    leaders: Leaders
    lines: list[tuple[Leader, str, Bar | None]]


@page
def home(request: HttpRequest) -> HttpResponse:
    """Show the first runs of the leaderboards that changed last, below the reader's own work.

    The first visit of an installation shows the form for its first account.
    """
    collections = list(_by_activity(request.user))
    context: dict[str, Any] = {"collections": collections, "cards": _cards(collections)}

    if request.user.is_authenticated:
        context |= _own_work(request, collections)
        context["may_load_example"] = is_staff(request.user) and not Collection.objects.exists()
    elif not collections and not User.objects.exists():
        if has_code():
            return render(request, "runs/first_account.html")
        context["unclaimed"] = True

    return render(request, "metrics/home.html", context)


@page
@reads("search")
def collections_page(request: HttpRequest) -> HttpResponse:
    """List all visible collections, or those with a text in name or description."""
    search = request.GET.get("search", "").strip()
    collections = _by_activity(request.user)
    for word in search.split():
        collections = collections.filter(
            Q(name__icontains=word) | Q(slug__icontains=word) | Q(description__icontains=word)
        )

    context = {"collections": collections, "search": search}
    return render(request, "metrics/collections.html", context)


def _by_activity(reader: Any) -> Any:
    """Return the visible collections, those with the latest run first."""
    runs = Run.objects.filter(collection=OuterRef("pk"), deleted_at=None).unveiled_for(reader)
    latest = runs.order_by("-created_at").values("created_at")[:1]
    collections = collections_of(reader).annotate(latest_run=Subquery(latest))
    return collections.order_by("-latest_run", "-created_at")


def _cards(collections: list[Any]) -> list[LeadersCard]:
    """Return the first leaderboards that are open to all readers of their collections."""
    cards: list[LeadersCard] = []
    for collection in collections:
        if len(cards) == _MAX_LEADERBOARDS:
            break

        # A version is annotated only for those who may see what depends on it.
        is_open = collection.active_version and not collection.blind and not collection.veiled
        leaders = read_leaders(collection) if is_open and collection.run_count > 1 else None
        # A single run is not a ranking.
        if leaders and leaders.ranked > 1:
            cards.append(LeadersCard(collection, leaders, _lines(collection, leaders)))

    return cards


def _lines(collection: Collection, leaders: Leaders) -> list[tuple[Leader, str, Bar | None]]:
    measure = collection.measure(leaders.measure)
    confidence = f"{100 * leaders.confidence:g}%"
    ends = [end for leader in leaders.runs for end in leader.interval or ()]
    lines = []

    for leader in leaders.runs:
        bar = None
        if leader.interval and leader.mean is not None:
            scale = min(ends), max(ends)
            bar = interval_bar(measure, leader.mean, leader.interval, scale, confidence)
        lines.append((leader, figure(measure, leader.mean), bar))

    return lines


def _own_work(request: HttpRequest, collections: list[Collection]) -> dict[str, Any]:
    """Return the reader's latest runs with their states, recent activity, and what to do next."""
    user = request.user
    own = Run.objects.visible_to(user).filter(in_team_of(user)).select_related("team", "collection")
    runs = list(own.defer("metadata", "ir_metadata", "warnings", "known_warnings")[:_MAX_RUNS])
    states = statuses(runs, user)

    managed = set(Collection.objects.managed_by(user).values_list("pk", flat=True))
    unjudged = [
        collection
        for collection in collections
        if collection.pk in managed and not collection.active_version  # type: ignore[attr-defined]
    ]

    members = CampaignMember.objects.filter(
        user=user.pk, left_at=None, campaign__state=Campaign.State.PUBLISHED
    )
    members = members.select_related("participation__campaign", "participation__team").order_by(
        "-campaign__created_at"
    )
    organised = (
        Campaign.objects.filter(led_by(user))
        .exclude(state=Campaign.State.ARCHIVED)
        .order_by("-created_at")
    )

    return {
        "organised": list(organised[:_MAX_CAMPAIGNS]),
        "taking_part": [member.participation for member in members[:_MAX_CAMPAIGNS]],
        "runs": [(run, states[str(run.pk)]) for run in runs],
        "failed": failed_runs(user) if runs else 0,
        "deeds": recent_activity(user, _MAX_DEEDS),
        "unjudged": unjudged[:_MAX_UNJUDGED],
        "alone": not Team.objects.of(user).filter(personal_of=None).exists(),
        "invitations": Invitation.objects.filter(user=user.pk).count(),
    }
