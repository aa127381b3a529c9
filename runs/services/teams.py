"""Teams and who is in them."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from runs.errors import Conflict, InvalidInput
from runs.models import AuditEvent, Membership, Team, User
from runs.services.audit import SYSTEM, Origin, record

MAX_TEAMS = 20
_OWNER = Membership.Role.OWNER


def create_team(*, owner: User, slug: str, name: str, origin: Origin = SYSTEM) -> Team:
    """A new team with its first owner; Conflict where the slug is taken, or the user has many teams already."""
    try:
        with transaction.atomic():
            User.objects.select_for_update().get(pk=owner.pk)
            if Team.objects.led_by(owner).count() >= MAX_TEAMS:
                raise Conflict(f"you own {MAX_TEAMS} teams already", code="too_many_teams")
            team: Team = Team.objects.create(slug=slug, name=name)
            Membership.objects.create(team=team, user=owner, role=_OWNER)
            after = {"name": name, "owner": owner.username}
            record(origin, AuditEvent.Action.TEAM_CREATED, team, after=after)
    except IntegrityError as error:
        if not Team.objects.filter(slug=slug).exists():
            raise
        raise Conflict(f"a team {slug!r} exists already", code="slug_taken", pointer="/slug") from error
    return team


def add_member(*, team: Team, username: str, role: str, origin: Origin = SYSTEM) -> Membership:
    """Put a user into a team; Conflict for a team of one, and for who is in it already."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise InvalidInput(f"there is no user {username!r}", code="unknown_user", pointer="/username")
    with transaction.atomic():
        _lock(team)
        if team.memberships.filter(user=user).exists():
            raise Conflict(f"{username} is in team {team} already", code="already_member", pointer="/username")
        membership = Membership.objects.create(team=team, user=user, role=role)
        record(origin, AuditEvent.Action.MEMBER_ADDED, membership, after={"role": role})
    return membership


def change_role(*, membership: Membership, role: str, origin: Origin = SYSTEM) -> None:
    """Make a member an owner or the other way round; Conflict where no owner would be left."""
    with transaction.atomic():
        before = _owners_kept(membership, role)
        Membership.objects.filter(pk=membership.pk).update(role=role)
        record(origin, AuditEvent.Action.MEMBER_CHANGED, membership, before={"role": before}, after={"role": role})
    membership.role = role


def remove_member(*, membership: Membership, origin: Origin = SYSTEM) -> None:
    """Take a user out of a team; Conflict where no owner would be left. The runs stay the team's."""
    with transaction.atomic():
        before = {"role": _owners_kept(membership, None)}
        record(origin, AuditEvent.Action.MEMBER_REMOVED, membership, before=before)
        membership.delete()


def _owners_kept(membership: Membership, role: str | None) -> str:
    """The role that a membership has now; Conflict where `role` in its place would leave no owner."""
    team = membership.team
    _lock(team)
    roles = dict(team.memberships.values_list("pk", "role"))
    if membership.pk not in roles:
        raise Conflict(f"{membership} no longer exists", code="conflict")
    others = [other for pk, other in roles.items() if pk != membership.pk]
    if role != _OWNER and _OWNER not in others:
        message = f"{membership.user} is the last owner of team {team}; make another member an owner first"
        raise Conflict(message, code="last_owner")
    return str(roles[membership.pk])


def _lock(team: Team) -> None:
    """Against two changes at once, of which each would leave the other's owner; Conflict for a team of one."""
    locked = Team.objects.select_for_update().get(pk=team.pk)
    if locked.personal_of_id is not None:
        message = f"{team} is the personal team of {locked.personal_of}; create a team to add members"
        raise Conflict(message, code="personal_team")
