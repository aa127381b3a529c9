"""Links of organisers by which people take part in a campaign, also without an account."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from django.db import transaction
from django.utils.text import slugify

from evalhub.campaigns.services.campaigns import check_organiser, locked
from evalhub.campaigns.services.teams import register_team, sign, why_no_registrations
from runs.errors import Conflict, InvalidInput, NotFound
from runs.models import (
    Campaign,
    CampaignMember,
    InvitationLink,
    Membership,
    Participation,
    Team,
    User,
)
from runs.services import clock
from runs.services.accounts.invitation_links import (
    DAYS,
    check_number,
    create_newcomer,
    is_open,
    join,
    store_link,
    use_link,
)
from runs.services.accounts.teams import create_team
from runs.services.audit.trail import SYSTEM, Origin

# Open links of one campaign.
MAX_LINKS = 200


def create_campaign_link(
    *,
    campaign: Campaign,
    by: User,
    team_name: str = "",
    days: int = DAYS,
    max_uses: int | None = None,
    origin: Origin = SYSTEM,
) -> tuple[InvitationLink, str]:
    """Return a new link of a campaign and its code, which cannot be read again.

    Each person who opens it registers a team; with `team_name` the first one registers a team of
    this name, which the others join. Raise NotAllowed for others than organisers, Conflict where no
    team can register any more, and for too many links.
    """
    check_organiser(campaign, by)
    with transaction.atomic():
        campaign = locked(campaign)
        _check_registration(campaign)
        links = InvitationLink.objects.filter(campaign=campaign)
        check_number(links, MAX_LINKS, f"campaign {campaign}")
        return store_link(
            by=by,
            campaign=campaign,
            team_name=team_name,
            days=days,
            max_uses=max_uses,
            origin=origin,
        )


def take_part(
    *,
    link: InvitationLink,
    user: User,
    team: Team | None = None,
    team_name: str = "",
    affiliation: str = "",
    agreements: Iterable[str] = (),
    typed_name: str = "",
    origin: Origin = SYSTEM,
) -> Participation:
    """Let a user take part in the campaign of a link, and sign all its agreements.

    The user joins the team of the link, or registers `team`, or a new one with this name. Raise
    InvalidInput for a missing name, agreement or signature, and the errors of registering and
    joining.
    """
    campaign = _campaign_of(link)
    digests = set(agreements)
    unsigned = [row for row in campaign.agreements.all() if row.sha256 not in digests]
    if unsigned:
        raise InvalidInput(
            f"read and sign the agreement {unsigned[0].title}",
            code="required",
            pointer="/agreements",
        )
    if digests and not typed_name:
        raise InvalidInput(
            "type your name to sign the agreements", code="required", pointer="/typed_name"
        )

    with transaction.atomic():
        # Two people open the link of a team at the same time: the second one joins it.
        rows = InvitationLink.objects.select_for_update(of=("self",))
        link = rows.select_related("team", "participation__campaign", "campaign__team").get(
            pk=link.pk
        )
        if CampaignMember.objects.filter(campaign=campaign, user=user, left_at=None).exists():
            raise Conflict(
                f"you take part in campaign {campaign} already", code="already_in_campaign"
            )

        _check_registration(campaign)
        if link.participation:
            is_member = Membership.objects.filter(team=link.team, user=user).exists()
            join(link=link, user=user, origin=origin)
            if is_member:
                use_link(link)
            for agreement in campaign.agreements.all():
                sign(agreement=agreement, user=user, typed_name=typed_name, origin=origin)
            return link.participation

        use_link(link)
        name = link.team_name or team_name.strip()
        if team is None or link.team_name:
            team = _new_team(user, name, origin)

        participation = register_team(
            campaign=campaign,
            team=team,
            user=user,
            name=name,
            affiliation=affiliation,
            agreements=digests,
            typed_name=typed_name,
            invited=True,
            origin=origin,
        )
        if link.team_name:
            InvitationLink.objects.filter(pk=link.pk).update(team=team, participation=participation)

    return participation


def take_part_as_newcomer(
    *,
    link: InvitationLink,
    username: str,
    password: str,
    email: str = "",
    team_name: str = "",
    affiliation: str = "",
    agreements: Iterable[str] = (),
    typed_name: str = "",
    origin: Origin = SYSTEM,
) -> User:
    """Return a new user who takes part in the campaign of a link.

    Raise the errors of `create_newcomer` and `take_part`; then there is no account either.
    """
    with transaction.atomic():
        user = create_newcomer(
            link=link, username=username, password=password, email=email, origin=origin
        )
        take_part(
            link=link,
            user=user,
            team_name=team_name,
            affiliation=affiliation,
            agreements=agreements,
            typed_name=typed_name,
            origin=Origin(user, "", origin.request_id, origin.address),
        )

    return user


def open_links(campaign: Campaign) -> list[InvitationLink]:
    """Return the links of a campaign that are neither expired nor used up, newest first."""
    rows = InvitationLink.objects.filter(is_open(), campaign=campaign)
    return list(rows.select_related("team", "created_by"))


def why_closed(link: InvitationLink) -> str:
    """Return why nobody can take part by a link now, or an empty text."""
    return why_no_registrations(_campaign_of(link), clock.database_now(), invited=True)


def _campaign_of(link: InvitationLink) -> Campaign:
    if link.campaign is None:
        raise NotFound("this invitation is for no campaign")
    return link.campaign


def _check_registration(campaign: Campaign) -> None:
    if refusal := why_no_registrations(campaign, clock.database_now(), invited=True):
        raise Conflict(refusal, code="registration_closed")


def _new_team(user: User, name: str, origin: Origin) -> Team:
    """Create a team with this name, and a short name made of it that is free."""
    if not name:
        raise InvalidInput("name your team", code="required", pointer="/team_name")

    stem = slugify(name)[:50] or "team"
    taken = set(Team.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    slugs = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1))
    slug = next(slug for slug in slugs if slug not in taken)

    return create_team(owner=user, slug=slug, name=name, origin=origin)
