"""Teams, their members, and invitations."""

from __future__ import annotations

from django.db import IntegrityError, models, transaction

from runs import hooks
from runs.errors import Conflict, InvalidInput, NotFound
from runs.models import (
    AuditEvent,
    Collection,
    Invitation,
    InvitationLink,
    Membership,
    Participation,
    Run,
    SessionSet,
    Team,
    User,
)
from runs.services.audit.trail import SYSTEM, Origin, record

MAX_TEAMS = 20
_OWNER = Membership.Role.OWNER
_HOLDINGS: tuple[type[models.Model], ...] = (Collection, Run, SessionSet)


def create_team(*, owner: User, slug: str, name: str, origin: Origin = SYSTEM) -> Team:
    """Return a new team with its first owner.

    Raise Conflict if the slug is taken or the user is in too many teams.
    """
    try:
        with transaction.atomic():
            check_room(owner)
            team: Team = Team.objects.create(slug=slug, name=name)
            Membership.objects.create(team=team, user=owner, role=_OWNER)
            after = {"name": name, "owner": owner.username}
            record(origin, AuditEvent.Action.TEAM_CREATED, team, after=after)
    except IntegrityError as error:
        if not Team.objects.filter(slug=slug).exists():
            raise
        raise Conflict(
            f"a team {slug!r} exists already", code="slug_taken", pointer="/slug"
        ) from error

    return team


def delete_team(*, team: Team, origin: Origin = SYSTEM) -> None:
    """Delete a team with its memberships and invitations.

    Raise Conflict if it has collections, runs, session sets, campaigns or suites, and for a
    personal team.
    """
    try:
        with transaction.atomic():
            lock(team)
            if not _is_empty(team):
                raise _not_empty(team)
            _delete(team, origin)
    except IntegrityError as error:
        # It has a campaign or a suite, or a submission in its name was stored at this moment.
        raise _not_empty(team) from error


def invite(
    *,
    team: Team,
    username: str,
    role: str,
    by: User,
    participation: Participation | None = None,
    origin: Origin = SYSTEM,
) -> Invitation:
    """Invite a user to a team, or to take part with it in a campaign, and notify them by mail.

    Taking part makes them a member as well. Raise Conflict for a personal team, and for a user who
    is a member, is invited already, or cannot take part with it.
    """
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise InvalidInput(
            f"there is no user {username!r}", code="unknown_user", pointer="/username"
        )

    with transaction.atomic():
        lock(team)
        if participation:
            hooks.before_invitation.send(Invitation, participation=participation, user=user)
        elif team.memberships.filter(user=user).exists():
            raise Conflict(
                f"{username} is in team {team} already", code="already_member", pointer="/username"
            )

        if team.invitations.filter(user=user).exists():
            raise Conflict(
                f"{username} is invited already", code="already_invited", pointer="/username"
            )

        fields = {"role": role, "invited_by": by, "participation": participation}
        invitation = Invitation.objects.create(team=team, user=user, **fields)
        campaign = {"campaign": participation.campaign.slug} if participation else {}
        record(
            origin, AuditEvent.Action.INVITATION_MADE, invitation, after={"role": role, **campaign}
        )
        hooks.invited.send(Invitation, invitation=invitation)

    return invitation


def accept_invitation(*, invitation: Invitation, origin: Origin = SYSTEM) -> Membership:
    """Make the invited user a member, and let them take part in the campaign, if any.

    Raise NotFound if the invitation no longer exists, Conflict for a user in too many teams and
    for a new owner who takes part in a campaign of the team, and the errors of `join`.
    """
    with transaction.atomic():
        lock(invitation.team)

        # Its current state: it may have been withdrawn meanwhile.
        rows = Invitation.objects.select_related("team", "user", "participation")
        current = rows.filter(pk=invitation.pk).first()
        if current is None:
            raise NotFound(f"you are not invited to team {invitation.team}")

        current.delete()
        membership = current.team.memberships.filter(user=current.user).first()
        if membership is None:
            check_room(current.user)
            if current.role == _OWNER:
                hooks.before_ownership.send(Membership, team=current.team, user=current.user)

            membership = Membership.objects.create(
                team=current.team, user=current.user, role=current.role
            )
            record(origin, AuditEvent.Action.MEMBER_ADDED, membership, after={"role": current.role})

        if current.participation:
            hooks.joined.send(
                Invitation, participation=current.participation, user=current.user, origin=origin
            )

    return membership


def end_invitation(*, invitation: Invitation, origin: Origin = SYSTEM) -> None:
    """Decline an invitation, or withdraw it."""
    with transaction.atomic():
        if Invitation.objects.filter(pk=invitation.pk).delete()[0]:
            record(
                origin,
                AuditEvent.Action.INVITATION_ENDED,
                invitation,
                before={"role": invitation.role},
            )


def change_role(*, membership: Membership, role: str, origin: Origin = SYSTEM) -> None:
    """Make a member an owner, or an owner a member.

    Raise Conflict if no owner would be left, and for an owner who takes part in a campaign of the
    team.
    """
    with transaction.atomic():
        before, others = _roles(membership)
        if role == _OWNER:
            hooks.before_ownership.send(Membership, team=membership.team, user=membership.user)
        else:
            if _OWNER not in others:
                raise _last_owner(membership)
            _end_invitations_by(membership)

        Membership.objects.filter(pk=membership.pk).update(role=role)
        record(
            origin,
            AuditEvent.Action.MEMBER_CHANGED,
            membership,
            before={"role": before},
            after={"role": role},
        )

    membership.role = role


def remove_member(*, membership: Membership, origin: Origin = SYSTEM) -> None:
    """Remove a user from a team, which keeps the runs. Raise Conflict if no owner would be left.

    The last member of an empty team may leave, and the team is deleted.
    """
    try:
        with transaction.atomic():
            before, others = _roles(membership)
            ends_team = not others and _is_empty(membership.team)
            if _OWNER not in others and not ends_team:
                raise _last_owner(membership)

            _end_invitations_by(membership)
            record(origin, AuditEvent.Action.MEMBER_REMOVED, membership, before={"role": before})
            membership.delete()

            if ends_team:
                _delete(membership.team, origin)
    except IntegrityError as error:
        # As for `delete_team`.
        raise _last_owner(membership) from error


def _roles(membership: Membership) -> tuple[str, list[str]]:
    """Return the current role of a membership, and the roles of the other members.

    Raise Conflict if it no longer exists.
    """
    team = membership.team
    lock(team)
    roles = dict(team.memberships.values_list("pk", "role"))
    if membership.pk not in roles:
        raise Conflict(f"{membership} no longer exists", code="conflict")

    others = [str(role) for pk, role in roles.items() if pk != membership.pk]
    return str(roles[membership.pk]), others


def _last_owner(membership: Membership) -> Conflict:
    return Conflict(
        f"{membership.user} is the last owner of team {membership.team}; "
        "make another member an owner first",
        code="last_owner",
    )


def _not_empty(team: Team) -> Conflict:
    return Conflict(
        f"team {team} has collections, runs, session sets, campaigns or suites; they stay, and so does it",
        code="not_empty",
    )


def _is_empty(team: Team) -> bool:
    """Return whether a team has no collections and submissions, not even withdrawn ones."""
    return not any(model._default_manager.filter(team=team).exists() for model in _HOLDINGS)


def _delete(team: Team, origin: Origin) -> None:
    record(origin, AuditEvent.Action.TEAM_DELETED, team, before={"name": team.name})
    # By its key: the object keeps the name of its team.
    Team.objects.filter(pk=team.pk).delete()


def _end_invitations_by(membership: Membership) -> None:
    """Delete the invitations and links of a user who is no longer an owner."""
    InvitationLink.objects.filter(team=membership.team, created_by=membership.user).delete()
    Invitation.objects.filter(team=membership.team, invited_by=membership.user).delete()


def check_room(user: User) -> None:
    """Raise Conflict for a user in 20 teams, the personal one included. Lock the user's row."""
    User.objects.select_for_update().get(pk=user.pk)
    if Team.objects.of(user).count() >= MAX_TEAMS:
        raise Conflict(
            f"you are in {MAX_TEAMS} teams already; leave one first", code="too_many_teams"
        )


def lock(team: Team) -> None:
    """Lock a team against simultaneous changes, which could leave it without an owner.

    Raise Conflict for a personal team, NotFound for one that was deleted meanwhile.
    """
    locked = Team.objects.select_for_update().filter(pk=team.pk).first()
    if locked is None:
        raise NotFound(f"there is no team {team}")

    if locked.personal_of_id is not None:
        message = (
            f"{team} is the personal team of {locked.personal_of}; create a team to add members"
        )
        raise Conflict(message, code="personal_team")
