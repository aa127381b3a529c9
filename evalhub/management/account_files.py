"""Create the accounts of a CSV file with the columns name, email, team and password."""

from __future__ import annotations

import csv
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import CommandError
from django.db import transaction

from runs.formats.comma_separated import neutral
from runs.models import DEFAULT_SCOPES, AuditEvent, Membership, Team, User
from runs.services.accounts.teams import create_team
from runs.services.accounts.tokens import issue_token
from runs.services.audit.trail import SYSTEM, record

COLUMNS = ("name", "email", "team", "password")
MAX_LINES = 5_000
_SLUG = re.compile(r"[-a-zA-Z0-9_]{1,64}")


@dataclass(frozen=True)
class AccountLine:
    """An account to create; `number` is its line in the file. An empty password is to be drawn."""

    number: int
    name: str
    email: str
    team: str
    password: str


def read_accounts(path: Path) -> list[AccountLine]:
    """Return the accounts of a file. Raise CommandError that lists every wrong line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            header = [name.strip() for name in reader.fieldnames or []]
            unknown = [name for name in header if name not in COLUMNS]
            if "name" not in header or unknown or len(set(header)) < len(header):
                raise CommandError(
                    f"{path}: line 1 names the columns: name, and any of email, team and password;"
                    f" it is {','.join(header)[:200]!r}"
                )

            reader.fieldnames = header
            lines = [_line(reader.line_num, row) for row in reader]
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path} is not CSV in UTF-8: {error}") from error

    if not lines or len(lines) > MAX_LINES:
        raise CommandError(f"{path} has {len(lines):,} accounts; at least 1, at most {MAX_LINES:,}")

    problems = _problems(lines)
    if problems:
        raise CommandError("\n".join([*problems, "No account was created."]))

    return lines


def _line(number: int, row: dict[Any, Any]) -> AccountLine:
    if None in row or None in row.values():
        raise CommandError(f"line {number}: it has not as many values as line 1 has columns")

    cells = {name: (row.get(name) or "").strip() for name in ("name", "email", "team")}
    return AccountLine(number, **cells, password=row.get("password") or "")


def _problems(lines: Sequence[AccountLine]) -> list[str]:
    """Return what is wrong with the lines, a sentence for each problem, in their order."""
    names = [line.name for line in lines]
    taken = set(User.objects.filter(username__in=names).values_list("username", flat=True))
    personal = set(
        Team.objects.filter(
            slug__in={line.team for line in lines}, personal_of__isnull=False
        ).values_list("slug", flat=True)
    )
    problems, seen = [], dict[str, int]()

    for line in lines:
        if line.name in seen:
            problems.append(f"line {line.number}: {line.name!r} is in line {seen[line.name]}, too")
        elif line.name in taken:
            problems.append(f"line {line.number}: there is a user {line.name!r} already")

        seen.setdefault(line.name, line.number)
        user = User(username=line.name, email=line.email)
        for field, words in (("username", "a user name"), ("email", "a mail address")):
            value = getattr(user, field)
            try:
                cast(Any, User._meta.get_field(field)).clean(value, None)
            except ValidationError as error:
                problems.append(
                    f"line {line.number}: {value[:100]!r} is not {words}: {' '.join(error.messages)}"
                )

        if line.team and not _SLUG.fullmatch(line.team):
            problems.append(
                f"line {line.number}: {line.team[:100]!r} is not the short name of a team: use "
                "letters, digits, '_' and '-'"
            )
        if line.team in personal:
            problems.append(f"line {line.number}: {line.team} is the personal team of a user")

        if line.password:
            try:
                validate_password(line.password, user)
            except ValidationError as error:
                problems.append(f"line {line.number}: the password: {' '.join(error.messages)}")

    return problems


def create_accounts(lines: Sequence[AccountLine], secrets_file: Path) -> list[str]:
    """Create all accounts or none. Return a sentence for each line.

    The passwords that are drawn and the tokens go into `secrets_file`, a new file that only its
    owner reads. A team that does not exist gets the first of its people as its owner; the others
    are members. Raise CommandError if the file exists, or an account cannot be created.
    """
    try:
        descriptor = os.open(secrets_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise CommandError(f"{secrets_file} exists already; name another file with --to") from error
    except OSError as error:
        raise CommandError(f"{secrets_file}: {error.strerror}") from error

    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file, transaction.atomic():
            writer = csv.writer(file)
            writer.writerow(("name", "email", "team", "password", "token"))
            words = []
            for line in lines:
                password, token, role = _create(line)
                cells = (line.name, line.email, line.team)
                writer.writerow([*map(neutral, cells), password, token])
                teams = f", {role} of team {line.team}" if role else ""
                words.append(f"line {line.number}: {line.name} created{teams}")

            # The file is complete before the accounts exist.
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        secrets_file.unlink(missing_ok=True)
        raise

    return words


def _create(line: AccountLine) -> tuple[str, str, str]:
    """Create an account. Return the password that was drawn, a token, and the role in the team."""
    drawn = "" if line.password else secrets.token_urlsafe(12)
    user = User.objects.create_user(line.name, line.email, password=line.password or drawn)
    record(SYSTEM, AuditEvent.Action.USER_CREATED, user, after={"is_superuser": False})
    _, token = issue_token(user=user, name="first token", scopes=DEFAULT_SCOPES)

    if not line.team:
        return drawn, token, ""

    team = Team.objects.filter(slug=line.team).first()
    if team is None:
        create_team(owner=user, slug=line.team, name=line.team)
        return drawn, token, "owner"

    if team.personal_of_id is not None:
        raise CommandError(
            f"line {line.number}: {line.team} is the personal team of {team.personal_of}. No "
            "account was created."
        )

    membership = Membership.objects.create(team=team, user=user, role=Membership.Role.MEMBER)
    record(SYSTEM, AuditEvent.Action.MEMBER_ADDED, membership, after={"role": str(membership.role)})

    return drawn, token, "member"
