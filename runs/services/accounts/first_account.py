"""The first account of an install, which a browser creates with a code for the operator."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from django.conf import settings
from django.db import transaction

from runs.errors import Conflict, InvalidInput
from runs.models import Install, User
from runs.models.accounts.accounts import digest_of_secret
from runs.services.accounts.accounts import create_account
from runs.services.audit.trail import SYSTEM, Origin

# Without characters that look alike.
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
_LENGTH = 12


def offer_code() -> str:
    """Return a new code and store its digest in the data folder, in place of an earlier one."""
    code = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    path = _path()
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(digest_of_secret(code))
    return "-".join(code[start : start + 4] for start in range(0, _LENGTH, 4))


def has_code() -> bool:
    """Return whether there is a code with which the first account can be created."""
    return _path().exists()


def create_first_account(
    *, code: str, username: str, password: str, origin: Origin = SYSTEM
) -> User:
    """Return the first user, an administrator.

    Raise InvalidInput for a wrong code, user name or password, Conflict if there is an account
    already.
    """
    letters = "".join(character for character in code.upper() if character.isalnum())

    with transaction.atomic():
        # The second one of two simultaneous requests finds the account of the first one.
        Install.objects.select_for_update().first()
        if User.objects.exists():
            raise Conflict("there is an account already; log in with it")

        digest = _path().read_text() if has_code() else ""
        if not hmac.compare_digest(digest.strip(), digest_of_secret(letters)):
            message = "this is not the code that evalhub serve printed when it started last"
            raise InvalidInput(message, pointer="/code")

        user = create_account(
            username=username, password=password, administrator=True, origin=origin
        )

    _path().unlink(missing_ok=True)
    return user


def _path() -> Path:
    folder: Path = settings.EVALHUB_DATA
    return folder / "first-account.code"
