"""Links by which people join a team, a campaign or the server; with some they create accounts."""

from __future__ import annotations

import hmac
import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from runs import hooks
from runs.errors import Conflict, InvalidInput, NotAllowed, NotFound
from runs.models import (
    AuditEvent,
    Campaign,
    InvitationLink,
    Membership,
    Participation,
    Team,
    User,
)
from runs.models.accounts.accounts import digest_of_secret
from runs.services.accounts.accounts import create_account
from runs.services.accounts.addresses import ask_address
from runs.services.accounts.passwords import takes_passwords
from runs.services.accounts.teams import check_room, lock
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.mail.outbox import write_mail

DAYS = 7
MAX_DAYS = 90
MAX_LINKS = 20
# Open links of administrators that are of no team.
MAX_ACCOUNT_LINKS = 200
MAX_USES = 1000


def create_link(
    *, team: Team, by: User, participation: Participation | None = None, origin: Origin = SYSTEM
) -> tuple[InvitationLink, str]:
    """Return a new link of a team and its code, which cannot be read again.

    With a participation, users who join take part in that campaign, too. Raise Conflict for a
    personal team, for a team with too many links, and for one that nobody may join in that
    campaign.
    """
    with transaction.atomic():
        lock(team)
        if participation:
            hooks.before_invitation.send(InvitationLink, participation=participation, user=None)

        check_number(InvitationLink.objects.filter(team=team), MAX_LINKS, f"team {team}")
        return store_link(by=by, team=team, participation=participation, origin=origin)


def create_account_link(
    *,
    by: User | None,
    team: Team | None = None,
    email: str = "",
    days: int = DAYS,
    max_uses: int | None = 1,
    origin: Origin = SYSTEM,
) -> tuple[InvitationLink, str]:
    """Return a new link of an administrator that creates accounts, and its code.

    Those accounts are members of the team, if there is one. With an address the link is mailed to
    it, and is for one person. Raise NotAllowed for others than administrators, Conflict for a
    personal team, for too many links, and where no mail is sent.
    """
    if by is not None and not by.is_staff:
        raise NotAllowed("only administrators can invite people without an account")

    if email and not mail_has_links():
        raise Conflict(
            "this server sends no mail with links; leave out the address and send the link yourself",
            code="mail_not_set_up",
            pointer="/email",
        )

    with transaction.atomic():
        if team:
            lock(team)
            check_number(InvitationLink.objects.filter(team=team), MAX_LINKS, f"team {team}")
        else:
            of_nobody = account_links().filter(team=None)
            check_number(of_nobody, MAX_ACCOUNT_LINKS, "the server")

        link, code = store_link(
            by=by,
            team=team,
            email=User.objects.normalize_email(email),
            days=days,
            max_uses=1 if email else max_uses,
            origin=origin,
        )
        if email:
            _mail_invitation(link, code)

    return link, code


def store_link(
    *, by: User | None, days: int = DAYS, origin: Origin = SYSTEM, **fields: Any
) -> tuple[InvitationLink, str]:
    """Store a new link, and return it with its code. Call this in a transaction."""
    key, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
    link = InvitationLink.objects.create(
        key=key,
        digest=digest_of_secret(secret),
        created_by=by,
        expires_at=timezone.now() + timedelta(days=days),
        **fields,
    )

    campaign = link.participation.campaign if link.participation else link.campaign
    after = {
        **({"team": link.team.slug} if link.team else {}),
        **({"campaign": campaign.slug} if campaign else {}),
        **({"max_uses": link.max_uses} if link.max_uses else {}),
        "expires_at": link.expires_at,
    }
    record(origin, AuditEvent.Action.INVITATION_MADE, link, after=after)

    return link, f"{key}-{secret}"


def check_number(links: Any, limit: int, owner: str) -> None:
    """Delete the expired ones of these links. Raise Conflict if as many as the limit remain."""
    links.filter(expires_at__lte=timezone.now()).delete()
    if links.count() >= limit:
        raise Conflict(f"{owner} has {limit} invitation links already; revoke one first")


def account_links() -> Any:
    """Return the links of administrators, and those that were mailed by them, newest first."""
    rows = InvitationLink.objects.filter(
        campaign=None, participation=None, created_by__is_staff=True
    )
    return rows.select_related("team", "created_by")


def is_open() -> Q:
    """Return the condition of links that are not expired and not used up."""
    unused = Q(max_uses=None) | Q(uses__lt=F("max_uses"))
    return Q(expires_at__gt=timezone.now()) & unused


def revoke_link(
    *,
    key: str,
    team: Team | None = None,
    campaign: Campaign | None = None,
    origin: Origin = SYSTEM,
) -> None:
    """Revoke a link of a team or a campaign, or without either one of an administrator.

    Raise NotFound if there is none with this key.
    """
    if team:
        links, owner = InvitationLink.objects.filter(team=team), f"team {team}"
    elif campaign:
        links, owner = InvitationLink.objects.filter(campaign=campaign), f"campaign {campaign}"
    else:
        links, owner = account_links(), "the server"

    with transaction.atomic():
        link = links.filter(key=key).first()
        if link is None:
            raise NotFound(f"{owner} has no invitation link {key[:8]!r}")
        before = {"team": link.team.slug} if link.team else {}
        before |= {"campaign": link.campaign.slug} if link.campaign else {}
        record(origin, AuditEvent.Action.INVITATION_ENDED, link, before=before)
        link.delete()


def find_link(code: str) -> InvitationLink:
    """Return the link with this code.

    Raise NotFound if there is none, it has expired or was used up, its campaign is not published,
    or the user who created it may no longer invite.
    """
    key, _, secret = code.partition("-")
    links = InvitationLink.objects.select_related(
        "team", "created_by", "participation__campaign", "campaign__team"
    )
    link = links.filter(is_open(), key=key[:8]).first()
    matches = hmac.compare_digest(
        link.digest if link else digest_of_secret(""), digest_of_secret(secret)
    )
    if link and matches and _may_still_invite(link):
        return link

    raise NotFound("this invitation has expired or was revoked; ask for another one")


def use_link(link: InvitationLink) -> None:
    """Count one person who joins. Raise NotFound for a link that was revoked or used up meanwhile.

    Call this in the transaction of the joining.
    """
    if not InvitationLink.objects.filter(is_open(), pk=link.pk).update(uses=F("uses") + 1):
        raise NotFound("this invitation has expired or was revoked; ask for another one")


def creates_accounts(link: InvitationLink) -> bool:
    """Return whether people without an account may use a link to create one with a password.

    They may use those of administrators, of registration and, where the server permits it, of
    organisers of campaigns.
    """
    if not takes_passwords():
        return False
    if link.campaign:
        return link.created_by is not None and campaign_links_create_accounts(link.created_by)
    return link.created_by is None or link.created_by.is_staff


def campaign_links_create_accounts(organiser: User) -> bool:
    """Return whether people without an account may use the links of an organiser."""
    return bool(
        takes_passwords() and (organiser.is_staff or settings.EVALHUB_ORGANISERS_CREATE_ACCOUNTS)
    )


def join(*, link: InvitationLink, user: User, origin: Origin = SYSTEM) -> Membership:
    """Make a user a member of the link's team, and let them take part in its campaign, if any.

    A member keeps their role. Raise Conflict for a link without a team, a user in too many teams,
    and the errors of joining in a campaign.
    """
    team = link.team
    if team is None:
        raise Conflict("you have an account already; this invitation creates one")

    with transaction.atomic():
        lock(team)
        membership = team.memberships.filter(user=user).first()
        if membership is None:
            use_link(link)
            check_room(user)
            team.invitations.filter(user=user).delete()
            membership = Membership.objects.create(team=team, user=user)
            after = {"role": membership.role, "link": link.key}
            record(origin, AuditEvent.Action.MEMBER_ADDED, membership, after=after)

        if link.participation:
            hooks.joined.send(
                InvitationLink, participation=link.participation, user=user, origin=origin
            )

    return membership


def join_as_newcomer(
    *, link: InvitationLink, username: str, password: str, email: str = "", origin: Origin = SYSTEM
) -> User:
    """Return a new user, who is a member of the link's team if it has one.

    Raise NotAllowed for a link that creates no accounts, and the errors of `create_newcomer`.
    """
    with transaction.atomic():
        user = create_newcomer(
            link=link, username=username, password=password, email=email, origin=origin
        )
        if link.team:
            join(link=link, user=user, origin=Origin(user, "", origin.request_id, origin.address))
        else:
            use_link(link)

    return user


def create_newcomer(
    *, link: InvitationLink, username: str, password: str, email: str = "", origin: Origin = SYSTEM
) -> User:
    """Return a new user with a personal team, who opened a link.

    The address to which the link was mailed counts at once. Otherwise one is required where the
    server sends mail, and counts once a mail to it is answered. Raise NotAllowed for a link that
    creates no accounts, and the errors of `create_account` and `ask_address`.
    """
    if not creates_accounts(link):
        raise NotAllowed(
            "this invitation is for users with an account; an administrator can create one"
        )

    if settings.EVALHUB_MAIL_URL and not (email.strip() or link.email):
        raise InvalidInput("enter your mail address", code="required", pointer="/email")

    with transaction.atomic():
        user = create_account(username=username, password=password, email=link.email, origin=origin)
        if settings.EVALHUB_MAIL_URL and not link.email:
            ask_address(user=user, email=email, origin=origin)

    return user


def mail_has_links() -> bool:
    """Return whether the server sends mail, and knows the address that links in it begin with."""
    return bool(settings.EVALHUB_MAIL_URL and settings.EVALHUB_URL)


def _may_still_invite(link: InvitationLink) -> bool:
    if link.campaign and link.campaign.state != Campaign.State.PUBLISHED:
        return False
    if link.created_by is None:
        return bool(settings.EVALHUB_REGISTRATION)
    if not link.created_by.is_active:
        return False
    if link.created_by.is_staff:
        return True

    team = link.campaign.team if link.campaign else link.team
    return team is not None and Team.objects.led_by(link.created_by).filter(pk=team.pk).exists()


def _mail_invitation(link: InvitationLink, code: str) -> None:
    team = f" and makes you a member of team {link.team.name}" if link.team else ""
    text = (
        f"You are invited to EvalHub. This link creates your account{team}:\n\n"
        f"{settings.EVALHUB_URL}/join/?code={code}\n\n"
        f"It works once, until {link.expires_at:%Y-%m-%d %H:%M} UTC. If you did not expect it, do "
        "nothing.\n"
    )
    write_mail(
        event="account.invited", address=link.email, subject="Invitation to EvalHub", text=text
    )
