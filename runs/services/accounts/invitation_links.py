"""Links by which users join a team; with links from staff they can create accounts, too."""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from runs import hooks
from runs.errors import Conflict, NotAllowed, NotFound
from runs.models import AuditEvent, InvitationLink, Membership, Participation, Team, User
from runs.models.accounts.accounts import digest_of_secret
from runs.services.accounts.accounts import create_account
from runs.services.accounts.teams import check_room, lock
from runs.services.audit.trail import SYSTEM, Origin, record

DAYS = 7
MAX_LINKS = 20


def create_link(
    *, team: Team, by: User, participation: Participation | None = None, origin: Origin = SYSTEM
) -> tuple[InvitationLink, str]:
    """Return a new link and its code, which cannot be read again.

    With a participation, users who join take part in that campaign, too. Raise Conflict for a
    personal team, for a team with too many links, and for one that nobody may join in that
    campaign.
    """
    key, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
    now = timezone.now()

    with transaction.atomic():
        lock(team)
        if participation:
            hooks.before_invitation.send(InvitationLink, participation=participation, user=None)

        team.links.filter(expires_at__lte=now).delete()
        if team.links.count() >= MAX_LINKS:
            raise Conflict(
                f"team {team} has {MAX_LINKS} invitation links already; revoke one first"
            )

        link = InvitationLink.objects.create(
            team=team,
            key=key,
            digest=digest_of_secret(secret),
            created_by=by,
            expires_at=now + timedelta(days=DAYS),
            participation=participation,
        )

        campaign = {"campaign": participation.campaign.slug} if participation else {}
        after = {"team": team.slug, "expires_at": link.expires_at, **campaign}
        record(origin, AuditEvent.Action.INVITATION_MADE, link, after=after)

    return link, f"{key}-{secret}"


def revoke_link(*, team: Team, key: str, origin: Origin = SYSTEM) -> None:
    """Revoke a link. Raise NotFound if the team has no link with this key."""
    with transaction.atomic():
        link = team.links.filter(key=key).first()
        if link is None:
            raise NotFound(f"team {team} has no invitation link {key[:20]!r}")
        record(origin, AuditEvent.Action.INVITATION_ENDED, link, before={"team": team.slug})
        link.delete()


def find_link(code: str) -> InvitationLink:
    """Return the link with this code.

    Raise NotFound if there is none, it has expired, or the user who created it may no longer
    invite.
    """
    key, _, secret = code.partition("-")
    links = InvitationLink.objects.select_related("team", "created_by", "participation__campaign")
    link = links.filter(
        key=key[:8], expires_at__gt=timezone.now(), created_by__is_active=True
    ).first()
    matches = hmac.compare_digest(
        link.digest if link else digest_of_secret(""), digest_of_secret(secret)
    )
    if link and matches and (link.created_by.is_staff or _is_owner(link)):
        return link

    raise NotFound("this invitation has expired or was revoked; ask for another one")


def join(*, link: InvitationLink, user: User, origin: Origin = SYSTEM) -> Membership:
    """Make a user a member of the link's team, and let them take part in its campaign, if any.

    A member keeps their role. Raise Conflict for a user in too many teams, and the errors of
    joining in a campaign.
    """
    with transaction.atomic():
        lock(link.team)
        membership = link.team.memberships.filter(user=user).first()
        if membership is None:
            check_room(user)
            link.team.invitations.filter(user=user).delete()
            membership = Membership.objects.create(team=link.team, user=user)
            after = {"role": membership.role, "link": link.key}
            record(origin, AuditEvent.Action.MEMBER_ADDED, membership, after=after)

        if link.participation:
            hooks.joined.send(
                InvitationLink, participation=link.participation, user=user, origin=origin
            )

    return membership


def join_as_newcomer(
    *, link: InvitationLink, username: str, password: str, origin: Origin = SYSTEM
) -> User:
    """Return a new user who is a member of the link's team.

    Raise NotAllowed unless staff created the link.
    """
    if not link.created_by.is_staff:
        raise NotAllowed(
            "this invitation is for users with an account; an administrator can create one"
        )

    with transaction.atomic():
        user = create_account(username=username, password=password, origin=origin)
        join(link=link, user=user, origin=Origin(user, "", origin.request_id, origin.address))

    return user


def _is_owner(link: InvitationLink) -> bool:
    role = Membership.Role.OWNER
    return link.team.memberships.filter(user=link.created_by, role=role).exists()
