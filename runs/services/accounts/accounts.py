"""Create, change, disable, enable and delete accounts."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, ProtectedError

from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, User
from runs.services.audit.trail import SYSTEM, Origin, changed, record


def create_account(
    *,
    username: str,
    password: str | None,
    email: str = "",
    administrator: bool = False,
    origin: Origin = SYSTEM,
) -> User:
    """Return a new user with a personal team; mail goes to the address at once.

    Without a password the user cannot log in with one.
    Raise InvalidInput for a name, a password or an address that is not permitted, Conflict if the
    name is taken.
    """
    username = User.normalize_username(username.strip())
    pointer = "/username"
    try:
        User._meta.get_field("username").clean(username, None)
        pointer = "/password"
        if password is not None:
            validate_password(password, User(username=username, email=email))
        pointer = "/email"
        User._meta.get_field("email").clean(email, None)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), pointer=pointer) from error

    create = User.objects.create_superuser if administrator else User.objects.create_user
    try:
        with transaction.atomic():
            user = create(username, email, password=password)
            record(
                origin, AuditEvent.Action.USER_CREATED, user, after={"is_superuser": administrator}
            )
    except IntegrityError as error:
        if not User.objects.filter(username=username).exists():
            raise
        raise Conflict(f"there is a user {username!r} already", pointer="/username") from error

    return user


def disable_user(*, user: User, origin: Origin = SYSTEM) -> None:
    """Disable an account: its password, sessions and tokens no longer work; its submissions stay.

    Raise Conflict for one's own account and one that is disabled, and NotAllowed for accounts of
    superusers and staff unless the actor is a superuser.
    """
    if origin.actor and origin.actor.pk == user.pk:
        raise Conflict("you cannot disable your own account")
    _set_active(user, False, origin)


def enable_user(*, user: User, origin: Origin = SYSTEM) -> None:
    """Enable an account again, with its tokens and without its sessions. Raise Conflict if it is
    not disabled."""
    _set_active(user, True, origin)


def check_may_manage(user: User, origin: Origin) -> None:
    """Raise NotAllowed for accounts of superusers and staff unless the actor is a superuser.

    Commands on the server, which have no actor, may manage all accounts.
    """
    if (user.is_superuser or user.is_staff) and origin.actor and not origin.actor.is_superuser:
        role = "a superuser" if user.is_superuser else "staff"
        raise NotAllowed(f"{user} is {role}; only a superuser can do this")


def _set_active(user: User, active: bool, origin: Origin) -> None:
    check_may_manage(user, origin)
    with transaction.atomic():
        # Earlier sessions stay closed, also when the account is enabled again.
        changes = {"is_active": active, "sessions_ended": F("sessions_ended") + 1}
        if not User.objects.filter(pk=user.pk, is_active=not active).update(**changes):
            raise Conflict(f"{user} is {'active' if active else 'disabled'} already")
        before, after = {"is_active": not active}, {"is_active": active}
        record(origin, AuditEvent.Action.USER_CHANGED, user, before=before, after=after)


def change_password(*, user: User, password: str, origin: Origin = SYSTEM) -> None:
    """Set a validated password. This ends the account's sessions, but not its tokens."""
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        record(origin, AuditEvent.Action.USER_CHANGED, user, after={"password": "changed"})


def end_sessions(*, user: User, origin: Origin = SYSTEM) -> None:
    """End all sessions of an account, on every device."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(sessions_ended=F("sessions_ended") + 1)
        record(origin, AuditEvent.Action.USER_CHANGED, user, after={"sessions": "ended"})
    user.refresh_from_db(fields=["sessions_ended"])


def change_account(*, user: User, origin: Origin = SYSTEM, **changes: str | bool) -> None:
    """Change `username`, `email`, `is_staff` or `is_superuser`. Raise InvalidInput for a value that
    is not permitted, Conflict if the name is taken."""
    for name, value in changes.items():
        field: Any = User._meta.get_field(name)
        try:
            field.clean(value, None)
        except ValidationError as error:
            raise InvalidInput(" ".join(error.messages), pointer=f"/{name}") from error

    username = changes.get("username", user.username)
    if User.objects.filter(username=username).exclude(pk=user.pk).exists():
        raise Conflict(f"there is a user {username!r} already", pointer="/username")

    before, after = changed(user, changes)
    if not after:
        return

    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(**after)

        # The trail records that an address was changed, not the address.
        if "email" in after:
            before, after = {**before, "email": ""}, {**after, "email": "changed"}
        record(origin, AuditEvent.Action.USER_CHANGED, user, before=before, after=after)

    user.refresh_from_db()


def delete_account(*, user: User, origin: Origin = SYSTEM) -> None:
    """Delete an account and its personal team. Raise Conflict if that team submitted or organises
    something."""
    try:
        with transaction.atomic():
            before = {"name": user.username}
            record(origin, AuditEvent.Action.USER_DELETED, user, before=before)
            user.delete()
    except ProtectedError as error:
        raise Conflict(
            f"the personal team of {user} has runs, collections, campaigns or suites; "
            "disable the account instead"
        ) from error
