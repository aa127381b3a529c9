"""The tabs that the public pages of a campaign share."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from rest_framework.request import Request

from evalhub.campaigns.questions.boards import seen_boards
from evalhub.campaigns.questions.lookup import participation_of
from evalhub.campaigns.services.campaigns import is_organiser
from runs.models import Campaign, Participation
from runs.web.access import find_once


def campaign_tabs(
    request: HttpRequest | Request, campaign: Campaign, here: str = ""
) -> dict[str, Any]:
    """Return what the head of the public pages of a campaign needs.

    The leaderboard is that of the last phase with one that the reader sees. Organisers cannot take
    part: they have their dashboard.
    """
    own = own_team(request, campaign)
    organiser = is_organiser(campaign, request.user)
    boards = seen_boards(request, campaign)
    address = [campaign.slug]
    leaderboard = reverse("campaign-leaderboard-page", args=address)
    if boards:
        leaderboard = reverse("phase-board-page", args=[campaign.slug, boards[-1].slug])

    return {
        "campaign": campaign,
        "own": own,
        "organiser": organiser,
        "here": here,
        "tabs": [
            (reverse("campaign-page", args=address), "Overview", "overview"),
            (leaderboard, "Leaderboard", "leaderboard"),
            (reverse("campaign-rules-page", args=address), "Rules", "rules"),
            (reverse("campaign-cite-page", args=address), "Cite", "cite"),
            (
                reverse("campaign-desk-page", args=address),
                "Organiser\N{RIGHT SINGLE QUOTATION MARK}s dashboard",
                "",
            )
            if organiser
            else (reverse("campaign-team-page", args=address), "Take part", "team"),
        ],
    }


def own_team(request: HttpRequest | Request, campaign: Campaign) -> Participation | None:
    """Return the team in which the reader takes part; a page asks for it once."""
    key = ("own team", campaign.slug)
    return find_once(request, key, lambda: participation_of(request.user, campaign))
