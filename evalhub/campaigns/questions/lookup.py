"""Find the campaigns, phases, teams and entries of a request among those that its user sees."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from evalhub.campaigns.services.campaigns import check_organiser, is_organiser
from runs.errors import NotAllowed
from runs.models import Campaign, CampaignMember, Entry, Participation, Phase
from runs.models.collections.disclosure import in_team_of
from runs.web.access import find_once


def visible_campaign(request: HttpRequest | Request, slug: str) -> Campaign:
    """Return a published campaign, or a draft that the user organises."""

    def read() -> Campaign | None:
        visible = Campaign.objects.visible_to(request.user).select_related("team")
        return visible.filter(slug=slug).first()

    campaign = find_once(request, ("campaign", slug), read)
    if campaign is None:
        raise Http404(f"there is no campaign {slug!r}")

    return campaign


def organised_campaign(request: HttpRequest | Request, slug: str) -> Campaign:
    """Return a campaign that the user organises. Raise NotAllowed if the user may only see it."""
    campaign = visible_campaign(request, slug)
    check_organiser(campaign, request.user)
    return campaign


def may_organise(request: Request, body: Any, campaign: str, **_: Any) -> bool:
    """Return whether the user, who did something in a campaign, is still an organiser of it."""
    return bool(Campaign.objects.organised_by(request.user).filter(slug=campaign).exists())


def takes_part(request: Request, body: Any, campaign: str, entrant: str = "", **_: Any) -> bool:
    """Return whether the user still takes part in a campaign, with this team if one is named."""
    own = {"participation__team__slug": entrant} if entrant else {}
    rows = CampaignMember.objects.filter(
        campaign__slug=campaign, user=request.user.pk, left_at=None
    )

    return bool(rows.filter(**own).exists())


def visible_phase(request: HttpRequest | Request, campaign: str, slug: str) -> Phase:
    """Return a phase of a campaign that the user sees, with its extensions and their teams."""
    # Its campaign is the one found here.
    rows = visible_campaign(request, campaign).phases.select_related("collection")
    rows = rows.prefetch_related("extensions__participation__team")
    phase = find_once(request, ("phase", campaign, slug), lambda: rows.filter(slug=slug).first())
    if phase is None:
        raise Http404(f"campaign {campaign} has no phase {slug!r}")

    return phase


def organised_phase(request: HttpRequest | Request, campaign: str, slug: str) -> Phase:
    """Return a phase of a campaign that the user organises.

    Raise NotAllowed if the user may only see it.
    """
    phase = visible_phase(request, campaign, slug)
    check_organiser(phase.campaign, request.user)
    return phase


def participation_of(user: Any, campaign: Campaign) -> Participation | None:
    """Return the team in which the user takes part in a campaign."""
    if not user.is_authenticated:
        return None

    rows = CampaignMember.objects.filter(campaign=campaign, user=user, left_at=None)
    member = rows.select_related("participation__team", "participation__campaign__team").first()

    return member.participation if member else None


def own_participation(request: HttpRequest | Request, campaign: Campaign) -> Participation:
    """Return the user's team in a campaign. Raise NotAllowed if the user has none."""
    participation = participation_of(request.user, campaign)
    if participation is None:
        raise NotAllowed(f"only members of a team in campaign {campaign} can do this")
    return participation


def participations_of(user: Any, campaign: Campaign) -> QuerySet[Participation]:
    """Return the teams of a campaign that the user sees: all for organisers, else the own team."""
    rows = campaign.participations.select_related("team", "campaign__team")
    if is_organiser(campaign, user):
        return rows
    return rows.filter(in_team_of(user))


def visible_participation(
    request: HttpRequest | Request, campaign: str, team: str
) -> Participation:
    participation = (
        participations_of(request.user, visible_campaign(request, campaign))
        .filter(team__slug=team)
        .first()
    )
    if participation is None:
        raise Http404(f"you see no team {team!r} in campaign {campaign}")

    return participation


def entries_of(user: Any) -> QuerySet[Entry]:
    """Return the entries of the campaigns that the user organises and of the user's teams."""
    with_all = (
        "participation__team",
        "run__team",
        "run__collection",
        "phase__campaign__team",
        "phase__collection",
    )
    rows = Entry.objects.select_related(*with_all)
    if not user.is_authenticated:
        return rows.none()
    if user.is_staff:
        return rows

    own = CampaignMember.objects.filter(user=user, left_at=None).values("participation")
    organised = Campaign.objects.organised_by(user).values("pk")

    return rows.filter(Q(participation__in=own) | Q(phase__campaign__in=organised))


def visible_entry(request: HttpRequest | Request, pk: UUID) -> Entry:
    entry = entries_of(request.user).filter(pk=pk).first()
    if entry is None:
        raise Http404(f"there is no entry {pk}")
    return entry
